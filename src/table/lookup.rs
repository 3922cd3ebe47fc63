//! Where a key's entry is, as it seems. All of it is guesses, which a [`Seat`](super::Seat) validates, but for what somebody
//! who enters a key asks.

use super::hints::Guesses;
use super::shape::{Places, Shape, WAYS};
use super::{Candidate, Entry, Set, Table};

impl Table {
    /// The entry that `key` seems to have: a guess, which a [`Seat`](super::Seat) validates.
    #[cfg(feature = "rules")]
    #[inline(always)]
    pub(crate) fn find(&self, key: u64) -> Option<Entry<'_>> {
        let near = self.find_near(key).or_else(|| self.find_far(key));
        near.or_else(|| self.find_anywhere(key))
    }

    #[cfg(feature = "rules")]
    #[cold]
    #[inline(never)]
    fn find_anywhere(&self, key: u64) -> Option<Entry<'_>> {
        self.find_in_front(key).or_else(|| self.find_in_backyard(key))
    }

    /// The same in the front, where nearly all keys are, by hints: in a table that is in the caches. None in any other.
    #[cfg(any(feature = "rules", test))]
    #[inline(always)]
    pub(crate) fn find_near(&self, key: u64) -> Option<Entry<'_>> {
        self.follow(self.guesses(self.places(key))?, key)
    }

    #[inline(always)]
    fn follow(&self, guesses: Guesses, key: u64) -> Option<Entry<'_>> {
        for (set, way) in guesses {
            let entry = self.entry(set * WAYS + way);
            if entry.seems_of(key) {
                return Some(entry);
            }
        }
        None
    }

    #[inline(always)]
    fn guesses(&self, places: Places) -> Option<Guesses> {
        self.hints.guesses(places.front, places.byte)
    }

    /// Where the key may be, by arithmetic alone: nothing is read.
    #[inline(always)]
    pub(crate) fn places(&self, key: u64) -> Places {
        self.shape.places(key)
    }

    /// As [`find_near`](Self::find_near). In a table without hints a word of each set is read that
    /// [`find_far`](Self::find_far) would look at, so that they are on their way from memory.
    #[inline(always)]
    pub(crate) fn ask_for(&self, places: Places, key: u64) -> Option<Entry<'_>> {
        if let Some(guesses) = self.guesses(places) {
            return self.follow(guesses, key);
        }
        let seems = |set| Entry::seems(&self.words[self.first + set * WAYS * self.stride], key);
        let [first, second] = places.front;
        // Nobody waits for the answers.
        core::hint::black_box(seems(first) | seems(second));
        None
    }

    /// The entry that the first hint for `key` leads to, whosever it is: none of the entries is read. None in a table without
    /// hints.
    #[inline(always)]
    pub(crate) fn guess_near(&self, key: u64) -> Option<Entry<'_>> {
        let (set, way) = self.guesses(self.places(key))?.next()?;
        Some(self.entry(set * WAYS + way))
    }

    /// The same in the front of a table that is too large for hints. None in any other.
    #[inline(always)]
    pub(crate) fn find_far(&self, key: u64) -> Option<Entry<'_>> {
        if self.hints.is_empty() {
            self.look(key).map(|index| self.entry(index))
        } else {
            None
        }
    }

    /// From now on `key` is guessed to have the entry of that index, if that is in the front.
    pub(crate) fn hint(&self, key: u64, index: usize) {
        self.hints.put(index / WAYS, index % WAYS, Shape::byte(key));
    }

    /// The entry that `key` seems to have in the front, for whoever was led to none; leaves the hint that was missing.
    #[cold]
    pub(crate) fn find_in_front(&self, key: u64) -> Option<Entry<'_>> {
        let index = self.look(key)?;
        self.hint(key, index);
        Some(self.entry(index))
    }

    /// The index of the entry that `key` seems to have in the front. Nothing branches on which it is, so both sets are on their
    /// way from memory at once, and what comes after them too.
    #[inline(never)]
    fn look(&self, key: u64) -> Option<usize> {
        let [first, second] = self.shape.front(key);
        let (one, other) = (
            self.set(first, key).way_of(key),
            self.set(second, key).way_of(key),
        );
        let (set, way) = core::hint::select_unpredictable(one < WAYS, (first, one), (second, other));
        (way < WAYS).then_some(set * WAYS + way)
    }

    /// The entry that `key` seems to have in the backyard.
    #[cold]
    #[inline(never)]
    pub(crate) fn find_in_backyard(&self, key: u64) -> Option<Entry<'_>> {
        if self.front(key).any(Set::seems_unused) {
            return None;
        }
        self.backyard(key)
            .flat_map(Set::candidates)
            .map(|candidate| candidate.entry)
            .find(|entry| entry.seems_of(key))
    }

    /// An entry in the front that was never used, for a key that has none: of the set with more of them. `None` if there
    /// is none, or the key seems to have an entry.
    #[inline(always)]
    pub(crate) fn find_unused(&self, key: u64) -> Option<Candidate<'_>> {
        let [first, second] = self.shape.front(key);
        let (first, second) = (self.set(first, key), self.set(second, key));
        let (one, other) = (first.survey(key), second.survey(key));
        // With one of them unused, nobody has the key in the backyard.
        if one.found | other.found != 0 {
            return None;
        }
        if one.unused.count_ones() >= other.unused.count_ones() {
            first.first_unused(one)
        } else {
            second.first_unused(other)
        }
    }

    /// Whether one entry at the most has the key's fingerprint.
    #[inline(always)]
    pub(crate) fn is_in_one_place(&self, key: u64) -> bool {
        let [first, second] = self.shape.front(key);
        let one = self.set(first, key).survey(key);
        let mut other = self.set(second, key).survey(key);
        if first == second {
            // In the model checker's smallest table.
            other.found = 0;
        }
        let front = one.found.count_ones() + other.found.count_ones();
        // With one of them unused, nobody has the key in the backyard.
        let back = if one.unused | other.unused != 0 {
            0
        } else {
            self.places_in_backyard(key)
        };
        front + back <= 1
    }

    #[cold]
    #[inline(never)]
    fn places_in_backyard(&self, key: u64) -> u32 {
        self.backyard(key)
            .map(|set| set.survey(key).found.count_ones())
            .sum()
    }
}
