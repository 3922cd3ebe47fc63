//! The slots of a grouped ring: several counts in a word. These functions access no shared state.

use core::ops::Range;

use crate::time::Divider;

/// Where the counts of the cells are, and how many bits they take.
///
/// k consecutive cells are a *group*, and share one slot. The slot of group g is slot g mod G, in *lap* g div G.
///
/// | bits of a slot, from the top | field | meaning |
/// |---|---|---|
/// | the rest | `lap` | the lap of the group |
/// | w | `fields[k - 1]` | the newest cell of the group: 0 if its count is not published, v + 1 for v permits |
/// | … | | |
/// | w | `fields[0]` | the oldest cell of the group |
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups {
    /// k, the counts in a slot.
    counts: Divider,
    /// G, the number of slots.
    slots: Divider,
    /// w, the bits of a field.
    width: u32,
    /// k · w, the number of bits below the lap.
    lap_at: u32,
    /// A mask of one field.
    field: u64,
    /// A mask of the highest bit of each field.
    high: u64,
    /// A mask of the other bits of each field.
    low: u64,
    /// A mask of every other field, from field 0 on. A sum of counts in such a field can also use the bits of the next one.
    even: u64,
}

/// The place of the count of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of the slot.
    pub(super) slot: u64,
    pub(super) lap: u64,
    /// The number of the field.
    pub(super) field: u64,
}

impl Groups {
    /// The slots for counts of up to `limit`, of `older` cells before the current one, for all cells up to `horizon`. `None` if a
    /// slot has too few bits.
    pub(super) fn new(limit: u64, older: u64, horizon: u64) -> Option<Self> {
        let bits = |value: u64| u64::BITS - value.leading_zeros();
        // The fewest slots, and then the widest fields. A field has at least two bits.
        (1..=u64::BITS / 2)
            .filter(|&counts| u64::from(counts) <= older.max(1))
            .filter_map(|counts| {
                let slots = (older.max(1) - 1).div_ceil(u64::from(counts)) + 1;
                let lap = bits(horizon / u64::from(counts) / slots).max(bits(slots));
                let width = u64::BITS.checked_sub(lap)? / counts;
                // The sum of a field and the next one over all slots stays within the bits of the two. If the last field has no
                // next one, its sum uses the bits of the lap, which are at least those of `slots`.
                let fits = width >= bits(limit + 1).max(2) && 2 * slots <= 1 << width;
                fits.then_some((slots, counts, width))
            })
            .min_by_key(|&(slots, counts, _)| (slots, counts))
            .map(|(slots, counts, width)| Self::of_sizes(counts, slots, width))
    }

    fn of_sizes(counts: u32, slots: u64, width: u32) -> Self {
        let ones = |step| {
            let fields = (0..counts).step_by(step);
            fields.map(|number| 1_u64 << (number * width)).sum::<u64>()
        };
        let field = (1 << width) - 1;
        let high = ones(1) << (width - 1);
        Self {
            counts: Divider::new(u64::from(counts)),
            slots: Divider::new(slots),
            width,
            lap_at: counts * width,
            field,
            high,
            low: high - ones(1),
            even: ones(2) * field,
        }
    }

    /// G, the number of slots.
    pub(super) const fn slots(&self) -> u64 {
        self.slots.divisor()
    }

    /// The last cell whose lap a slot can hold.
    pub(super) fn last(&self) -> u64 {
        let laps = 1_u128 << (u64::BITS - self.lap_at);
        let cells = laps * u128::from(self.counts.divisor()) * u128::from(self.slots.divisor());
        u64::try_from(cells - 1).unwrap_or(u64::MAX)
    }

    /// The largest count of a cell.
    pub(super) const fn largest_count(&self) -> u64 {
        self.field - 1
    }

