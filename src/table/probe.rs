use core::ops::Range;

use super::bucket::Bucket;
use super::entry::{Entry, EntryState, EntryWord, Line};
use super::layout::{CHOICES, KeyBits, WAYS};
use super::memory::Table;
use super::region::Region;

/// The buckets in which one key may have its entry.
#[derive(Clone, Copy)]
pub(super) struct Probe<'a> {
    table: &'a Table,
    pub(super) key: u64,
    bits: KeyBits,
}

/// The lines of a key's buckets, in the order of the probe. In the model checker's small tables a key has fewer
/// buckets, and the rest of the lines is not used.
pub(super) type Lines<'a> = [&'a Line; CHOICES];

/// The lines of the key's buckets in the front. If it has one bucket there, both are the line of that bucket.
pub(super) type FrontLines<'a> = [&'a Line; 2];

/// No entry has this number.
pub(super) const NO_ENTRY: usize = 0;

/// An entry as it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) entry: Entry<'a>,
    pub(super) word: EntryWord,
    pub(super) owner: u64,
}

impl<'a> Probe<'a> {
    #[inline(always)]
    pub(super) fn new(table: &'a Table, key: u64) -> Self {
        let bits = KeyBits::of(key);
        Self { table, key, bits }
    }

    #[inline(always)]
    pub(super) fn primary(&self) -> Bucket<'a> {
        self.table.bucket(self.table.layout.primary(self.bits))
    }

    /// The bucket `choice` of the key, in the order of the probe.
    #[inline(always)]
    pub(super) fn bucket(&self, choice: usize) -> Bucket<'a> {
        // Claim: table 1, the primary bucket comes before the alternate one.
        self.table.bucket(self.table.layout.choice(self.bits, choice))
    }

    #[inline(always)]
    pub(super) fn lines(&self) -> Lines<'a> {
        self.lines_with([self.primary().line(), self.bucket(self.front().end - 1).line()])
    }

    /// The lines of all buckets, of which the caller has those of the front.
    #[inline(always)]
    pub(super) fn lines_with(&self, [primary, alternate]: FrontLines<'a>) -> Lines<'a> {
        let mut lines = [primary; CHOICES];
        lines[self.front().end - 1] = alternate;
        for choice in self.backyard() {
            lines[choice] = self.bucket(choice).line();
        }
        lines
    }

    /// The choices of the key that are in the front.
    #[inline(always)]
    pub(super) const fn front(&self) -> Range<usize> {
        0..self.table.layout.front_choices()
    }

    /// The choices of the key that are in the backyard.
    #[inline(always)]
    pub(super) const fn backyard(&self) -> Range<usize> {
        self.table.layout.front_choices()..self.table.layout.choices()
    }

    #[inline(always)]
    pub(super) const fn all(&self) -> Range<usize> {
        0..self.table.layout.choices()
    }

    #[inline(always)]
    pub(super) const fn bucket_at(&self, line: &'a Line) -> Bucket<'a> {
        Bucket::new(self.table.memory(), line)
    }

    /// Every entry that the key may have, as it is now.
    pub(super) fn entries(&self) -> impl Iterator<Item = Seen<'a>> + use<'a> {
        let probe = *self;
        let buckets = self.all().map(move |choice| probe.bucket(choice));
        buckets.flat_map(Bucket::entries).map(Seen::new)
    }

    /// The first entry of some buckets that the key owns or is about to own, other than the one with the number `except`.
    #[inline(always)]
    pub(super) fn own_in(&self, lines: &Lines<'a>, choices: Range<usize>, except: usize) -> Option<Seen<'a>> {
        for choice in choices {
            let bucket = self.bucket_at(lines[choice]);
            for way in 0..WAYS {
                if bucket.fingerprint(way) == self.key {
                    let entry = bucket.entry(way);
                    if entry.number() != except {
                        let seen = Seen::new(entry);
                        if seen.is_of(self.key) {
                            return Some(seen);
                        }
                    }
                }
            }
        }
        None
    }

    /// The region that the key shares with other keys.
    #[inline(always)]
    pub(super) fn region(&self) -> Region<'a> {
        self.table.region_at(self.bits.region(self.table.regions_len()))
    }

    /// The open entry that the key owns.
    pub(super) fn own_entry(&self) -> Option<Seen<'a>> {
        self.entries()
            .find(|seen| seen.owner == self.key && seen.word.state() == EntryState::Open)
    }
}

impl<'a> Seen<'a> {
    #[inline(always)]
    pub(super) fn new(entry: Entry<'a>) -> Self {
        let (word, owner) = entry.observe();
        Self { entry, word, owner }
    }

    /// Whether `key` owns the entry, or is about to own it.
    #[inline(always)]
    pub(super) fn is_of(self, key: u64) -> bool {
        self.owner == key && self.word.state() != EntryState::Claimed
    }
}
