use crate::sync;

/// Entries of a set: of one-word states a cache line. (One for the model checker, which tries every
/// interleaving of the looks at them.)
pub(super) const WAYS: usize = if sync::MODELLED { 1 } else { 4 };

/// How many sets there are, and which of them are a key's.
///
/// A key has two sets in the *front*, one in either half of it, of which it takes the emptier one, and two in the
/// *backyard*, for when both are full: so small a part of the table that it stays in the caches. With
/// as many keys as were asked for, a fiftieth of them is in the backyard, and none finds all four
/// sets full; at 90 % of all entries 1 in 1,000 does. (The emptier of two: Azar, Broder, Karlin and Upfal,
/// "Balanced Allocations", STOC 1994. One in either half, and the first where both are as empty, which is better than any
/// two: Vöcking, "How Asymmetry Helps Load Balancing", J. ACM 50:4, 2003. The backyard: Arbitman, Naor and Segev,
/// "Backyard Cuckoo Hashing", FOCS 2010; but nothing is ever moved here.)
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// At least two (for the model checker, one).
    front: usize,
    /// Sets of the first half of the front.
    left: usize,
    /// Sets of the second half: as many, or one fewer. (In the model checker's smallest table the halves are the same set.)
    right: usize,
    back: usize,
}

/// Where in the front a key may have its entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    /// The numbers of its two sets.
    pub(super) front: [usize; 2],
    /// What its hint would be.
    pub(super) byte: u8,
}

/// The backyard's part of all sets.
const BACK: usize = 16;

/// Sets of the backyard that a key may have its entry in.
const BACK_CHOICES: usize = 2;

// Odd numbers without a pattern: the bits of the golden ratio and the square roots of 3, 5, 7 and 11,
// after the point.
const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND: u64 = 0xbb67_ae85_84ca_a73b;
const BACKYARD: [u64; BACK_CHOICES] = [0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1];
const HOME: u64 = 0x510e_527f_ade6_82d1;

impl Shape {
    /// As many sets as hold `keys` and a quarter more, at least; `None` when they cannot be
    /// numbered.
    pub(super) fn of(keys: u64) -> Option<Self> {
        if sync::MODELLED {
            // Exactly as many as asked for: most models need one or two.
            let back = usize::from(keys > 2);
            let front = usize::try_from(keys).ok()? - back;
            return Some(Self::new(front, back));
        }
        let entries = usize::try_from(keys + keys.div_ceil(4)).ok()?;
        let sets = entries.div_ceil(WAYS);
        let back = sets.div_ceil(BACK);
        Some(Self::new((sets - back).max(2), back))
    }

    fn new(front: usize, back: usize) -> Self {
        Self {
            front,
            left: front.div_ceil(2),
            right: (front / 2).max(1),
            back,
        }
    }

    pub(super) const fn sets(self) -> usize {
        self.front + self.back
    }

    /// The two sets that are the key's in the front: one of either half.
    #[inline(always)]
    pub(super) fn front(self, key: u64) -> [usize; 2] {
        let bits = mix(key);
        let second = self.front - self.right + scale(bits.rotate_left(32), self.right);
        [scale(bits, self.left), second]
    }

    #[inline(always)]
    pub(super) fn places(self, key: u64) -> Places {
        Places {
            front: self.front(key),
            byte: Self::byte(key),
        }
    }

    /// A byte of the key, other than 0 (which stands for no hint), that tells it from most others of its sets: of the bits
    /// between those that choose the two, as long as a half has up to 2^24 sets.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "one byte of many")]
    pub(super) const fn byte(key: u64) -> u8 {
        let byte = (mix(key) >> 32) as u8;
        if byte == 0 { 1 } else { byte }
    }

    /// How many of the two are different: both, but for the model checker's smallest table.
    pub(super) fn front_choices(self) -> usize {
        self.front.min(2)
    }

