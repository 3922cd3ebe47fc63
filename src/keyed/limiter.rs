use alloc::boxed::Box;

use super::decider::Decider;
use super::key_states::KeyStates;
use super::keys::{AnyKey, Keys};
use super::on_full::OnFull;
use crate::algorithm::{Reclaim, SlidingWindow};
use crate::clock::{Clock, DefaultClock};
use crate::decision::{Admitted, Denied, Peek, take_up_to};
use crate::receipt::{Receipt, Settled};
use crate::table::TableCounts;
use crate::time::Nanos;

/// A rate limiter for each of many keys: clients, users, tenants, routes.
///
/// # Guarantee
///
/// For each key, at most [`bound`](Self::bound) permits are admitted in any interval of one window, by the
/// readings that the decisions used. This holds for any number of other keys: a key keeps its entry and its
/// spent permits until its window is over. [`OnFull::Admit`] and [`OnFull::Forget`] make exceptions.
/// [`counts`](Self::counts) returns how often they did.
///
/// A key is identified by 64 bits of a seeded hash, and is not stored. Two keys with equal bits share one
/// limiter, which is stricter for them. Among a million keys, the probability that any two do is one in
/// 37 million.
///
/// # Cost
///
/// A decision for a key that has an entry is one hash, one reading of the clock, and what the algorithm needs: no lock,
/// no allocation, no reference count. An admission writes only the entry, and a denial writes nothing. The exception is a ring of
/// several words: its first decision in a new cell enters the cell, even if it denies, and the key keeps its entry for a window
/// from then on. In a table with as many keys as its capacity, a decision with an algorithm of one word reads one cache line for
/// 95 % of the keys, two for 4.6 %, and up to five for the rest. With a strict ring of several words, it reads two adjacent lines
/// for 82 % of the keys, and three to six for the others. The first decision of a key takes two exchanges if an entry is vacant,
/// and five if it takes over the entry of an idle key. No decision waits for another thread.
///
/// Memory is fixed when the limiter is made, and provided by the operating system when it is first used. An entry takes 16 bytes
/// with an algorithm of one word. With a [counter ring](crate::CounterRing) of several words and a limit of 1,000 per minute, it
/// takes 48 with five cells and 160 with the default of 60. The words that entries share add 0.375 bytes. There are two entries
/// for each key of the capacity with an algorithm of one word, and otherwise five for every four keys.
///
/// # Examples
///
/// ```
/// use ringgate::KeyedRateLimiter;
///
/// // Five in any minute for each user, for up to 50,000 users that are active at once.
/// let limiter = KeyedRateLimiter::per_minute(5, 50_000)?;
/// for _ in 0..5 {
///     assert!(limiter.check("alice").is_ok());
/// }
/// assert!(limiter.check("alice").is_err());
/// // Another user has a limit of its own.
/// assert!(limiter.check("bob").is_ok());
/// # Ok::<(), ringgate::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct KeyedRateLimiter<A = SlidingWindow, C = DefaultClock, K = AnyKey> {
    /// The algorithm of tier 0. Those of the other tiers use the same words.
    pub(super) algorithm: A,
    pub(super) lower_tiers: Box<[A]>,
    pub(super) states: KeyStates,
    pub(super) on_full: OnFull,
    pub(super) clock: C,
    pub(super) keys: K,
}

impl<A: Reclaim, C: Clock, K> KeyedRateLimiter<A, C, K> {
    /// Takes one permit of `key` if there is capacity for it.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the key has no capacity left, or finds no entry and [`OnFull`] denies it. Nothing is charged then, except in
    /// a [race for an entry](crate::guide::caveats#keys).
    ///
    /// # Concurrency
    ///
    /// One atomic instruction takes the permit, and no other caller gets it. If two threads insert a key at
    /// once, both use one entry.
    #[inline(always)]
    pub fn check<Q: ?Sized>(&self, key: &Q) -> Result<Admitted<'_, A>, Denied<'_, A>>
    where
        K: Keys<Q>,
    {
        self.check_n(key, 1)
    }

