use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::key_states::KeyStates;
use super::limiter::KeyedRateLimiter;
use super::on_full::OnFull;
use crate::algorithm::{Algorithm, Reclaim};
use crate::clock::Clock;
use crate::error::ConfigError;

/// The default capacity of a table in keys.
pub(crate) const DEFAULT_CAPACITY: u64 = 65_536;

/// A builder of [`KeyedRateLimiter`]s, made by [`KeyedRateLimiter::builder`].
///
/// # Examples
///
/// Free users get 10 requests per minute, paying users 100. They share the table, so a user that begins to
/// pay gets the higher limit at the next request, and the permits spent before still count.
///
/// ```
/// use ringgate::keyed::{AnyKey, Tiers};
/// use ringgate::{CounterRing, KeyedRateLimiter, ManualClock, Quota};
///
/// #[derive(Hash)]
/// struct User {
///     id: u64,
/// }
///
/// // User 1 has not paid. Tier 0 is the algorithm's own limit, tier 1 the first that is added.
/// let tier = |user: &User| usize::from(user.id == 1);
/// let limiter = KeyedRateLimiter::builder(CounterRing::new(Quota::per_minute(100)?)?)
///     .tier(10)
///     .capacity(100_000)
///     .build_with(ManualClock::new(), Tiers::new(tier, AnyKey::random()))?;
/// assert!(limiter.check_n(&User { id: 1 }, 11).is_err());
/// assert!(limiter.check_n(&User { id: 2 }, 11).is_ok());
/// # Ok::<(), ringgate::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct KeyedBuilder<A> {
    algorithm: A,
    tiers: Vec<u64>,
    capacity: u64,
    on_full: OnFull,
}

impl<A: Reclaim> KeyedRateLimiter<A> {
    /// Returns a builder of a limiter that applies `algorithm` to each key. It sets capacity, tiers, clock and keys.
    pub const fn builder(algorithm: A) -> KeyedBuilder<A> {
        KeyedBuilder {
            algorithm,
            tiers: Vec::new(),
            capacity: DEFAULT_CAPACITY,
            on_full: OnFull::Share,
        }
    }
}

impl<A: Reclaim> KeyedBuilder<A> {
    /// Sets the number of keys that have room in the table at once, 1 to 2^32. The default is 65,536.
    ///
    /// Set it to the number of keys that are active at the same time, and to twice that number if the algorithm has several
    /// words. The [guide](crate::guide::keys#sizing-a-table) explains how many keys are active.
    pub fn capacity(mut self, keys: u64) -> Self {
        self.capacity = keys;
        self
    }

    /// Sets how a new key is treated if the table is full.
    pub fn on_full(mut self, on_full: OnFull) -> Self {
        self.on_full = on_full;
        self
    }

    /// Adds a tier with a lower limit in the same window. The algorithm itself is tier 0, and the added tiers
    /// are 1, 2, … in the order of the calls.
    ///
    /// Pass [`Tiers`](crate::keyed::Tiers) to [`build_with`](Self::build_with): they return the tier of a key. With
    /// [`build`](Self::build), all keys are in tier 0.
    ///
    /// All tiers share the table and its words. If a key changes its tier, the new limit holds from the next
    /// decision on, and the permits that the key has spent stay spent. A window of the key holds at most the bound of
    /// the algorithm, tier 0.
    pub fn tier(mut self, limit: u64) -> Self {
        self.tiers.push(limit);
        self
    }

    /// Builds the limiter with the given clock, and with `keys` to tell keys apart.
    ///
    /// # Errors
    ///
    /// - `capacity`: zero or more than 2^32 keys, or more than there is memory for;
    /// - `limit`: the limit of a tier is zero or above the algorithm's; `windows`: a ring of several windows has a tier
    ///   ([`Reclaim::with_limit`]);
    /// - `algorithm`: a custom algorithm has no words.
    pub fn build_with<C: Clock, K>(
        self,
        clock: C,
        keys: K,
    ) -> Result<KeyedRateLimiter<A, C, K>, ConfigError> {
        // An invalid tier is an error of the algorithm that the caller gave. `for_table` may return an algorithm of another form.
        let given_tiers = self.tiers.iter().map(|&limit| self.algorithm.with_limit(limit));
        let given_tiers: Vec<A> = given_tiers.collect::<Result<_, _>>()?;
        let all_given = [&self.algorithm].into_iter().chain(&given_tiers);
        let lowest = all_given.map(Algorithm::max_request).min().unwrap_or(1);
        let algorithm = self.algorithm.for_table(lowest)?;
        let tiers = self.tiers.iter().map(|&limit| algorithm.with_limit(limit));
        let lower_tiers: Box<[A]> = tiers.collect::<Result<_, _>>()?;
        let words = algorithm.words();
        if words == 0 {
            return Err(ConfigError::new(
                "algorithm",
                format!("{words} words of state"),
                "at least one word",
            ));
        }
        Ok(KeyedRateLimiter {
            states: KeyStates::new(self.capacity, words)?,
            algorithm,
            lower_tiers,
            on_full: self.on_full,
            clock,
            keys,
        })
    }
}
