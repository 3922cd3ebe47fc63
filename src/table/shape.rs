use crate::sync;

/// Entries of a set: of one-word states a cache line. (One for the model checker, which tries every
/// interleaving of the looks at them.)
pub(super) const WAYS: usize = if sync::MODELLED { 1 } else { 4 };

/// How many sets there are, and which of them are a key's.
///
/// Most sets are in *pairs*: neighbours that share a pair of lines, one of which is a key's first.
/// The rest is the *backyard*, for keys whose pair is full: so small that it stays in the caches.
/// At 80 % load a tenth of the keys are there, and one in 10,000 finds it full as well. (The idea is
/// that of Arbitman, Naor and Segev, "Backyard Cuckoo Hashing", FOCS 2010; nothing is ever moved
/// here.)
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Sets in pairs: an even number.
    paired: usize,
    /// Sets of the backyard.
    back: usize,
}

/// The backyard's part of all sets.
const BACK: usize = 8;

/// Sets of the backyard that a key may have its entry in.
const BACK_CHOICES: usize = 2;

// Odd numbers without a pattern: the bits of the golden ratio and of the square roots of 3, 5 and 7,
// after the point.
const PAIR: u64 = 0x9e37_79b9_7f4a_7c15;
const BACKYARD: [u64; BACK_CHOICES] = [0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b];
const HOME: u64 = 0xa54f_f53a_5f1d_36f1;

impl Shape {
    /// As many sets as hold `entries`, at least.
    pub(super) fn of(entries: usize) -> Self {
        let sets = entries.div_ceil(WAYS);
        let back = match sets.div_ceil(BACK) {
            // The models that do without it try fewer interleavings.
            1 if sync::MODELLED && sets <= 2 => 0,
            back => back,
        };
        Self {
            paired: (sets - back).max(1).next_multiple_of(2),
            back,
        }
    }

    pub(super) const fn sets(self) -> usize {
        self.paired + self.back
    }

    /// The first set of `key`; its neighbour is the one whose number differs in the last bit.
    #[inline(always)]
    pub(super) fn first(self, key: u64) -> usize {
        scale(mix(key, PAIR), self.paired)
    }

    /// The sets that are the key's in the backyard.
    #[inline]
    pub(super) fn backyard(self, key: u64) -> impl Iterator<Item = usize> {
        BACKYARD
            .into_iter()
            .take(self.back)
            .map(move |factor| self.paired + scale(mix(key, factor), self.back))
    }

    /// Which of so many homes is the key's.
    #[inline]
    pub(super) fn home(key: u64, homes: usize) -> usize {
        scale(mix(key, HOME), homes)
    }
}

/// Bits that differ in their upper half wherever keys differ, also if their hashes are multiples of one
/// number: a hasher of the user's own may be that plain.
#[inline(always)]
const fn mix(key: u64, factor: u64) -> u64 {
    (key ^ (key >> 32)).wrapping_mul(factor)
}

/// ⌊bits · range / 2^64⌋: a number below `range`, decided by the upper bits.
#[inline(always)]
const fn scale(bits: u64, range: usize) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "below the range, a usize")]
    let scaled = ((bits as u128 * range as u128) >> 64) as usize;
    scaled
}
