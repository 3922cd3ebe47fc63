use crate::sync;

/// Entries of a set: of one-word states a cache line. (One for the model checker, which tries every
/// interleaving of the looks at them.)
pub(super) const WAYS: usize = if sync::MODELLED { 1 } else { 4 };

/// How many sets there are, and which of them are a key's.
///
/// A key has two sets anywhere in the *front*, of which it takes the emptier one, and two in the
/// *backyard*, for when both are full: so small a part of the table that it stays in the caches. With
/// as many keys as were asked for, a fortieth of them is in the backyard, and none finds all four
/// sets full; at 90 % of all entries 2 in 1,000 do. (The emptier of two: Azar, Broder, Karlin and Upfal,
/// "Balanced Allocations", STOC 1994. The backyard: Arbitman, Naor and Segev, "Backyard Cuckoo Hashing",
/// FOCS 2010; but nothing is ever moved here.)
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// At least two (for the model checker, one).
    front: usize,
    /// The first half of the front.
    left: usize,
    /// The second half (for the model checker's smallest table, the first again).
    right: usize,
    back: usize,
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

    /// The two sets that are the key's in the front: one of either half. (Vöcking, "How Asymmetry Helps Load
    /// Balancing", J. ACM 50:4, 2003.)
    #[inline(always)]
    pub(super) fn front(self, key: u64) -> [usize; 2] {
        let bits = mix(key);
        let second = self.front - self.right + scale(bits.rotate_left(32), self.right);
        [scale(bits, self.left), second]
    }

    /// A byte of the key, other than 0, that tells it from most others of its sets.
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
