use core::cell::Cell;
use core::sync::atomic::Ordering;

use super::Entry;
use crate::sync::Words;

/// The words of an entry for as long as one key has it.
///
/// Once the entry is found to have passed on, the words are constant zeros that cannot be
/// exchanged: what an algorithm says of them means nothing, and `lost` says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seat<'a> {
    entry: Entry<'a>,
    key: u64,
    lost: &'a Cell<bool>,
}

impl<'a> Seat<'a> {
    #[inline]
    pub(crate) fn new(entry: Entry<'a>, key: u64, lost: &'a Cell<bool>) -> Self {
        Self { entry, key, lost }
    }
}

impl Words for Seat<'_> {
    #[inline]
    fn load(self, index: usize, order: Ordering) -> u64 {
        if self.lost.get() {
            return 0;
        }
        if index > 0 {
            return self.entry.word(index).load(order);
        }
        self.entry.first_of(self.key).unwrap_or_else(|| {
            self.lost.set(true);
            0
        })
    }

    #[inline]
    fn exchange(
        self,
        index: usize,
        current: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        if self.lost.get() {
            return Err(0);
        }
        self.entry
            .word(index)
            .compare_exchange(current, new, success, failure)
    }
}
