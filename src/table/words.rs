use core::cell::Cell;
use core::sync::atomic::Ordering;

use super::entry::Entry;
use crate::sync::Words;

/// The state words of an entry for as long as one key owns it.
///
/// Once the key has lost the entry the words are constant zeros that cannot be exchanged: an algorithm's answer about them
/// means nothing, and they are not [valid](Self::are_valid).
#[derive(Debug)]
pub(crate) struct OccupiedWords<'a> {
    entry: Entry<'a>,
    key: u64,
    seen: Cell<u64>,
}

impl<'a> OccupiedWords<'a> {
    /// `seen` before the first read: no first word.
    const UNREAD: u64 = u64::MAX;
    /// `seen` when the key does not own the entry, or no state was begun in it: no first word of a decision.
    const LOST: u64 = 0;

    #[inline(always)]
    pub(crate) fn new(entry: Entry<'a>, key: u64) -> Self {
        let seen = Cell::new(Self::UNREAD);
        Self { entry, key, seen }
    }

    /// Whether an answer that changed nothing was about the key's own state: the first word that was read, if one was, is
    /// still there.
    #[inline(always)]
    pub(crate) fn are_valid(&self) -> bool {
        let seen = self.seen.get();
        seen != Self::LOST && (seen == Self::UNREAD || self.entry.still_is(seen))
    }
}

impl Words for &OccupiedWords<'_> {
    #[inline(always)]
    fn load(self, index: usize, order: Ordering) -> u64 {
        if self.seen.get() == OccupiedWords::LOST {
            return 0;
        }
        if index > 0 {
            return self.entry.word(index).load(order);
        }
        let word = self.entry.decidable_word(self.key).unwrap_or(OccupiedWords::LOST);
        self.seen.set(word);
        word
    }

    #[inline(always)]
    fn exchange(
        self,
        index: usize,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        if self.seen.get() == OccupiedWords::LOST {
            return Err(0);
        }
        self.entry
            .word(index)
            .compare_exchange(current, new, success, failure)
    }
}
