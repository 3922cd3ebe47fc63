//! The first state word of an entry in a table of keys.

use core::fmt;

use crate::algorithm::FIRST_WORD_BITS;

/// How far an entry is in passing from one key to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The key beside the word is the owner, and decides with it.
    Open = 0,
    /// One thread has the entry to itself, to change the key.
    Claimed = 1,
    /// The key beside the word will be the owner, unless it has another entry.
    Tentative = 2,
}

/// An algorithm's first word, and the stage that its entry is in.
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 2 | `stage` | whether the key beside it may decide with the word |
/// | 62 | `word` | the algorithm's |
///
/// All zero is an entry that was never used: open, for nobody.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Staged(u64);

impl Staged {
    const WORD: u64 = (1 << FIRST_WORD_BITS) - 1;

    #[inline]
    pub(crate) const fn decode(raw: u64) -> Self {
        Self(raw)
    }

    /// `{ stage, word }`; the word's top bits are clear.
    #[inline]
    pub(crate) const fn new(stage: Stage, word: u64) -> Self {
        Self(((stage as u64) << FIRST_WORD_BITS) | (word & Self::WORD))
    }

    #[inline]
    pub(crate) const fn raw(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) const fn stage(self) -> Stage {
        match self.0 >> FIRST_WORD_BITS {
            0 => Stage::Open,
            2 => Stage::Tentative,
            // 3 is never written; whoever met it would leave the entry alone.
            _ => Stage::Claimed,
        }
    }

    #[inline]
    pub(crate) const fn is_open(self) -> bool {
        self.0 >> FIRST_WORD_BITS == 0
    }

    #[inline]
    pub(crate) const fn word(self) -> u64 {
        self.0 & Self::WORD
    }

    /// The same word at another stage.
    #[inline]
    pub(crate) const fn at(self, stage: Stage) -> Self {
        Self::new(stage, self.word())
    }
}

impl fmt::Debug for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staged")
            .field("stage", &self.stage())
            .field("word", &self.word())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Stage, Staged};

    #[test]
    fn a_stage_leaves_the_word_alone() {
        let most = (1 << 62) - 1;
        for word in [0, 1, most] {
            for stage in [Stage::Open, Stage::Claimed, Stage::Tentative] {
                let staged = Staged::new(stage, word);
                assert_eq!((staged.stage(), staged.word()), (stage, word));
                assert_eq!(staged.is_open(), stage == Stage::Open);
                assert_eq!(staged.at(Stage::Open).raw(), word);
            }
        }
        assert_eq!(Staged::decode(0).stage(), Stage::Open);
    }
}
