use alloc::boxed::Box;
use core::fmt;
use core::future::Future;
use core::pin::Pin;

use super::check_result::CheckResult;
use super::counter_request::CounterRequest;
use super::lease_store::LeaseStore;
use crate::rules::StoreError;

/// Keeps the counters of limits that many machines share.
///
/// `redis::RedisStore` is one, and [`MemoryStore`](crate::shared::MemoryStore) another. Any store that can read several
/// counters and change them in one step may be a third. An implementation promises:
///
/// - [`decide`](Self::decide) charges all counters or none, and is linearizable: the permits charged to one counter, by
///   all machines, are at most its limit in any window of the store's own time.
/// - No decision depends on the clock of the requesting machine.
/// - Every call ends within a time that the implementation states, with an answer or an error. After an error the
///   counters may have been charged, unless the error [says otherwise](StoreError::is_unsent). A call whose future is
///   dropped may still charge them.
/// - A counter is forgotten when none of its permits counts any more, and not before.
///
/// [`conformance`](crate::shared::conformance) tests an implementation against these promises. A store says what else it keeps, by
/// [`leases`](Self::leases), [`keeps_slots`](Self::keeps_slots) and [`keeps_blocks`](Self::keeps_blocks), and is tested for that, too.
/// A store in a server gets timeouts, a circuit breaker and new connections by a
/// [`Supervisor`](crate::shared::supervision::Supervisor).
///
/// # Examples
///
/// A store for tests, which always has room:
///
/// ```
/// use ringgate::shared::{CheckResult, CounterRequest, CounterStatus, CounterStore, LeaseStore, StoreFuture};
///
/// #[derive(Debug)]
/// struct Unlimited;
///
/// impl CounterStore for Unlimited {
///     fn decide<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
///         self.peek(requests)
///     }
///
///     fn peek<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
///         let statuses = requests.iter().map(|it| CounterStatus::with_room(it.limit())).collect();
///         Box::pin(async { Ok(CheckResult::admitted(0, statuses)) })
///     }
///
///     fn charge<'a>(&'a self, _: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
///         Box::pin(async { Ok(()) })
///     }
///
///     fn refund<'a>(&'a self, _: &'a [CounterRequest], _: &'a CheckResult) -> StoreFuture<'a, u64> {
///         Box::pin(async { Ok(0) })
///     }
///
///     fn reset<'a>(&'a self, _: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
///         Box::pin(async { Ok(()) })
///     }
///
///     fn leases(&self) -> Option<&dyn LeaseStore> {
///         None
///     }
///
///     fn keeps_slots(&self) -> bool {
///         false
///     }
///
///     fn keeps_blocks(&self) -> bool {
///         false
///     }
/// }
/// ```
pub trait CounterStore: fmt::Debug + Send + Sync {
    /// Charges all counters if every [enforced](CounterRequest::is_enforced) one has room for its permits and its
    /// [reserve](CounterRequest::reserve).
    ///
    /// The counters of a rule that is not enforced are charged with the others if all counters of that rule have room.
    fn decide<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult>;

    /// Returns the result that [`decide`](Self::decide) would return now, and changes nothing. A denial counts no violation.
    fn peek<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult>;

    /// Charges all counters, whether they have room or not: debt, for permits that were used without being reserved.
    fn charge<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()>;

    /// Refunds, once, the permits that [`decide`](Self::decide) charged for these requests. Returns how many permits it
    /// could not refund. A request may name fewer permits than were charged. Permits that were charged before a
    /// [reset](Self::reset) are not refunded after it. A store that refunds less than it can is stricter, and
    /// [`conformance`](crate::shared::conformance) rejects it.
    fn refund<'a>(&'a self, requests: &'a [CounterRequest], charged: &'a CheckResult)
    -> StoreFuture<'a, u64>;

    /// Forgets the charges to these counters. Leases stay.
    fn reset<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()>;

    /// Whether the store counts [slots in flight](super::Counting::Slots). Otherwise no rule over it may limit
    /// [requests in flight](crate::Rule::in_flight), unless its mode is `Local`.
    ///
    /// Such a store promises of a counter of slots, beside the rules above:
    ///
    /// - A slot counts from the call that adds it until its release, or until a window has passed since its last renewal.
    /// - [`decide`](Self::decide) adds the slot of each request. There is room if fewer slots than the limit count.
    /// - [`charge`](Self::charge) renews the slot, or adds it if it is not known, whatever the limit.
    /// - [`refund`](Self::refund) releases the slot. A slot that is not known is released already.
    /// - A denial has no [`retry_after`](super::CounterStatus::retry_after): a release frees a slot, and not a time.
    fn keeps_slots(&self) -> bool;

    /// Whether the store counts [violations](super::Counting::Violations). Otherwise no rule over it may have a
    /// [block](crate::Rule::block).
    ///
    /// Such a store promises of a counter of violations, beside the rules above:
    ///
    /// - It has no room while the key is blocked, and room at all other times.
    /// - An admission does not charge it.
    /// - A denial by [`decide`](Self::decide) counts one violation if the counter's request has
    ///   [permits](super::CounterRequest::permits), the key is not blocked, and another enforced counter of the same
    ///   [rule](super::CounterRequest::rule) has no room. If the violation begins a block, as [`Block`](crate::rules::Block) says,
    ///   the counter's status is that of a blocked key, with the [receipt](super::CounterStatus::with_receipt) (1, 0).
    /// - A denial of a blocked key extends the block if the block [extends](crate::rules::Block::extends) and the counter's request
    ///   has permits. Otherwise it changes nothing.
    /// - [`charge`](Self::charge) and [`refund`](Self::refund) change nothing. [`reset`](Self::reset) ends the block, and forgets the
    ///   violations and the number of earlier blocks.
    fn keeps_blocks(&self) -> bool;

    /// The leases of this store. `None`: no rule over it may have a [`Mode`](crate::rules::Mode) that needs them.
    fn leases(&self) -> Option<&dyn LeaseStore>;
}

/// The future of a call to a store.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;
