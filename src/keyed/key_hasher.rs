//! The hasher of keys, and the secret seeds that it begins with.

use core::fmt;
use core::hash::{BuildHasher, Hasher};

use ahash::{AHasher, RandomState};

/// Hashes keys, with secret seeds. A rule passes it to the closure of a [`Key`](crate::Key).
///
/// The hash is ahash. A later version of this crate may use another one, so do not store hashes.
///
/// Two requests have the same key if they write equal values to it. To make a key of several parts, write a tuple, or
/// several values one after the other.
#[derive(Clone)]
pub struct KeyHasher(AHasher);

impl fmt::Debug for KeyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The state would reveal the seeds, which are secret.
        f.debug_struct("KeyHasher").finish_non_exhaustive()
    }
}

macro_rules! forward {
    ($($write:ident: $type:ty),*) => {
        $(
            #[inline]
            fn $write(&mut self, value: $type) {
                self.0.$write(value);
            }
        )*
    };
}

impl Hasher for KeyHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    forward!(write: &[u8], write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128, write_usize: usize);
}

/// Builds hashers with secret seeds. Clients that do not know the seeds cannot choose keys that collide.
#[derive(Clone)]
pub(crate) struct SeededState {
    hasher: RandomState,
    /// Kept for saved tables, because the hasher does not return its seeds.
    seeds: [u64; 4],
}

impl SeededState {
    /// Builds hashers with these seeds. Equal seeds give equal hashes in every run of a program.
    pub(crate) fn with_seeds(seeds: [u64; 4]) -> Self {
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
