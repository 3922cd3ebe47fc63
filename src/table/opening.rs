use core::cell::Cell;
use core::sync::atomic::Ordering;

use super::{Entry, Seat};
use crate::sync::Words;
use crate::word::Staged;

/// The words of an entry that is tentative, for an algorithm that opens it by the first exchange of its first word:
/// mostly a decision, so that the key's first one needs no exchange of its own.
///
/// Once the entry is open the first word is a constant zero that cannot be exchanged.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    entry: Entry<'a>,
    /// `None`: open.
    tentative: Cell<Option<Staged>>,
}

impl<'a> Opening<'a> {
    #[inline]
    pub(crate) fn new(entry: Entry<'a>, tentative: Staged) -> Self {
        let tentative = Cell::new(Some(tentative));
        Self { entry, tentative }
    }

    /// Whether it was opened by these words.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.tentative.get().is_none()
    }
}

impl Words for &Opening<'_> {
    #[inline(always)]
    fn load(self, index: usize, order: Ordering) -> u64 {
        if index > 0 {
            return self.entry.word(index).load(order);
        }
        self.tentative.get().map_or(Seat::LOST, Staged::word)
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
        if index > 0 {
            return self
                .entry
                .word(index)
                .compare_exchange(current, new, success, failure);
        }
        match self.tentative.get() {
            // AcqRel in `open_as`, whatever the algorithm asks for.
            Some(seen) if seen.word() == current && self.entry.open_as(seen, new) => {
                self.tentative.set(None);
                Ok(current)
            }
            _ => Err(Seat::LOST),
        }
    }
}
