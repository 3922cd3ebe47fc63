use core::fmt;

use crate::algorithm::FIRST_WORD_BITS;

/// The state of an entry: whether the key of the fingerprint may decide with the first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryState {
    /// The key of the fingerprint owns the entry, and decides with the word.
    Open = 0,
    /// One thread has the exclusive right to change the key of the entry.
    Claimed = 1,
    /// The key of the fingerprint will own the entry, unless it has another one.
    Tentative = 2,
}

/// The first word of an entry: the state of the entry, and the first word of the algorithm's state.
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 2 | `state` | an [`EntryState`] |
/// | 62 | `word` | the algorithm's first word; 0 before the first decision |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryWord(u64);

impl EntryWord {
    const WORD: u64 = (1 << FIRST_WORD_BITS) - 1;

    /// `{ open, 0 }`: no decision was charged to the entry yet.
    pub(crate) const UNBEGUN: Self = Self(0);

    #[inline]
    pub(super) const fn decode(raw: u64) -> Self {
        Self(raw)
    }

    /// `{ state, word }`; the word's top bits are clear.
    #[inline]
    pub(super) const fn new(state: EntryState, word: u64) -> Self {
        Self(((state as u64) << FIRST_WORD_BITS) | (word & Self::WORD))
    }

    #[inline]
    pub(super) const fn raw(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) const fn state(self) -> EntryState {
        match self.0 >> FIRST_WORD_BITS {
            0 => EntryState::Open,
            2 => EntryState::Tentative,
            // The code 3 is never written.
            _ => EntryState::Claimed,
        }
    }

    /// Whether a key may decide with the word: the entry is open, and the word is not 0.
    #[inline(always)]
    pub(super) const fn is_decidable(self) -> bool {
        // One comparison: 0 becomes the largest number.
        self.0.wrapping_sub(1) < Self::WORD
    }

    #[inline]
    pub(crate) const fn word(self) -> u64 {
        self.0 & Self::WORD
    }

    /// This word with another state of the entry.
    #[inline]
    pub(super) const fn with_state(self, state: EntryState) -> Self {
        Self::new(state, self.word())
    }
}

impl fmt::Debug for EntryWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EntryWord")
            .field("state", &self.state())
            .field("word", &self.word())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{EntryState, EntryWord};

    #[test]
    fn the_state_leaves_the_word_alone() {
        let largest = (1 << 62) - 1;
        for word in [0, 1, largest] {
            for state in [EntryState::Open, EntryState::Claimed, EntryState::Tentative] {
                let entry_word = EntryWord::new(state, word);
                assert_eq!((entry_word.state(), entry_word.word()), (state, word));
                assert_eq!(entry_word.with_state(EntryState::Open).raw(), word);
                let is_decidable = state == EntryState::Open && word > 0;
                assert_eq!(entry_word.is_decidable(), is_decidable, "{entry_word:?}");
            }
        }
        assert_eq!(EntryWord::UNBEGUN.state(), EntryState::Open);
    }
}
