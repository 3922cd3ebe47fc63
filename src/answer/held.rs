use core::cell::Cell;
use core::sync::atomic::Ordering;

use crate::sync::{AtomicU64, Shared, Words};
#[cfg(feature = "keyed")]
use crate::table::{Entry, Seat};
#[cfg(feature = "keyed")]
use crate::time::Nanos;

/// The state that an answer is about, to be looked at when somebody asks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held<'a> {
    /// Words that belong to one limiter for ever.
    Own(&'a [AtomicU64]),
    /// The entry of a key in a table: a fresh state once the key has lost it.
    #[cfg(feature = "keyed")]
    Entry(Entry<'a>, u64),
    /// A key that has no entry, and would get one: as fresh.
    #[cfg(feature = "keyed")]
    Fresh,
    /// A key that finds the table full, and shares the words of the catch-all.
    #[cfg(feature = "keyed")]
    Shared(&'a [AtomicU64]),
    /// A key that finds the table full, and is not limited.
    #[cfg(feature = "keyed")]
    Unlimited,
    /// A key that finds the table full, and is refused until the given time.
    #[cfg(feature = "keyed")]
    NoRoom(Option<Nanos>),
}

impl Held<'_> {
    /// Whether it is not the key's own state for want of an entry.
    #[cfg(feature = "keyed")]
    pub(super) const fn is_overflow(self) -> bool {
        matches!(self, Self::Shared(_) | Self::Unlimited | Self::NoRoom(_))
    }
}

/// A [`Held`] state as words that an algorithm may look at, and not change.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    held: Held<'a>,
    #[cfg_attr(
        not(feature = "keyed"),
        expect(dead_code, reason = "only a table's entry can be lost")
    )]
    seen: &'a Cell<u64>,
}

impl<'a> Look<'a> {
    /// For `seen`, at the beginning.
    pub(super) const UNSEEN: u64 = u64::MAX;

    pub(super) fn new(held: Held<'a>, seen: &'a Cell<u64>) -> Self {
        Self { held, seen }
    }
}

impl Words for Look<'_> {
    fn load(self, index: usize, order: Ordering) -> u64 {
        match self.held {
            Held::Own(words) => Shared::new(words).load(index, order),
            #[cfg(feature = "keyed")]
            Held::Shared(words) => Shared::new(words).load(index, order),
            #[cfg(feature = "keyed")]
            Held::Entry(entry, key) => Seat::new(entry, key, self.seen).load(index, order),
            #[cfg(feature = "keyed")]
            Held::Fresh | Held::Unlimited | Held::NoRoom(_) => 0,
        }
    }

    fn exchange(
        self,
        index: usize,
        _current: u64,
        _new: u64,
        _success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        Err(self.load(index, failure))
    }
}
