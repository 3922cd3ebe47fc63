use core::hint;
use core::sync::atomic::Ordering;

use super::entry::{Entry, EntryMemory, Line};
use super::layout::WAYS;

/// Four entries, numbered by their *way*. Their fingerprints and the first words of their states are on one cache line. If the
/// states have more than one word, the next two words of each are on the line after it, and the rest is in the cold part of the
/// [memory](EntryMemory).
///
/// With an algorithm of one word, a lookup and its decision read one line. With a strict or classic counter ring of several words
/// and up to two windows, they read two lines that are next to each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket<'a> {
    memory: &'a EntryMemory,
    line: &'a Line,
}

impl<'a> Bucket<'a> {
    #[inline(always)]
    pub(super) const fn new(memory: &'a EntryMemory, line: &'a Line) -> Self {
        Self { memory, line }
    }

    #[inline(always)]
    pub(super) const fn line(self) -> &'a Line {
        self.line
    }

    /// The entry whose fingerprint is `key`.
    #[inline(always)]
    pub(super) fn entry_of(self, key: u64) -> Option<Entry<'a>> {
        let mut found = WAYS;
        for way in (0..WAYS).rev() {
            // The way of a key cannot be predicted, so all fingerprints are compared before the first branch.
            found = hint::select_unpredictable(self.fingerprint(way) == key, way, found);
        }
        (found < WAYS).then(|| self.entry(found))
    }

    /// The first way that is vacant or has the fingerprint `key`: the last one if no other is. The caller has read it as vacant.
    #[inline(always)]
    pub(super) fn own_or_vacant(self, key: u64) -> usize {
        let is_candidate = |owner| (owner == Entry::VACANT) | (owner == key);
        let mut found = WAYS - 1;
        for way in (0..WAYS - 1).rev() {
            // How full a bucket is cannot be predicted, as in `entry_of`. No entry becomes vacant again, so the entries before the
            // one that is found are not vacant either, although they are read later.
            found = hint::select_unpredictable(is_candidate(self.fingerprint(way)), way, found);
        }
        found
    }

    /// The fingerprint of one entry.
    #[inline(always)]
    pub(super) fn fingerprint(self, way: usize) -> u64 {
        // Acquire: pairs with the Release in `Entry::enter` and `Entry::rename`; a reader that finds the entry of another key sees
        // the time at which its own key has lost it.
        // Claim: table 7, a thread that misses its key sees the time of the loss.
        self.line[way % WAYS].load(Ordering::Acquire)
    }

    /// Whether the last entry was vacant. A bucket of the front is filled in index order, so it has a vacant entry exactly if its
    /// last one is vacant. In the backyard, a vacancy before the last entry may be missed.
    #[inline(always)]
    pub(super) fn has_vacancy(self) -> bool {
        self.fingerprint(WAYS - 1) == Entry::VACANT
    }

    /// The first entry that is vacant, in a bucket that has one.
    #[cold]
    pub(super) fn first_vacancy(self) -> usize {
        let vacant = (0..WAYS).find(|&way| self.fingerprint(way) == Entry::VACANT);
        vacant.unwrap_or(WAYS - 1)
    }

    #[inline(always)]
    pub(super) fn entry(self, way: usize) -> Entry<'a> {
        Entry::new(self.memory, self.line, way)
    }

    /// The entries, in index order.
    #[inline(always)]
    pub(super) fn entries(self) -> impl Iterator<Item = Entry<'a>> {
        (0..WAYS).map(move |way| self.entry(way))
    }
}
