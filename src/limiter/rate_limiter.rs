use core::fmt;
use core::time::Duration;

use super::saved::SavedState;
use crate::algorithm::{Algorithm, SlidingWindow};
use crate::clock::{Clock, DefaultClock};
use crate::decision::{Admitted, Denied, Peek, StateRef, answer, take_up_to};
use crate::own_words::OwnWords;
use crate::receipt::{ChargedTo, Receipt, Settled};
use crate::sync::{Exclusive, Shared};
use crate::time::Nanos;

/// A rate limiter for one service, connection or other resource.
///
/// Share it by reference or in an `Arc`. All methods take `&self`, except those whose names end in `_mut`.
///
/// # Guarantee
///
/// At most [`bound`](Self::bound) permits are admitted in any interval of one window, by the times that the decisions used.
/// [`promise`](Self::promise) returns the bound in true time. A denied request consumes nothing.
///
/// # Cost
///
/// A decision reads the clock and makes one to three loads. An admission also makes one compare-exchange, or one per permit in a
/// timestamp ring. It is repeated if another thread changes the state in between. Nothing is allocated, no system call is
/// made, and no thread waits for another.
///
/// A denial changes no count. In a counter ring of several words, the first decision in a new cell makes this cell the current
/// one, even if it denies. In a timestamp ring, a decision may store the rest of a request for several permits of another thread.
///
/// # Memory
///
/// A state of one word is inside the limiter, on a cache line of 64 bytes that holds no data of others. A limiter with a
/// [`Gcra`](crate::Gcra) or a [`UnitRing`](crate::UnitRing) takes 192 bytes with its policy and clock, and allocates nothing. A
/// state of several words is allocated once, when the limiter is created. It takes 248 bytes, and 8 for each word.
///
/// For a limiter in each of very many connections, use an [`InlineLimiter`](crate::InlineLimiter), which takes 16 bytes. For keys, use a
/// [`KeyedRateLimiter`](crate::KeyedRateLimiter).
///
/// # Examples
///
/// ```
/// use ringgate::RateLimiter;
///
/// let limiter = RateLimiter::per_second(2)?;
/// assert!(limiter.check().is_ok());
/// assert!(limiter.check().is_ok());
/// match limiter.check() {
///     Ok(_) => unreachable!("two per second, and this is the third at once"),
///     // `None` would mean that a request for so many permits is never admitted.
///     Err(denied) => assert!(denied.retry_after().is_some()),
/// }
/// # Ok::<(), ringgate::ConfigError>(())
/// ```
pub struct RateLimiter<A = SlidingWindow, C = DefaultClock> {
    algorithm: A,
    pub(super) words: OwnWords,
    pub(super) clock: C,
}

/// The bound of a limiter in true time: at most `permits` in any interval of length `interval`.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::{CounterRing, Quota, RateLimiter};
///
/// let limiter = RateLimiter::new(CounterRing::new(Quota::per_second(100)?)?);
/// let promise = limiter.promise();
/// assert_eq!(promise.permits, 100);
/// // The clock may be wrong by 51 µs in a second.
/// assert_eq!(promise.interval, Duration::from_micros(999_949));
/// # Ok::<(), ringgate::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Promise {
    /// The limiter's bound.
    pub permits: u64,
    /// The window less the clock's error. Zero if the error is not shorter than the window. Then nothing is promised in true
    /// time.
    pub interval: Duration,
}

impl<A: Algorithm, C: Clock> RateLimiter<A, C> {
    /// Creates a limiter with the given clock.
    pub fn with_clock(algorithm: A, clock: C) -> Self {
        let algorithm = algorithm.for_limiter();
        let words = OwnWords::new(algorithm.words());
        Self {
            algorithm,
            words,
            clock,
        }
    }

    /// Takes one permit if there is capacity for it.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is no capacity left. Nothing is charged then.
    ///
    /// # Concurrency
    ///
    /// One atomic instruction takes the permit, and no other caller gets it.
    #[inline(always)]
    pub fn check(&self) -> Result<Admitted<'_, A>, Denied<'_, A>> {
        self.check_n(1)
    }

