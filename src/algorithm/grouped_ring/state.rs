use core::cmp::Ordering::{Equal, Greater, Less};
use core::sync::atomic::Ordering;

use super::groups::Groups;
use crate::algorithm::entered_ring::State;
use crate::algorithm::entered_ring::word::TotalWord;
use crate::sync::Words;

// The words that a decision reads come first, because a table has them on the lines of the bucket.
const REFUNDS: usize = 1;
const BASE: usize = 2;
const FIRST_SLOT: usize = 3;

/// The number of words of a state.
pub(super) fn words(groups: &Groups) -> usize {
    FIRST_SLOT + usize::try_from(groups.slots()).expect("a window of a few thousand cells")
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "below the number of slots, which are in memory"
)]
const fn index(slot: u64) -> usize {
    FIRST_SLOT + slot as usize
}

/// The transitions of the base, the refunds and the counts.
impl<W: Words> State<W> {
    #[inline]
    pub(super) fn base(self) -> TotalWord {
        // A thread that observes a base observes the control word that entered its cell, and the slots that were published before.
        self.total(BASE)
    }

    /// Publishes the base of the cell that is being entered.
    #[inline]
    pub(super) fn exchange_base(self, seen: TotalWord, new: TotalWord) -> Result<u64, u64> {
        // Release: pairs with the Acquire in `raw`; publishes the slot of the cell before, and the control word.
        self.words
            .exchange(BASE, seen.raw(), new.raw(), Ordering::Release)
    }

    /// The permits that were refunded from older cells while the cell `tick` was the current one. `None` if the refunds are of a
    /// later cell.
    #[inline]
    pub(super) fn refunds(self, tick: u64) -> Option<u64> {
        // A thread that admits because of a refund observes the count that the refund has lowered, and publishes it by its
        // exchange of control. Without that, the total could exceed its bits.
        let refunds = self.total(REFUNDS);
        // Claim: grouped_ring 4, the refunds of an earlier cell do not count.
        match refunds.tick().cmp(&tick) {
            Less => Some(0),
            Equal => Some(refunds.total()),
            Greater => None,
        }
    }

    /// Adds `permits` to the refunds of the cell `tick`, unless they are of a later cell.
    pub(super) fn add_refund(self, tick: u64, permits: u64) {
        self.change(REFUNDS, |raw| {
            let seen = self.layout.decode(raw);
            match seen.tick().cmp(&tick) {
                Less => Some(self.layout.word(tick, permits).raw()),
                Equal => Some(seen.plus(permits).raw()),
                Greater => None,
            }
        });
    }

    /// Publishes the count of `cell`, unless it is published.
    #[inline]
    pub(super) fn publish_count(self, groups: &Groups, cell: u64, count: u64) {
        let place = groups.place(cell);
        self.change(index(place.slot), |slot| groups.publish(slot, place, count));
    }

    /// Subtracts `permits` from the published count of `cell`. Returns false if the count is smaller, or its slot belongs to a
    /// later group.
    pub(super) fn lower_count(self, groups: &Groups, cell: u64, permits: u64) -> bool {
        let place = groups.place(cell);
        self.change(index(place.slot), |slot| groups.lower(slot, place, permits))
    }

    /// The published count of `cell`, or 0.
    #[inline]
    pub(super) fn count(self, groups: &Groups, cell: u64) -> u64 {
        let place = groups.place(cell);
        groups.count(self.raw(index(place.slot)), place)
    }

    /// The sum of the published counts of the cells `first` to `last`.
    #[inline]
    pub(super) fn sum_of_counts(self, groups: &Groups, first: u64, last: u64) -> u64 {
        groups.sum(first, last, |slots, mut sum| {
            let indices = index(slots.start)..index(slots.end);
            // Acquire: as in `raw`.
            self.words
                .load_each(indices, Ordering::Acquire, |slot| sum.add(slot));
            sum
        })
    }
}