    /// The sets that are the key's in the backyard.
    #[inline]
    pub(super) fn backyard(self, key: u64) -> impl Iterator<Item = usize> {
        let bits = mix(key);
        BACKYARD
            .into_iter()
            .take(self.back)
            .map(move |factor| self.front + scale(bits.wrapping_mul(factor), self.back))
    }

    /// Which of so many homes is the key's.
    #[inline]
    pub(super) fn home(key: u64, homes: usize) -> usize {
        scale(mix(key).wrapping_mul(HOME), homes)
    }
}

/// Bits that each depend on all of the key's that matter, and by no one rule: a hasher of the user's own may be plain.
///
/// Of a product alone the upper bits go round evenly when keys are evenly spaced, and so do those of a product by another
/// factor; but then the two sets of a key go together, and keys of some spacings crowd into few pairs of sets.
#[inline(always)]
const fn mix(key: u64) -> u64 {
    let bits = (key ^ (key >> 32)).wrapping_mul(FIRST);
    (bits ^ (bits >> 29)).wrapping_mul(SECOND)
}

/// ⌊bits · range / 2^64⌋: a number below `range`, decided by the upper bits.
#[inline(always)]
const fn scale(bits: u64, range: usize) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "below the range, a usize")]
    let scaled = ((bits as u128 * range as u128) >> 64) as usize;
    scaled
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// How many of `keys` find an entry, one after the other, before the first that finds none.
    fn found(shape: Shape, keys: impl Iterator<Item = u64>) -> usize {
        let mut taken = vec![0; shape.sets()];
        keys.take_while(|&key| {
            let front = shape.front(key);
            let room = |set: &usize| taken[*set] < WAYS;
            let set = if front.iter().any(room) {
                front.into_iter().min_by_key(|&set| taken[set])
            } else {
                shape.backyard(key).filter(room).min_by_key(|&set| taken[set])
            };
            if let Some(set) = set {
                taken[set] += 1;
            }
            set.is_some()
        })
        .count()
    }

    /// What a hasher of the user's own may give: numbers as they are, in the upper half, pairs of them, bytes turned round.
    #[test]
    fn keys_of_a_plain_hasher_find_room_too() {
        let count = if cfg!(miri) { 100 } else { 10_000 };
        let shape = Shape::of(count).expect("sets");
        for shift in (0..=u64::BITS - 14).step_by(if cfg!(miri) { 16 } else { 1 }) {
            assert!(
                found(shape, (1..=count).map(|number| number << shift)) as u64 == count,
                "multiples of 2^{shift}"
            );
        }
        let plain: [fn(u64) -> u64; 8] = [
            |number| number * 1_000,
            |number| number * 1_000_000,
            |number| number | number << 32,
            |number| ((number / 100) << 32) | (number % 100),
            |number| ((number / 100) << 48) | (number % 100),
            u64::swap_bytes,
            u64::reverse_bits,
            |number| !number,
        ];
        for (which, plain) in plain.into_iter().enumerate() {
            assert_eq!(found(shape, (1..=count).map(plain)) as u64, count, "{which}");
        }
    }

    /// A key's sets are two, and all of them are some key's; its byte is no part of them.
    #[test]
    fn every_set_is_of_some_keys() {
        for keys in [1, 3, 5, 10, 11, 100] {
            let shape = Shape::of(keys).expect("sets");
            let mut seen = vec![false; shape.sets()];
            let mut bytes = vec![[false; 256]; shape.sets()];
            for key in 1..if cfg!(miri) { 300_u64 } else { 100_000 } {
                let [first, second] = shape.front(key);
                assert!(first < shape.left && (shape.left..shape.front).contains(&second));
                for set in [first, second] {
                    bytes[set][usize::from(Shape::byte(key))] = true;
                }
                for set in [first, second].into_iter().chain(shape.backyard(key)) {
                    seen[set] = true;
                }
            }
            assert!(seen.iter().all(|seen| *seen), "{keys}");
            for bytes in &bytes[..if cfg!(miri) { 0 } else { shape.front }] {
                assert_eq!(bytes.iter().filter(|seen| **seen).count(), 255, "{keys}");
            }
        }
    }
}
