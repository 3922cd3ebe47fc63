#![doc = include_str!("table.md")]

use alloc::boxed::Box;
use alloc::format;
use core::fmt;
use core::mem::size_of;
#[cfg(feature = "rules")]
use core::ops::Range;

use crate::error::ConfigError;
use crate::sync::{self, AtomicU64};
#[cfg(feature = "rules")]
use crate::time::Nanos;

mod bucket;
mod counts;
mod entry;
mod entry_word;
mod insert;
mod layout;
mod probe;
mod queries;
mod region;
mod words;

pub use counts::TableCounts;

pub(crate) use counts::{Counts, Event};
pub(crate) use entry::Entry;
pub(crate) use insert::{InsertOutcome, Insertion};
pub(crate) use probe::Found;
pub(crate) use queries::View;
pub(crate) use region::Region;
pub(crate) use words::OccupiedWords;

use bucket::Bucket;
use layout::{TableLayout, WAYS};
use probe::Probe;

/// Entries of inline states in one flat piece of memory, which the operating system provides when a line is first
/// written.
pub(crate) struct Table {
    words: Box<[AtomicU64]>,
    /// Where the first line begins.
    first: usize,
    layout: TableLayout,
    /// Words of a bucket.
    bucket: usize,
    /// Words of a state.
    state: usize,
    /// Whether times and marks may come from another table: then a state that begins meets them.
    inherits: bool,
    regions: Box<[AtomicU64]>,
    counts: Counts,
}

/// Words of a cache line. (For the model checker, which pays for every word, there are no lines.)
const LINE: usize = if sync::MODELLED { 1 } else { 64 / size_of::<u64>() };

/// Entries that share a region: a sixty-fourth of 16 bytes is what it adds to an entry.
const ENTRIES_PER_REGION: usize = 64;

impl Table {
    /// The most keys that can be asked for.
    pub(crate) const MAX_KEYS: u64 = 1 << 32;

    /// A table for `keys` keys of `state` words each: with a quarter more entries than that, so that nearly every key finds
    /// one vacant (`most_keys_find_an_entry` in `tests/keyed`). With `inherits` it may take over times and marks of another.
    pub(crate) fn new(keys: u64, state: usize, inherits: bool) -> Result<Self, ConfigError> {
        if keys == 0 || keys > Self::MAX_KEYS {
            return Err(ConfigError::new(
                "capacity",
                format!("{keys}"),
                format!("1 to {} keys", Self::MAX_KEYS),
            ));
        }
        let table = TableLayout::of(keys).and_then(|layout| Self::allocate(layout, state, inherits));
        table.ok_or_else(|| {
            ConfigError::new(
                "capacity",
                format!(
                    "{keys} keys of {} bytes each",
                    Bucket::size(state) / WAYS * size_of::<u64>()
                ),
                "what memory can be had for",
            )
        })
    }

    fn allocate(layout: TableLayout, state: usize, inherits: bool) -> Option<Self> {
        let bucket = Bucket::size(state);
        let size = layout.buckets().checked_mul(bucket)?;
        // Room for moving the beginning to a line's.
        let words: Box<[AtomicU64]> = sync::zeroed(size.checked_add(LINE)?)?;
        // An interpreter may decline to say where a line begins; any place will do there.
        let first = words.as_ptr().align_offset(64).min(LINE);
        let entries = layout.buckets().checked_mul(WAYS)?;
        let regions = sync::zeroed(Region::WORDS * entries.div_ceil(ENTRIES_PER_REGION))?;
        Some(Self {
            words,
            first,
            layout,
            bucket,
            state,
            inherits,
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
        size_of::<u64>() * (self.words.len() + self.regions.len())
    }

    pub(crate) const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Makes every entry vacant, and gives the memory back.
    pub(crate) fn clear(&mut self) {
        match Self::allocate(self.layout, self.state, self.inherits) {
            Some(fresh) => *self = fresh,
            // There is no memory for a second table, so this one is wiped.
            None => {
                for word in self.words.iter_mut().chain(&mut self.regions) {
                    *word = AtomicU64::new(0);
                }
                self.counts = Counts::new();
            }
        }
    }

    /// *find*: the entry that `key` seems to own. The decision validates it ([`OccupiedWords`]).
    #[inline(always)]
    pub(crate) fn find(&self, key: u64) -> Found<'_> {
        let primary = Probe::new(self, key).primary();
        let matches = primary.matches(key);
        if matches != 0 {
            Found::Entry(primary.entry(matches.trailing_zeros() as usize))
        } else if primary.has_vacancy() {
            Found::Nothing { full: false }
        } else {
            Probe::scan(self, key)
        }
    }

    /// *prefetch*: reads the line that [`find`](Self::find) would read first, so that it is on its way from memory.
    #[inline(always)]
    pub(crate) fn prefetch(&self, key: u64) {
        // The answer is not waited for.
        core::hint::black_box(Probe::new(self, key).primary().entry(0).fingerprint());
    }

    #[inline(always)]
    fn bucket(&self, number: usize) -> Bucket<'_> {
        Bucket::new(&self.words[self.first + number * self.bucket..], self.state)
    }

