//! Random seeds. The target `wasm32-unknown-unknown` has no source of random numbers, so it has none of these.

use core::hash::BuildHasher;

use super::keys::AnyKey;

/// Returns random seeds for the hashes of keys, for limiters and rule sets that are built with a clock of the caller's choice.
///
/// The seeds come from the operating system, by way of the standard library's hasher. Each call returns other seeds.
///
/// The target `wasm32-unknown-unknown` has no source of random numbers, so it does not have this function. Pass seeds from the
/// host there, for example from `crypto.getRandomValues`.
///
/// # Examples
///
/// ```
/// use ringgate::keyed::{AnyKey, random_seeds};
/// use ringgate::clock::SystemClock;
/// use ringgate::{CounterRing, KeyedRateLimiter, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let ring = CounterRing::new(Quota::per_minute(5)?)?;
/// let keys = AnyKey::with_seeds(random_seeds());
/// let limiter = KeyedRateLimiter::builder(ring).build_with(SystemClock::new(), keys)?;
/// assert!(limiter.check("ann").is_ok());
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn random_seeds() -> [u64; 4] {
    core::array::from_fn(|index| std::hash::RandomState::new().hash_one(index))
}

impl AnyKey {
    /// Tells keys apart by hashes with random seeds, so clients cannot choose keys that collide.
    #[must_use]
    pub fn random() -> Self {
        Self::with_seeds(random_seeds())
    }
}
