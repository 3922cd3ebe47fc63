use super::denied::StripedDenied;
use super::limiter::StripedLimiter;
use super::thread_index;
use crate::clock::Clock;
use crate::time::Nanos;

impl<C: Clock> StripedLimiter<C> {
    /// Admits a request for one permit if there is capacity.
    ///
    /// # Errors
    ///
    /// Returns a denial if there is no capacity. Nothing is consumed then.
    ///
    /// # Concurrency
    ///
    /// One atomic instruction takes the permit from a stripe or from the ring, and no other caller gets it. A denial is right for
    /// one moment of the call: neither the ring nor a stripe has capacity then. This does not include stripes that another thread
    /// is charging, nor those that it has charged before it reopens the limiter.
    #[inline(always)]
    pub fn check(&self) -> Result<(), StripedDenied<'_, C>> {
        self.check_n(1)
    }

    /// Admits a request for `permits` permits if one stripe or the ring has capacity for all of them. A request for
    /// zero permits is always admitted.
    ///
    /// The ring decides every request for more permits than a [batch](Self::batch).
    ///
    /// # Errors
    ///
    /// Returns a denial if neither a stripe nor the ring has the capacity. Nothing is consumed then. A request for
    /// more than [`max_request`](Self::max_request) permits is never admitted, and its denial has no retry time.
    ///
    /// # Concurrency
    ///
    /// One atomic instruction takes the permits. Denials are as exact as those of [`check`](Self::check).
    #[inline(always)]
    pub fn check_n(&self, permits: u64) -> Result<(), StripedDenied<'_, C>> {
        self.decide(thread_index::get(), permits, None)
    }

    /// Admits a request for `permits` permits at the time `now`, a reading of this limiter's [clock](Self::clock). The
    /// permits are charged at that time or later.
    ///
    /// This is not faster than [`check`](Self::check): most admissions of `check` read no clock, and this method stores
    /// the time in the stripe. [`RateLimiter::check_at`](crate::RateLimiter::check_at) documents old times and
    /// times in the future.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`check_n`](Self::check_n).
    ///
    /// # Concurrency
    ///
    /// One atomic instruction takes the permits. If another thread has published a newer time, the limiter
    /// decides at that time.
    #[inline(always)]
    pub fn check_at(&self, now: Nanos, permits: u64) -> Result<(), StripedDenied<'_, C>> {
        self.decide(thread_index::get(), permits, Some(now))
    }
}
