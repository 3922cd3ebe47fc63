use core::fmt;
use core::sync::atomic::Ordering;

use crate::sync::AtomicU64;
use crate::table::{Stage, Staged};

/// An entry of the table: the fingerprint of the key that has it, and the words of that key's state.
///
/// What may happen to them, and in which order, is [the protocol](super); each method is one step
/// of it.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    key: &'a AtomicU64,
    state: &'a [AtomicU64],
}

impl<'a> Entry<'a> {
    /// The fingerprint of nobody.
    pub(crate) const NOBODY: u64 = 0;

    /// The fingerprint of nobody, where the state has been made fresh for a key that did not use it.
    pub(crate) const UNSPENT: u64 = u64::MAX;

    /// The words of an entry: the fingerprint, then at least one word of state.
    #[inline]
    pub(super) fn new(words: &'a [AtomicU64]) -> Self {
        let (key, state) = words.split_first().expect("an entry has words");
        Self { key, state }
    }

    /// What tells the entry from all others of its table.
    #[inline]
    pub(crate) fn number(self) -> usize {
        core::ptr::from_ref(self.key).addr()
    }

    /// The key that has the entry, or is about to get it.
    #[cfg(feature = "rules")]
    pub(super) fn owner(self) -> Option<u64> {
        // Acquire: pairs with the Release in `rename`.
        let (first, key) = self.look(self.key.load(Ordering::Acquire));
        let owned = key != Self::NOBODY && key != Self::UNSPENT && first.stage() != Stage::Claimed;
        owned.then_some(key)
    }

