use crate::algorithm::traits::FIRST_WORD_BITS;

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

    /// `{ period, used: used + permits }`, which are at most [`MAX_USED`](Self::MAX_USED).
    #[inline]
    pub(super) const fn plus(self, permits: u64) -> Self {
        Self(self.0 + permits)
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
