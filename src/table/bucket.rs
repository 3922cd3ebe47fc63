use core::hint;
use core::mem::size_of;
use core::sync::atomic::Ordering;

use super::entry::{Entry, EntryMemory, Line};
use super::layout::WAYS;
use crate::sync;

/// Words of a cache line. The model checker uses lines of one word, because each further word costs it time.
pub(super) const LINE: usize = if sync::MODELLED { 1 } else { 64 / size_of::<u64>() };

/// Four entries: the fingerprints and the first words of their states on one cache line, further words of the states on
/// the lines after it.
///
/// With an algorithm of one word, a lookup and its decision read one line. With a counter ring of several words, they
/// read one line more.
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

    /// Whether some entry has the fingerprint `key`.
    #[inline(always)]
    pub(super) fn has_key(self, key: u64) -> bool {
        (0..WAYS).any(|way| self.fingerprint(way) == key)
    }

    /// The fingerprint of one entry.
    #[inline(always)]
    pub(super) fn fingerprint(self, way: usize) -> u64 {
        // Acquire: pairs with the Release in `Entry::enter` and `Entry::rename`.
        self.line[way % WAYS].load(Ordering::Acquire)
    }

    /// Whether the last entry was vacant. In the front this means that some entry is, since entries are filled in index order.
    /// In the backyard a vacancy before the last entry may be missed.
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

    /// The size in words of a bucket whose states have `words` words each, in whole lines.
    pub(super) const fn size(words: usize) -> usize {
        (WAYS * (1 + words)).next_multiple_of(LINE)
    }
}
