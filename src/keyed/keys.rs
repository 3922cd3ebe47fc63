use core::fmt;
use core::hash::{BuildHasher, Hash};

use super::key_hasher::SeededState;

/// Tells the keys of a table apart, and returns the tier of each.
///
/// The crate implements it for [`AnyKey`], whose keys all have the same quota, and for [`Tiers`].
///
/// # Examples
///
/// ```
/// use ringgate::keyed::Keys;
/// use ringgate::{CounterRing, KeyedRateLimiter, ManualClock, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// /// Customers by number; the first thousand have a higher limit. The service assigns the numbers, so a
/// /// customer cannot choose one that collides.
/// struct Customers;
///
/// impl Keys<u64> for Customers {
///     fn hash(&self, customer: &u64) -> u64 {
///         // An odd factor spreads the numbers, and the shift copies the high bits to the low ones.
///         let spread = customer.wrapping_mul(0x9E37_79B9_7F4A_7C15);
///         spread ^ (spread >> 32)
///     }
///
///     fn tier(&self, customer: &u64) -> usize {
///         usize::from(*customer >= 1_000)
///     }
/// }
///
/// let limiter = KeyedRateLimiter::builder(CounterRing::new(Quota::per_second(100)?)?)
///     .tier(10)
///     .build_with(ManualClock::new(), Customers)?;
/// assert!(limiter.check_n(&7, 100).is_ok());
/// assert!(limiter.check_n(&7_000, 100).is_err());
/// # Ok(())
/// # }
/// ```
pub trait Keys<Q: ?Sized> {
    /// Returns 64 bits that identify the key. Two keys with equal bits share a limiter.
    ///
    /// The bits also determine the buckets of the key, so they must be spread as evenly as by a good hasher. If
    /// clients choose the keys, the hash needs a secret seed.
    fn hash(&self, key: &Q) -> u64;

    /// Returns the number of the key's tier. Tier 0 is the quota of the algorithm itself, the highest. A number that
    /// no tier has means tier 0, too.
    fn tier(&self, key: &Q) -> usize {
        let _ = key;
        0
    }
}

/// Keys of any type that can be hashed, all with the same quota.
///
/// # Examples
///
/// ```
/// use ringgate::keyed::AnyKey;
/// use ringgate::{CounterRing, KeyedRateLimiter, ManualClock, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// // Fixed seeds make a test repeatable.
/// let limiter = KeyedRateLimiter::builder(CounterRing::new(Quota::per_second(1)?)?)
///     .build_with(ManualClock::new(), AnyKey::with_seeds([1, 2, 3, 4]))?;
/// assert!(limiter.check("alice").is_ok());
/// assert!(limiter.check(&("alice", 443_u16)).is_ok());
/// assert!(limiter.check("alice").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AnyKey {
    pub(super) seeded: SeededState,
}

impl AnyKey {
    /// Tells keys apart by hashes with these seeds, for tests and simulations. Equal seeds and equal calls give equal
    /// decisions. Clients that know the seeds can choose keys that collide.
    #[must_use]
    pub fn with_seeds(seeds: [u64; 4]) -> Self {
        Self {
            seeded: SeededState::with_seeds(seeds),
        }
    }
}

impl<Q: Hash + ?Sized> Keys<Q> for AnyKey {
    #[inline]
    fn hash(&self, key: &Q) -> u64 {
        self.seeded.hash_one(key)
    }
}

impl fmt::Debug for AnyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The seeds are a secret.
        f.debug_struct("AnyKey").finish_non_exhaustive()
    }
}

/// Keys with tiers of quotas. A function returns the tier of a key, at each decision.
///
/// # Examples
///
/// ```
/// use ringgate::keyed::{AnyKey, Tiers};
/// use ringgate::{CounterRing, KeyedRateLimiter, ManualClock, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// // Known users get 100 requests per second, all others 10, from one table.
/// let tier = |name: &str| usize::from(name != "alice");
/// let limiter = KeyedRateLimiter::builder(CounterRing::new(Quota::per_second(100)?)?)
///     .tier(10)
///     .build_with(ManualClock::new(), Tiers::new(tier, AnyKey::with_seeds([1, 2, 3, 4])))?;
/// assert!(limiter.check_n("alice", 100).is_ok());
/// assert!(limiter.check_n("mallory", 11).is_err());
/// # Ok(())
/// # }
/// ```
///
/// The type of a closure cannot be named in a struct. To store such a limiter, implement [`Keys`] for a type of your own:
///
/// ```
/// use ringgate::keyed::{AnyKey, Keys};
/// use ringgate::{CounterRing, KeyedRateLimiter};
///
/// struct Users {
///     known: Vec<String>,
///     keys: AnyKey,
/// }
///
/// impl Keys<str> for Users {
///     fn hash(&self, name: &str) -> u64 {
///         self.keys.hash(name)
///     }
///
///     fn tier(&self, name: &str) -> usize {
///         usize::from(!self.known.iter().any(|known| known == name))
///     }
/// }
///
/// struct Service {
///     limiter: KeyedRateLimiter<CounterRing, ringgate::ManualClock, Users>,
/// }
/// ```
#[derive(Clone)]
pub struct Tiers<F, K = AnyKey> {
    pub(super) resolver: F,
    pub(super) keys: K,
}

impl<F, K> Tiers<F, K> {
    /// Tells keys apart as `keys` does. `resolver` returns the tier of a key.
    pub const fn new(resolver: F, keys: K) -> Self {
        Self { resolver, keys }
    }
}

impl<Q: ?Sized, F: Fn(&Q) -> usize, K: Keys<Q>> Keys<Q> for Tiers<F, K> {
    #[inline]
    fn hash(&self, key: &Q) -> u64 {
        self.keys.hash(key)
    }

    #[inline]
    fn tier(&self, key: &Q) -> usize {
        (self.resolver)(key)
    }
}

impl<F, K> fmt::Debug for Tiers<F, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tiers").finish_non_exhaustive()
    }
}
