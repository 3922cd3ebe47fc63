use core::fmt;
use core::ops::Range;
use core::sync::atomic::Ordering;

use super::layout::WAYS;
use crate::algorithm::FIRST_WORD_BITS;
use crate::debug::debug_fields;
use crate::sync::AtomicU64;

mod memory;

pub(super) use self::memory::{EntryMemory, Line};

/// An entry of the table: the fingerprint of the key that owns it, and the words of that key's state.
///
/// Each method is one event of [the protocol](super), or one read.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    memory: &'a EntryMemory,
    /// The line of the bucket.
    line: &'a Line,
    /// The number of the entry in the bucket.
    way: usize,
}

/// The state of an entry: whether the key of the fingerprint may decide with the first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryState {
    /// The key of the fingerprint owns the entry, and decides with the word. The code is 0, so that the first word of an open entry
    /// equals the algorithm's word: `Entry::still_is`, `EntryWord::is_decidable` and the exchanges of `OccupiedWords` rely on it.
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

impl<'a> Entry<'a> {
    /// The fingerprint of an entry that no key has ever had.
    pub(crate) const VACANT: u64 = 0;

    /// The fingerprint of an entry whose key was reset; its state need not be idle.
    pub(crate) const TOMBSTONE: u64 = u64::MAX;

    /// The fingerprint of an entry whose state was made fresh for a key that did not use it.
    pub(crate) const UNUSED: u64 = u64::MAX - 1;

    /// Whether a fingerprint is a key's.
    #[inline(always)]
    pub(crate) const fn is_key(fingerprint: u64) -> bool {
        // One comparison: VACANT becomes the largest number.
        fingerprint.wrapping_sub(1) < Self::UNUSED - 1
    }

    #[inline(always)]
    pub(in crate::table) fn new(memory: &'a EntryMemory, line: &'a Line, way: usize) -> Self {
        Self {
            memory,
            line,
            way: way % WAYS,
        }
    }

    #[inline(always)]
    fn owner(self) -> &'a AtomicU64 {
        &self.line[self.way % WAYS]
    }

    #[inline(always)]
    fn first(self) -> &'a AtomicU64 {
        &self.line[WAYS + self.way % WAYS]
    }

    /// Returns a number that no other entry of the table has. The numbers of a bucket are in index order.
    #[inline]
    pub(crate) fn number(self) -> usize {
        core::ptr::from_ref(self.owner()).addr()
    }

    /// Whether the entry is in the bucket with this line.
    pub(in crate::table) fn is_on(self, line: &Line) -> bool {
        core::ptr::eq(self.line, line)
    }

    /// A word of the state, by its index.
    #[inline(always)]
    pub(in crate::table) fn word(self, index: usize) -> &'a AtomicU64 {
        match index {
            0 => self.first(),
            index => self.memory.further_word(self.line, self.way, index),
        }
    }

    /// The words `indices` of the state. `None` if they are not all in the cold part of the memory.
    #[inline]
    pub(in crate::table) fn cold_words(self, indices: Range<usize>) -> Option<&'a [AtomicU64]> {
        self.memory.cold_words(self.line, self.way, indices)
    }

    /// The fingerprint, in any state of the entry.
    #[inline(always)]
    pub(in crate::table) fn fingerprint(self) -> u64 {
        // Acquire: pairs with the Release in `enter` and `rename`; a reader that finds the entry of another key sees the
        // time at which its own key has lost it.
        self.owner().load(Ordering::Acquire)
    }

    /// The first word of the state, if `key` owns the entry and may decide with it.
    #[inline(always)]
    pub(in crate::table) fn decidable_word(self, key: u64) -> Option<u64> {
        let word = self.first_word();
        // If the fingerprint is newer than the word, the key has lost the entry since, and may have got it again. Then
        // the word was claimed and does not come back. So an exchange that expects the word fails, and `still_is`
        // returns false.
        // Claim: table 5, the word is read before the fingerprint.
        (word.is_decidable() && self.fingerprint() == key).then_some(word.word())
    }

    /// The first word of the state, begun or not, if `key` owns the entry.
    #[inline(always)]
    pub(in crate::table) fn open_word(self, key: u64) -> Option<u64> {
        let word = self.first_word();
        // The fingerprint may be newer than the word, as in `decidable_word`.
        (word.state() == EntryState::Open && self.fingerprint() == key).then_some(word.word())
    }

    /// Whether `word`, which [`decidable_word`](Self::decidable_word) has returned, is still the first word. If so, the
    /// key owned the entry when the fingerprint was read.
    #[inline(always)]
    pub(crate) fn still_is(self, word: u64) -> bool {
        // Relaxed: publishes nothing. The Acquire load of the fingerprint comes first, so this load is no older than
        // it.
        self.first().load(Ordering::Relaxed) == word
    }

    /// Reads the first word, and then the fingerprint. If the fingerprint is newer, an exchange that expects the word
    /// fails.
    #[inline(always)]
    pub(in crate::table) fn observe(self) -> (EntryWord, u64) {
        (self.first_word(), self.fingerprint())
    }

    #[inline(always)]
    pub(in crate::table) fn first_word(self) -> EntryWord {
        // Acquire: pairs with the Release in `exchange` and `publish`; the fingerprint that is read next is the one that this
        // word was written for, or a later one. Exchanges by decisions continue the release sequence.
        // Claim: table 5, a thread that reads a word reads its fingerprint or a later one.
        EntryWord::decode(self.first().load(Ordering::Acquire))
    }

    /// *enter*: fingerprint `VACANT` → `key`. If the entry is not vacant, the error is its fingerprint.
    #[inline]
    pub(in crate::table) fn enter(self, key: u64) -> Result<(), u64> {
        // Release: pairs with the Acquire in `fingerprint` and `Bucket::fingerprint`; publishes the loss of the key's
        // earlier entry, if it had one, and the time of that loss. Acquire on failure: pairs with the Release of the
        // same exchange; this thread reads the winner's entry next.
        self.owner()
            .compare_exchange(Self::VACANT, key, Ordering::Release, Ordering::Acquire)
            .map(|_| ())
    }

    /// *claim*: `{ open, w }` → `{ claimed, word }`.
    pub(in crate::table) fn claim(self, seen: EntryWord, word: u64) -> Option<EntryWord> {
        self.exchange(seen, EntryWord::new(EntryState::Claimed, word))
    }

    /// *rename*: writes the fingerprint. Only for the thread that has claimed the entry.
    pub(in crate::table) fn rename(self, fingerprint: u64) {
        // Release: pairs with the Acquire in `fingerprint` and `Bucket::fingerprint`; publishes the time of the eviction.
        // Claim: table 7, a new fingerprint publishes the time of the loss.
        self.owner().store(fingerprint, Ordering::Release);
    }

    /// *publish*: `{ claimed, w }` → `{ tentative, w }`. Only for the thread that has claimed the entry.
    pub(in crate::table) fn publish(self, claimed: EntryWord) -> EntryWord {
        let tentative = claimed.with_state(EntryState::Tentative);
        // Release: pairs with the Acquire in `first_word`; publishes the fingerprint.
        self.first().store(tentative.raw(), Ordering::Release);
        tentative
    }

    /// *withdraw*: `{ tentative, w }` → `{ claimed, w }`.
    pub(in crate::table) fn withdraw(self, tentative: EntryWord) -> Option<EntryWord> {
        self.exchange(tentative, tentative.with_state(EntryState::Claimed))
    }

    /// *open*: `{ tentative, w }` or `{ claimed, w }` → `{ open, w }`.
    pub(in crate::table) fn open(self, seen: EntryWord) -> bool {
        self.exchange(seen, seen.with_state(EntryState::Open)).is_some()
    }

    #[inline]
    fn exchange(self, seen: EntryWord, new: EntryWord) -> Option<EntryWord> {
        // Release: pairs with the Acquire in `first_word`; publishes the fingerprint, and the time of an eviction.
        // Acquire: pairs with the same Release; a thread that claims an entry writes the fingerprint after the previous
        // claiming thread did. Acquire on failure: pairs with the same Release; the losing thread scans again, and then
        // sees an entry that the winning thread has published for the same key.
        // Claim: table 7, a state of an entry publishes what its thread has written.
        self.first()
            .compare_exchange(seen.raw(), new.raw(), Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
            .then_some(new)
    }
}

