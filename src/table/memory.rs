use alloc::boxed::Box;
use alloc::format;
use core::fmt;
use core::mem::{size_of, size_of_val};

use super::bucket::Bucket;
use super::counts::Counts;
use super::entry::EntryMemory;
use super::layout::{TableLayout, WAYS};
use super::region::{Region, RegionWords};
use crate::error::ConfigError;
use crate::sync::{self, AtomicU64};

/// The entries with their states inline, in one allocation. The operating system provides its pages when they are
/// first written.
pub(crate) struct Table {
    memory: EntryMemory,
    pub(super) layout: TableLayout,
    /// The number of words of a bucket in the hot part of the memory.
    hot_len: usize,
    regions: Box<[RegionWords]>,
    counts: Counts,
}

/// The number of entries for which a table has one region. Its 24 bytes add three eighths of a byte to each entry.
const ENTRIES_PER_REGION: usize = 64;

impl Table {
    /// The largest capacity in keys.
    pub(crate) const MAX_KEYS: u64 = 1 << 32;

    /// Makes a table for `keys` keys of `state_words` words each. It has more entries than keys. So in tables of 100,000 and
    /// 1,000,000 keys, every key finds a vacant entry (`most_keys_find_an_entry` in `tests/keyed`).
    pub(crate) fn new(keys: u64, state_words: usize) -> Result<Self, ConfigError> {
        Self::validate_capacity(keys)?;
        let table = TableLayout::of(keys, state_words).and_then(|layout| Self::allocate(layout, state_words));
        table.ok_or_else(|| {
            ConfigError::new(
                "capacity",
                format!(
                    "{keys} keys with entries of {} bytes",
                    EntryMemory::bucket_len(state_words) / WAYS * size_of::<u64>()
                ),
                "a capacity for which memory can be allocated",
            )
        })
    }

    pub(crate) fn validate_capacity(keys: u64) -> Result<(), ConfigError> {
        match keys {
            1..=Self::MAX_KEYS => Ok(()),
            _ => Err(ConfigError::new(
                "capacity",
                format!("{keys}"),
                format!("1 to {} keys", Self::MAX_KEYS),
            )),
        }
    }

    fn allocate(layout: TableLayout, state_words: usize) -> Option<Self> {
        let memory = EntryMemory::new(layout.buckets(), state_words)?;
        let entries = layout.buckets().checked_mul(WAYS)?;
        let regions = sync::zeroed(entries.div_ceil(ENTRIES_PER_REGION))?;
        Some(Self {
            memory,
            layout,
            hot_len: EntryMemory::hot_len(state_words),
            regions,
            counts: Counts::new(),
        })
    }

    /// How many entries there are.
    pub(crate) const fn entries(&self) -> usize {
        self.layout.buckets() * WAYS
    }

    /// Bytes of all entries and regions, touched or not.
    pub(crate) const fn bytes(&self) -> usize {
        size_of_val(&*self.memory.words) + size_of_val(&*self.regions)
    }

    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Makes every entry vacant, and gives the memory back.
    pub(crate) fn clear(&mut self) {
        match Self::allocate(self.layout, self.memory.state_words) {
            Some(fresh) => *self = fresh,
            // There is no memory for a second table, so this one is set to zero in place.
            None => {
                for word in self
                    .memory
                    .words
                    .iter_mut()
                    .chain(self.regions.as_flattened_mut())
                {
                    *word = AtomicU64::new(0);
                }
                self.counts = Counts::new();
            }
        }
    }

    #[inline(always)]
    pub(super) fn bucket(&self, number: usize) -> Bucket<'_> {
        let start = self.memory.hot + number * self.hot_len;
        let line = self.memory.words[start..].first_chunk();
        Bucket::new(&self.memory, line.expect("a bucket has a line"))
    }

    #[inline(always)]
    pub(super) const fn memory(&self) -> &EntryMemory {
        &self.memory
    }

    #[inline(always)]
    pub(super) fn regions_len(&self) -> usize {
        self.regions.len()
    }

    #[inline(always)]
    pub(super) fn region_at(&self, index: usize) -> Region<'_> {
        Region::new(&self.regions[index])
    }

    pub(super) fn regions(&self) -> impl Iterator<Item = Region<'_>> {
        self.regions.iter().map(Region::new)
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("entries", &self.entries())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    /// Each word of each entry is a word of its own. The words that a decision reads are on the lines of the bucket, and these
    /// are on as few pages as possible.
    #[test]
    fn every_state_has_its_own_words() {
        for state_words in [1, 2, 3, 4, 7, 62] {
            let table = Table::new(40, state_words).expect("a table");
            let mut words = BTreeSet::new();
            let mut hot = BTreeSet::new();
            for entry in (0..table.layout.buckets()).flat_map(|number| table.bucket(number).entries()) {
                assert!(words.insert(entry.number()));
                hot.insert(entry.number() / 64);
                for index in 0..state_words {
                    let address = core::ptr::from_ref(entry.word(index)).addr();
                    assert!(words.insert(address), "word {index} of {state_words}");
                    if index < 3 {
                        hot.insert(address / 64);
                    }
                }
            }
            assert_eq!(words.len(), table.entries() * (1 + state_words));
            let lines = if state_words == 1 { 1 } else { 2 };
            // An interpreter may place the lines anywhere.
            if cfg!(not(miri)) {
                assert_eq!(hot.len(), lines * table.layout.buckets());
                assert_eq!(
                    hot.last().expect("lines") + 1 - hot.first().expect("lines"),
                    hot.len()
                );
            }
        }
    }
}
