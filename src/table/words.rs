use core::cell::Cell;
use core::ops::Range;
use core::sync::atomic::Ordering;

use super::entry::Entry;
use crate::sync::{Words, exchange_alone};

/// The state words of an entry for as long as one key owns it.
///
/// Once the key has lost the entry, the words are constant zeros that cannot be exchanged. Then they are not
/// [valid](Self::are_valid), and an algorithm's answer about them means nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OccupiedWords<'a> {
    entry: Entry<'a>,
    key: u64,
    seen: &'a SeenWord,
}

/// The first word of a state as it was last read.
#[derive(Debug)]
pub(crate) struct SeenWord {
    first: Cell<u64>,
    /// Whether the algorithm has yet to read the word. Its first read returns `first`, which was read while the key
    /// owned the entry.
    unread: Cell<bool>,
}

impl SeenWord {
    /// Stands for the word of an entry that the key has lost. No open entry has this word.
    const LOST: u64 = u64::MAX;

    /// The first word that the caller has read or written while the key owned the entry.
    #[inline(always)]
    pub(crate) const fn known(first: u64) -> Self {
        Self {
            first: Cell::new(first),
            unread: Cell::new(true),
        }
    }

    /// `None` if `key` does not own the entry, or no state was begun in it.
    #[inline(always)]
    pub(crate) fn read(entry: Entry<'_>, key: u64) -> Option<Self> {
        entry.decidable_word(key).map(Self::known)
    }
}

impl<'a> OccupiedWords<'a> {
    /// The words of the entry that `seen` was read from.
    #[inline(always)]
    pub(crate) const fn new(entry: Entry<'a>, key: u64, seen: &'a SeenWord) -> Self {
        Self { entry, key, seen }
    }

    /// Whether an answer that changed nothing was about the key's own state. It was if the first word is unchanged.
    #[inline(always)]
    pub(crate) fn are_valid(self) -> bool {
        let first = self.seen.first.get();
        first != SeenWord::LOST && self.entry.still_is(first)
    }
}

impl Words for OccupiedWords<'_> {
    #[inline(always)]
    fn load(self, index: usize, order: Ordering) -> u64 {
        let SeenWord { first, unread } = self.seen;
        if first.get() == SeenWord::LOST {
            return 0;
        }
        if index > 0 {
            return self.entry.word(index).load(order);
        }
        if !unread.replace(false) {
            first.set(self.entry.open_word(self.key).unwrap_or(SeenWord::LOST));
        }
        match first.get() {
            SeenWord::LOST => 0,
            first => first,
        }
    }

    #[inline]
    fn load_each(self, indices: Range<usize>, order: Ordering, mut visit: impl FnMut(u64)) {
        let cold = match self.seen.first.get() {
            SeenWord::LOST => None,
            _ => self.entry.cold_words(indices.clone()),
        };
        match cold {
            Some(cold) => cold.iter().for_each(|word| visit(word.load(order))),
            None => indices.for_each(|index| visit(self.load(index, order))),
        }
    }

    #[inline(always)]
    fn exchange(self, index: usize, current: u64, new: u64, order: Ordering) -> Result<u64, u64> {
        if self.seen.first.get() == SeenWord::LOST {
            return Err(0);
        }
        // Relaxed on failure: the caller is promised no more.
        self.entry
            .word(index)
            .compare_exchange(current, new, order, Ordering::Relaxed)
    }
}

/// The state words of an entry in a table that no other thread uses. Its exchanges are not locked instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AloneWords<'a>(Entry<'a>);

impl<'a> AloneWords<'a> {
    /// `None` if `key` does not own the entry.
    #[inline]
    pub(crate) fn new(entry: Entry<'a>, key: u64) -> Option<Self> {
        entry.open_word(key).map(|_| Self(entry))
    }
}

impl Words for AloneWords<'_> {
    #[inline]
    fn load(self, index: usize, _order: Ordering) -> u64 {
        // Relaxed: no other thread has written the word.
        self.0.word(index).load(Ordering::Relaxed)
    }

    #[inline]
    fn exchange(self, index: usize, current: u64, new: u64, _order: Ordering) -> Result<u64, u64> {
        // The caller publishes the whole table later.
        exchange_alone(self.0.word(index), current, new)
    }
}