    /// Takes `permits` permits of `key` if there is capacity for all of them. Zero permits are always admitted,
    /// and insert no key.
    ///
    /// # Errors
    ///
    /// [`Denied`] if the key has not enough capacity, or finds no entry and [`OnFull`] denies it. Nothing is charged then, except
    /// in a [race for an entry](crate::guide::caveats#keys). A request for more than the limit is never admitted, and the answer
    /// says so. For an even ring this limit is the largest share, and for GCRA the burst.
    ///
    /// # Concurrency
    ///
    /// One atomic instruction takes the permits, and no other caller gets them. If two threads insert a key at
    /// once, both use one entry.
    #[inline(always)]
    pub fn check_n<Q: ?Sized>(&self, key: &Q, permits: u64) -> Result<Admitted<'_, A>, Denied<'_, A>>
    where
        K: Keys<Q>,
    {
        let fingerprint = self.fingerprint(key);
        self.decider(key)
            .decide(fingerprint, || self.clock.now(), permits)
    }

    /// Takes as many of `permits` permits of `key` as there is capacity for. [`Admitted::permits`] returns how many.
    ///
    /// Zero permits are always admitted, and insert no key.
    ///
    /// # Errors
    ///
    /// [`Denied`] if not a single permit was free. It is the denial of a request for one permit. Nothing is charged then.
    ///
    /// # Concurrency
    ///
    /// One atomic instruction takes the permits, and no other caller gets them. If other requests of the key take capacity
    /// meanwhile, the limiter tries again with the rest, each time for fewer permits. Permits that are refunded
    /// meanwhile may stay free.
    pub fn take_up_to<Q: ?Sized>(&self, key: &Q, permits: u64) -> Result<Admitted<'_, A>, Denied<'_, A>>
    where
        K: Keys<Q>,
    {
        let decider = self.decider(key);
        let fingerprint = self.fingerprint(key);
        let now = self.clock.now();
        take_up_to(permits.min(decider.algorithm.max_request().max(1)), |permits| {
            decider.decide(fingerprint, || now, permits)
        })
    }

    /// Takes `permits` permits of `key` at the time `now`, which the caller has read from this limiter's
    /// [clock](Self::clock): for loops that read the clock once for many decisions.
    ///
    /// Each key is decided like a [`RateLimiter`](crate::RateLimiter); see
    /// [`RateLimiter::check_at`](crate::RateLimiter::check_at) for old and future times. For many keys at once,
    /// see [`check_many`](Self::check_many).
    ///
    /// # Errors
    ///
    /// [`Denied`] if the key has not enough capacity at that time, with the limits of [`check_n`](Self::check_n).
    ///
    /// # Concurrency
    ///
    /// If another thread has published a newer time for the key, the limiter uses that one.
    #[inline(always)]
    pub fn check_at<Q: ?Sized>(
        &self,
        key: &Q,
        now: Nanos,
        permits: u64,
    ) -> Result<Admitted<'_, A>, Denied<'_, A>>
    where
        K: Keys<Q>,
    {
        self.decider(key).decide(self.fingerprint(key), || now, permits)
    }

    /// Returns a view of the state of `key` at the present time. Changes nothing, and does not insert the key.
    ///
    /// # Concurrency
    ///
    /// The methods of the [`Peek`] read the state. A key that has lost its entry by then is fresh.
    ///
    /// In a full table, the view may be that of [`OnFull`], although a check would give the key an entry. An entry that was
    /// reset, or in which a step of another thread is unfinished, can be reused only after a check has finished that step.
    pub fn peek<Q: ?Sized>(&self, key: &Q) -> Peek<'_, A>
    where
        K: Keys<Q>,
    {
        self.decider(key).peek(self.fingerprint(key), self.clock.now())
    }

    /// Refunds the permits of a receipt to `key`, under the conditions of
    /// [`RateLimiter::refund`](crate::RateLimiter::refund) and with its answer.
    ///
    /// If the key has lost its entry since, the permits are forfeited. Its window is over then, or it was
    /// [reset](Self::reset), so they no longer count. [`OnFull::Forget`] makes an exception.
    ///
    /// `taken` must come from this limiter and be of this key. Another receipt may refund permits that were
    /// never taken, and then the bound does not hold.
    ///
    /// # Concurrency
    ///
    /// As for [`RateLimiter::refund`](crate::RateLimiter::refund).
    pub fn refund<Q: ?Sized>(&self, key: &Q, taken: impl Into<Receipt>) -> Settled
    where
        K: Keys<Q>,
    {
        self.settle(key, taken, 0)
    }

