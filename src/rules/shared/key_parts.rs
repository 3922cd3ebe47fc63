use core::fmt;

/// The parts of a key that are equal on all machines: see [`Key::shared_as`](crate::Key::shared_as).
///
/// The parts are hashed into 128 bits (`SipHash-2-4`, with a secret that all nodes share). So a key takes the same number
/// of bytes in the store whatever clients send, and does not reveal them. Two keys share a limit only if all 128 bits
/// agree.
pub struct KeyParts {
    state: [u64; 4],
    /// Bytes that do not fill a word yet, the first in the lowest bits.
    rest: u64,
    /// The number of bytes so far.
    length: u64,
}

impl KeyParts {
    pub(crate) fn new(secret: [u64; 2]) -> Self {
        // The constants of the reference, and the one of its 128-bit variant.
        Self {
            state: [
                secret[0] ^ 0x736f_6d65_7073_6575,
                secret[1] ^ 0x646f_7261_6e64_6f6d ^ 0xee,
                secret[0] ^ 0x6c79_6765_6e65_7261,
                secret[1] ^ 0x7465_6462_7974_6573,
            ],
            rest: 0,
            length: 0,
        }
    }

    /// Adds a part: a text, the octets of an address, or the bytes of a number in an order that all machines share.
    pub fn part(&mut self, part: impl AsRef<[u8]>) -> &mut Self {
        let part = part.as_ref();
        // The length first, so that "ab", "c" and "a", "bc" differ.
        self.write(&(part.len() as u64).to_le_bytes());
        self.write(part);
        self
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let place = self.length % 8;
            self.rest |= u64::from(byte) << (8 * place);
            self.length = self.length.wrapping_add(1);
            if place == 7 {
                let word = core::mem::take(&mut self.rest);
                self.state[3] ^= word;
                self.rounds(2);
                self.state[0] ^= word;
            }
        }
    }

    fn rounds(&mut self, rounds: usize) {
        let [mut v0, mut v1, mut v2, mut v3] = self.state;
        for _ in 0..rounds {
            v0 = v0.wrapping_add(v1);
            v1 = v1.rotate_left(13) ^ v0;
            v0 = v0.rotate_left(32);
            v2 = v2.wrapping_add(v3);
            v3 = v3.rotate_left(16) ^ v2;
            v0 = v0.wrapping_add(v3);
            v3 = v3.rotate_left(21) ^ v0;
            v2 = v2.wrapping_add(v1);
            v1 = v1.rotate_left(17) ^ v2;
            v2 = v2.rotate_left(32);
        }
        self.state = [v0, v1, v2, v3];
    }

    /// The hash of all parts.
    pub(crate) fn finish(mut self) -> u128 {
        let last = self.rest | (self.length << 56);
        self.state[3] ^= last;
        self.rounds(2);
        self.state[0] ^= last;
        self.state[2] ^= 0xee;
        self.rounds(4);
        let low = self.folded();
        self.state[1] ^= 0xdd;
        self.rounds(4);
        u128::from(low) | u128::from(self.folded()) << 64
    }

    fn folded(&self) -> u64 {
        self.state.iter().fold(0, |folded, word| folded ^ word)
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
            parts.write(&message);
            assert_eq!(parts.finish().to_le_bytes(), expected, "{length} bytes");
        }
    }

    #[test]
    fn parts_do_not_run_into_one_another() {
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
