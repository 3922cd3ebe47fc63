use super::RateLimiter;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::decision::{Admitted, Denied, take_up_to};

impl<A: Algorithm, C: Clock> RateLimiter<A, C> {
    /// Takes as many of `permits` permits as there is capacity for. [`Admitted::permits`] returns how many.
    ///
    /// Zero permits are always admitted.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is no capacity left. It is the denial of a request for one permit. Nothing is charged then.
    ///
    /// # Concurrency
    ///
    /// One atomic instruction takes the permits, and no other caller gets them. If other requests take capacity meanwhile,
    /// this call tries again for the capacity that they have left, each time for fewer permits. So it may not take permits
    /// that are refunded meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::{CounterRing, ManualClock, Quota, RateLimiter};
    ///
    /// # fn main() -> Result<(), ringgate::ConfigError> {
    /// let limiter = RateLimiter::with_clock(CounterRing::new(Quota::per_second(10)?)?, ManualClock::new());
    /// let batch = limiter.take_up_to(7).expect("ten are free");
    /// let rest = limiter.take_up_to(7).expect("three are left");
    /// assert_eq!((batch.permits(), rest.permits()), (7, 3));
    /// assert!(limiter.take_up_to(7).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn take_up_to(&self, permits: u64) -> Result<Admitted<'_, A>, Denied<'_, A>> {
        let now = self.clock.now();
        take_up_to(permits.min(self.algorithm.max_request().max(1)), |permits| {
            self.check_at(now, permits)
        })
    }
}
