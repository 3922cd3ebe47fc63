use core::sync::atomic::Ordering;

use crate::algorithm::traits::FIRST_WORD_BITS;
use crate::sync::Words;

/// A value of the word: `{ period, used }`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Word(pub(super) u64);

/// The bits of `used`. The other bits hold 16,383 periods: 20 years have 7,320 days.
const USED_BITS: u32 = 48;

impl Word {
    /// The most permits that a word can hold.
    pub(super) const MAX_USED: u64 = (1 << USED_BITS) - 1;

    /// The largest number of a period.
    pub(super) const MAX_PERIOD: u64 = (1 << (FIRST_WORD_BITS - USED_BITS)) - 1;

    #[inline]
    pub(super) const fn new(period: u64, used: u64) -> Self {
        Self((period << USED_BITS) | used)
    }

    #[inline]
    pub(super) const fn period(self) -> u64 {
        self.0 >> USED_BITS
    }

    #[inline]
    pub(super) const fn used(self) -> u64 {
        self.0 & Self::MAX_USED
    }
}

/// The atomic word, and its transitions.
#[derive(Clone, Copy)]
pub(super) struct State<W>(pub(super) W);

impl<W: Words> State<W> {
    #[inline]
    pub(super) fn observe(self) -> Word {
        // Relaxed: the word is the whole state, so it publishes no other memory.
        Word(self.0.load(0, Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn replace(self, seen: Word, new: Word) -> bool {
        // Relaxed: as in `observe`. The exchange itself validates the word that was decided about.
        // Claim: calendar proof, the exchange expects the word that was decided about.
        self.0.exchange(0, seen.0, new.0, Ordering::Relaxed).is_ok()
    }
}
