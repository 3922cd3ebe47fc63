use super::rate_limiter::RateLimiter;
use crate::algorithm::{Lowered, Reclaim};
use crate::clock::Clock;
use crate::decision::{Admitted, Denied, Peek, StateRef};
use crate::error::ConfigError;
use crate::receipt::{Receipt, Settled};
use crate::time::Nanos;

/// Decisions of a [`RateLimiter`] with a lower limit, made by
/// [`RateLimiter::with_limit`](crate::RateLimiter::with_limit). A table has a type of its own,
/// [`keyed::WithLimit`](crate::keyed::WithLimit), because its methods take a key.
#[derive(Clone, Debug)]
#[must_use = "a limit takes effect by the decisions that are made with it"]
pub struct WithLimit<'a, A, C> {
    limiter: &'a RateLimiter<A, C>,
    algorithm: Lowered<'a, A>,
}

impl<A: Reclaim, C: Clock> RateLimiter<A, C> {
    /// Returns this limiter with a lower limit, for the decisions that are made with the result.
    ///
    /// The limit may differ from request to request, as a limit from a database or from the claims of a token does. All
    /// decisions count in the same words. So a lower limit takes effect at once: nothing is admitted by it while the window
    /// holds more than it. Decisions of the limiter itself still use its own limit.
    ///
    /// A [`Gcra`](crate::Gcra) gets the lower rate, and its burst in proportion. The time until its bucket is full stays what
    /// it is, so a bucket that is used up remains so, and is refilled at the lower rate.
    ///
    /// Whichever limits the decisions have, a window holds at most the limiter's [`bound`](Self::bound).
    ///
    /// # Errors
    ///
    /// `limit` or `windows`: a limit of zero or above the limiter's own, or several windows, as listed at
    /// [`Reclaim::with_limit`].
    ///
    /// # Cost
    ///
    /// The lower limit is compared in place. This call and `check` together execute as many instructions as `check` of the limiter
    /// itself, times
    ///
    /// - 1.07 for a [`CounterRing`](crate::CounterRing) of one word, 1.08 for one of several words, and 1.16 for an even one;
    /// - 1.7 for a `Gcra`, which divides once to compute the time per permit;
    /// - 2.1 for a [`TimestampRing`](crate::TimestampRing), which reads one slot more.
    ///
    /// This is measured on x86-64 by `benches/instructions`. The methods of a decision or of a peek, such as
    /// [`remaining`](crate::Denied::remaining), copy the algorithm without its words. Nothing is allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::{CounterRing, ManualClock, Quota, RateLimiter};
    ///
    /// # fn main() -> Result<(), ringgate::ConfigError> {
    /// let limiter = RateLimiter::with_clock(CounterRing::new(Quota::per_minute(100)?)?, ManualClock::new());
    /// assert!(limiter.check_n(30).is_ok());
    /// // The plan of the customer was changed to 20 per minute.
    /// assert!(limiter.with_limit(20)?.check().is_err());
    /// let raised = limiter.with_limit(50)?;
    /// assert_eq!(raised.check().expect("30 of 50 are spent").remaining(), 19);
    /// let error = limiter.with_limit(101).expect_err("more than the limiter's own");
    /// assert_eq!(error.to_string(), "invalid limit: 101 (expected 1 to 100 permits, the limit that is lowered)");
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn with_limit(&self, limit: u64) -> Result<WithLimit<'_, A, C>, ConfigError> {
        Ok(WithLimit {
            limiter: self,
            algorithm: Lowered::new(self.algorithm(), limit)?,
        })
    }
}

impl<'a, A: Reclaim, C: Clock> WithLimit<'a, A, C> {
    /// Takes one permit if there is capacity for it.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is no capacity left. Nothing is charged then.
    #[inline(always)]
    pub fn check(&self) -> Result<Admitted<'_, Lowered<'a, A>>, Denied<'_, Lowered<'a, A>>> {
        self.check_n(1)
    }

    /// Takes `permits` permits if there is capacity for all of them. Zero permits are always admitted.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is not enough capacity. Nothing is charged then.
    #[inline(always)]
    pub fn check_n(&self, permits: u64) -> Result<Admitted<'_, Lowered<'a, A>>, Denied<'_, Lowered<'a, A>>> {
        self.check_at(self.limiter.clock.now(), permits)
    }

    /// Takes `permits` permits at the time `now`, a reading of the limiter's clock.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is not enough capacity at that time. Nothing is charged then.
    #[inline(always)]
    pub fn check_at(
        &self,
        now: Nanos,
        permits: u64,
    ) -> Result<Admitted<'_, Lowered<'a, A>>, Denied<'_, Lowered<'a, A>>> {
        self.limiter.decide_by(&self.algorithm, now, permits)
    }

    /// Returns a read-only view of the limiter with this limit, at the current time.
    pub fn peek(&self) -> Peek<'_, Lowered<'a, A>> {
        let state = StateRef::Own(&self.limiter.words);
        Peek::new(&self.algorithm, state, self.limiter.clock.now())
    }

    /// Settles an estimate at its actual cost, as [`RateLimiter::settle`](crate::RateLimiter::settle) does. A cost of zero refunds
    /// all permits of the receipt.
    ///
    /// The receipt may be of another limit, or of the limiter itself.
    pub fn settle(&self, taken: impl Into<Receipt>, actual: u64) -> Settled {
        self.limiter.settle_by(&self.algorithm, &taken.into(), actual)
    }
}
