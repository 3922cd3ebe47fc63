use super::decider::Decider;
use super::keys::Keys;
use super::limiter::KeyedRateLimiter;
use crate::algorithm::{Lowered, Reclaim};
use crate::clock::Clock;
use crate::decision::{Admitted, Denied, Peek};
use crate::error::ConfigError;
use crate::receipt::{Receipt, Settled};
use crate::time::Nanos;

/// Decisions of a [`KeyedRateLimiter`] with a lower limit, made by [`KeyedRateLimiter::with_limit`].
#[derive(Clone, Debug)]
#[must_use = "a limit takes effect by the decisions that are made with it"]
pub struct WithLimit<'a, A, C, K> {
    limiter: &'a KeyedRateLimiter<A, C, K>,
    algorithm: Lowered<'a, A>,
}

impl<A: Reclaim, C: Clock, K> KeyedRateLimiter<A, C, K> {
    /// Returns this limiter with a lower limit, for the decisions that are made with the result.
    ///
    /// The limit may differ from key to key and from request to request, as a limit from a database or from the claims of a
    /// token does. It replaces the limit of the key's tier. All decisions about a key count in the same entry. So a
    /// lower limit takes effect at once: it admits nothing while the key's window holds more permits than the limit.
    ///
    /// A [`Gcra`](crate::Gcra) gets the lower rate, and its burst in proportion. The time until a bucket is full does
    /// not change. So an empty bucket stays empty, and is refilled at the lower rate.
    ///
    /// Whichever limits the decisions about a key have, its window holds at most the
    /// [`bound`](crate::Algorithm::bound) of the limiter's algorithm.
    ///
    /// # Errors
    ///
    /// `limit` or `windows`: a limit of zero or above the limiter's own, or several windows, as listed at
    /// [`Reclaim::with_limit`].
    ///
    /// # Cost
    ///
    /// The lower limit is compared in place. This call and `check` together execute as many instructions as `check` of the table
    /// itself, times
    ///
    /// - 1.08 for a [`CounterRing`](crate::CounterRing) of one word, and 1.06 for one of several words;
    /// - 1.4 for a `Gcra`, which divides once to compute the time per permit.
    ///
    /// This is measured on x86-64 by `benches/instructions`. A [`TimestampRing`](crate::TimestampRing) reads one slot more.
    /// The methods of a decision or of a peek, such as [`remaining`](crate::Denied::remaining), copy the algorithm without its
    /// words. Nothing is allocated.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::keyed::AnyKey;
    /// use ringgate::{CounterRing, KeyedRateLimiter, ManualClock, Quota};
    ///
    /// # fn main() -> Result<(), ringgate::ConfigError> {
    /// // No customer has more than 1,000 per minute. The database has the limit of each.
    /// let limiter = KeyedRateLimiter::builder(CounterRing::new(Quota::per_minute(1_000)?)?)
    ///     .build_with(ManualClock::new(), AnyKey::with_seeds([1, 2, 3, 4]))?;
    /// assert!(limiter.with_limit(50)?.check_n("ann", 50).is_ok());
    /// assert!(limiter.with_limit(50)?.check("ann").is_err());
    /// // Her new plan holds from the next request on.
    /// assert!(limiter.with_limit(500)?.check("ann").is_ok());
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn with_limit(&self, limit: u64) -> Result<WithLimit<'_, A, C, K>, ConfigError> {
        let algorithm = self.algorithm();
        Ok(WithLimit {
            limiter: self,
            // Claim: with_limit, a decision is made by the limit of its request.
            algorithm: Lowered::new(algorithm, limit)?,
        })
    }
}

impl<'a, A: Reclaim, C: Clock, K> WithLimit<'a, A, C, K> {
    /// Takes one permit of `key` if there is capacity for it.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the key has no capacity left, or finds no entry and [`OnFull`](super::OnFull) denies it. Nothing is
    /// charged then.
    #[inline(always)]
    pub fn check<Q: ?Sized>(
        &self,
        key: &Q,
    ) -> Result<Admitted<'_, Lowered<'a, A>>, Denied<'_, Lowered<'a, A>>>
    where
        K: Keys<Q>,
    {
        self.check_n(key, 1)
    }

    /// Takes `permits` permits of `key` if there is capacity for all of them. Zero permits are always admitted.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the key has not enough capacity, or finds no entry and [`OnFull`](super::OnFull) denies it. Nothing is
    /// charged then.
    #[inline(always)]
    pub fn check_n<Q: ?Sized>(
        &self,
        key: &Q,
        permits: u64,
    ) -> Result<Admitted<'_, Lowered<'a, A>>, Denied<'_, Lowered<'a, A>>>
    where
        K: Keys<Q>,
    {
        let fingerprint = self.limiter.fingerprint(key);
        self.decider()
            .decide(fingerprint, || self.limiter.clock.now(), permits)
    }

    /// Takes `permits` permits of `key` at the time `now`, a reading of the limiter's clock.
    ///
    /// # Errors
    ///
    /// [`Denied`] as by [`check_n`](Self::check_n).
    #[inline(always)]
    pub fn check_at<Q: ?Sized>(
        &self,
        key: &Q,
        now: Nanos,
        permits: u64,
    ) -> Result<Admitted<'_, Lowered<'a, A>>, Denied<'_, Lowered<'a, A>>>
    where
        K: Keys<Q>,
    {
        self.decider()
            .decide(self.limiter.fingerprint(key), || now, permits)
    }

    /// Returns a view of the state of `key` with this limit, at the current time. Does not insert the key.
    pub fn peek<Q: ?Sized>(&self, key: &Q) -> Peek<'_, Lowered<'a, A>>
    where
        K: Keys<Q>,
    {
        self.decider()
            .peek(self.limiter.fingerprint(key), self.limiter.clock.now())
    }

    /// Settles an estimate for `key` at its actual cost, as [`KeyedRateLimiter::settle`] does. A cost of zero refunds all permits
    /// of the receipt.
    ///
    /// The receipt may be of another limit, or of the limiter itself.
    pub fn settle<Q: ?Sized>(&self, key: &Q, taken: impl Into<Receipt>, actual: u64) -> Settled
    where
        K: Keys<Q>,
    {
        let now = || self.limiter.clock.now();
        self.decider()
            .settle(self.limiter.fingerprint(key), &taken.into(), actual, now)
    }

    #[inline(always)]
    const fn decider(&self) -> Decider<'_, Lowered<'a, A>> {
        Decider::new(&self.limiter.states, &self.algorithm, &self.limiter.on_full)
    }
}
