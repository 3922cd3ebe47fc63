use core::fmt;
use core::hash::Hasher;

use ahash::AHasher;

/// The hasher of keys. A [`SeededState`](crate::keyed::SeededState) builds it, and a rule passes it to the closure of a key.
///
/// Two requests have the same key if they write equal values to it. To make a key of several parts, write a tuple, or
/// several values one after the other.
#[derive(Clone)]
pub struct KeyHasher(pub(super) AHasher);

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
