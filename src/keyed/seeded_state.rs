use core::fmt;
use core::hash::BuildHasher;

use ahash::RandomState;

use super::key_hasher::KeyHasher;

/// Builds hashers with secret seeds. Clients that do not know the seeds cannot choose keys that collide.
///
/// The hash is ahash. A later version of this crate may use another one, so do not store hashes.
#[derive(Clone)]
pub struct SeededState {
    hasher: RandomState,
    /// Kept for saved tables, because the hasher does not return its seeds.
    seeds: [u64; 4],
}

impl SeededState {
    /// Builds hashers with these seeds, for tests and simulations. Equal seeds give equal hashes in every run of a
    /// program. Clients that know the seeds can choose keys that collide.
    #[must_use]
    pub fn with_seeds(seeds: [u64; 4]) -> Self {
        let [first, second, third, fourth] = seeds;
        Self {
            hasher: RandomState::with_seeds(first, second, third, fourth),
            seeds,
        }
    }

    pub(super) const fn seeds(&self) -> [u64; 4] {
        self.seeds
    }
}

impl BuildHasher for SeededState {
    type Hasher = KeyHasher;

    #[inline]
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(self.hasher.build_hasher())
    }
}

impl fmt::Debug for SeededState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The seeds are a secret.
        f.debug_struct("SeededState").finish_non_exhaustive()
    }
}
