//! The words of a timestamp ring.

use core::fmt;

use super::FIRST_WORD_BITS;

/// Which slot a position of the ring falls on, and in which lap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The slot's number, 0 to L − 1.
    pub(crate) index: u64,
    /// Laps gone round, modulo 2.
    pub(crate) lap: u64,
}

/// The head of a timestamp ring: the next position to be claimed, and when the last one was.
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 2 | | clear ([`FIRST_WORD_BITS`]) |
/// | 61 − i | `newest` | the time of the newest claim, in the ring's units |
/// | 1 | `lap` | laps gone round, modulo 2 |
/// | i | `index` | the slot that the next claim takes |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    raw: u64,
    layout: LapLayout,
}

/// The widths of a [`Head`]: L slots, and i, the bits of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LapLayout {
    slots: u64,
    index_bits: u32,
}

impl LapLayout {
    pub(crate) const fn new(slots: u64) -> Self {
        Self {
            slots,
            index_bits: u64::BITS - (slots - 1).leading_zeros(),
        }
    }

    /// L, the number of slots.
    pub(crate) const fn slots(self) -> u64 {
        self.slots
    }

    /// The last time that the head can hold; a slot can hold it too.
    pub(crate) const fn last_time(self) -> u64 {
        u64::MAX >> (u64::BITS - FIRST_WORD_BITS + self.index_bits + 1)
    }

    #[inline]
    pub(crate) const fn decode(self, raw: u64) -> Head {
        Head { raw, layout: self }
    }

    /// The place `positions` (at most L) after `place`.
    #[inline]
    pub(crate) const fn after(self, place: Place, positions: u64) -> Place {
        let index = place.index + positions;
        if index < self.slots {
            Place {
                index,
                lap: place.lap,
            }
        } else {
            Place {
                index: index - self.slots,
                lap: place.lap ^ 1,
            }
        }
    }
}

impl Head {
    #[inline]
    pub(crate) const fn raw(self) -> u64 {
        self.raw
    }

    #[inline]
    pub(crate) const fn newest(self) -> u64 {
        self.raw >> (self.layout.index_bits + 1)
    }

    /// The next position to be claimed.
    #[inline]
    pub(crate) const fn place(self) -> Place {
        let index = self.raw & ((1 << self.layout.index_bits) - 1);
        Place {
            // Never beyond the slots, but for words that no log has written.
            index: if index < self.layout.slots { index } else { 0 },
            lap: (self.raw >> self.layout.index_bits) & 1,
        }
    }

    /// `{ newest: time, place }`.
    #[inline]
    pub(crate) const fn at(self, time: u64, place: Place) -> Self {
        let bits = self.layout.index_bits;
        self.layout
            .decode((time << (bits + 1)) | (place.lap << bits) | place.index)
    }
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head")
            .field("newest", &self.newest())
            .field("place", &self.place())
            .finish()
    }
}

/// A slot of a timestamp ring: when it was last claimed, and by which lap it was stored.
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 63 | `time` | the time of the claim, in the ring's units |
/// | 1 | `due` | the lap, modulo 2, whose claim this slot is ready for: the one after the lap that stored it |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    raw: u64,
}

impl Slot {
    #[inline]
    pub(crate) const fn decode(raw: u64) -> Self {
        Self { raw }
    }

    /// What the claim of a position in `lap` stores: `{ time, due: lap + 1 }`.
    #[inline]
    pub(crate) const fn stored(time: u64, lap: u64) -> Self {
        Self {
            raw: (time << 1) | (lap ^ 1),
        }
    }

    #[inline]
    pub(crate) const fn raw(self) -> u64 {
        self.raw
    }

    #[inline]
    pub(crate) const fn time(self) -> u64 {
        self.raw >> 1
    }

    /// Whether the lap before `lap` has stored its time here.
    #[inline]
    pub(crate) const fn is_due(self, lap: u64) -> bool {
        self.raw & 1 == lap
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("time", &self.time())
            .field("due", &(self.raw & 1))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{LapLayout, Place, Slot};

    #[test]
    fn places_go_round() {
        for slots in [1, 2, 3, 7, 8] {
            let layout = LapLayout::new(slots);
            let mut place = layout.decode(0).place();
            for position in 0..4 * slots {
                let lap = (position / slots) % 2;
                assert_eq!(
                    place,
                    Place {
                        index: position % slots,
                        lap
                    }
                );
                for positions in 0..=slots {
                    let after = position + positions;
                    let lap = (after / slots) % 2;
                    assert_eq!(
                        layout.after(place, positions),
                        Place {
                            index: after % slots,
                            lap
                        }
                    );
                }
                let head = layout.decode(0).at(layout.last_time(), place);
                assert_eq!((head.newest(), head.place()), (layout.last_time(), place));
                place = layout.after(place, 1);
            }
        }
    }

    #[test]
    fn a_fresh_slot_is_due_in_the_first_lap_and_a_stored_one_in_the_next() {
        assert!(Slot::decode(0).is_due(0));
        assert!(Slot::stored(5, 0).is_due(1));
        assert!(!Slot::stored(5, 0).is_due(0));
        assert_eq!(Slot::stored(5, 1).time(), 5);
    }
}
