use alloc::sync::Arc;
use core::num::NonZeroU64;
use core::time::Duration;

use crate::rules::Block;

/// One limit that a request is checked against: the key, the limit, and the permits that the request costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterRequest {
    key_hash: u128,
    rule: Arc<str>,
    /// The start of the period plus 1, in 8 bytes. Each lease has a request.
    period: Option<NonZeroU64>,
    quota_index: u16,
    counting: Counting,
    limit: u64,
    window: Duration,
    permits: u64,
    enforced: bool,
    reserve: u64,
    leasable: bool,
    slot: SlotId,
    block: Option<Arc<Block>>,
}

/// The name of a slot in flight, which no other slot of a store has: the number of its node, and its number there. Both are below
/// 2^53.
pub type SlotId = (u64, u64);

/// How permits are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Counting {
    /// Each permit with its time: exact.
    Log,
    /// This many cells in a window, and one more: constant memory, and up to a cell too strict.
    Cells(u64),
    /// The generic cell rate algorithm of [`Gcra`](crate::Gcra): at most this burst at once, refilled by the limit in a
    /// window. A time per permit is rounded up to half a nanosecond. If the limit or the burst changes, the bucket keeps the permits
    /// that it was charged.
    Gcra(u64),
    /// Each [slot](CounterRequest::with_slot) in flight with the time at which it ends, which is a window after its last renewal.
    /// Only stores that [keep slots](super::CounterStore::keeps_slots) get it.
    Slots,
    /// The violations of a rule by a key, and the [block](CounterRequest::with_block) of the key. The limit and the window are those of
    /// [`Block::after`]. Only stores that [keep blocks](super::CounterStore::keeps_blocks) get it.
    Violations,
}

impl CounterRequest {
    /// A request of one permit against `limit` permits in `window`, for the first quota of a rule.
    ///
    /// Rules make their own requests; this is for tests of a store.
    #[must_use]
    pub fn new(
        rule: impl Into<Arc<str>>,
        key_hash: u128,
        counting: Counting,
        limit: u64,
        window: Duration,
    ) -> Self {
        Self {
            key_hash,
            rule: rule.into(),
            period: None,
            quota_index: 0,
            counting,
            limit,
            window,
            permits: 1,
            enforced: true,
            reserve: 0,
            leasable: true,
            slot: (0, 0),
            block: None,
        }
    }

    /// Names the period of a [fixed window or a calendar](crate::shared#fixed-windows-and-calendars), by its start in microseconds
    /// since 1970. Each period has a counter of its own.
    #[must_use]
    pub const fn with_period(mut self, start: u64) -> Self {
        self.period = NonZeroU64::new(start.saturating_add(1));
        self
    }

    /// Requests this many permits instead.
    #[must_use]
    pub const fn with_permits(mut self, permits: u64) -> Self {
        self.permits = permits;
        self
    }

    /// Leaves `reserve` permits of the limit free.
    #[must_use]
    pub const fn with_reserve(mut self, reserve: u64) -> Self {
        self.reserve = reserve;
        self
    }

    /// Says whether the request is denied when this counter has no room.
    #[must_use]
    pub const fn with_enforced(mut self, enforced: bool) -> Self {
        self.enforced = enforced;
        self
    }

    /// Names the slot of [`Counting::Slots`] that the request holds, renews or releases.
    #[must_use]
    pub const fn with_slot(mut self, slot: SlotId) -> Self {
        self.slot = slot;
        self
    }

    /// Sets the block of [`Counting::Violations`].
    #[must_use]
    pub fn with_block(mut self, block: impl Into<Arc<Block>>) -> Self {
        self.block = Some(block.into());
        self
    }

    #[expect(clippy::cast_possible_truncation, reason = "a rule has at most 16 quotas")]
    pub(crate) const fn with_quota_index(mut self, quota_index: usize) -> Self {
        self.quota_index = quota_index as u16;
        self
    }

    pub(crate) const fn with_leasable(mut self, leasable: bool) -> Self {
        self.leasable = leasable;
        self
    }

    /// A hash of the key, equal on all machines. Counts of one hash belong together.
    #[must_use]
    pub const fn key_hash(&self) -> u128 {
        self.key_hash
    }

    /// The rule's name. The counters of one rule, and its [violations](Counting::Violations), have the same one.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The start of the period whose permits the counter counts, in microseconds since 1970. `None`: it counts the permits of a
    /// sliding window.
    #[must_use]
    pub const fn period(&self) -> Option<u64> {
        match self.period {
            Some(next) => Some(next.get() - 1),
            None => None,
        }
    }

    /// The position of the quota in its rule. Key hash, rule, period, position, counting and window together name a counter; the
    /// window does not name one of [`Counting::Slots`] or [`Counting::Violations`].
    #[must_use]
    pub const fn quota_index(&self) -> usize {
        self.quota_index as usize
    }

    /// How permits are counted.
    #[must_use]
    pub const fn counting(&self) -> Counting {
        self.counting
    }

    /// The most permits in a window.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The most permits at once: the burst of [`Counting::Gcra`], and the limit otherwise.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        match self.counting {
            Counting::Gcra(burst) => burst,
            Counting::Log | Counting::Cells(_) | Counting::Slots | Counting::Violations => self.limit,
        }
    }

    /// The time in which one permit is refilled at the limit, in halves of a nanosecond, rounded up.
    #[must_use]
    pub const fn time_per_permit(&self) -> u64 {
        let limit = if self.limit == 0 { 1 } else { self.limit as u128 };
        let time = (2 * self.window.as_nanos()).div_ceil(limit);
        if time > u64::MAX as u128 {
            u64::MAX
        } else {
            time as u64
        }
    }

    /// The window. Of [`Counting::Slots`], the time for which a slot is held without a renewal.
    #[must_use]
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// The permits that the request costs, at least one. For [`Counting::Violations`]: 1 if a denial is a violation,
    /// otherwise 0.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// The permits of the limit that must stay free, because the node holds them as a budget that the store has not registered.
    ///
    /// The request is denied unless the charged, held, requested and reserved permits together are at most the limit. The
    /// [status](super::CounterStatus) of the counter leaves the reserve out of account. So if each status of a denial has room, the
    /// reserve alone is in the way.
    #[must_use]
    pub const fn reserve(&self) -> u64 {
        self.reserve
    }

    /// Whether the request is denied when this counter has no room.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        self.enforced
    }

    /// The slot of [`Counting::Slots`] that the request holds, renews or releases.
    #[must_use]
    pub const fn slot(&self) -> SlotId {
        self.slot
    }

    /// The block of [`Counting::Violations`].
    #[must_use]
    pub fn block(&self) -> Option<&Block> {
        self.block.as_deref()
    }

    /// Whether nodes may hold leases of this counter, as far as the requesting node knows.
    #[must_use]
    pub const fn is_leasable(&self) -> bool {
        self.leasable
    }
}
