use core::ops::Range;

use super::bucket::Bucket;
use super::entry::Entry;
use super::entry_word::{EntryState, EntryWord};
use super::layout::{KeyBits, WAYS};
use super::memory::Table;
use super::region::Region;

/// The buckets that one key may have its entry in.
#[derive(Clone, Copy)]
pub(super) struct Probe<'a> {
    table: &'a Table,
    pub(super) key: u64,
    bits: KeyBits,
}

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

    /// The numbers of the primary and the alternate bucket among the key's.
    #[inline(always)]
    pub(super) const fn front(&self) -> Range<usize> {
        0..self.table.layout.front_choices()
    }

    /// The numbers of the other buckets among the key's.
    #[inline(always)]
    pub(super) const fn backyard(&self) -> Range<usize> {
        self.table.layout.front_choices()..self.table.layout.choices()
    }

    /// The key's bucket with a number: in the order in which the key goes to them.
    #[inline(always)]
    pub(super) fn bucket(&self, choice: usize) -> Bucket<'a> {
        self.table.bucket(self.table.layout.choice(self.bits, choice))
    }

    /// All buckets, in the order in which the key goes to them.
    pub(super) fn buckets(&self) -> impl Iterator<Item = Bucket<'a>> + use<'a> {
        let probe = *self;
        (0..self.table.layout.choices()).map(move |choice| probe.bucket(choice))
    }

    /// Every entry that the key may have, as it is now.
    pub(super) fn all(&self) -> impl Iterator<Item = Seen<'a>> + use<'a> {
        self.buckets().flat_map(Bucket::entries).map(Seen::new)
    }

    /// The record that the key shares with others.
    #[inline(always)]
    pub(super) fn region(&self) -> Region<'a> {
        self.table.region_at(self.bits.region(self.table.regions_len()))
    }

    /// The first entry of a bucket that the key owns or is about to own, other than the one with the number `except`.
    #[inline(always)]
    pub(super) fn own_in(&self, bucket: Bucket<'a>, except: usize) -> Option<Seen<'a>> {
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
        None
    }

    /// The first entry of all that the key owns or is about to own, other than the one with the number `except`.
    #[inline(always)]
    pub(super) fn own(&self, except: usize) -> Option<Seen<'a>> {
        for choice in 0..self.table.layout.choices() {
            let own = self.own_in(self.bucket(choice), except);
            if own.is_some() {
                return own;
            }
        }
        None
    }

    /// The open entry that the key owns.
    pub(super) fn own_entry(&self) -> Option<Seen<'a>> {
        self.all()
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
    pub(super) fn is_of(&self, key: u64) -> bool {
        self.owner == key && self.word.state() != EntryState::Claimed
    }
}
