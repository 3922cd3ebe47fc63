use core::fmt;
use core::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

/// The parts of a key that are equal on all machines: see [`Key::shared_as`](crate::Key::shared_as).
///
/// The parts are hashed into 128 bits (`SipHash-2-4`, with a secret that all nodes share). So each key takes the same number of
/// bytes in the store, and the store does not reveal the parts. Two keys share a limit only if all 128 bits are equal.
pub struct KeyParts(SipHasher24);

/// The function that feeds the parts of a request's key.
pub(crate) type PartsOf<R> = dyn Fn(&R, &mut KeyParts) + Send + Sync;

impl KeyParts {
    pub(crate) fn new(secret: [u64; 2]) -> Self {
        Self(SipHasher24::new_with_keys(secret[0], secret[1]))
    }

    /// Adds a part: a text, the octets of an address, or the bytes of a number in an order that all machines share.
    pub fn part(&mut self, part: impl AsRef<[u8]>) -> &mut Self {
        let part = part.as_ref();
        // The length is hashed first, so that "ab", "c" and "a", "bc" differ.
        self.0.write(&(part.len() as u64).to_le_bytes());
        self.0.write(part);
        self
    }

    /// Begins the parts of one of several keys that are counted together.
    pub(crate) fn begin(&mut self) -> &mut Self {
        // No part has this length, so the first part of a key cannot be one more part of the key before it.
        self.0.write(&u64::MAX.to_le_bytes());
        self
    }

    /// The hash of all parts.
    pub(crate) fn finish(self) -> u128 {
        self.0.finish128().as_u128()
    }
}

impl fmt::Debug for KeyParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The state would reveal the secret.
        f.debug_struct("KeyParts").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> [u64; 2] {
        [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]
    }

    /// The vectors of the reference implementation (`vectors_sip128` of github.com/veorq/SipHash).
    #[test]
    fn hashes_as_the_reference_does() {
        let expected: [[u8; 16]; 3] = [
            [
                0xa3, 0x81, 0x7f, 0x04, 0xba, 0x25, 0xa8, 0xe6, 0x6d, 0xf6, 0x72, 0x14, 0xc7, 0x55, 0x02,
                0x93,
            ],
            [
                0xda, 0x87, 0xc1, 0xd8, 0x6b, 0x99, 0xaf, 0x44, 0x34, 0x76, 0x59, 0x11, 0x9b, 0x22, 0xfc,
                0x45,
            ],
            [
                0x81, 0x77, 0x22, 0x8d, 0xa4, 0xa4, 0x5d, 0xc7, 0xfc, 0xa3, 0x8b, 0xde, 0xf6, 0x0a, 0xff,
                0xe4,
            ],
        ];
        for (length, expected) in (0_u8..).zip(expected) {
            let mut parts = KeyParts::new(secret());
            let message: alloc::vec::Vec<u8> = (0..length).collect();
            parts.0.write(&message);
            assert_eq!(parts.finish().to_le_bytes(), expected, "{length} bytes");
        }
    }

    #[test]
    fn the_boundaries_of_parts_are_hashed() {
        let hash = |parts: &[&str]| {
            let mut hash = KeyParts::new(secret());
            for part in parts {
                hash.part(part);
            }
            hash.finish()
        };
        let different: [&[&str]; 6] = [&[], &[""], &["", ""], &["abc"], &["ab", "c"], &["a", "bc"]];
        for (at, one) in different.iter().enumerate() {
            assert_eq!(hash(one), hash(one));
            for other in &different[..at] {
                assert_ne!(hash(one), hash(other), "{one:?} and {other:?}");
            }
        }
    }
}
