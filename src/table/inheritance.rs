use core::ops::Range;

use super::bucket::Bucket;
use super::entry::Entry;
use super::memory::Table;
use super::probe::{Probe, Seen};
use crate::sync;
use crate::time::Nanos;

impl Table {
    /// Orders the writes of inherited times and marks before this thread's next reads of the entries.
    fn publish_inheritance(&self) {
        debug_assert!(self.inherits, "a table that nothing is inherited by");
        // SeqCst: pairs with the one in `meet_inheritance`.
        sync::fence(sync::Ordering::SeqCst);
    }

    /// Calls `key` with the fingerprint of every key that owns an entry, or is about to. Keys that come or go meanwhile may be
    /// missed, or passed twice.
    pub(crate) fn for_each_key(&self, mut key: impl FnMut(u64)) {
        let buckets = (0..self.layout.buckets()).map(|number| self.bucket(number));
        for entry in buckets.flat_map(Bucket::entries) {
            let seen = Seen::new(entry);
            if Entry::is_key(seen.owner) && seen.is_of(seen.owner) {
                key(seen.owner);
            }
        }
    }

    /// The first word of the state of a key that owns an entry, 0 if it owns none.
    pub(crate) fn first_word(&self, key: u64) -> u64 {
        let own = Probe::new(self, key).own_entry();
        own.map_or(0, |own| own.word.word())
    }

    /// Makes `now` the earliest time at which a key enters from now on.
    pub(crate) fn begin_after(&self, now: Nanos) {
        for region in self.regions() {
            region.reclaim_at(now);
        }
        self.publish_inheritance();
    }

    /// Marks the keys that `from` has marks for until `end`.
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
fn regions_of_same_keys(index: u32, here: u32, there: u32) -> Range<usize> {
    // In 64 bits: the product of two numbers of regions needs more than a `usize` of 32.
    let first = |index| u64::from(index) * u64::from(there) / u64::from(here);
    #[expect(clippy::cast_possible_truncation, reason = "no more than there are regions")]
    let regions = |number: u64| number.min(u64::from(there)) as usize;
    regions(first(index))..regions(first(index + 1) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::layout::KeyBits;

    /// Holds for two tables of any sizes, up to the largest.
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