    /// The record that `key` shares with others.
    #[inline]
    pub(crate) fn region(&self, key: u64) -> Region<'_> {
        Probe::new(self, key).region()
    }

    #[inline(always)]
    fn regions_len(&self) -> usize {
        self.regions.len() / Region::WORDS
    }

    #[inline(always)]
    fn region_at(&self, index: usize) -> Region<'_> {
        Region::new(&self.regions[Region::WORDS * index..][..Region::WORDS])
    }

    #[cfg(feature = "rules")]
    fn regions(&self) -> impl Iterator<Item = Region<'_>> {
        self.regions.chunks_exact(Region::WORDS).map(Region::new)
    }

    /// Orders what this thread has entered before what it reads of its region next.
    #[inline(always)]
    fn meet_inheritance(&self) {
        if self.inherits {
            // SeqCst: pairs with the one in `publish_inheritance`. If that comes first, this thread sees the times and marks
            // that were inherited; if this one does, the inheriting thread sees the key that was entered.
            sync::fence(sync::Ordering::SeqCst);
        }
    }

    /// Orders times and marks that were inherited before what this thread reads of the entries next.
    #[cfg(feature = "rules")]
    fn publish_inheritance(&self) {
        debug_assert!(self.inherits, "a table that nothing is inherited by");
        // SeqCst: pairs with the one in `meet_inheritance`.
        sync::fence(sync::Ordering::SeqCst);
    }

    /// Hands over the fingerprint of every key that owns an entry, or is about to. Keys that come or go meanwhile may be
    /// missed, or come twice.
    #[cfg(feature = "rules")]
    pub(crate) fn for_each_key(&self, mut key: impl FnMut(u64)) {
        let buckets = (0..self.layout.buckets()).map(|number| self.bucket(number));
        for entry in buckets.flat_map(Bucket::entries) {
            let seen = probe::Seen::new(entry);
            if Entry::is_key(seen.owner) && seen.is_of(seen.owner) {
                key(seen.owner);
            }
        }
    }

    /// The first word of the state of a key that owns an entry, 0 if it owns none.
    #[cfg(feature = "rules")]
    pub(crate) fn first_word(&self, key: u64) -> u64 {
        let own = Probe::new(self, key).own_entry();
        own.map_or(0, |own| own.word.word())
    }

    /// From now on no key enters at an earlier time than `now`.
    #[cfg(feature = "rules")]
    pub(crate) fn begin_after(&self, now: Nanos) {
        for region in self.regions() {
            region.reclaim_at(now);
        }
        self.publish_inheritance();
    }

    /// Marks the keys that `from` has marks for until `end`.
    #[cfg(feature = "rules")]
    pub(crate) fn inherit_marks(&self, from: &Self, now: Nanos, end: Nanos) {
        let [here, there] =
            [self, from].map(|table| u32::try_from(table.regions_len()).expect("at most 2^27 regions"));
        for (index, region) in (0..).zip(self.regions()) {
            let same = regions_of_same_keys(index, here, there);
            for other in from.regions().take(same.end).skip(same.start) {
                region.mark_keys_of(other, now, end);
            }
        }
        self.publish_inheritance();
    }
}

