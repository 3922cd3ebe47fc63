use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::hash::Hash;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::ConfigError;

/// The keys that come up most often, in bounded memory: for naming those that are denied most.
///
/// A table of keys does not store them; whoever wants names calls [`add`](Self::add) with each
/// denied key, and pays for it: a lock, and a clone of each key that is not among the followed ones.
///
/// # Guarantee
///
/// Follows `followed` keys by the algorithm Space-Saving (Metwally, Agrawal and El Abbadi, "Efficient
/// Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005). Of N calls in all, every key
/// with more than N / `followed` of them is among the followed ones, and a count is too high by no more
/// than its own [`error`](TopKey::error), never too low.
///
/// # Examples
///
/// ```
/// use ringgate::{CounterRing, KeyedRateLimiter, Quota, TopKeys};
///
/// # #[cfg(feature = "quanta")]
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = KeyedRateLimiter::new(CounterRing::new(Quota::per_minute(2)?)?, 1_000)?;
/// let most_denied = TopKeys::new(100)?;
/// for user in ["alice", "bob", "alice", "alice", "alice"] {
///     if limiter.check(user).is_err() {
///         most_denied.add(user);
///     }
/// }
/// let top = most_denied.top(10);
/// assert_eq!((top[0].key.as_str(), top[0].count), ("alice", 2));
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "quanta"))]
/// # fn main() {}
/// ```
#[derive(Debug)]
pub struct TopKeys<K> {
    followed: usize,
    state: Mutex<State<K>>,
}

/// A key, and how often it came up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopKey<K> {
    /// The key.
    pub key: K,
    /// How often it came up, at most.
    pub count: u64,
    /// By how much the count may be too high: what another key had that it took the place of.
    pub error: u64,
}

#[derive(Debug)]
struct State<K> {
    keys: Vec<TopKey<K>>,
    places: HashMap<K, usize>,
    /// Count and place of each key, the smallest count first.
    order: BTreeSet<(u64, usize)>,
}

impl<K: Hash + Eq + Clone> TopKeys<K> {
    /// The most keys that can be followed.
    pub const MOST_FOLLOWED: usize = 1 << 20;

    /// Follows so many keys: ten times as many as one wants to name make errors small.
    ///
    /// # Errors
    ///
    /// `followed`: not 1 to [`MOST_FOLLOWED`](Self::MOST_FOLLOWED).
    pub fn new(followed: usize) -> Result<Self, ConfigError> {
        if followed == 0 || followed > Self::MOST_FOLLOWED {
            return Err(ConfigError::new(
                "followed",
                format!("{followed}"),
                format!("1 to {} keys", Self::MOST_FOLLOWED),
            ));
        }
        Ok(Self {
            followed,
            state: Mutex::new(State {
                keys: Vec::new(),
                places: HashMap::new(),
                order: BTreeSet::new(),
            }),
        })
    }

    /// Counts one more of `key`, in a number of steps that grows with the logarithm of the followed
    /// keys.
    ///
    /// # Concurrency
    ///
    /// Takes a lock that is held for these steps only.
    pub fn add<Q>(&self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let state = &mut *self.lock();
        let place = match state.places.get(key) {
            Some(&place) => place,
            None if state.keys.len() < self.followed => state.follow(key.to_owned()),
            None => state.replace_rarest(key.to_owned()),
        };
        let entry = &mut state.keys[place];
        state.order.remove(&(entry.count, place));
        entry.count += 1;
        state.order.insert((entry.count, place));
    }

    /// The `max_request` keys that came up most often, the most frequent first.
    #[must_use]
    pub fn top(&self, most: usize) -> Vec<TopKey<K>> {
        let state = self.lock();
        let places = state.order.iter().rev().take(most);
        places.map(|&(_, place)| state.keys[place].clone()).collect()
    }

    /// Forgets all keys and counts.
    pub fn clear(&self) {
        let mut state = self.lock();
        state.keys.clear();
        state.places.clear();
        state.order.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State<K>> {
        // A panic in a key's own code can leave a count out, and nothing worse.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq + Clone> State<K> {
    fn follow(&mut self, key: K) -> usize {
        let place = self.keys.len();
        self.places.insert(key.clone(), place);
        self.keys.push(TopKey {
            key,
            count: 0,
            error: 0,
        });
        place
    }

    /// The key takes over the smallest count, which is the most that it can have had.
    fn replace_rarest(&mut self, key: K) -> usize {
        let &(count, place) = self.order.first().expect("at least one key is followed");
        let entry = &mut self.keys[place];
        self.places.remove(&entry.key);
        self.places.insert(key.clone(), place);
        entry.key = key;
        entry.error = count;
        place
    }
}
