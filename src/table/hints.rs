use alloc::boxed::Box;

use super::shape::WAYS;
use crate::sync::{self, Hint, Ordering};

/// For each entry a byte of the hash of the key that was last given it, those of a set in one word.
///
/// Guesses, and no part of the protocol. Whoever follows one validates the entry, as if he had come upon it by chance;
/// whoever is led to none of the key looks at the entries themselves. So nothing here is ordered, and a change may be lost:
/// then the next one has to look, and makes it again.
///
/// A key may have any of eight entries in the front, on two lines of memory or on up to eight. The hints of all of them are
/// two words, which are written when a key enters and otherwise read, so that every core has them in its own cache. Then the
/// line of the key's entry is touched, and, one time in seventy in a full table, first that of an entry with the same
/// byte. (A part of the hash beside the entries: Fan, Andersen and Kaminsky, "MemC3", NSDI 2013.)
///
/// A large table has no hints. They would not be in the caches, but waited for, and the entry only after them, while
/// both sets can be asked for at once. (With 100,000 keys hints save a quarter of a decision's time on four threads; with ten
/// million they would cost two thirds of it.)
pub(super) struct Hints(Box<[Hint]>);

/// The most sets that there are hints for: a quarter of a megabyte, for which the second-level cache of a core has room beside
/// other things.
const MOST_SETS: usize = 1 << 16;

/// The same in every byte.
const EVERY: u64 = u64::MAX / 0xff;

impl Hints {
    /// No hint yet for any entry of so many sets, or none ever; `None` when there is no memory for them.
    pub(super) fn new(sets: usize) -> Option<Self> {
        sync::zeroed(if sets > MOST_SETS { 0 } else { sets }).map(Self)
    }

    /// Whether the table is too large for hints.
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) const fn bytes(&self) -> usize {
        size_of_val::<[Hint]>(&self.0)
    }

    pub(super) fn clear(&mut self) {
        self.0.fill_with(Hint::default);
    }

    /// Which entries of two sets may be that of a key with this byte, which is not 0; `None`: there are no hints.
    #[inline(always)]
    pub(super) fn guesses(&self, sets: [usize; 2], byte: u8) -> Option<Guesses> {
        let [first, second] = sets;
        // Relaxed: guesses.
        let low = self.0.get(first)?.load(Ordering::Relaxed);
        let high = self.0.get(second)?.load(Ordering::Relaxed);
        let bytes = (u64::from(low) | u64::from(high) << 32) ^ (EVERY * u64::from(byte));
        // The upper bit of each byte that is zero, and perhaps of a 1 right above it, which leads astray.
        let ways = bytes.wrapping_sub(EVERY) & !bytes & (EVERY << 7);
        Some(Guesses { sets, ways })
    }

    /// From now on that entry may be of a key with this byte, unless somebody else writes the same word at this instant.
    pub(super) fn put(&self, set: usize, way: usize, byte: u8) {
        let Some(word) = self.0.get(set) else {
            return;
        };
        // Relaxed, both: as in `guesses`. What somebody else has put there in between is undone, which is cheaper than a
        // locked instruction for everybody: whoever misses his hint looks, and puts it back.
        let seen = word.load(Ordering::Relaxed);
        let new = seen & !(0xff << (8 * way)) | u32::from(byte) << (8 * way);
        if new != seen {
            word.store(new, Ordering::Relaxed);
        }
    }
}

/// Bytes of a word.
const SLOTS: usize = size_of::<Hint>();

const _: () = assert!(WAYS <= SLOTS);

/// Numbers of sets, each with the number of an entry in it: nearly always none or one.
pub(super) struct Guesses {
    sets: [usize; 2],
    /// The upper bit of each byte whose entry it may be.
    ways: u64,
}

impl Iterator for Guesses {
    type Item = (usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, usize)> {
        let way = self.ways.trailing_zeros() as usize / 8;
        // Which set it is cannot be foretold, so nothing branches on it.
        let set = core::hint::select_unpredictable(way < SLOTS, self.sets[0], self.sets[1]);
        (self.ways != 0).then(|| {
            self.ways &= self.ways - 1;
            (set, way % SLOTS)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn guesses(hints: &Hints, sets: [usize; 2], byte: u8) -> Vec<(usize, usize)> {
        hints.guesses(sets, byte).expect("there are these sets").collect()
    }

    #[test]
    fn every_place_is_led_to() {
        for set in 0..3 {
            for way in 0..WAYS {
                for byte in (1..=u8::MAX).step_by(if cfg!(miri) { 50 } else { 1 }) {
                    let hints = Hints::new(3).expect("memory");
                    hints.put(set, way, byte);
                    let other = (set + 1) % 3;
                    // Above a byte that is found, one that is greater by one looks the same.
                    assert_eq!(guesses(&hints, [set, other], byte)[0], (set, way));
                    assert_eq!(guesses(&hints, [other, set], byte)[0], (set, way));
                    assert_eq!(guesses(&hints, [other, (set + 2) % 3], byte), []);
                    assert_eq!(guesses(&hints, [set, other], byte % u8::MAX + 1), []);
                }
            }
        }
    }

    #[test]
    fn of_several_none_is_left_out() {
        let hints = Hints::new(2).expect("memory");
        for (set, way) in [(0, 1), (0, 3), (1, 0), (1, 2)] {
            hints.put(set, way, 7);
        }
        assert_eq!(guesses(&hints, [0, 1], 7), [(0, 1), (0, 3), (1, 0), (1, 2)]);
        assert_eq!(guesses(&hints, [1, 0], 7), [(1, 0), (1, 2), (0, 1), (0, 3)]);
        // What is written over is gone.
        hints.put(0, 1, 9);
        assert_eq!(guesses(&hints, [0, 1], 7), [(0, 3), (1, 0), (1, 2)]);
        assert_eq!(guesses(&hints, [0, 1], 9), [(0, 1)]);
    }

    #[test]
    fn sets_that_there_are_not_have_none() {
        let hints = Hints::new(2).expect("memory");
        assert!(hints.guesses([0, 2], 1).is_none());
        assert!(hints.guesses([2, 0], 1).is_none());
    }
}