    /// Settles an estimate for `key` at its actual cost.
    ///
    /// If the estimate was too high, the excess is refunded under the conditions of [`refund`](Self::refund). If it
    /// was too low, the difference is charged now, as far as the key has capacity left. Returns
    /// [`Settled::Forgiven`] with the rest: unlike a [`RateLimiter`](crate::RateLimiter), a table holds no debt.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::keyed::AnyKey;
    /// use ringgate::{CounterRing, KeyedRateLimiter, ManualClock, Quota, Settled};
    ///
    /// # fn main() -> Result<(), ringgate::ConfigError> {
    /// let tokens = CounterRing::new(Quota::per_minute(10_000)?)?;
    /// let keys = AnyKey::with_seeds([1, 2, 3, 4]);
    /// let users = KeyedRateLimiter::builder(tokens).build_with(ManualClock::new(), keys)?;
    /// let estimate = users.check_n("ann", 4_000).expect("a new key").into_receipt();
    /// assert_eq!(users.settle("ann", estimate, 500), Settled::Exact);
    /// assert_eq!(users.peek("ann").spent(), 500);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Concurrency
    ///
    /// Until the settlement, other requests are decided by the estimate. A difference is charged by one atomic
    /// instruction.
    pub fn settle<Q: ?Sized>(&self, key: &Q, taken: impl Into<Receipt>, actual: u64) -> Settled
    where
        K: Keys<Q>,
    {
        let now = || self.clock.now();
        self.decider(key)
            .settle(self.fingerprint(key), &taken.into(), actual, now)
    }

    /// Forgets the spent permits of `key`, so that its next request finds a fresh state. Returns false if the
    /// key had no entry.
    ///
    /// No key can take over the old entry before its state is idle. So if the table is full, [`OnFull`] may
    /// apply to the next request of the key. Permits that the catch-all has admitted stay spent.
    ///
    /// # Concurrency
    ///
    /// A concurrent decision about the key takes effect before the reset or after it.
    pub fn reset<Q: ?Sized>(&self, key: &Q) -> bool
    where
        K: Keys<Q>,
    {
        self.decider(key).reset(self.fingerprint(key), self.clock.now())
    }

    /// Forgets all keys, and frees their memory.
    ///
    /// It needs exclusive access, because a concurrent decision must not be charged to the next key of its
    /// entry. [`reset`](Self::reset) forgets one key and needs only shared access.
    pub fn clear(&mut self) {
        self.states.clear();
    }

    /// Returns the number of keys that have an entry: keys whose window runs, and idle keys that no new key has
    /// replaced yet.
    ///
    /// # Concurrency
    ///
    /// Adds up counters of several cache lines one after the other, so it is exact only while no other thread
    /// uses the table.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.counts().tracked
    }

    /// Returns whether no key has an entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of entries of the table: two for each key of the capacity if a state has one word, and otherwise five for
    /// every four keys, rounded up to whole cache lines.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.states.table().entries()
    }

    /// Returns the memory in bytes that all keys together can take.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.states.table().bytes()
    }

    /// Returns how full the table is, and the counts of its events since it was built or cleared.
    ///
    /// # Concurrency
    ///
    /// Adds up counters of several cache lines one after the other, so it is exact only while no other thread
    /// uses the table.
    #[must_use]
    pub fn counts(&self) -> TableCounts {
        self.states.table().counts().sum()
    }

    /// Returns the most permits of one key that are admitted in any interval of one window, by the readings that
    /// the decisions used. With several tiers it is the bound of the highest.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.algorithm.bound()
    }

    /// Returns the algorithm; with several tiers, that of tier 0.
    #[must_use]
    pub const fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// Returns the clock.
    #[must_use]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    #[inline]
    pub(super) fn decider<Q: ?Sized>(&self, key: &Q) -> Decider<'_, A>
    where
        K: Keys<Q>,
    {
        self.decider_in(self.tier(key))
    }

    /// Returns the decider of the keys in a tier. A tier that does not exist counts as tier 0.
    #[inline]
    pub(crate) fn decider_in(&self, tier: usize) -> Decider<'_, A> {
        let lower = tier.checked_sub(1).and_then(|tier| self.lower_tiers.get(tier));
        let algorithm = lower.unwrap_or(&self.algorithm);
        Decider::new(&self.states, algorithm, &self.on_full)
    }

    /// Whether keys may have different limits.
    pub(crate) fn has_tiers(&self) -> bool {
        !self.lower_tiers.is_empty()
    }

    #[inline]
    pub(crate) fn tier<Q: ?Sized>(&self, key: &Q) -> usize
    where
        K: Keys<Q>,
    {
        self.keys.tier(key)
    }

    /// Returns the bits that identify the key.
    #[inline]
    pub(crate) fn fingerprint<Q: ?Sized>(&self, key: &Q) -> u64
    where
        K: Keys<Q>,
    {
        KeyStates::fingerprint(self.keys.hash(key))
    }
}