    /// A word of the state.
    #[inline]
    pub(super) fn word(self, index: usize) -> &'a AtomicU64 {
        &self.state[index]
    }

    /// An entry with one word of state.
    #[inline]
    pub(super) fn pair(key: &'a AtomicU64, state: &'a AtomicU64) -> Self {
        Self {
            key,
            state: core::slice::from_ref(state),
        }
    }

    /// Whether `key` seems to have the entry of this fingerprint: a guess.
    #[inline]
    pub(super) fn seems(fingerprint: &AtomicU64, key: u64) -> bool {
        // Relaxed: a guess; `first_of` looks again, after the state.
        fingerprint.load(Ordering::Relaxed) == key
    }

    /// As [`seems`](Self::seems).
    #[inline]
    pub(super) fn seems_of(self, key: u64) -> bool {
        Self::seems(self.key, key)
    }

    /// Whether a fingerprint is that of `key`, whatever the stage.
    #[inline]
    pub(super) fn is_of(fingerprint: &AtomicU64, key: u64) -> bool {
        // Acquire: pairs with the Release in `rename`; whoever sees that a key has lost the entry sees the time at
        // which it did.
        fingerprint.load(Ordering::Acquire) == key
    }

    /// Whether nobody seems to have had the entry ever: a guess.
    #[inline]
    pub(super) fn seems_unused(self) -> bool {
        Self::was_never_written(&self.state[0])
    }

    /// The same of the first word of its state.
    #[inline]
    pub(super) fn was_never_written(first: &AtomicU64) -> bool {
        // Relaxed: a guess; an exchange that expects 0, or `look`, tells. What somebody else has seen to be written is not
        // read as 0 by whoever meets after him.
        first.load(Ordering::Relaxed) == 0
    }

    /// The first word of the state, if `key` has the entry and may decide with it.
    #[inline]
    pub(super) fn first_of(self, key: u64) -> Option<u64> {
        // Acquire: pairs with the Release in `replace`; the fingerprint that is read next is the one that
        // this word was opened for, or a later one. Exchanges by deciders continue the release
        // sequence.
        let first = Staged::decode(self.state[0].load(Ordering::Acquire));
        // Acquire: pairs with the Release in `rename`. If it is a later one, either it is another key's, or the
        // key has lost the entry and come back to it; then the word has moved on for good: no exchange
        // that expects it succeeds, and `still` sees that.
        (first.is_open() && self.key.load(Ordering::Acquire) == key).then_some(first.word())
    }

    /// Whether `first`, which [`first_of`](Self::first_of) has given, is still the first word: then
    /// the key had the entry when it was read.
    #[inline]
    pub(crate) fn still(self, first: u64) -> bool {
        // Relaxed: orders nothing; after the Acquire of the fingerprint, it is no older than that.
        self.state[0].load(Ordering::Relaxed) == first
    }

    /// The first word and the fingerprint, for somebody who looks for `key`.
    ///
    /// If it is `key`, both are of one instant. Otherwise the fingerprint may be of a later time
    /// than the word; then an exchange that expects the word fails.
    pub(crate) fn look(self, key: u64) -> (Staged, u64) {
        let mut first = self.first();
        loop {
            // Acquire: pairs with the Release in `rename`; whoever sees that a key has lost the entry
            // sees the time at which it did.
            let owner = self.key.load(Ordering::Acquire);
            if owner != key {
                return (first, owner);
            }
            // Between two looks at one word that is not claimed, the fingerprint did not change.
            let again = self.first();
            if again == first {
                return (first, owner);
            }
            first = again;
        }
    }

    /// Whether the first word is still what was seen.
    #[inline]
    pub(super) fn is_still(self, seen: Staged) -> bool {
        self.first() == seen
    }

    #[inline]
    fn first(self) -> Staged {
        // Acquire: pairs with the Release in `replace`; whoever sees a word sees the fingerprint
        // that it was written for, or a later one.
        Staged::decode(self.state[0].load(Ordering::Acquire))
    }

    /// `{ open, w }` → `{ claimed, word }`: takes the entry out of use.
    pub(crate) fn claim(self, seen: Staged, word: u64) -> Option<Staged> {
        self.replace(seen, Staged::new(Stage::Claimed, word))
    }

    /// Writes the fingerprint. Only for whoever has claimed the entry.
    pub(crate) fn rename(self, key: u64) {
        // Release: pairs with the Acquire in `look`; publishes the time of the reclaiming.
        self.key.store(key, Ordering::Release);
    }

    /// `{ claimed, w }` → `{ tentative, w }`: shows the entry to those that look for its new key.
    /// Only for whoever has claimed the entry: nobody else writes to it.
    pub(crate) fn announce(self, claimed: Staged) -> Staged {
        let tentative = claimed.at(Stage::Tentative);
        // Release: pairs with the Acquire in `first`; publishes the fingerprint.
        self.state[0].store(tentative.raw(), Ordering::Release);
        tentative
    }

    /// `{ tentative, w }` → `{ claimed, w }`: takes back an entry that its key has no use for.
    pub(crate) fn withdraw(self, tentative: Staged) -> Option<Staged> {
        self.replace(tentative, tentative.at(Stage::Claimed))
    }

    /// `{ tentative, w }` or `{ claimed, w }` → `{ open, w }`.
    pub(crate) fn open(self, seen: Staged) -> bool {
        self.replace(seen, seen.at(Stage::Open)).is_some()
    }

    /// `{ tentative, w }` → `{ open, word }`: what an algorithm has made of w.
    #[inline]
    pub(super) fn open_as(self, tentative: Staged, word: u64) -> bool {
        self.replace(tentative, Staged::new(Stage::Open, word)).is_some()
    }

    #[inline]
    fn replace(self, seen: Staged, new: Staged) -> Option<Staged> {
        // AcqRel. Release: pairs with the Acquire in `look` and `first_of`; publishes the
        // fingerprint, and the time of a reclaiming. Acquire: pairs with the same Release; whoever
        // claims an entry writes its fingerprint after the one before did.
        // Acquire on failure: pairs with the same Release; the caller looks again, and then sees what whoever was
        // faster had done before: an entry that he has announced for the same key.
        self.state[0]
            .compare_exchange(seen.raw(), new.raw(), Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
            .then_some(new)
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, key) = self.look(Self::NOBODY);
        f.debug_struct("Entry")
            .field("key", &key)
            .field("first", &first)
            .finish_non_exhaustive()
    }
}
