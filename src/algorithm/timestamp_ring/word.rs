//! The words of a timestamp ring.

use crate::algorithm::traits::FIRST_WORD_BITS;
use crate::debug::debug_fields;

/// A position in the ring: a slot and a lap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::algorithm) struct SlotPosition {
    /// The slot's number, 0 to L − 1.
    pub(in crate::algorithm) index: u64,
    /// The number of the lap, modulo 2.
    pub(in crate::algorithm) lap: u64,
}

/// The head of a timestamp ring: the next position to be claimed, and the time of the last claim.
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 2 | | clear ([`FIRST_WORD_BITS`]) |
/// | 61 − i | `newest` | the time of the last claim, in the ring's units |
/// | 1 | `lap` | the lap of the next position, modulo 2 |
/// | i | `index` | the slot of the next position |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::algorithm) struct HeadWord {
    raw: u64,
    layout: LogLayout,
}

/// The number of slots, and the field widths of a [`HeadWord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::algorithm) struct LogLayout {
    slots: u64,
    /// i, the bits of an index.
    index_bits: u32,
}

impl LogLayout {
    pub(in crate::algorithm) const fn new(slots: u64) -> Self {
        Self {
            slots,
            index_bits: u64::BITS - (slots - 1).leading_zeros(),
        }
    }

    /// L, the number of slots.
    pub(in crate::algorithm) const fn slots(self) -> u64 {
        self.slots
    }

    /// The last time that the head can hold. A slot has more bits for its time.
    pub(in crate::algorithm) const fn last_time(self) -> u64 {
        u64::MAX >> (u64::BITS - FIRST_WORD_BITS + self.index_bits + 1)
    }

    /// The time, shifted to its place in a [`HeadWord`] or in a [`ClaimWord`].
    #[inline]
    pub(in crate::algorithm) const fn in_place(self, time: u64) -> u64 {
        time << (self.index_bits + 1)
    }

    /// The time in a [`HeadWord`] or in a [`ClaimWord`].
    #[inline]
    pub(in crate::algorithm) const fn time_of(self, raw: u64) -> u64 {
        raw >> (self.index_bits + 1)
    }

    #[inline]
    pub(in crate::algorithm) const fn decode(self, raw: u64) -> HeadWord {
        HeadWord { raw, layout: self }
    }

    /// The position that is `offset` positions after `position`. `offset` is at most L.
    #[inline]
    pub(in crate::algorithm) const fn after(self, position: SlotPosition, offset: u64) -> SlotPosition {
        let index = position.index + offset;
        if index < self.slots {
            SlotPosition {
                index,
                lap: position.lap,
            }
        } else {
            SlotPosition {
                index: index - self.slots,
                lap: position.lap ^ 1,
            }
        }
    }
}

impl HeadWord {
    #[inline]
    pub(in crate::algorithm) const fn raw(self) -> u64 {
        self.raw
    }

    #[inline]
    pub(in crate::algorithm) const fn newest(self) -> u64 {
        self.layout.time_of(self.raw)
    }

    /// The next position to be claimed.
    #[inline]
    pub(in crate::algorithm) const fn position(self) -> SlotPosition {
        let index = self.raw & ((1 << self.layout.index_bits) - 1);
        SlotPosition {
            // The index is always below the number of slots, except in words that no timestamp ring has written.
            index: if index < self.layout.slots { index } else { 0 },
            lap: (self.raw >> self.layout.index_bits) & 1,
        }
    }

    /// `{ newest: time, position }`.
    #[inline]
    pub(in crate::algorithm) const fn at(self, time: u64, position: SlotPosition) -> Self {
        let bits = self.layout.index_bits;
        self.layout
            .decode((time << (bits + 1)) | (position.lap << bits) | position.index)
    }
}

debug_fields!(HeadWord { newest, position });

/// A slot of a timestamp ring: the time of the last claim that was stored, and the lap that may claim the slot next.
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 63 | `time` | the time of the claim, in the ring's units |
/// | 1 | `due` | the lap after that of the claim, modulo 2 |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::algorithm) struct SlotWord {
    raw: u64,
}

impl SlotWord {
    #[inline]
    pub(in crate::algorithm) const fn decode(raw: u64) -> Self {
        Self { raw }
    }

    /// The word that the claim of a position in `lap` stores: `{ time, due: lap + 1 }`.
    #[inline]
    pub(in crate::algorithm) const fn stored(time: u64, lap: u64) -> Self {
        Self {
            raw: (time << 1) | (lap ^ 1),
        }
    }

    #[inline]
    pub(in crate::algorithm) const fn raw(self) -> u64 {
        self.raw
    }

    #[inline]
    pub(in crate::algorithm) const fn time(self) -> u64 {
        self.raw >> 1
    }

    const fn due(self) -> u64 {
        self.raw & 1
    }

