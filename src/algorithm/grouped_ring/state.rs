use core::sync::atomic::Ordering;

use super::groups::Groups;
use crate::algorithm::wide_ring::word::{TotalLayout, TotalWord};
use crate::sync::Words;

/// The words of one key, and their transitions.
#[derive(Clone, Copy)]
pub(super) struct State<'a, W> {
    words: W,
    layout: TotalLayout,
    groups: &'a Groups,
}

impl<'a, W: Words> State<'a, W> {
    const CONTROL: usize = 0;
    // The words that a decision reads come first, because a table has them on the lines of the bucket.
    const REFUNDS: usize = 1;
    const BASE: usize = 2;
    const FIRST_SLOT: usize = 3;

    // Acquire: pairs with the Release in `change`. A query that reads a slot of a later group observes the control word that
    // entered the cell, so its second read of control differs.
    const OF_SLOTS: Ordering = Ordering::Acquire;

    pub(super) fn words(groups: &Groups) -> usize {
        Self::FIRST_SLOT + usize::try_from(groups.slots()).expect("a window of a few thousand cells")
    }

    #[inline]
    pub(super) fn new(words: W, layout: TotalLayout, groups: &'a Groups) -> Self {
        Self {
            words,
            layout,
            groups,
        }
    }

    #[inline]
    pub(super) fn control(self) -> TotalWord {
        // Acquire: pairs with the Release in `exchange_control`. A thread that observes an open cell observes its base and the
        // slots of all cells before it.
        // Claim: grouped_ring orderings, a thread that finds a cell open finds its base.
        self.layout
            .decode(self.words.load(Self::CONTROL, Ordering::Acquire))
    }

    /// Changes the total within a cell, begins to enter a later cell, or opens the cell that is being entered.
    #[inline]
    pub(super) fn exchange_control(self, seen: TotalWord, new: TotalWord) -> bool {
        // Release: pairs with the Acquire in `control`; publishes the base and the slots as this thread has observed them. A
        // thread that admits because of a refund also publishes the count that the refund has lowered.
        self.words
            .exchange(Self::CONTROL, seen.raw(), new.raw(), Ordering::Release)
            .is_ok()
    }

    #[inline]
    pub(super) fn base(self) -> TotalWord {
        // Acquire: pairs with the Release in `exchange_base`. A thread that observes a base observes the control word that
        // entered its cell, and the slots that were published before it.
        self.layout.decode(self.words.load(Self::BASE, Ordering::Acquire))
    }

    /// Publishes the base of the cell that is being entered.
    #[inline]
    pub(super) fn exchange_base(self, seen: TotalWord, new: TotalWord) -> Result<u64, u64> {
        // Release: pairs with the Acquire in `base`; publishes the slot of the cell before, and the control word.
        self.words
            .exchange(Self::BASE, seen.raw(), new.raw(), Ordering::Release)
    }

    /// The permits that were refunded from older cells while the cell `tick` was the current one. `None` if the refunds are of a
    /// later cell.
    #[inline]
    pub(super) fn refunds(self, tick: u64) -> Option<u64> {
        // Acquire: pairs with the Release in `add_refund`. A thread that admits because of a refund observes the count that the
        // refund has lowered, and publishes it by its exchange of control. Without that, the total could exceed its bits.
        let refunds = self
            .layout
            .decode(self.words.load(Self::REFUNDS, Ordering::Acquire));
        // Claim: grouped_ring 4, the refunds of an earlier cell do not count.
        match refunds.tick() {
            seen_tick if seen_tick < tick => Some(0),
            seen_tick if seen_tick == tick => Some(refunds.total()),
            _ => None,
        }
    }

    /// Adds `permits` to the refunds of the cell `tick`, unless they are of a later cell.
    pub(super) fn add_refund(self, tick: u64, permits: u64) {
        self.change(Self::REFUNDS, |raw| {
            let seen = self.layout.decode(raw);
            match seen.tick() {
                seen_tick if seen_tick < tick => Some(self.layout.word(tick, permits).raw()),
                seen_tick if seen_tick == tick => Some(seen.plus(permits).raw()),
                _ => None,
            }
        });
    }

    /// Publishes the count of `cell`, unless it is published.
    #[inline]
    pub(super) fn publish(self, cell: u64, count: u64) {
        let place = self.groups.place(cell);
        self.change(Self::index(place.slot), |slot| {
            self.groups.publish(slot, place, count)
        });
    }

    /// Subtracts `permits` from the published count of `cell`. Returns false if the count is smaller, or its slot belongs to a
    /// later group.
    pub(super) fn lower(self, cell: u64, permits: u64) -> bool {
        let place = self.groups.place(cell);
        self.change(Self::index(place.slot), |slot| {
            self.groups.lower(slot, place, permits)
        })
    }

    /// The published count of `cell`, or 0.
    #[inline]
    pub(super) fn count(self, cell: u64) -> u64 {
        let place = self.groups.place(cell);
        let slot = self.words.load(Self::index(place.slot), Self::OF_SLOTS);
        self.groups.count(slot, place)
    }

    /// The sum of the published counts of the cells `first` to `last`.
    #[inline]
    pub(super) fn sum(self, first: u64, last: u64) -> u64 {
        self.groups.sum(first, last, |slots, mut sum| {
            let indices = Self::index(slots.start)..Self::index(slots.end);
            self.words
                .load_each(indices, Self::OF_SLOTS, |slot| sum.add(slot));
            sum
        })
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "below the number of slots, which are in memory"
    )]
    const fn index(slot: u64) -> usize {
        Self::FIRST_SLOT + slot as usize
    }

    /// Replaces a word by `next` of its value. Repeats this until it succeeds or `next` returns `None`. Returns whether it
    /// succeeded.
    #[inline]
    fn change(self, index: usize, next: impl Fn(u64) -> Option<u64>) -> bool {
        // Acquire: as in `OF_SLOTS` and `refunds`.
        let mut seen = self.words.load(index, Ordering::Acquire);
        while let Some(new) = next(seen) {
            // Release: pairs with the Acquire in `OF_SLOTS` and in `refunds`. A published count publishes the control word that has
            // entered the cell, and an added refund publishes the count that was lowered before.
            match self.words.exchange(index, seen, new, Ordering::Release) {
                Ok(_) => return true,
                // These words cannot be exchanged: they are read-only, or their entry belongs to another key now.
                Err(same) if same == seen => return false,
                Err(newer) => seen = newer,
            }
        }
        false
    }
}