    /// The place of the count of `cell`.
    #[inline]
    pub(super) const fn place(&self, cell: u64) -> Place {
        let group = self.counts.quotient(cell);
        let lap = self.slots.quotient(group);
        Place {
            slot: group - lap * self.slots.divisor(),
            lap,
            field: cell - group * self.counts.divisor(),
        }
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the number of a field is below 32"
    )]
    const fn shift(&self, place: Place) -> u32 {
        place.field as u32 * self.width
    }

    /// The lap of a slot. A zeroed slot is of lap 0, and has no published count.
    #[inline]
    const fn lap(&self, slot: u64) -> u64 {
        slot >> self.lap_at
    }

    /// The slot with the count of the cell at `place`. `None` if the count is published already, or the slot belongs to a later
    /// group.
    #[inline]
    pub(super) fn publish(&self, slot: u64, place: Place, count: u64) -> Option<u64> {
        let field = (count.min(self.largest_count()) + 1) << self.shift(place);
        // Claim: grouped_ring 1, a count is published once.
        match self.lap(slot) {
            lap if lap < place.lap => Some((place.lap << self.lap_at) | field),
            lap if lap == place.lap && (slot >> self.shift(place)) & self.field == 0 => Some(slot | field),
            _ => None,
        }
    }

    /// The slot with `permits` fewer in the count of the cell at `place`. `None` if it does not hold so many.
    #[inline]
    pub(super) fn lower(&self, slot: u64, place: Place, permits: u64) -> Option<u64> {
        (permits <= self.count(slot, place)).then(|| slot - (permits << self.shift(place)))
    }

    /// The published count of the cell at `place`, or 0.
    #[inline]
    pub(super) fn count(&self, slot: u64, place: Place) -> u64 {
        if self.lap(slot) == place.lap {
            ((slot >> self.shift(place)) & self.field).saturating_sub(1)
        } else {
            0
        }
    }

    /// The sum of the published counts of the cells `first` to `last`, which are in no more than G groups. `add` adds the slots of a
    /// range to the sum.
    #[inline]
    pub(super) fn sum(&self, first: u64, last: u64, add: impl Fn(Range<u64>, Sum) -> Sum) -> u64 {
        if first > last {
            return 0;
        }
        let (start, end) = (self.place(first), self.place(last));
        let mut sum = Sum {
            groups: *self,
            lap: 0,
            mask: u64::MAX << self.shift(start),
            latest: 0,
            pairs: 0,
        };
        let (mut lap, mut slot) = (start.lap, start.slot);
        // The compiler inlines `add` only if it is called at one place.
        loop {
            let is_last = lap >= end.lap;
            let slots = if is_last {
                end.slot + 1
            } else {
                self.slots.divisor()
            };
            sum.lap = lap << self.lap_at;
            sum = add(slot..slots, sum);
            if is_last {
                break;
            }
            (lap, slot) = (end.lap, 0);
        }
        // The last slot was added whole, so the counts of the cells after `last` are subtracted again.
        let up_to_last = u64::MAX >> (u64::BITS - self.width - self.shift(end));
        let mut pairs = sum.pairs - self.pairs(sum.latest, !up_to_last);
        let mut total = 0;
        while pairs > 0 {
            total += pairs & ((self.field << self.width) | self.field);
            pairs = pairs.checked_shr(2 * self.width).unwrap_or(0);
        }
        total
    }

    /// For each field of `even`, the sum of its count and the next field's. `slot` is without its lap; 0 if it is of another lap.
    #[inline(always)]
    const fn pairs(&self, slot: u64, mask: u64) -> u64 {
        if slot >> self.lap_at != 0 {
            return 0;
        }
        let fields = slot & mask;
        // The highest bit of each field that is not 0. Nothing is carried from one field to the next.
        let published = (((fields & self.low) + self.low) | fields) & self.high;
        // Each published count, with 0 for the other fields.
        let counts = fields - (published >> (self.width - 1));
        (counts & self.even) + ((counts >> self.width) & self.even)
    }
}

/// A sum of counts, to which slots are added in order.
///
/// It is a copy of all that an addition reads. The compiler keeps a copy in registers, and would read a reference again after each
/// load of a slot.
#[derive(Clone, Copy)]
pub(super) struct Sum {
    groups: Groups,
    /// The lap of the next slot, at its place in the slot.
    lap: u64,
    /// The bits of the next slot that are added.
    mask: u64,
    /// The slot that was added last, without its lap.
    latest: u64,
    /// For each field of `even`, the sum of that field and the next one.
    pairs: u64,
}