/// The regions, of `there`, that the keys of a region of `here` have; perhaps one more.
///
/// Both tables divide the same hashes evenly.
#[cfg(feature = "rules")]
fn regions_of_same_keys(index: u32, here: u32, there: u32) -> Range<usize> {
    // In 64 bits: the product of two numbers of regions needs more than a `usize` of 32.
    let first = |index| u64::from(index) * u64::from(there) / u64::from(here);
    #[expect(clippy::cast_possible_truncation, reason = "no more than there are regions")]
    let regions = |number: u64| number.min(u64::from(there)) as usize;
    regions(first(index))..regions(first(index + 1) + 1)
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
    use crate::algorithm::Gcra;
    use crate::quota::Quota;
    use crate::sync::{Ordering, Words};
    use crate::time::Nanos;

    /// A key goes to the first vacant entry of its primary bucket, and to its alternate one when that is full.
    #[test]
    fn entries_are_filled_in_the_order_of_the_probe() {
        let bucket = Gcra::new(Quota::per_hour(5).expect("a quota")).expect("a bucket");
        let table = Table::new(100, 1, false).expect("a table");
        let primary = |key| Probe::new(&table, key).primary().entry(0).number();
        let insert = |key| match Insertion::new(&table, &bucket, key, Nanos::new(1_000)).find_or_insert(false)
        {
            InsertOutcome::Occupied(entry) => entry.number(),
            outcome => panic!("room for {key}: {outcome:?}"),
        };
        let mut keys = (1..).filter(|&key| primary(key) == primary(1));
        for (way, key) in keys.by_ref().take(WAYS).enumerate() {
            assert_eq!(insert(key), Probe::new(&table, key).primary().entry(way).number());
            assert!(table.find(key).entry().is_some());
        }
        let next = keys.next().expect("many keys");
        assert_eq!(insert(next), Probe::new(&table, next).bucket(1).entry(0).number());
        assert_eq!(
            table.find(next).entry().expect("its entry").number(),
            insert(next)
        );
        assert_eq!(table.counts().sum().tracked, 1 + WAYS as u64);
    }

    /// Holds for two tables of any sizes, up to the largest.
    #[test]
    #[cfg(feature = "rules")]
    fn the_regions_of_a_key_in_two_tables_belong_together() {
        let most = 1_u32 << 27;
        let sizes = [1, 2, 3, 65_535, 65_536, 65_537, 83_000, 1 << 20, most - 1, most];
        let region =
            |key, regions| layout::KeyBits::of(key).region(usize::try_from(regions).expect("32 bits"));
        for key in (1..=100_u64).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            for (here, there) in sizes.iter().flat_map(|&here| sizes.map(|there| (here, there))) {
                let index = u32::try_from(region(key, here)).expect("below 2^27");
                let same = regions_of_same_keys(index, here, there);
                assert!(same.contains(&region(key, there)), "{key}: {here}, {there}");
                let most = there.div_ceil(here) + 1;
                assert!(same.len() <= most.try_into().expect("32 bits"), "{here}, {there}");
            }
        }
    }

    /// A key is found in any of its entries, whichever other keys are in those before it. The front is full with its last
    /// entry.
    #[test]
    fn a_key_is_found_wherever_it_is() {
        for state in [1, 2, 7] {
            let table = Table::new(1_000, state, false).expect("a table");
            for key in [1, 77, Entry::UNUSED - 1] {
                let table_entries = || Probe::new(&table, key).buckets().flat_map(Bucket::entries);
                for (other, entry) in (1_000_000..).zip(table_entries()) {
                    entry.rename(key);
                    assert_eq!(
                        table.find(key).entry().expect("its entry").number(),
                        entry.number()
                    );
                    entry.rename(other);
                    let filled = other - 1_000_000 + 1;
                    assert!(
                        matches!(table.find(key), Found::Nothing { full } if full == (filled >= 2 * WAYS as u64))
                    );
                }
                for entry in table_entries() {
                    entry.rename(Entry::VACANT);
                }
            }
        }
    }

    /// An entry that was found is validated when it is used.
    #[test]
    fn an_entry_that_was_found_may_be_lost() {
        let table = Table::new(1_000, 1, false).expect("a table");
        let entry = Probe::new(&table, 5).primary().entry(0);
        assert!(entry.enter(5).is_ok() && entry.begin(9));
        let found = table.find(5).entry().expect("its entry");
        let words = OccupiedWords::new(found, 5);
        assert_eq!((&words).load(0, Ordering::Acquire), 9);
        assert!(words.are_valid());
        let claimed = found.claim(found.first_word(), 10).expect("one thread");
        assert!(!words.are_valid());
        found.rename(6);
        assert!(found.open(claimed));
        let words = OccupiedWords::new(found, 5);
        assert_eq!((&words).load(0, Ordering::Acquire), 0);
        let exchanged = (&words).exchange(0, 0, 11, Ordering::AcqRel, Ordering::Acquire);
        assert!(exchanged.is_err() && !words.are_valid());
    }
}
