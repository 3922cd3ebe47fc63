use core::cell::Cell;
use core::sync::atomic::Ordering;

use super::Entry;
use crate::sync::Words;

/// The words of an entry for as long as one key has it.
///
/// Once the entry is found to have passed on, the words are constant zeros that cannot be
/// exchanged: what an algorithm says of them means nothing, and [`seen`](Self::seen) is [`LOST`](Self::LOST).
#[derive(Debug)]
pub(crate) struct Seat<'a> {
    entry: Entry<'a>,
    key: u64,
    seen: Cell<u64>,
}

impl<'a> Seat<'a> {
    /// What `seen` is before the first look: no first word.
    pub(crate) const UNSEEN: u64 = u64::MAX;
    /// What `seen` is when the key has lost the entry: no first word that was ever written.
    pub(crate) const LOST: u64 = 0;

    #[inline]
    pub(crate) fn new(entry: Entry<'a>, key: u64) -> Self {
        let seen = Cell::new(Self::UNSEEN);
        Self { entry, key, seen }
    }

    /// The first word as it was last read.
    #[inline]
    pub(crate) fn seen(&self) -> u64 {
        self.seen.get()
    }

    #[inline]
    fn is_lost(&self) -> bool {
        self.seen.get() == Self::LOST
    }
}

impl Words for &Seat<'_> {
    #[inline(always)]
    fn load(self, index: usize, order: Ordering) -> u64 {
        if self.is_lost() {
            return 0;
        }
        if index > 0 {
            return self.entry.word(index).load(order);
        }
        let first = self.entry.first_of(self.key).unwrap_or(Seat::LOST);
        self.seen.set(first);
        first
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
        if self.is_lost() {
            return Err(0);
        }
        self.entry
            .word(index)
            .compare_exchange(current, new, success, failure)
    }
}
