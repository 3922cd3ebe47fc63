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

mod entry;
mod hints;
mod home;
mod lookup;
mod opening;
mod seat;
mod set;
mod shape;
mod staged;

pub(crate) use entry::Entry;
pub(crate) use home::Home;
pub(crate) use opening::Opening;
pub(crate) use seat::Seat;
pub(crate) use set::{Candidate, Set};
pub(crate) use staged::{Stage, Staged};

use hints::Hints;
use shape::{Shape, WAYS};

/// Entries of inline states in one flat piece of memory, which the operating system provides when
/// a line is first written.
pub(crate) struct Table {
    words: Box<[AtomicU64]>,
    /// Where the first line begins.
    first: usize,
    shape: Shape,
    /// Words of an entry, its fingerprint included.
    stride: usize,
    hints: Hints,
    homes: Box<[AtomicU64]>,
}

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
        let table = Shape::of(keys).and_then(|shape| Self::allocate(shape, stride));
        table.ok_or_else(|| {
            ConfigError::new(
                "capacity",
                format!("{keys} keys of {} bytes each", stride * size_of::<u64>()),
                "what memory can be had for",
            )
        })
    }

    fn allocate(shape: Shape, stride: usize) -> Option<Self> {
        let entries = shape.sets().checked_mul(WAYS)?;
        // Room for moving the beginning to a line's.
        let words: Box<[AtomicU64]> = sync::zeroed(entries.checked_mul(stride)?.checked_add(LINE)?)?;
        // An interpreter may decline to say where a line begins; any place will do there.
        let first = words.as_ptr().align_offset(64).min(LINE);
        let homes = sync::zeroed(Home::WORDS * entries.div_ceil(ENTRIES_PER_HOME))?;
        Some(Self {
            words,
            first,
            shape,
            stride,
            hints: Hints::new(shape.sets())?,
            homes,
        })
    }

    /// How many entries there are.
    pub(crate) const fn entries(&self) -> usize {
        self.shape.sets() * WAYS
    }

    /// Bytes of all entries, hints and homes, touched or not.
    pub(crate) const fn bytes(&self) -> usize {
        size_of::<u64>() * (self.words.len() + self.homes.len()) + self.hints.bytes()
    }

    /// Makes every entry nobody's, and gives the memory back.
    pub(crate) fn clear(&mut self) {
        match Self::allocate(self.shape, self.stride) {
            Some(fresh) => *self = fresh,
            // There is no memory for a second table, so this one is wiped.
            None => {
                for word in self.words.iter_mut().chain(&mut self.homes) {
                    *word = AtomicU64::new(0);
                }
                self.hints.clear();
            }
        }
    }

    /// The two sets of the key in the front.
    #[inline]
    pub(crate) fn front(&self, key: u64) -> impl Iterator<Item = Set<'_>> {
        let sets = self.shape.front(key).into_iter().take(self.shape.front_choices());
        sets.map(move |set| self.set(set, key))
    }

    /// The sets in the backyard that may have the key when every entry of its sets in the front is taken.
    #[inline]
    pub(crate) fn backyard(&self, key: u64) -> impl Iterator<Item = Set<'_>> {
        self.shape.backyard(key).map(move |set| self.set(set, key))
    }

    #[inline]
    fn set(&self, number: usize, key: u64) -> Set<'_> {
        let words = WAYS * self.stride;
        Set::new(&self.words[self.first + number * words..][..words], number, key)
    }

    #[inline(always)]
    fn entry(&self, index: usize) -> Entry<'_> {
        if self.stride == 2
            && let Some([key, first]) = self.words[self.first + 2 * index..].first_chunk()
        {
            return Entry::pair(key, first);
        }
        Entry::new(&self.words[self.first + index * self.stride..][..self.stride])
    }

    /// What is known beside the entries of `key` and the keys that share its home.
    #[inline]
    pub(crate) fn home(&self, key: u64) -> Home<'_> {
        self.home_at(Shape::home(key, self.homes.len() / Home::WORDS))
    }

    /// Hands over the fingerprint of every key that has an entry, or is about to get one. Keys that come or go meanwhile
    /// may be missed, or come twice.
    #[cfg(feature = "rules")]
    pub(crate) fn for_each_key(&self, mut key: impl FnMut(u64)) {
        for index in 0..self.entries() {
            if let Some(owner) = self.entry(index).owner() {
                key(owner);
            }
        }
    }

    /// The first word of the state of a key that has an entry, 0 if it has none.
    #[cfg(feature = "rules")]
    pub(crate) fn first_word(&self, key: u64) -> u64 {
        let sets = self.front(key).chain(self.backyard(key));
        sets.flat_map(Set::candidates)
            .find_map(|candidate| candidate.entry.first_of(key))
            .unwrap_or(0)
    }

    /// From now on no key enters at an earlier time than `now`.
    #[cfg(feature = "rules")]
    pub(crate) fn begin_after(&self, now: Nanos) {
        for home in self.homes() {
            home.reclaim_at(now);
        }
    }

    /// Marks the keys that `from` has marks for until `end`.
    #[cfg(feature = "rules")]
    pub(crate) fn inherit_marks(&self, from: &Self, now: Nanos, end: Nanos) {
        let [here, there] = [self, from].map(|table| {
            let homes = table.homes().len();
            u32::try_from(homes).expect("2^27 homes at the most")
        });
        for (index, home) in (0..).zip(self.homes()) {
            let same = homes_of_same_keys(index, here, there);
            for other in from.homes().take(same.end).skip(same.start) {
                home.share_marks_of(other, now, end);
            }
        }
    }

    #[cfg(feature = "rules")]
    fn homes(&self) -> impl ExactSizeIterator<Item = Home<'_>> {
        self.homes.chunks_exact(Home::WORDS).map(Home::new)
    }

    #[inline]
    fn home_at(&self, index: usize) -> Home<'_> {
        Home::new(&self.homes[Home::WORDS * index..][..Home::WORDS])
    }
}

