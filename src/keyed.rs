//! A limiter for each of many keys, in fixed memory.

use alloc::boxed::Box;
use core::fmt;

use crate::algorithm::CounterRing;
use crate::algorithm::Reclaim;
use crate::clock::Clock;
use crate::clock::DefaultClock;
use crate::decision::{Admitted, Denied, Peek};
#[cfg(feature = "quanta")]
use crate::error::ConfigError;
use crate::receipt::{Receipt, Settled};
use crate::time::Nanos;

mod builder;
mod client;
mod decider;
mod forward;
mod key_hasher;
mod keys;
mod many;
mod on_full;
mod seeded_state;
mod store;

pub use crate::table::TableCounts;
pub use builder::KeyedBuilder;
pub use client::ClientAddress;
pub use key_hasher::KeyHasher;
pub use keys::{AnyKey, Keys, Tiers};
pub use on_full::OnFull;
pub use seeded_state::SeededState;
#[cfg(all(feature = "rules", feature = "quanta"))]
pub(crate) use seeded_state::random_seeds;

pub(crate) use decider::Decider;
pub(crate) use store::Store;

/// A rate limiter for each of many keys: clients, users, tenants, routes.
///
/// # Guarantee
///
/// Of each key, at most [`bound`](Self::bound) permits are admitted in any interval of one window, by the
/// readings that the decisions used, however many other keys there are: a key keeps its entry and
/// what it has spent until its window is over. ([`OnFull::Admit`] and [`OnFull::Forget`] give that
/// up, and count how often.)
///
/// Keys are told apart by 64 bits of a seeded hash, and are not stored: two keys with the same bits share
/// one limiter, which is stricter for them. Of a million keys, the probability that any two do is
/// one in 37 million.
///
/// # Cost
///
/// A decision for a key that has an entry is one hash, one reading of the clock, and what the algorithm needs: no lock, no
/// allocation, no count of references. It writes nothing but the entry, and a denial writes nothing. With an algorithm of one
/// word it touches one cache line for 82 % of the keys, two for 11 %, and up to five for the rest, in a table with as many keys
/// as were asked for. The first decision of a key takes three exchanges where an entry is vacant, and five where it takes over
/// the entry of an idle key; it waits for no other thread.
///
/// Memory is fixed when the limiter is made, and provided by the operating system when it is first used. An entry takes 16 bytes
/// with an algorithm of one word, 64 with a [counter ring](crate::CounterRing) of several words and up to five cells, and 0.25
/// for what entries share. There are five entries for every four keys asked for.
///
/// # Examples
///
/// ```
/// use ringgate::{CounterRing, KeyedRateLimiter, Quota};
///
/// # #[cfg(feature = "quanta")]
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// // Five a minute for each user, of up to 100,000 users at once.
/// let limiter = KeyedRateLimiter::new(CounterRing::new(Quota::per_minute(5)?)?, 100_000)?;
/// for _ in 0..5 {
///     assert!(limiter.check("alice").is_ok());
/// }
/// assert!(limiter.check("alice").is_err());
/// // Another user is not concerned.
/// assert!(limiter.check("bob").is_ok());
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "quanta"))]
/// # fn main() {}
/// ```
pub struct KeyedRateLimiter<A = CounterRing, C = DefaultClock, K = AnyKey> {
    /// One for each tier, over the same words.
    algorithms: Box<[A]>,
    store: Store,
    on_full: OnFull,
    clock: C,
    keys: K,
}

#[cfg(feature = "quanta")]
impl<A: Reclaim> KeyedRateLimiter<A> {
    /// A limiter for `capacity` keys (1 to 2^32), with a clock and random seeds of its own.
    ///
    /// More keys than that find room as far as others are idle; for the rest there is
    /// [`OnFull::Share`].
    ///
    /// # Errors
    ///
    /// As [`KeyedBuilder::build`].
    pub fn new(algorithm: A, capacity: u64) -> Result<Self, ConfigError> {
        Self::builder(algorithm).capacity(capacity).build()
    }
}

#[cfg(feature = "quanta")]
impl<A: Reclaim> KeyedRateLimiter<A> {
    /// A limiter with its capacity, clock, seeds and rules to be chosen.
    pub fn builder(algorithm: A) -> KeyedBuilder<A> {
        KeyedBuilder::new(algorithm)
    }
}

impl<A: Reclaim, C: Clock, K> KeyedRateLimiter<A, C, K> {
    /// Takes one permit of `key` if there is room.
    ///
    /// # Errors
    ///
    /// When there is none; nothing is consumed then.
    ///
    /// # Concurrency
    ///
    /// The permit is taken at one instruction, and is the caller's alone. Two threads that ask for a
    /// new key at once get one entry for it.
    #[inline(always)]
    pub fn check<Q: ?Sized>(&self, key: &Q) -> Result<Admitted<'_, A>, Denied<'_, A>>
    where
        K: Keys<Q>,
    {
        self.check_n(key, 1)
    }

