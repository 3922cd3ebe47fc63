use super::entry::Entry;
use super::memory::Table;
use super::probe::Probe;
use super::region::Region;

impl Table {
    /// *find*: the entry that `key` seems to own. The decision validates it ([`OccupiedWords`](super::OccupiedWords)).
    #[inline(always)]
    pub(crate) fn find(&self, key: u64) -> Option<Entry<'_>> {
        let primary = Probe::new(self, key).primary();
        match primary.entry_of(key) {
            None if !primary.has_vacancy() => self.find_beyond(key),
            entry => entry,
        }
    }

    /// *find* in the key's primary bucket, where most keys are.
    #[inline(always)]
    pub(crate) fn find_in_primary(&self, key: u64) -> Option<Entry<'_>> {
        Probe::new(self, key).primary().entry_of(key)
    }

    /// Whether `entry` is in the primary bucket of `key`.
    pub(crate) fn is_in_primary(&self, entry: Entry<'_>, key: u64) -> bool {
        entry.is_on(Probe::new(self, key).primary().line())
    }

    /// *find* in the other buckets of a key whose primary one is full.
    #[inline(never)]
    fn find_beyond(&self, key: u64) -> Option<Entry<'_>> {
        let probe = Probe::new(self, key);
        for choice in 1..self.layout.choices() {
            let bucket = probe.bucket(choice);
            let entry = bucket.entry_of(key);
            // While an entry of the front is vacant, the key has none after it (claim 1 of the protocol).
            if entry.is_some() || (probe.front().contains(&choice) && bucket.has_vacancy()) {
                return entry;
            }
        }
        None
    }

    /// *prefetch*: reads the line that [`find`](Self::find) would read first, so that it arrives from memory meanwhile.
    #[inline(always)]
    pub(crate) fn prefetch(&self, key: u64) {
        // The result is not used. On x86-64 the thread does not wait for the load. On processors with weak ordering, later loads
        // wait, because it is an Acquire.
        core::hint::black_box(Probe::new(self, key).primary().entry(0).fingerprint());
    }

    /// The region that `key` shares with other keys.
    #[inline]
    pub(crate) fn region(&self, key: u64) -> Region<'_> {
        Probe::new(self, key).region()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Gcra;
    use crate::quota::Quota;
    use crate::sync::{Ordering, Words};
    use crate::table::insert::{InsertOutcome, Insertion};
    use crate::table::layout::WAYS;
    use crate::table::words::{OccupiedWords, SeenWord};
    use crate::time::Nanos;

    /// A key goes to the first vacant entry of its primary bucket, and to its alternate one when that is full.
    #[test]
    fn entries_are_filled_in_the_order_of_the_probe() {
        let bucket = Gcra::new(Quota::per_hour(5).expect("a quota")).expect("a bucket");
        let table = Table::new(100, 1).expect("a table");
        let primary = |key| Probe::new(&table, key).primary().entry(0).number();
        let insert = |key| match Insertion::new(&table, &bucket, key, Nanos::new(1_000))
            .find_or_insert::<false>(false)
        {
            InsertOutcome::Entry(entry, ..) => entry.number(),
            outcome => panic!("room for {key}: {outcome:?}"),
        };
        let mut keys = (1..).filter(|&key| primary(key) == primary(1));
        for (way, key) in keys.by_ref().take(WAYS).enumerate() {
            assert_eq!(insert(key), Probe::new(&table, key).primary().entry(way).number());
            assert!(table.find(key).is_some());
        }
        let next = keys.next().expect("many keys");
        assert_eq!(insert(next), Probe::new(&table, next).bucket(1).entry(0).number());
        assert_eq!(table.find(next).expect("its entry").number(), insert(next));
        assert_eq!(table.counts().sum().tracked, 1 + WAYS as u64);
    }

    /// A key is found in any of its entries, with other keys in all entries before it.
    #[test]
    fn a_key_is_found_wherever_it_is() {
        for state in [1, 2, 7] {
            let table = Table::new(1_000, state).expect("a table");
            for key in [1, 77, Entry::UNUSED - 1] {
                let table_entries = || Probe::new(&table, key).entries().map(|seen| seen.entry);
                for (other, entry) in (1_000_000..).zip(table_entries()) {
                    entry.rename(key);
                    assert_eq!(table.find(key).expect("its entry").number(), entry.number());
                    entry.rename(other);
                    assert!(table.find(key).is_none());
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
        let table = Table::new(1_000, 1).expect("a table");
        let entry = Probe::new(&table, 5).primary().entry(0);
        assert!(entry.enter(5).is_ok());
        let found = table.find(5).expect("its entry");
        assert!(SeenWord::read(found, 5).is_none());
        let seen = SeenWord::known(0);
        let words = OccupiedWords::new(found, 5, &seen);
        // Acquire: as algorithms read a first word; nothing is published to this thread. AcqRel: as they exchange it.
        let exchanged = words.exchange(0, 0, 9, Ordering::AcqRel);
        assert!(exchanged.is_ok() && !words.are_valid());
        let seen = SeenWord::read(found, 5).expect("its word");
        let words = OccupiedWords::new(found, 5, &seen);
        assert_eq!(words.load(0, Ordering::Acquire), 9);
        assert!(words.are_valid());
        let claimed = found.claim(found.first_word(), 10).expect("one thread");
        assert!(!words.are_valid());
        found.rename(6);
        assert!(found.open(claimed));
        assert!(SeenWord::read(found, 5).is_none());
        // The first load returned the word of `seen`. This load reads the entry, which has another key.
        assert_eq!(words.load(0, Ordering::Acquire), 0);
        let exchanged = words.exchange(0, 0, 11, Ordering::AcqRel);
        assert!(exchanged.is_err() && !words.are_valid());
    }
}