/// The homes, of `there`, that the keys of a home of `here` have; perhaps one more.
///
/// Both tables divide the same hashes evenly.
#[cfg(feature = "rules")]
fn homes_of_same_keys(index: u32, here: u32, there: u32) -> Range<usize> {
    // In 64 bits: the product of two numbers of homes needs more than a `usize` of 32.
    let first = |index| u64::from(index) * u64::from(there) / u64::from(here);
    #[expect(clippy::cast_possible_truncation, reason = "no more than there are homes")]
    let homes = |number: u64| number.min(u64::from(there)) as usize;
    homes(first(index))..homes(first(index + 1) + 1)
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
    use crate::table::{Stage, Staged};

    /// Whatever the sizes of the two tables are, up to the largest.
    #[test]
    #[cfg(feature = "rules")]
    fn the_homes_of_a_key_in_two_tables_belong_together() {
        let most = 1_u32 << 27;
        let sizes = [1, 2, 3, 65_535, 65_536, 65_537, 83_000, 1 << 20, most - 1, most];
        let home = |key, homes| Shape::home(key, usize::try_from(homes).expect("32 bits"));
        for key in (1..=100_u64).map(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            for (here, there) in sizes.iter().flat_map(|&here| sizes.map(|there| (here, there))) {
                let index = u32::try_from(home(key, here)).expect("below 2^27");
                let same = homes_of_same_keys(index, here, there);
                assert!(same.contains(&home(key, there)), "{key}: {here}, {there}");
                let most = there.div_ceil(here) + 1;
                assert!(same.len() <= most.try_into().expect("32 bits"), "{here}, {there}");
            }
        }
    }

    /// Gives every candidate of `key` to another key that has the same byte.
    fn fill(table: &Table, key: u64) {
        let of_others = (1_u64..).filter(|other| *other != key && Shape::byte(*other) == Shape::byte(key));
        for (candidate, other) in table.front(key).flat_map(Set::candidates).zip(of_others) {
            candidate.entry.rename(other);
            table
                .hints
                .put(candidate.index / WAYS, candidate.index % WAYS, Shape::byte(key));
        }
    }

    #[test]
    fn hints_that_lead_astray_hide_no_entry() {
        for state in [1, 7] {
            let table = Table::new(1_000, state).expect("a table");
            for key in [1, 77, u64::MAX - 1] {
                fill(&table, key);
                assert!(table.find_near(key).is_none(), "all of them are others'");
                for candidate in table.front(key).flat_map(Set::candidates) {
                    let (entry, index) = (candidate.entry, candidate.index);
                    let before = entry.look(0).1;
                    entry.rename(key);
                    assert_eq!(table.find_near(key).expect("a hint").number(), entry.number());
                    entry.rename(before);
                    // A hint that was lost is found again by whoever has to look.
                    table
                        .hints
                        .put(index / WAYS, index % WAYS, Shape::byte(key) ^ 0x80);
                    entry.rename(key);
                    assert!(table.find_near(key).is_none());
                    assert_eq!(
                        table.find_in_front(key).expect("an entry").number(),
                        entry.number()
                    );
                    assert_eq!(table.find_near(key).expect("a hint").number(), entry.number());
                    entry.rename(before);
                }
            }
        }
    }

    /// As many entries as there are hints for, and more.
    #[test]
    #[cfg_attr(miri, ignore = "four megabytes take Miri many minutes")]
    fn a_key_is_found_with_hints_and_without() {
        for (keys, far) in [(200_000, false), (210_000, true)] {
            let table = Table::new(keys, 1).expect("a table");
            assert_eq!(table.hints.is_empty(), far);
            for key in (1..1_000).map(|key| key << 50 | key) {
                assert!(table.find_near(key).or(table.find_far(key)).is_none());
                let candidate = table.find_unused(key).expect("room");
                candidate.entry.claim(Staged::decode(0), 9).expect("nobody else");
                candidate.entry.rename(key);
                table.hint(key, candidate.index);
                let (one, other) = if far {
                    (table.find_far(key), table.find_near(key))
                } else {
                    (table.find_near(key), table.find_far(key))
                };
                assert_eq!(one.expect("an entry").number(), candidate.entry.number());
                assert!(other.is_none());
                // Asked for in a batch, it is found by hints, or later.
                assert_eq!(table.ask_for(table.places(key), key).is_some(), !far);
            }
        }
    }

    /// What is guessed is validated: a guess at an entry that the key has lost is no state of its own.
    #[test]
    fn an_entry_that_was_guessed_may_be_lost() {
        let table = Table::new(1_000, 1).expect("a table");
        let candidate = table.find_unused(5).expect("room");
        let claimed = candidate.entry.claim(Staged::decode(0), 9).expect("nobody else");
        candidate.entry.rename(5);
        table.hint(5, candidate.index);
        assert!(candidate.entry.open(claimed));
        let found = table.find_near(5).expect("a hint");
        assert_eq!(found.first_of(5), Some(9));
        let claimed = found.claim(Staged::new(Stage::Open, 9), 10).expect("nobody else");
        found.rename(6);
        assert!(found.open(claimed));
        assert_eq!(found.first_of(5), None);
    }
}