    /// Takes `permits` permits if there is capacity for all of them. Zero permits are always admitted.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is not enough capacity. Nothing is charged then. A request for more than
    /// [`max_request`](Algorithm::max_request) is never admitted, and its denial has no retry time. For most algorithms that is
    /// the limit.
    ///
    /// # Concurrency
    ///
    /// One atomic instruction takes the permits, and no other caller gets them.
    #[inline(always)]
    pub fn check_n(&self, permits: u64) -> Result<Admitted<'_, A>, Denied<'_, A>> {
        self.check_at(self.clock.now(), permits)
    }

    /// Takes `permits` permits at the time `now`, a reading of this limiter's [clock](Self::clock). A loop can read the clock
    /// once for many decisions.
    ///
    /// The bound holds by the given times, and an admission counts from the reading on, not from the call on. So use a
    /// reading soon. A time ahead of the clock is accepted, too. An admission at such a time counts until one window after it,
    /// and the limiter is stricter until the clock reaches it. So do not mix the readings of two clocks.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is not enough capacity at that time, with the limits of [`check_n`](Self::check_n).
    ///
    /// # Concurrency
    ///
    /// If another thread has published a newer time, the limiter uses the newer time. GCRA uses the older reading, for which
    /// its decision is stricter.
    #[inline(always)]
    pub fn check_at(&self, now: Nanos, permits: u64) -> Result<Admitted<'_, A>, Denied<'_, A>> {
        self.decide_by(&self.algorithm, now, permits)
    }

