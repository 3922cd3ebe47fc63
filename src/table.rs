#![doc = include_str!("table.md")]

use alloc::boxed::Box;
use alloc::format;
use core::fmt;
use core::mem::size_of;

use crate::error::ConfigError;
use crate::sync::{self, AtomicU64};

mod entry;
mod home;
mod seat;

pub(crate) use entry::Entry;
pub(crate) use home::Home;
pub(crate) use seat::Seat;

/// Entries of inline states in one flat piece of memory, which the operating system provides when
/// a line is first written.
pub(crate) struct Table {
    words: Box<[AtomicU64]>,
    /// Where the first line begins.
    first: usize,
    sets: usize,
    /// Words of an entry, its fingerprint included.
    stride: usize,
    homes: Box<[AtomicU64]>,
}

/// Entries of a set. (For the model checker, which tries every interleaving of the looks at them:
/// one.)
const WAYS: usize = if sync::MODELLED { 1 } else { 4 };

/// Sets that a key may have its entry in.
pub(crate) const CHOICES: usize = if sync::MODELLED { 2 } else { 4 };

/// Entries that a key may have.
pub(crate) const CANDIDATES: usize = WAYS * CHOICES;

/// Words of a cache line.
const LINE: usize = 64 / size_of::<u64>();

/// Entries that share a home: a sixty-fourth of 16 bytes is what it adds to an entry.
const ENTRIES_PER_HOME: usize = 64;

impl Table {
    /// The most keys that can be asked for.
    pub(crate) const MOST_KEYS: u64 = 1 << 32;

    /// A table for `keys` keys of `state` words each: with a quarter more entries than that, so
    /// that nearly every key finds one free (`most_keys_find_an_entry` in `tests/keyed`).
    pub(crate) fn new(keys: u64, state: usize) -> Result<Self, ConfigError> {
        if keys == 0 || keys > Self::MOST_KEYS {
            return Err(ConfigError::new(
                "capacity",
                format!("{keys} keys"),
                format!("1 to {} keys", Self::MOST_KEYS),
            ));
        }
        let stride = match state {
            1 => 2,
            2 | 3 => 4,
            state => (1 + state).next_multiple_of(LINE),
        };
        let sets = usize::try_from(keys + keys.div_ceil(4))
            .ok()
            .map(|entries| entries.div_ceil(WAYS));
        sets.and_then(|sets| Self::allocate(sets, stride)).ok_or_else(|| {
            ConfigError::new(
                "capacity",
                format!("{keys} keys of {} bytes each", stride * size_of::<u64>()),
                "what memory can be had for",
            )
        })
    }

    fn allocate(sets: usize, stride: usize) -> Option<Self> {
        let entries = sets.checked_mul(WAYS)?;
        // Room for moving the beginning to a line's.
        let words = sync::zeroed(entries.checked_mul(stride)?.checked_add(LINE)?)?;
        // An interpreter may decline to say where a line begins; any place will do there.
        let first = words.as_ptr().align_offset(64).min(LINE);
        let homes = sync::zeroed(Home::WORDS * entries.div_ceil(ENTRIES_PER_HOME))?;
        Some(Self {
            words,
            first,
            sets,
            stride,
            homes,
        })
    }

    /// How many entries there are.
    pub(crate) const fn entries(&self) -> usize {
        self.sets * WAYS
    }

    /// Bytes of all entries and homes, touched or not.
    pub(crate) const fn bytes(&self) -> usize {
        size_of::<u64>() * (self.words.len() + self.homes.len())
    }

    /// Makes every entry nobody's, and gives the memory back.
    pub(crate) fn clear(&mut self) {
        match Self::allocate(self.sets, self.stride) {
            Some(fresh) => *self = fresh,
            // There is no memory for a second table, so this one is wiped.
            None => {
                for word in self.words.iter_mut().chain(&mut self.homes) {
                    *word = AtomicU64::new(0);
                }
            }
        }
    }

    #[inline]
    fn entry(&self, index: usize) -> Entry<'_> {
        let at = self.first + index * self.stride;
        Entry::new(&self.words[at..at + self.stride])
    }

    /// The entry that `key` seems to have: a guess, which a [`Seat`] validates.
    #[inline]
    pub(crate) fn find(&self, key: u64) -> Option<Entry<'_>> {
        self.candidates(key)
            .map(|candidate| candidate.entry)
            .find(|entry| entry.seems_of(key))
    }

    /// The entries that `key` may have, those of its first set first.
    #[inline]
    pub(crate) fn candidates(&self, key: u64) -> impl Iterator<Item = Candidate<'_>> {
        let sets = Sets::of(key, self.sets);
        // Keys of a set begin at different entries, so that one of several lines finds most of them
        // on the first.
        let turn = (key as usize) & (WAYS - 1);
        sets.enumerate().flat_map(move |(choice, set)| {
            (0..WAYS).map(move |way| {
                let index = set * WAYS + ((turn + way) & (WAYS - 1));
                Candidate {
                    choice,
                    index,
                    entry: self.entry(index),
                }
            })
        })
    }

    /// What is known beside the entries of `key` and the keys that share its home.
    #[inline]
    pub(crate) fn home(&self, key: u64) -> Home<'_> {
        let homes = self.homes.len() / Home::WORDS;
        let index = scale(key.wrapping_mul(HOME), homes);
        Home::new(&self.homes[Home::WORDS * index..][..Home::WORDS])
    }

    /// Reads one word of the first set of `key`, so that its line is on the way when the decision comes.
    #[inline]
    pub(crate) fn touch(&self, key: u64) -> bool {
        let set = scale(key.wrapping_mul(SET), self.sets);
        self.entry(set * WAYS).seems_of(key)
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

/// One of the entries that a key may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    /// Which of the key's sets it is in, 0 the first.
    pub(crate) choice: usize,
    /// Its number in the table: the same for everybody.
    pub(crate) index: usize,
    pub(crate) entry: Entry<'a>,
}

// Odd numbers without a pattern: the bits of the golden ratio, of √3 and of √5, after the point.
const SET: u64 = 0x9e37_79b9_7f4a_7c15;
const STEP: u64 = 0xbb67_ae85_84ca_a73b;
const HOME: u64 = 0x3c6e_f372_fe94_f82b;

/// ⌊bits · range / 2^64⌋: a number below `range`, decided by the upper bits.
#[inline]
const fn scale(bits: u64, range: usize) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "below the range, a usize")]
    let scaled = ((bits as u128 * range as u128) >> 64) as usize;
    scaled
}

/// The sets of one key: each a fixed step after the one before, so that two keys that have one set
/// in common differ in the others.
#[derive(Clone, Copy, Debug)]
struct Sets {
    next: usize,
    step: usize,
    sets: usize,
    left: usize,
}

impl Sets {
    #[inline]
    fn of(key: u64, sets: usize) -> Self {
        // With few sets, each of them.
        let step = if sets > CHOICES {
            1 + scale(key.wrapping_mul(STEP), sets - 1)
        } else {
            1
        };
        Self {
            next: scale(key.wrapping_mul(SET), sets),
            step,
            sets,
            left: if sets < CHOICES { sets } else { CHOICES },
        }
    }
}

impl Iterator for Sets {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let set = self.next;
        self.next += self.step;
        if self.next >= self.sets {
            self.next -= self.sets;
        }
        Some(set)
    }
}
