//! Who is compared.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ahash::RandomState;
use governor::clock::QuantaClock as GovernorClock;
use governor::state::keyed::DashMapStateStore;
use ringgate::{
    Algorithm, Clock, ConfigError, CounterRing, Gcra, KeyedRateLimiter, Keys, QuantaClock, Quota, Reclaim,
};

use crate::keys::scale;

/// Takes one permit of a key if there is room.
pub trait Check<Q: ?Sized>: Sync {
    fn check(&self, key: &Q) -> bool;
}

pub type Governor<Q> = governor::RateLimiter<Q, DashMapStateStore<Q, RandomState>, GovernorClock>;

impl<Q: Hash + Eq + Clone + Send + Sync> Check<Q> for Governor<Q> {
    #[inline]
    fn check(&self, key: &Q) -> bool {
        self.check_key(key).is_ok()
    }
}

impl<Q: ?Sized, A: Reclaim + Sync, C: Clock + Sync, K: Keys<Q> + Sync> Check<Q>
    for KeyedRateLimiter<A, C, K>
{
    #[inline]
    fn check(&self, key: &Q) -> bool {
        self.check(key).is_ok()
    }
}

/// Governor with ahash and its default clock, its map grown from nothing or made for so many keys.
pub fn governor<Q: Hash + Eq + Clone>(quota: governor::Quota, keys: usize) -> Governor<Q> {
    let states = DashMapStateStore::with_capacity_and_hasher(keys, RandomState::new());
    governor::RateLimiter::new(quota, states, GovernorClock::default())
}

/// A quota that nobody uses up.
pub fn governor_plenty() -> governor::Quota {
    governor::Quota::per_second(NonZeroU32::new(1_000_000_000).expect("not zero"))
}

/// One an hour.
pub fn governor_scarce() -> governor::Quota {
    governor::Quota::with_period(Duration::from_secs(3600)).expect("not zero")
}

/// The algorithms of this crate, all of one quota; the form of each ring is the one that is named.
pub struct Ours {
    pub packed: CounterRing,
    pub gcra: Gcra,
    pub wide: CounterRing,
}

impl Ours {
    /// Quotas that nobody uses up. A ring of one word that counts so far has one cell; the code is the same for
    /// any number of cells.
    pub fn plenty() -> Result<Self, ConfigError> {
        Ok(Self {
            packed: of(1, CounterRing::fixed_window(Quota::per_second(1_000_000_000)?)?),
            gcra: of(1, Gcra::new(Quota::per_second(1_000_000_000)?)?),
            wide: of(7, CounterRing::new(Quota::per_minute(10_000_000_000)?)?),
        })
    }

    /// Quotas that one request for all of it uses up for an hour and more.
    pub fn scarce() -> Result<Self, ConfigError> {
        let day = Duration::from_secs(24 * 3600);
        Ok(Self {
            packed: of(1, CounterRing::new(Quota::per_hour(1)?)?),
            gcra: of(1, Gcra::new(Quota::per_hour(1)?)?),
            wide: of(7, CounterRing::new(Quota::new(1_000_000, day)?)?),
        })
    }
}

fn of<A: Algorithm>(words: usize, algorithm: A) -> A {
    assert_eq!(algorithm.words(), words);
    algorithm
}

pub fn keyed<A: Reclaim>(algorithm: A, keys: u64) -> KeyedRateLimiter<A> {
    KeyedRateLimiter::new(algorithm, keys).expect("a table of that size")
}

/// What a floor does beside the memory.
#[derive(Clone, Copy, PartialEq)]
pub enum Beside {
    Nothing,
    Hash,
    HashAndClock,
}

/// What a floor does with the memory.
#[derive(Clone, Copy, PartialEq)]
pub enum Touch {
    Exchange,
    Load,
}

/// The least that a table can do: one word of an array, whose index follows from the key.
pub struct Floor {
    words: Box<[AtomicU64]>,
    hasher: RandomState,
    clock: QuantaClock,
    beside: Beside,
    touch: Touch,
}

impl Floor {
    /// Over as many bytes as a table.
    pub fn new(bytes: usize, beside: Beside, touch: Touch) -> Self {
        Self {
            words: (1..=bytes / 8).map(|word| AtomicU64::new(word as u64)).collect(),
            hasher: RandomState::new(),
            clock: QuantaClock::new(),
            beside,
            touch,
        }
    }

    #[inline]
    fn touch(&self, hash: u64) -> bool {
        let word = &self.words[scale(hash, self.words.len() as u64) as usize];
        let more = match self.beside {
            Beside::HashAndClock => self.clock.now().get(),
            Beside::Nothing | Beside::Hash => 1,
        };
        let mut seen = word.load(Ordering::Relaxed);
        if self.touch == Touch::Load {
            return seen.max(more) > 0;
        }
        loop {
            let new = seen.wrapping_add(more);
            match word.compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(newer) => seen = newer,
            }
        }
    }
}

impl Check<u64> for Floor {
    #[inline]
    fn check(&self, key: &u64) -> bool {
        let hash = match self.beside {
            Beside::Nothing => key.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            Beside::Hash | Beside::HashAndClock => self.hasher.hash_one(key),
        };
        self.touch(hash)
    }
}

impl Check<String> for Floor {
    #[inline]
    fn check(&self, key: &String) -> bool {
        self.touch(self.hasher.hash_one(key))
    }
}
