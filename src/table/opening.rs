use core::cell::Cell;
use core::sync::atomic::Ordering;

use super::{Entry, Seat};
use crate::sync::Words;
use crate::table::Staged;

/// The words of an entry that is tentative, for an algorithm that opens it by the first exchange of its first word:
/// mostly a decision, so that the key's first one needs no exchange of its own.
///
/// Once the entry is open the first word is a constant zero that cannot be exchanged; and all of them are, when somebody
/// else has opened or withdrawn it.
#[derive(Debug)]
pub(crate) struct Opening<'a> {
    entry: Entry<'a>,
    tentative: Staged,
    found: Cell<Found>,
}

/// How the entry was found last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Tentative,
    /// Opened by these words.
    Open,
    /// No longer tentative, and that was somebody else.
    Lost,
}

impl<'a> Opening<'a> {
    #[inline]
    pub(crate) fn new(entry: Entry<'a>, tentative: Staged) -> Self {
        let found = Cell::new(Found::Tentative);
        Self {
            entry,
            tentative,
            found,
        }
    }

    /// Whether it was opened by these words.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.found.get() == Found::Open
    }

    #[inline]
    fn is_lost(&self) -> bool {
        self.found.get() == Found::Lost
    }
}

impl Words for &Opening<'_> {
    #[inline(always)]
    fn load(self, index: usize, order: Ordering) -> u64 {
        if self.is_lost() {
            return Seat::LOST;
        }
        if index > 0 {
            return self.entry.word(index).load(order);
        }
        if self.is_open() {
            return Seat::LOST;
        }
        // Looked at each time: an algorithm that looks twice relies on what stood still in between.
        if self.entry.is_still(self.tentative) {
            return self.tentative.word();
        }
        self.found.set(Found::Lost);
        Seat::LOST
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
            return Err(Seat::LOST);
        }
        if index > 0 {
            return self
                .entry
                .word(index)
                .compare_exchange(current, new, success, failure);
        }
        if self.is_open() || self.tentative.word() != current {
            return Err(Seat::LOST);
        }
        // AcqRel in `open_as`, whatever the algorithm asks for.
        if self.entry.open_as(self.tentative, new) {
            self.found.set(Found::Open);
            Ok(current)
        } else {
            self.found.set(Found::Lost);
            Err(Seat::LOST)
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::super::{Entry, Seat};
    use super::Opening;
    use crate::algorithm::{Attempt, Reclaim, TimestampRing};
    use crate::quota::Quota;
    use crate::sync::{AtomicU64, Ordering};
    use crate::table::Staged;
    use crate::time::Nanos;

    /// Who has slept while another opened the entry and used it changes none of its words.
    #[test]
    fn an_entry_that_another_has_opened_is_left_alone() {
        let (key, now) = (7, Nanos::new(1_000));
        let log = TimestampRing::new(Quota::new(1, Duration::from_nanos(1_000)).unwrap()).unwrap();
        let words: [AtomicU64; 4] = core::array::from_fn(|_| AtomicU64::new(0));
        let entry = Entry::new(&words);
        let claimed = entry.claim(Staged::decode(0), log.advance(0, now).unwrap());
        entry.rename(key);
        let tentative = entry.announce(claimed.unwrap());
        let sleeper = Opening::new(entry, tentative);

        assert!(entry.open(tentative));
        let other = log.attempt(&Seat::new(entry, key), now, 1);
        assert!(matches!(other, Attempt::Admitted(_)));
        let before = words.each_ref().map(|word| word.load(Ordering::Relaxed));
        assert!(!matches!(log.attempt(&sleeper, now, 1), Attempt::Admitted(_)));
        assert!(!sleeper.is_open());
        let after = words.each_ref().map(|word| word.load(Ordering::Relaxed));
        assert_eq!(after, before);
    }
}
