use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::time::Duration;

use super::accounts::Accounts;
use super::store_error::StoreError;

/// Keeps the counts of limits that many machines share.
///
/// Redis is one ([`RedisStore`](super::RedisStore)); anything that can look at several counts and change them as one
/// may be another. An implementation promises:
///
/// - [`take`](Self::take) is all or nothing, and linearizable: of all parts of one name, by all machines, those that
///   were taken never add up to more than the limit in any window of the store's own time. A part that is refused is
///   charged nothing, and neither are the others.
/// - Nothing rests on the clock of the machine that asks.
/// - Every call ends, within a time that the implementation states, with an answer or an error. After an error it is
///   not known whether the parts were taken, unless the error [says so](StoreError::is_unsent). A call whose future
///   is dropped may still take them.
/// - What is kept for a name is forgotten when it no longer counts, and not before.
///
/// # Examples
///
/// A store for tests, which always has room:
///
/// ```
/// use ringgate::redis::{Answer, Found, Part, Store, Verdict};
///
/// #[derive(Debug)]
/// struct Unlimited;
///
/// impl Store for Unlimited {
///     fn take<'a>(&'a self, parts: &'a [Part]) -> Answer<'a, Verdict> {
///         self.peek(parts)
///     }
///
///     fn peek<'a>(&'a self, parts: &'a [Part]) -> Answer<'a, Verdict> {
///         let found = parts.iter().map(|part| Found::with_room(part.limit())).collect();
///         Box::pin(async { Ok(Verdict::new(0, found)) })
///     }
///
///     fn give_back<'a>(&'a self, _: &'a [Part], _: &'a Verdict) -> Answer<'a, u64> {
///         Box::pin(async { Ok(0) })
///     }
///
///     fn reset<'a>(&'a self, _: &'a [Part]) -> Answer<'a, ()> {
///         Box::pin(async { Ok(()) })
///     }
/// }
/// ```
pub trait Store: fmt::Debug + Send + Sync {
    /// Takes the permits of all parts if every [enforced](Part::is_enforced) one has room. Of rules that are not
    /// enforced, those whose parts all have room are taken with the others.
    fn take<'a>(&'a self, parts: &'a [Part]) -> Answer<'a, Verdict>;

    /// Says what [`take`](Self::take) would say now, and changes nothing.
    fn peek<'a>(&'a self, parts: &'a [Part]) -> Answer<'a, Verdict>;

    /// Gives back what [`take`](Self::take) has taken for these parts, once, for requests that were not served after
    /// all. Says how many permits could not be given back.
    fn give_back<'a>(&'a self, parts: &'a [Part], taken: &'a Verdict) -> Answer<'a, u64>;

    /// Forgets what the parts' names have spent.
    fn reset<'a>(&'a self, parts: &'a [Part]) -> Answer<'a, ()>;

    /// What it does for nodes that decide by themselves; `None`: nothing, and no rule may be in a
    /// [`Mode`](crate::Mode) that needs it.
    fn accounts(&self) -> Option<&dyn Accounts> {
        None
    }
}

/// What a store answers, when it does.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// One limit that a request is asked of: whose, how much is allowed, and how much is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub(super) tag: u128,
    pub(super) rule: Arc<str>,
    pub(super) number: usize,
    pub(super) counting: Counting,
    pub(super) limit: u64,
    pub(super) window: Duration,
    pub(super) permits: u64,
    pub(super) enforced: bool,
    pub(super) reserve: u64,
    /// Whether nodes may have holds of it, as far as this one knows.
    pub(super) leased: bool,
}

/// How a limit is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Counting {
    /// Each permit by itself: exact.
    Log,
    /// By so many cells to a window, and one more: constant memory, and up to a cell too strict.
    Cells(u64),
}

impl Part {
    /// Stands for the key: the same for the same key on all machines. What is kept for one tag belongs together.
    #[must_use]
    pub const fn tag(&self) -> u128 {
        self.tag
    }

    /// The rule's name.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// Which of the rule's quotas. Tag, rule, number, counting and window together are the name that counts are kept
    /// under.
    #[must_use]
    pub const fn number(&self) -> usize {
        self.number
    }

    /// How it is counted.
    #[must_use]
    pub const fn counting(&self) -> Counting {
        self.counting
    }

    /// The most permits in a window.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The window.
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// The permits that are wanted, one at least.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// The permits of the limit that are to be left alone: the request has room for it when S + H + n and this are no
    /// more than the limit. (A node has them as a budget that is registered nowhere.)
    #[must_use]
    pub const fn reserve(&self) -> u64 {
        self.reserve
    }

    /// Whether the request is refused when this part has no room.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        self.enforced
    }
}

/// What a store has found, part by part, and what became of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    at: u64,
    found: Vec<Found>,
    admitted: bool,
}

impl Verdict {
    /// That all parts were taken, of what was found at `at`, in microseconds of the store's time.
    #[must_use]
    pub const fn new(at: u64, found: Vec<Found>) -> Self {
        Self {
            at,
            found,
            admitted: true,
        }
    }

    /// That none was taken.
    #[must_use]
    pub const fn refused(at: u64, found: Vec<Found>) -> Self {
        Self {
            at,
            found,
            admitted: false,
        }
    }

    /// The reading of the store's clock that the request was judged at, in microseconds of the store's time.
    #[must_use]
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// What was found, one for each part, in their order.
    #[must_use]
    pub fn found(&self) -> &[Found] {
        &self.found
    }

    /// Whether the request is admitted: all enforced parts had room.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        self.admitted
    }
}

/// What a store has found of one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    room: bool,
    taken: bool,
    remaining: u64,
    retry_after: Option<Duration>,
    receipt: (u64, u64),
}

impl Found {
    /// That there was room, and so many permits are left (after what was taken).
    #[must_use]
    pub const fn with_room(remaining: u64) -> Self {
        Self {
            room: true,
            taken: true,
            remaining,
            retry_after: Some(Duration::ZERO),
            receipt: (0, 0),
        }
    }

    /// That there was no room, so many permits are left, and the wanted ones would be there after this time; `None`:
    /// never.
    #[must_use]
    pub const fn without_room(remaining: u64, retry_after: Option<Duration>) -> Self {
        Self {
            room: false,
            taken: false,
            remaining,
            retry_after,
            receipt: (0, 0),
        }
    }

    /// That it was left alone all the same: another part of its rule, which is not enforced, has no room.
    #[must_use]
    pub const fn left_alone(self) -> Self {
        Self { taken: false, ..self }
    }

    /// With two numbers of the store's own, which [`give_back`](Store::give_back) is shown again.
    #[must_use]
    pub const fn with_receipt(self, first: u64, second: u64) -> Self {
        Self {
            receipt: (first, second),
            ..self
        }
    }

    /// Whether there was room for the permits that were wanted.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        self.room
    }

    /// Whether it was taken, if the request is admitted.
    #[must_use]
    pub const fn is_taken(&self) -> bool {
        self.taken
    }

    /// The permits that are left.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// After which time there will be room, by the store's clock, if nobody else asks; `None`: never.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The two numbers of the store's own.
    #[must_use]
    pub const fn receipt(&self) -> (u64, u64) {
        self.receipt
    }
}
