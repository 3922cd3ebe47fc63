use core::ops::Range;
use core::time::Duration;

use super::bucket::Bucket;
use super::counts::Event;
use super::entry::Entry;
use super::memory::Table;
use super::probe::{Probe, Seen};
use super::region::Region;
use crate::time::Nanos;

impl Table {
    /// Calls `visit` with the fingerprint of every key that owns an entry, or is about to. Keys that get or lose an entry
    /// meanwhile may be left out, or passed twice.
    pub(crate) fn for_each_key(&self, mut visit: impl FnMut(u64)) {
        for (_, owner) in self.owned_entries() {
            visit(owner);
        }
    }

    /// Every entry that a key owns, or is about to own, with the key's fingerprint, in the order of the buckets.
    pub(crate) fn owned_entries(&self) -> impl Iterator<Item = (Entry<'_>, u64)> {
        let buckets = (0..self.layout.buckets()).map(|number| self.bucket(number));
        buckets.flat_map(Bucket::entries).filter_map(|entry| {
            let seen = Seen::new(entry);
            let is_owned = Entry::is_key(seen.owner) && seen.is_of(seen.owner);
            is_owned.then_some((entry, seen.owner))
        })
    }

    /// The first word of the key's state, or 0 if the key owns no entry.
    pub(crate) fn first_state_word(&self, key: u64) -> u64 {
        let own = Probe::new(self, key).own_entry();
        own.map_or(0, |own| own.word.word())
    }

    /// Makes the state of every key begin at `now` or later, even if the reading of the thread that enters the key is older. That
    /// thread must have synchronized with this one.
    pub(crate) fn begin_after(&self, now: Nanos) {
        for region in self.regions() {
            region.reclaim_at(now);
        }
    }

    /// Returns the key's entry in the front. A key without one enters the first vacant one. `None` if the front is full of other
    /// keys. This is for a table that no other thread uses, and for a key of which the catch-all has admitted nothing that counts.
    ///
    /// `pages` are the last pages of the two parts of the memory that a call has written to.
    #[inline]
    pub(crate) fn enter_alone(&self, key: u64, pages: &mut [usize; 2]) -> Option<Entry<'_>> {
        let probe = Probe::new(self, key);
        self.memory().touch(probe.primary().line(), pages);
        let is_candidate = |entry: &Entry<'_>| [Entry::VACANT, key].contains(&entry.fingerprint());
        let mut front = probe.front().map(|choice| probe.bucket(choice));
        let entry = front.find_map(|bucket| bucket.entries().find(is_candidate))?;
        if entry.fingerprint() == Entry::VACANT {
            entry.rename(key);
            self.counts().add_alone(key, Event::Filled);
        }
        Some(entry)
    }

    /// How many regions there are.
    pub(crate) fn regions_count(&self) -> u32 {
        u32::try_from(self.regions_len()).expect("at most 2^27 regions")
    }

    /// For each region, the marks of the keys whose admissions by the catch-all may count at `now`, and how far after `now` the
    /// newest time is at which a key has lost its entry.
    pub(crate) fn saved_regions(&self, now: Nanos) -> impl Iterator<Item = (u16, Duration)> {
        let saved = move |region: Region<'_>| (region.marks(now), region.reclaimed().saturating_since(now));
        self.regions().map(saved)
    }

    /// Makes every key that enters later begin at `at` or later, in a table that no other thread uses. The keys were in the
    /// region `index` of a table with `regions` regions.
    pub(crate) fn restore_reclaimed(&self, index: u32, regions: u32, at: Nanos) {
        for region in regions_of_same_keys(index, regions, self.regions_count()) {
            self.region_at(region).reclaim_at(at);
        }
    }

    /// Marks keys until `end`, in a table that no other thread uses. They had the marks `marks` in the region `index`
    /// of a table with `regions` regions.
    pub(crate) fn restore_marks(&self, index: u32, regions: u32, marks: u16, now: Nanos, end: Nanos) {
        let same = regions_of_same_keys(index, regions, self.regions_count());
        for region in same.map(|region| self.region_at(region)) {
            region.mark_all(marks, now, end);
        }
    }

    /// Marks every key that has a mark in `from`. The new marks hold until `end`, and are seen by each thread that synchronizes with
    /// this one.
    pub(crate) fn inherit_marks(&self, from: &Self, now: Nanos, end: Nanos) {
        let [here, there] = [self, from].map(Self::regions_count);
        for (index, region) in (0..).zip(self.regions()) {
            let same = regions_of_same_keys(index, here, there);
            for other in same.map(|other| from.region_at(other)) {
                region.mark_all(other.marks(now), now, end);
            }
        }
    }
}

/// The regions that the keys of one region have in another table. The range may include one more region.
///
/// The keys are in the region `index` of `here` regions, and the other table has `there` regions. The hashes of the
/// keys are divided evenly in both.
fn regions_of_same_keys(index: u32, here: u32, there: u32) -> Range<usize> {
    // In 64 bits, because the product of two numbers of regions may not fit in a `usize` of 32 bits.
    let first = |index| u64::from(index) * u64::from(there) / u64::from(here);
    #[expect(clippy::cast_possible_truncation, reason = "no more than there are regions")]
    let regions = |number: u64| number.min(u64::from(there)) as usize;
    regions(first(index))..regions(first(index + 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::layout::KeyBits;

    /// The region of a key in one table is in the range computed from its region in another, for tables of any sizes.
    #[test]
    fn the_regions_of_a_key_in_two_tables_belong_together() {
        let most = 1_u32 << 27;
        let sizes = [1, 2, 3, 65_535, 65_536, 65_537, 83_000, 1 << 20, most - 1, most];
        let region = |key, regions| KeyBits::of(key).region(usize::try_from(regions).expect("32 bits"));
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
}
