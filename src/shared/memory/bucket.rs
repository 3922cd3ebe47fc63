//! The token bucket of a counter of a store in memory, by the generic cell rate algorithm.

use core::time::Duration;

use crate::shared::store::CounterRequest;

/// A token bucket. Times are in halves of a nanosecond.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBucket {
    /// The theoretical arrival time, at which no charge of the bucket counts any more.
    empty_at: u128,
    /// The time per permit of the last charge, which converts `empty_at` to permits.
    time_per_permit: u64,
    /// Grows with each charge, refund and reset, so that a receipt names one charge.
    changes: u64,
}

/// The units of time in a nanosecond.
const UNITS: u128 = 2;

/// The units of a time.
fn units(now: u64) -> u128 {
    u128::from(now) * UNITS
}

/// The time of this number of permits.
fn time_of(request: &CounterRequest, permits: u64) -> u128 {
    u128::from(permits) * u128::from(request.time_per_permit())
}

impl TokenBucket {
    /// A full bucket. `changes` is the number of its first receipt, less one.
    pub(super) const fn new(changes: u64) -> Self {
        Self {
            empty_at: 0,
            time_per_permit: 1,
            changes,
        }
    }

    /// Whether the bucket is as full as a new one.
    pub(super) fn is_expired(&self, now: u64) -> bool {
        self.empty_at <= units(now)
    }

    /// The time until no charge counts any more. At another rate than that of the last charge, the same permits take another time.
    fn ahead(&self, request: &CounterRequest, now: u64) -> u128 {
        let ahead = self.empty_at.saturating_sub(units(now));
        (ahead * u128::from(request.time_per_permit())).div_ceil(u128::from(self.time_per_permit))
    }

    /// The permits that the bucket has.
    pub(super) fn free(&self, request: &CounterRequest, now: u64) -> u64 {
        let room = time_of(request, request.capacity()).saturating_sub(self.ahead(request, now));
        let free = room / u128::from(request.time_per_permit().max(1));
        u64::try_from(free).unwrap_or(u64::MAX)
    }

    /// The time until the bucket has this number of permits. `None`: it never has.
    pub(super) fn wait(&self, request: &CounterRequest, permits: u64, now: u64) -> Option<Duration> {
        if permits > request.capacity() {
            return None;
        }
        let after = self.ahead(request, now) + time_of(request, permits);
        let wait = after
            .saturating_sub(time_of(request, request.capacity()))
            .div_ceil(UNITS);
        Some(Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX)))
    }

    /// Charges permits, whether it has them or not, and returns a receipt.
    pub(super) fn charge(&mut self, request: &CounterRequest, permits: u64, now: u64) -> (u64, u64) {
        self.empty_at = units(now) + self.ahead(request, now) + time_of(request, permits);
        self.time_per_permit = request.time_per_permit().max(1);
        self.changes += 1;
        self.receipt()
    }

    /// The receipt of the last change.
    fn receipt(&self) -> (u64, u64) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the lower half, which differs within 292 years"
        )]
        let empty_at = self.empty_at as u64;
        (self.changes, empty_at)
    }

    /// Refunds while nothing was charged or refunded since: later charges began where this one ended.
    pub(super) fn refund(&mut self, request: &CounterRequest, receipt: (u64, u64)) -> u64 {
        if self.receipt() != receipt {
            return 0;
        }
        self.empty_at = self.empty_at.saturating_sub(time_of(request, request.permits()));
        self.changes += 1;
        request.permits()
    }

    /// Fills the bucket.
    pub(super) fn reset(&mut self) {
        self.empty_at = 0;
        self.changes += 1;
    }
}