    /// Whether the claim of the lap before `lap` is stored.
    #[inline]
    pub(in crate::algorithm) const fn is_due(self, lap: u64) -> bool {
        self.due() == lap
    }
}

debug_fields!(SlotWord { time, due });

/// A slot that is claimed by an exchange of its own word: the claim of the newest position of the slot.
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 63 − i | `time` | the time of the claim, in the ring's units |
/// | i | `rest` | the number of positions after this one that the same request has claimed |
/// | 1 | `lap` | the lap of the claim, modulo 2. A fresh slot has lap 0, and the first claim has lap 1 |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::algorithm) struct ClaimWord {
    raw: u64,
    layout: LogLayout,
}

impl ClaimWord {
    #[inline]
    pub(in crate::algorithm) const fn decode(raw: u64, layout: LogLayout) -> Self {
        Self { raw, layout }
    }

    /// The word of the next claim of the same slot.
    #[inline]
    pub(in crate::algorithm) const fn next(self, time: u64, rest: u64) -> Self {
        self.next_in_place(self.layout.in_place(time) | (rest << 1))
    }

    /// The word of the next claim of the same slot, by a request for one permit. `time` is [in place](LogLayout::in_place).
    #[inline]
    pub(in crate::algorithm) const fn next_in_place(self, time: u64) -> Self {
        Self {
            raw: time | (self.lap() ^ 1),
            layout: self.layout,
        }
    }

    #[inline]
    pub(in crate::algorithm) const fn raw(self) -> u64 {
        self.raw
    }

    #[inline]
    pub(in crate::algorithm) const fn time(self) -> u64 {
        self.layout.time_of(self.raw)
    }

    #[inline]
    const fn lap(self) -> u64 {
        self.raw & 1
    }

    #[inline]
    pub(in crate::algorithm) const fn rest(self) -> u64 {
        (self.raw >> 1) & ((1 << self.layout.index_bits) - 1)
    }

    /// Whether this claim is of a later position than `before`, the claim in the slot before this one. `is_first`: this is the
    /// first slot, whose positions are one lap after those of the last slot.
    ///
    /// If the times are equal, the claims are of neighbouring positions or of positions one lap apart, and the laps tell which.
    #[inline]
    pub(in crate::algorithm) const fn follows(self, before: Self, is_first: bool) -> bool {
        let (time, time_before) = (self.time(), before.time());
        time > time_before || (time == time_before && (self.raw ^ before.raw) & 1 == is_first as u64)
    }
}

debug_fields!(ClaimWord { time, rest, lap });

#[cfg(test)]
mod tests {
    use super::{ClaimWord, LogLayout, SlotPosition, SlotWord};

    /// A ring of all-equal or increasing times has one slot that does not follow the one before: that of the next position.
    #[test]
    fn the_next_position_is_the_only_one_that_does_not_follow() {
        for slots in [1, 2, 3, 7, 8] {
            let layout = LogLayout::new(slots as u64);
            for step in [0, 1] {
                let mut words = alloc::vec![ClaimWord::decode(0, layout); slots];
                for position in 0..4 * slots {
                    for index in 0..slots {
                        let before = words[(index + slots - 1) % slots];
                        assert_eq!(
                            words[index].follows(before, index == 0),
                            index != position % slots,
                            "{slots} slots, position {position}, slot {index}: {words:?}"
                        );
                    }
                    let claimed = words[position % slots].next(position as u64 * step, 0);
                    assert_eq!((claimed.time(), claimed.rest()), (position as u64 * step, 0));
                    words[position % slots] = claimed;
                }
            }
            let claimed = ClaimWord::decode(0, layout).next(layout.last_time(), slots as u64 - 1);
            assert_eq!(
                (claimed.time(), claimed.rest()),
                (layout.last_time(), slots as u64 - 1)
            );
        }
    }

    #[test]
    fn positions_wrap_around_into_the_next_lap() {
        for slots in [1, 2, 3, 7, 8] {
            let layout = LogLayout::new(slots);
            let at = |number: u64| SlotPosition {
                index: number % slots,
                lap: (number / slots) % 2,
            };
            let mut position = layout.decode(0).position();
            for number in 0..4 * slots {
                assert_eq!(position, at(number));
                for offset in 0..=slots {
                    assert_eq!(layout.after(position, offset), at(number + offset));
                }
                let head = layout.decode(0).at(layout.last_time(), position);
                assert_eq!((head.newest(), head.position()), (layout.last_time(), position));
                position = layout.after(position, 1);
            }
        }
    }

    #[test]
    fn a_fresh_slot_is_due_in_the_first_lap_and_a_stored_one_in_the_next() {
        assert!(SlotWord::decode(0).is_due(0));
        assert!(SlotWord::stored(5, 0).is_due(1));
        assert!(!SlotWord::stored(5, 0).is_due(0));
        assert_eq!(SlotWord::stored(5, 1).time(), 5);
    }
}