impl EntryWord {
    const WORD: u64 = (1 << FIRST_WORD_BITS) - 1;

    /// `{ open, 0 }`: no decision was charged to the entry yet.
    pub(crate) const UNBEGUN: Self = Self(0);

    #[inline]
    pub(in crate::table) const fn decode(raw: u64) -> Self {
        Self(raw)
    }

    /// `{ state, word }`; the word's top bits are clear.
    #[inline]
    pub(in crate::table) const fn new(state: EntryState, word: u64) -> Self {
        Self(((state as u64) << FIRST_WORD_BITS) | (word & Self::WORD))
    }

    #[inline]
    pub(in crate::table) const fn raw(self) -> u64 {
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
    pub(in crate::table) const fn is_decidable(self) -> bool {
        // One comparison: 0 becomes the largest number.
        // Claim: table I3, a state that has not begun is not decided with.
        self.0.wrapping_sub(1) < Self::WORD
    }

    #[inline]
    pub(crate) const fn word(self) -> u64 {
        self.0 & Self::WORD
    }

    /// This word with another state of the entry.
    #[inline]
    pub(in crate::table) const fn with_state(self, state: EntryState) -> Self {
        Self::new(state, self.word())
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, key) = self.observe();
        f.debug_struct("Entry")
            .field("key", &key)
            .field("word", &word)
            .finish_non_exhaustive()
    }
}

debug_fields!(EntryWord { state, word });

#[cfg(test)]
mod tests {
    use super::{EntryState, EntryWord};

    /// The state after `state`, in order of their codes. The compiler reports a state that it lacks.
    fn next(state: EntryState) -> Option<EntryState> {
        match state {
            EntryState::Open => Some(EntryState::Claimed),
            EntryState::Claimed => Some(EntryState::Tentative),
            EntryState::Tentative => None,
        }
    }

    #[test]
    fn with_state_does_not_change_the_word() {
        let largest = (1 << 62) - 1;
        for word in [0, 1, largest] {
            for state in core::iter::successors(Some(EntryState::Open), |&state| next(state)) {
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