impl Sum {
    #[inline(always)]
    pub(super) fn add(&mut self, slot: u64) {
        self.latest = slot ^ self.lap;
        self.pairs += self.groups.pairs(self.latest, self.mask);
        self.mask = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::{Groups, Place};
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const YEARS: u64 = 20 * 366 * 24 * 3600;

    /// The bits and slots of the guide: 60 cells of a second.
    #[test]
    fn sixty_cells_take_a_few_words() {
        for (limit, counts, width, slots) in [(100, 5, 8, 13), (1_000, 4, 10, 16), (10_000, 2, 20, 31)] {
            let groups = Groups::new(limit, 60, YEARS).expect("slots");
            assert_eq!(
                (groups.counts.divisor(), groups.width, groups.slots()),
                (counts, width, slots)
            );
            assert!(groups.last() >= YEARS && groups.largest_count() >= limit);
        }
    }

    /// Any window of cells has places of its own, for all layouts.
    #[test]
    fn cells_of_a_window_do_not_share_a_place() {
        for older in 1..70 {
            for limit in [1, 2, 7, 60, 5_000, 1 << 40] {
                let groups = Groups::new(limit, older, 1 << 20).expect("slots");
                for cell in 1_000..1_000 + older {
                    let one = groups.place(cell);
                    // The last cell whose slot another cell may replace is no longer summed when that one is published.
                    let replaced = groups.place(cell + older - 1);
                    assert!(
                        one.slot != replaced.slot || one.lap == replaced.lap,
                        "{older} {limit}"
                    );
                }
            }
        }
    }

    /// A slot as a list of counts.
    fn listed(groups: &Groups, slots: &[u64], first: u64, last: u64) -> u64 {
        (first..=last)
            .map(|cell| groups.place(cell))
            .map(|place| groups.count(slots[usize::try_from(place.slot).expect("small")], place))
            .sum()
    }

    proptest! {
        /// The sum of many fields at once is that of the counts one by one.
        #[test]
        fn a_sum_is_that_of_its_counts(
            limit in prop_oneof![1..10_u64, 10..3_000_u64, Just(1 << 33)],
            older in 1..150_u64,
            counts in prop::collection::vec((0..3_u64, any::<u64>(), any::<u64>()), 1..200),
        ) {
            let Some(groups) = Groups::new(limit, older, YEARS) else { return Ok(()) };
            let mut slots: Vec<u64> = vec![0; usize::try_from(groups.slots()).expect("small")];
            let mut cell = 2 * older;
            for (step, count, lowered) in counts {
                cell += step;
                let place @ Place { slot, .. } = groups.place(cell);
                let slot = &mut slots[usize::try_from(slot).expect("small")];
                let count = if count % 3 == 0 { groups.largest_count() } else { count % (groups.largest_count() + 1) };
                if let Some(published) = groups.publish(*slot, place, count) {
                    prop_assert!(published > *slot || groups.lap(published) > groups.lap(*slot));
                    *slot = published;
                    prop_assert_eq!(groups.count(*slot, place), count);
                    let lowered = lowered % (count + 2);
                    prop_assert_eq!(groups.lower(*slot, place, lowered).is_some(), lowered <= count);
                    if let Some(lower) = groups.lower(*slot, place, lowered) {
                        *slot = lower;
                        prop_assert_eq!(groups.count(*slot, place), count - lowered);
                    }
                }
                // A count is published once, and not in the slot of a later group.
                prop_assert_eq!(groups.publish(*slot, place, 1), None);
                if let Some(lap) = place.lap.checked_sub(1) {
                    prop_assert_eq!(groups.publish(*slot, Place { lap, ..place }, 1), None);
                    prop_assert_eq!(groups.lower(*slot, Place { lap, ..place }, 1), None);
                }
                for first in [cell - older + 1, cell - older / 2, cell] {
                    for last in [cell, first, first + (cell - first) / 2] {
                        let sum = groups.sum(first, last, |range, mut sum| {
                            for slot in range {
                                sum.add(slots[usize::try_from(slot).expect("small")]);
                            }
                            sum
                        });
                        prop_assert_eq!(sum, listed(&groups, &slots, first, last));
                    }
                }
            }
        }
    }
}
