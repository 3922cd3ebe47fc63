use crate::algorithm::one_word::OneWord;
use crate::sync::Words;

/// A value of the word: a time, and the flags `lowered` and `refunded`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Word(pub(super) u64);

impl Word {
    /// The number of flag bits.
    pub(super) const FLAGS: u32 = 2;

    const LOWERED: u64 = 2;
    const REFUNDED: u64 = 1;

    #[inline]
    pub(super) fn read(words: impl Words) -> Self {
        Self(OneWord(words).read())
    }

    /// `{ time, lowered, refunded: false }`.
    #[inline]
    pub(super) const fn new(time: u64, lowered: bool) -> Self {
        Self((time << Self::FLAGS) | if lowered { Self::LOWERED } else { 0 })
    }

    /// `{ time, lowered: as in this word, refunded: false }`.
    #[inline]
    pub(super) const fn charged(self, time: u64) -> Self {
        Self((time << Self::FLAGS) | (self.0 & Self::LOWERED))
    }

    /// `{ time, lowered: true, refunded: true }`.
    #[inline]
    pub(super) const fn refunded(time: u64) -> Self {
        Self((time << Self::FLAGS) | Self::LOWERED | Self::REFUNDED)
    }

    #[inline]
    pub(super) const fn time(self) -> u64 {
        self.0 >> Self::FLAGS
    }

    #[inline]
    pub(super) const fn is_lowered(self) -> bool {
        self.0 & Self::LOWERED != 0
    }

    #[inline]
    pub(super) const fn is_refunded(self) -> bool {
        self.0 & Self::REFUNDED != 0
    }

    /// The maximum of the time and `now`. The compiler may compile `max` to a branch, which would be mispredicted, since the
    /// result differs from key to key.
    #[inline]
    pub(super) fn time_from(self, now: u64) -> u64 {
        core::hint::select_unpredictable(self.0 > Self::refunded(now).0, self.time(), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_time_is_chosen_whether_refunded_or_not() {
        for now in [2, 3, 1_000, (1 << 60) - 2] {
            for time in [0, 1, now - 1, now, now + 1, (1 << 60) - 1] {
                for word in [
                    Word::new(time, false),
                    Word::new(time, true),
                    Word::refunded(time),
                ] {
                    assert_eq!(word.time_from(now), time.max(now), "{time} and {now}");
                }
            }
        }
    }
}
