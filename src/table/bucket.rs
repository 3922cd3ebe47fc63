use core::mem::size_of;
use core::sync::atomic::Ordering;

use super::entry::Entry;
use super::layout::WAYS;
use crate::sync::{self, AtomicU64};

/// Words of a cache line. (For the model checker, which pays for every word, there are no lines.)
pub(super) const LINE: usize = if sync::MODELLED { 1 } else { 64 / size_of::<u64>() };

/// The entries of one cache line: four fingerprints side by side, then their states.
///
/// With one word of state a bucket is one line of 64 bytes. With several words the fingerprints are on its first
/// line, so a lookup reads at most one line more than the decision needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket<'a> {
    fingerprints: &'a [AtomicU64; WAYS],
    /// The states, and what follows them in memory: a length of its own would be checked once more.
    states: &'a [AtomicU64],
    /// Words of one state.
    words: usize,
}

impl<'a> Bucket<'a> {
    /// The bucket of states of `words` words each with which `memory` begins.
    #[inline(always)]
    pub(super) fn new(memory: &'a [AtomicU64], words: usize) -> Self {
        let (fingerprints, states) = memory.split_first_chunk().expect("a bucket has fingerprints");
        Self {
            fingerprints,
            states,
            words,
        }
    }

    /// A bit for each entry whose fingerprint is `key`.
    ///
    /// Which entry it is cannot be predicted, so nothing branches before all of them are compared.
    #[inline(always)]
    pub(super) fn matches(self, key: u64) -> u32 {
        let mut matches = 0;
        for (way, fingerprint) in self.fingerprints.iter().enumerate() {
            // Acquire: pairs with the Release in `Entry::enter` and `Entry::rename`.
            matches |= u32::from(fingerprint.load(Ordering::Acquire) == key) << way;
        }
        matches
    }

    /// The fingerprint of one entry.
    #[inline(always)]
    pub(super) fn fingerprint(self, way: usize) -> u64 {
        // Acquire: as in `matches`.
        self.fingerprints[way % WAYS].load(Ordering::Acquire)
    }

    /// Whether some entry was vacant: the last one, since entries are filled in index order.
    #[inline(always)]
    pub(super) fn has_vacancy(self) -> bool {
        self.fingerprint(WAYS - 1) == Entry::VACANT
    }

    #[inline(always)]
    pub(super) fn entry(self, way: usize) -> Entry<'a> {
        let state = if self.words == 1 {
            core::slice::from_ref(&self.states[way % WAYS])
        } else {
            &self.states[way * self.words..][..self.words]
        };
        Entry::new(&self.fingerprints[way % WAYS], state)
    }

    /// The entries, in index order.
    #[inline(always)]
    pub(super) fn entries(self) -> impl Iterator<Item = Entry<'a>> {
        (0..WAYS).map(move |way| self.entry(way))
    }

    /// Words of memory for one bucket of states of `words` words: whole lines.
    pub(super) const fn size(words: usize) -> usize {
        (WAYS * (1 + words)).next_multiple_of(LINE)
    }
}