    /// Takes `permits` permits of `key` if there is room for all of them. Zero permits are always admitted, and
    /// enter no key.
    ///
    /// # Errors
    ///
    /// When there is not; nothing is consumed then. More than the limit (for an even ring, than the largest
    /// share; for GCRA, than the burst) is never admitted, and the answer says so.
    ///
    /// # Concurrency
    ///
    /// As [`check`](Self::check).
    #[inline(always)]
    pub fn check_n<Q: ?Sized>(&self, key: &Q, permits: u64) -> Result<Admitted<'_, A>, Denied<'_, A>>
    where
        K: Keys<Q>,
    {
        let fingerprint = self.fingerprint(key);
        self.decider(key)
            .decide(fingerprint, || self.clock.now(), permits)
    }

    /// Takes `permits` permits of `key` at the time `now`, which the caller has read from this limiter's
    /// [clock](Self::clock): for loops that read the clock once for many decisions. What is said of such times at
    /// [`RateLimiter::check_at`](crate::RateLimiter::check_at) holds here for each key; many keys at once are
    /// [`check_many`](Self::check_many).
    ///
    /// # Errors
    ///
    /// As [`check_n`](Self::check_n).
    ///
    /// # Concurrency
    ///
    /// When another thread has published a newer time for the key, that is used instead.
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

    /// Looks at the state of `key` now, and changes nothing: it is not entered.
    ///
    /// # Concurrency
    ///
    /// Looks when the [`Peek`] is asked. A key that has lost its entry by then is fresh.
    pub fn peek<Q: ?Sized>(&self, key: &Q) -> Peek<'_, A>
    where
        K: Keys<Q>,
    {
        self.decider(key).peek(self.fingerprint(key), self.clock.now())
    }

    /// Gives back what was taken of `key`, with the conditions and the answer of
    /// [`RateLimiter::refund`](crate::RateLimiter::refund). What a key has taken that has lost its
    /// entry since is forfeited; its window is over, and nothing of it counts any more.
    ///
    /// `taken` must come from this limiter, and be of the same key. Another's may give back what was never
    /// taken, and then the bound does not hold.
    ///
    /// # Concurrency
    ///
    /// As [`RateLimiter::refund`](crate::RateLimiter::refund).
    pub fn refund<Q: ?Sized>(&self, key: &Q, taken: impl Into<Receipt>) -> Settled
    where
        K: Keys<Q>,
    {
        self.decider(key).give_back(self.fingerprint(key), &taken.into())
    }

    /// Forgets what `key` has spent: its next request finds a fresh state. False when it had no
    /// entry.
    ///
    /// The entry that it gives up is free when what it holds is idle, and for nobody before. So on a
    /// full table the next request of the key may be one for [`OnFull`]. What the catch-all has admitted
    /// stays spent.
    ///
    /// # Concurrency
    ///
    /// A decision that is being made about the key takes effect before this or after it.
    pub fn reset<Q: ?Sized>(&self, key: &Q) -> bool
    where
        K: Keys<Q>,
    {
        self.decider(key).reset(self.fingerprint(key), self.clock.now())
    }

    /// Forgets all keys, and gives their memory back.
    ///
    /// Exclusive, because a decision in flight must not be charged to the next key of its entry;
    /// [`reset`](Self::reset) forgets one key while others decide.
    pub fn clear(&mut self) {
        self.store.clear();
    }

    /// Keys that have an entry: those whose window runs, and those that have been idle since and
    /// that no new key has replaced yet.
    ///
    /// # Concurrency
    ///
    /// As [`counts`](Self::counts).
    #[must_use]
    pub fn len(&self) -> u64 {
        self.counts().tracked
    }

    /// Whether no key has an entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries of the table: at least five for every four keys that were asked for.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.store.table().entries()
    }

    /// Memory in bytes that the keys can take, all in all.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.store.table().bytes()
    }

    /// What has happened to the keys so far.
    ///
    /// # Concurrency
    ///
    /// Adds up what several lines hold, one after the other: exact when nobody else uses the table.
    #[must_use]
    pub fn counts(&self) -> TableCounts {
        self.store.table().counts().sum()
    }

    /// The most permits of one key admitted in any interval of one window, by the readings that the
    /// decisions used; of the highest tier, if there are several.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.algorithms[0].bound()
    }

    /// The algorithm, of tier 0 if there are several.
    #[must_use]
    pub fn algorithm(&self) -> &A {
        &self.algorithms[0]
    }

    /// The clock.
    #[must_use]
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// What decides about the key.
    #[inline]
    fn decider<Q: ?Sized>(&self, key: &Q) -> Decider<'_, A>
    where
        K: Keys<Q>,
    {
        // A tier that there is not is taken for the first.
        let tier = self.keys.tier(key);
        Decider {
            store: &self.store,
            algorithm: self.algorithms.get(tier).unwrap_or(&self.algorithms[0]),
            on_full: self.on_full,
        }
    }

    /// What tells the key apart from others.
    #[inline]
    pub(crate) fn fingerprint<Q: ?Sized>(&self, key: &Q) -> u64
    where
        K: Keys<Q>,
    {
        Store::fingerprint(self.keys.hash(key))
    }
}

impl<A: fmt::Debug, C: fmt::Debug, K: fmt::Debug> fmt::Debug for KeyedRateLimiter<A, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedRateLimiter")
            .field("algorithms", &self.algorithms)
            .field("store", &self.store)
            .field("on_full", &self.on_full)
            .field("clock", &self.clock)
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}
