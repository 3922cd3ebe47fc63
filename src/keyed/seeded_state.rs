use core::fmt;
use core::hash::BuildHasher;

use ahash::RandomState;

use super::KeyHasher;

/// Makes hashers with seeds, which nobody can aim collisions at who does not know them.
///
/// The hash is ahash; it may be another in a later version of this crate, so hashes are not to be kept.
#[derive(Clone)]
pub struct SeededState(RandomState);

impl SeededState {
    /// Hashers with these seeds: the same seeds make the same hashes wherever the same program runs. For tests and simulations;
    /// nobody else may know them.
    #[must_use]
    pub fn with_seeds([first, second, third, fourth]: [u64; 4]) -> Self {
        Self(RandomState::with_seeds(first, second, third, fourth))
    }

    /// Hashers with random seeds.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn random() -> Self {
        Self::with_seeds(random_seeds())
    }
}

/// From the operating system, by way of the standard library's own hasher.
#[cfg(feature = "std")]
pub(crate) fn random_seeds() -> [u64; 4] {
    core::array::from_fn(|index| std::hash::RandomState::new().hash_one(index))
}

impl BuildHasher for SeededState {
    type Hasher = KeyHasher;

    #[inline]
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(self.0.build_hasher())
    }
}

impl fmt::Debug for SeededState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The seeds are a secret.
        f.debug_struct("SeededState").finish_non_exhaustive()
    }
}
