use core::ops::Range;

use super::bucket::Bucket;
use super::entry_word::{EntryState, EntryWord};
use super::layout::KeyBits;
use super::{Entry, Region, Table};

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

    #[inline(always)]
    pub(super) fn alternate(&self) -> Bucket<'a> {
        self.table.bucket(self.table.layout.alternate(self.bits))
    }

    /// The primary and the alternate bucket.
    #[inline(always)]
    pub(super) fn front(&self) -> impl Iterator<Item = Bucket<'a>> + use<'a> {
        self.choices(0..self.table.layout.front_choices())
    }

    #[inline(always)]
    pub(super) fn backyard(&self) -> impl Iterator<Item = Bucket<'a>> + use<'a> {
        self.choices(self.table.layout.front_choices()..self.table.layout.choices())
    }

    /// All buckets, in the order in which the key goes to them.
    #[inline(always)]
    pub(super) fn buckets(&self) -> impl Iterator<Item = Bucket<'a>> + use<'a> {
        self.choices(0..self.table.layout.choices())
    }

    #[inline(always)]
    fn choices(&self, choices: Range<usize>) -> impl Iterator<Item = Bucket<'a>> + use<'a> {
        let (table, bits) = (self.table, self.bits);
        choices.map(move |choice| table.bucket(table.layout.choice(bits, choice)))
    }

    /// Every entry that the key may have, as it is now.
    pub(super) fn all(&self) -> impl Iterator<Item = Seen<'a>> + use<'a> {
        self.buckets().flat_map(Bucket::entries).map(Seen::new)
    }

    /// The record that the key shares with others.
    #[inline]
    pub(super) fn region(&self) -> Region<'a> {
        self.table.region_at(self.bits.region(self.table.regions_len()))
    }

    /// The first entry of a bucket that the key owns or is about to own, other than the one with the number `except`.
    #[inline(always)]
    pub(super) fn own_in(&self, bucket: Bucket<'a>, except: usize) -> Option<Seen<'a>> {
        let mut matches = bucket.matches(self.key);
        while matches != 0 {
            let entry = bucket.entry(matches.trailing_zeros() as usize);
            if entry.number() != except {
                let seen = Seen::new(entry);
                if seen.is_of(self.key) {
                    return Some(seen);
                }
            }
            matches &= matches - 1;
        }
        None
    }

    /// The first entry of all that the key owns or is about to own, other than the one with the number `except`.
    #[inline(always)]
    pub(super) fn own(&self, except: usize) -> Option<Seen<'a>> {
        self.buckets().find_map(|bucket| self.own_in(bucket, except))
    }

    /// The open entry that the key owns.
    pub(super) fn own_entry(&self) -> Option<Seen<'a>> {
        self.all()
            .find(|seen| seen.owner == self.key && seen.word.state() == EntryState::Open)
    }
}

impl<'a> Seen<'a> {
    #[inline]
    pub(super) fn new(entry: Entry<'a>) -> Self {
        let (word, owner) = entry.observe();
        Self { entry, word, owner }
    }

    /// Whether `key` owns the entry, or is about to own it.
    #[inline]
    pub(super) fn is_of(&self, key: u64) -> bool {
        self.owner == key && self.word.state() != EntryState::Claimed
    }
}