    /// Decides by `algorithm`: the limiter's own, or that with a lower limit.
    #[inline(always)]
    pub(super) fn decide_by<'a, B: Algorithm>(
        &'a self,
        algorithm: &'a B,
        now: Nanos,
        permits: u64,
    ) -> Result<Admitted<'a, B>, Denied<'a, B>> {
        let state = StateRef::Own(&self.words);
        if self.words.is_paused(now, permits) {
            return answer(algorithm, state, now, permits, None);
        }
        let receipt = algorithm.decide(Shared::new(self.words.get()), now, permits);
        answer(algorithm, state, now, permits, receipt)
    }

    /// Takes one permit if there is capacity for it, without any locked instruction. This is for a limiter that one connection
    /// or one thread owns.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is no capacity left. Nothing is charged then.
    #[inline(always)]
    pub fn check_mut(&mut self) -> Result<Admitted<'_, A>, Denied<'_, A>> {
        self.check_n_mut(1)
    }

    /// Takes `permits` permits if there is capacity for all of them, without any locked instruction.
    ///
    /// The result borrows the limiter. Convert it to a [receipt](Admitted::into_receipt) to settle it later.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is not enough capacity, with the limits of [`check_n`](Self::check_n).
    #[inline(always)]
    pub fn check_n_mut(&mut self, permits: u64) -> Result<Admitted<'_, A>, Denied<'_, A>> {
        self.check_at_mut(self.clock.now(), permits)
    }

    /// Takes `permits` permits at the time `now`, without any locked instruction.
    ///
    /// # Errors
    ///
    /// [`Denied`] if there is not enough capacity at that time, with the limits of [`check_n`](Self::check_n).
    #[inline(always)]
    pub fn check_at_mut(&mut self, now: Nanos, permits: u64) -> Result<Admitted<'_, A>, Denied<'_, A>> {
        if self.words.is_paused(now, permits) {
            return answer(&self.algorithm, StateRef::Own(&self.words), now, permits, None);
        }
        let words = self.words.get_mut();
        let receipt = self.algorithm.decide(Exclusive::new(words), now, permits);
        answer(&self.algorithm, StateRef::Own(&self.words), now, permits, receipt)
    }

    /// Returns a read-only view of the limiter at the current time.
    ///
    /// # Concurrency
    ///
    /// This call reads only the clock. The methods of the [`Peek`] read the state.
    pub fn peek(&self) -> Peek<'_, A> {
        Peek::new(&self.algorithm, StateRef::Own(&self.words), self.clock.now())
    }

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

    /// Refunds the permits of a receipt, if this is still possible.
    ///
    /// | algorithm | a refund is possible | unused permits forfeited | calls served |
    /// |---|---|---|---|
    /// | [`CounterRing`](crate::CounterRing) | while the cell of the charge counts | 0 % | 300 of 300 |
    /// | [`Gcra`](crate::Gcra) | until another request is admitted | 99.6 % | 274 of 300 |
    /// | [`TimestampRing`](crate::TimestampRing) | never | 100 % | 250 of 300 |
    ///
    /// A `CounterRing` that fits into one word refunds nothing while debt keeps more than the limit in its window.
    ///
    /// A [`UnitRing`](crate::UnitRing) refunds as a `CounterRing` in one word does. If the cell of the charge is past,
    /// older permits then count for longer, but fewer than one unit of them. A [`SlidingWindow`] refunds as the algorithm that it
    /// has chosen, so make it by [`settled`](crate::SlidingWindow::settled) for permits that are settled later.
    ///
    /// The last two columns are for a user with 100,000 tokens per minute and a call every two seconds. Each call
    /// reserves 4,000 tokens and uses 500 within ten seconds (`tests/promises.rs`).
    ///
    /// Returns [`Settled::Exact`] after a refund. Then every decision is as if the permits had never been taken, up to one unit of a
    /// `UnitRing`. Otherwise returns [`Settled::Forfeited`] with the permits that stay spent or no longer count. An even ring admits the
    /// refunded permits in later cells, because the cell of the charge is past.
    ///
    /// The permits of a receipt of another limiter, or of an algorithm over words in the caller's own memory, are
    /// forfeited.
    ///
    /// # Concurrency
    ///
    /// A decision that begins before the refund returns may still count the permits. In a ring of several words, if
    /// another thread enters a cell during the refund, decisions in that cell may count them too, but none in the next
    /// cell. Refunded permits are never admitted twice.
    ///
    /// One atomic instruction refunds permits of the current cell, or of any cell of a ring of one word. In a ring of several
    /// words, permits of an earlier cell take one instruction for each entered cell from the cell of the charge back to the
    /// oldest one, and one more.
    pub fn refund(&self, taken: impl Into<Receipt>) -> Settled {
        self.settle(taken, 0)
    }

    /// Settles an estimate at its actual cost.
    ///
    /// If the estimate was too high, the excess is refunded under the conditions of [`refund`](Self::refund). If it
    /// was too low, the difference is charged now, as debt that later decisions count. The debt is charged to this
    /// limiter even if the receipt is of another one.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::{CounterRing, ManualClock, Quota, RateLimiter, Settled};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let ring = CounterRing::new(Quota::per_minute(1_000)?)?;
    /// let limiter = RateLimiter::with_clock(ring, ManualClock::new());
    /// let estimate = limiter.check_n(100).expect("the window is empty").into_receipt();
    /// // The work has cost less than the estimate.
    /// assert_eq!(limiter.settle(estimate, 70), Settled::Exact);
    /// assert_eq!(limiter.peek().spent(), 70);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Concurrency
    ///
    /// The excess is refunded as by [`refund`](Self::refund). Until the settlement, other requests are decided by the
    /// estimate.
    pub fn settle(&self, taken: impl Into<Receipt>, actual: u64) -> Settled {
        self.settle_by(&self.algorithm, &taken.into(), actual)
    }

    /// Settles by `algorithm`: the limiter's own, or that with a lower limit.
    pub(super) fn settle_by(&self, algorithm: &impl Algorithm, receipt: &Receipt, actual: u64) -> Settled {
        let is_ours = receipt.charged_to() == ChargedTo::Limiter(self.words.number());
        let words = Shared::new(self.words.get());
        if let Some(excess) = receipt.permits().checked_sub(actual) {
            if excess == 0 || (is_ours && algorithm.refund(words, receipt, excess)) {
                Settled::Exact
            } else {
                Settled::Forfeited(excess)
            }
        } else {
            let debt = actual - receipt.permits();
            match debt - algorithm.charge(words, self.clock.now(), debt) {
                0 => Settled::Exact,
                forgiven => Settled::Forgiven(forgiven),
            }
        }
    }

    /// Returns the spent permits in a form that outlives the process. A [pause](Self::pause_until) is not saved.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use ringgate::{CounterRing, ManualClock, Quota, RateLimiter};
    ///
    /// # fn main() -> Result<(), ringgate::ConfigError> {
    /// let quota = Quota::per_minute(10)?;
    /// let before = RateLimiter::with_clock(CounterRing::new(quota)?, ManualClock::new());
    /// assert!(before.check_n(8).is_ok());
    /// let saved = before.save();
    ///
    /// // The length of the restart is unknown, so no time is assumed.
    /// let after = RateLimiter::with_clock(CounterRing::new(quota)?, ManualClock::new());
    /// after.restore(&saved, Duration::ZERO);
    /// assert_eq!(after.peek().remaining(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Concurrency
    ///
    /// Permits that other threads take during this call may be missing, so call it after the last decision.
    pub fn save(&self) -> SavedState {
        let now = self.clock.now();
        let words = Shared::new(self.words.get());
        let idle_at = self.algorithm.idle_at(words, now);
        let idle_after = idle_at.map_or(Duration::MAX, |at| at.saturating_since(now));
        SavedState::new(self.algorithm.spent(words, now), idle_after)
    }

    /// Charges the permits of `saved`, a state that was saved `elapsed` ago, as if they were all spent now.
    ///
    /// This is conservative: permits that still counted when they were saved count for another whole window, and in a counter
    /// ring for up to two cells more. So the bound holds across the restart if quota and algorithm are unchanged, although the
    /// cells of the new clock begin at other times. With another quota or algorithm, an equal number of permits is charged,
    /// as far as its words can hold them.
    ///
    /// `elapsed` is the time since the state was saved, as far as the caller trusts the wall clock. [`Duration::ZERO`] is
    /// always safe. Nothing is charged if all saved permits have left their window by then.
    ///
    /// A saved state does not hold the times of its charges. Charges that were ahead of the clock, because it has stepped back or
    /// by [`check_at`](Self::check_at), count for less long after the restore. If a counter ring was ahead by up to a cell, its
    /// bound holds in intervals that are shorter by a cell. Tables of keys and rule sets restore such states at a later time: see
    /// [`saved`](crate::saved).
    ///
    /// The permits are added to those that are already spent, so call it once, on a fresh limiter.
    ///
    /// # Concurrency
    ///
    /// Earlier decisions do not count the restored permits, so call it before the limiter is shared.
    pub fn restore(&self, saved: &SavedState, elapsed: Duration) {
        let (algorithm, words) = (&self.algorithm, Shared::new(self.words.get()));
        let now = self.clock.now();
        let at = algorithm.restored_at(now, Duration::ZERO);
        let spent = saved.spent_after(elapsed);
        let all = algorithm.spent(words, now).saturating_add(spent);
        algorithm.restore(words, at, spent);
        // Permits that were already spent here may not count at `at`. They are charged again, to count as long as the restored
        // ones.
        let missing = all.saturating_sub(algorithm.spent(words, at));
        if missing > 0 {
            algorithm.charge(words, at, missing);
        }
    }

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

    /// Returns the most permits that are admitted in any interval of one window, by the times that the decisions used. With
    /// several windows, it is the bound of the first one.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.algorithm.bound()
    }

    /// Returns the bound in true time, for the window less the clock's error. With several windows, it is about the first one.
    #[must_use]
    pub fn promise(&self) -> Promise {
        let window = self.algorithm.window();
        Promise {
            permits: self.algorithm.bound(),
            interval: window.saturating_sub(self.clock.error(window)),
        }
    }

    /// Returns the algorithm.
    #[must_use]
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// Returns the clock.
    #[must_use]
    pub fn clock(&self) -> &C {
        &self.clock
    }
}

impl<A: fmt::Debug, C: fmt::Debug> fmt::Debug for RateLimiter<A, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimiter")
            .field("algorithm", &self.algorithm)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}
