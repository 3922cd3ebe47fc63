use super::RateLimiter;
use crate::algorithm::Algorithm;
use crate::clock::Clock;
use crate::time::Nanos;

impl<A: Algorithm, C: Clock> RateLimiter<A, C> {
    /// Denies all requests until `time`, a time of this limiter's [clock](Self::clock).
    ///
    /// A client calls this when a server has answered with status 429 and a time in `Retry-After`. Denials have a retry time
    /// of `time` or later. A [`Fair`](crate::Fair) admits no waiter before. The limiter then admits as it would without the
    /// pause: permits that were charged still count, and unused capacity is kept.
    ///
    /// The latest time wins: a call with an earlier time changes nothing. [`resume`](Self::resume) ends the pause. Requests for
    /// zero permits are still admitted. [`settle`](Self::settle) still charges debt. A pause is not saved by
    /// [`save`](Self::save), because the time of a clock has no meaning in another process.
    ///
    /// # Cost
    ///
    /// A limiter without a pause loads one word more, which no decision writes. From this call until [`resume`](Self::resume),
    /// each decision also makes a call to compare the time.
    ///
    /// # Concurrency
    ///
    /// No decision that begins after this call has returned is admitted at a reading before `time`. A decision that has begun
    /// before may be admitted.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use ringgate::{Clock, CounterRing, ManualClock, Quota, RateLimiter};
    ///
    /// # fn main() -> Result<(), ringgate::ConfigError> {
    /// let clock = ManualClock::new();
    /// let limiter = RateLimiter::with_clock(CounterRing::new(Quota::per_second(100)?)?, clock.clone());
    /// // The server has answered: 429, Retry-After: 30.
    /// let retry_after = Duration::from_secs(30);
    /// limiter.pause_until(clock.now().saturating_add(retry_after));
    ///
    /// let denied = limiter.check().expect_err("the limiter is paused");
    /// assert_eq!(denied.retry_after(), Some(retry_after));
    /// clock.advance(retry_after);
    /// assert!(limiter.check().is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn pause_until(&self, time: Nanos) {
        self.words.pause().extend(time);
    }

    /// Ends a pause that [`pause_until`](Self::pause_until) has set. Without a pause it changes nothing.
    ///
    /// A waiter of a [`Fair`](crate::Fair) wakes at the time that it has last computed. To wake it now, call the `resume` of
    /// the `Fair`.
    ///
    /// # Concurrency
    ///
    /// If another thread calls `pause_until` during this call, the new pause may be ended, too.
    pub fn resume(&self) {
        self.words.pause().end();
    }
}
