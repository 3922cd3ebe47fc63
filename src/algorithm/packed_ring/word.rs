//! The word of a packed counter ring.

use core::fmt;

use crate::algorithm::traits::FIRST_WORD_BITS;

/// A whole counter ring in one word.
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 2 | | clear ([`FIRST_WORD_BITS`]) |
/// | the rest | `tick` | the newest cell that was charged |
/// | c bits for each of `cells` sums | `sums`, S(cells − 1) down to S(0) | S(j): permits in the newest j + 1 cells |
///
/// The word has running sums instead of counts, so each step is one operation:
///
/// - The sum of the window is the top field.
/// - An admission adds its permits to all fields by one multiplication.
/// - Entering the next cell is a shift, since S(j) of the new cell is S(j − 1) of the old one.
///
/// A sum saturates at the largest value of its field, which is above the limit. A saturated sum means "at least this many",
/// and decides every request as the exact sum would.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::algorithm) struct PackedWord<'a> {
    raw: u64,
    /// A reference, since a decision within a cell reads few fields of the layout.
    layout: &'a PackedLayout,
}

/// The field widths of a [`PackedWord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::algorithm) struct PackedLayout {
    /// c, the bits of one sum.
    sum_bits: u32,
    /// c · cells, the bits of all sums. The tick begins there.
    sums_bits: u32,
    /// c · (cells − 1). The sum of the window begins there.
    window_at: u32,
    /// 1 in every field: the increment of the word for one permit.
    ones: u64,
    /// The mask of one field, which is also the value at which a sum saturates.
    full: u64,
}

impl PackedLayout {
    /// A layout with `cells` sums, each of up to `limit` + 1. Returns `None` if they leave no bit for the tick.
    pub(in crate::algorithm) const fn new(limit: u64, cells: u64) -> Option<Self> {
        let sum_bits = u64::BITS - (limit + 1).leading_zeros();
        if cells * sum_bits as u64 >= FIRST_WORD_BITS as u64 {
            return None;
        }
        let mut ones = 0;
        let mut cell = 0;
        while cell < cells {
            ones = (ones << sum_bits) | 1;
            cell += 1;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below 62, as checked above")]
        let sums_bits = cells as u32 * sum_bits;
        Some(Self {
            sum_bits,
            sums_bits,
            window_at: sums_bits - sum_bits,
            ones,
            full: (1 << sum_bits) - 1,
        })
    }

    /// The last tick that the word can hold.
    pub(in crate::algorithm) const fn last_tick(&self) -> u64 {
        u64::MAX >> (u64::BITS - FIRST_WORD_BITS + self.sums_bits)
    }

    #[inline]
    pub(in crate::algorithm) const fn decode(&self, raw: u64) -> PackedWord<'_> {
        PackedWord { raw, layout: self }
    }
}

impl PackedWord<'_> {
    #[inline]
    pub(in crate::algorithm) const fn raw(self) -> u64 {
        self.raw
    }

    #[inline]
    pub(in crate::algorithm) const fn tick(self) -> u64 {
        self.raw >> self.layout.sums_bits
    }

    /// Permits in the whole window.
    #[inline]
    pub(in crate::algorithm) const fn window(self) -> u64 {
        (self.raw >> self.layout.window_at) & self.layout.full
    }

    /// Permits in the newest cell.
    #[inline]
    pub(in crate::algorithm) const fn newest(self) -> u64 {
        self.raw & self.layout.full
    }

    /// Whether a sum is saturated, so that its exact value is unknown. The sum of the window is the largest one.
    pub(in crate::algorithm) const fn is_full(self) -> bool {
        self.window() == self.layout.full
    }

    /// Returns the word `ticks` cells later.
    #[inline]
    pub(in crate::algorithm) const fn advance(self, ticks: u64) -> Self {
        let layout = self.layout;
        let sums_mask = (1_u64 << layout.sums_bits) - 1;
        let tick = self.tick() + ticks;
        // A shift by all fields or more leaves only zeros.
        let sums = match ticks.checked_mul(layout.sum_bits as u64) {
            Some(shift) if shift < layout.sums_bits as u64 => (self.raw << shift) & sums_mask,
            _ => 0,
        };
        layout.decode((tick << layout.sums_bits) | sums)
    }

    /// Adds `permits` to the newest cell, and so to every sum. The sum of the window must not overflow.
    #[inline]
    pub(in crate::algorithm) const fn plus(self, permits: u64) -> Self {
        // No field overflows: each sum is at most the sum of the window.
        self.layout
            .decode(self.raw.wrapping_add(permits.wrapping_mul(self.layout.ones)))
    }

    /// Subtracts `permits` from the cell at `tick`, and so from every sum that covers it. Returns `None` if the window does
    /// not sum that cell, if the cell holds fewer permits, or if a sum is saturated, so that its exact value is unknown.
    pub(in crate::algorithm) const fn refund(self, tick: u64, permits: u64) -> Option<Self> {
        let layout = self.layout;
        let Some(age) = self.tick().checked_sub(tick) else {
            return None;
        };
        // Field 0 is S(0), so the sums that cover the cell are the fields from `age` on.
        let at = match age.checked_mul(layout.sum_bits as u64) {
            Some(at) if at < layout.sums_bits as u64 => at,
            _ => return None,
        };
        // The count of the cell is S(age) − S(age − 1). S(age) is the larger one, except in a word that no decision has
        // written, for which the subtraction saturates.
        let newer = if age == 0 {
            0
        } else {
            (self.raw >> (at - layout.sum_bits as u64)) & layout.full
        };
        let count = ((self.raw >> at) & layout.full).saturating_sub(newer);
        if count < permits || self.is_full() {
            return None;
        }
        let sums_mask = (1_u64 << layout.sums_bits) - 1;
        // No field underflows: each of these sums includes the permits of the cell.
        let decrement = permits.wrapping_mul((layout.ones << at) & sums_mask);
        Some(layout.decode(self.raw.wrapping_sub(decrement)))
    }

    /// Adds `permits` to the newest cell, and so to every sum. Each sum saturates at its largest value.
    pub(in crate::algorithm) fn charged(self, permits: u64) -> Self {
        let full = self.layout.full;
        let mut raw = self.raw;
        let mut at = 0;
        while at < self.layout.sums_bits {
            let sum = (raw >> at) & full;
            let charged = sum + permits.min(full - sum);
            raw = (raw & !(full << at)) | (charged << at);
            at += self.layout.sum_bits;
        }
        self.layout.decode(raw)
    }
}

impl fmt::Debug for PackedWord<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Sums<'a>(PackedWord<'a>);
        impl fmt::Debug for Sums<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let layout = self.0.layout;
                let fields = (0..layout.sums_bits)
                    .step_by(layout.sum_bits as usize)
                    .map(|at| (self.0.raw >> at) & layout.full);
                f.debug_list().entries(fields).finish()
            }
        }
        f.debug_struct("PackedWord")
            .field("tick", &self.tick())
            .field("sums", &Sums(*self))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::PackedLayout;
    use alloc::collections::VecDeque;

    /// Compares the word with a list of counts after each step of a long random walk.
    #[test]
    fn sums_equal_counts() {
        for (limit, cells) in [(1, 2), (5, 4), (6, 3), (7, 3), (100, 5), (1, 30), (1000, 1)] {
            let layout = PackedLayout::new(limit, cells).unwrap();
            let mut word = layout.decode(0);
            let mut counts: VecDeque<u64> = (0..cells).map(|_| 0).collect();
            let mut noise = 1_u64;
            for _ in 0..5_000 {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let sum: u64 = counts.iter().sum();
                assert_eq!(word.window(), sum);
                assert_eq!(word.newest(), counts[0]);
                match noise >> 62 {
                    0 if sum < limit => {
                        let permits = 1 + (noise >> 20) % (limit - sum);
                        word = word.plus(permits);
                        counts[0] += permits;
                    }
                    1 => {
                        let age = (noise >> 30) % cells;
                        let count = &mut counts[usize::try_from(age).unwrap()];
                        // The first cells of a walk are before tick 0.
                        let Some(tick) = word.tick().checked_sub(age) else {
                            continue;
                        };
                        assert_eq!(word.refund(tick, *count + 1), None);
                        let permits = (noise >> 20) % (*count + 1);
                        word = word.refund(tick, permits).expect("the cell holds them");
                        *count -= permits;
                        assert_eq!(word.refund(word.tick() + 1, 1), None, "a cell that has not begun");
                        if let Some(gone) = word.tick().checked_sub(cells) {
                            assert_eq!(word.refund(gone, 0), None, "a cell that has left the window");
                        }
                    }
                    2 => {
                        let ticks = (noise >> 30) % (cells + 2);
                        if word.tick() + ticks > layout.last_tick() {
                            break;
                        }
                        word = word.advance(ticks);
                        for _ in 0..ticks.min(cells) {
                            counts.pop_back();
                            counts.push_front(0);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn a_charge_beyond_the_limit_saturates_every_sum() {
        let layout = PackedLayout::new(5, 3).unwrap();
        let word = layout.decode(0).plus(5).advance(1).charged(2);
        assert_eq!((word.window(), word.newest()), (7, 2));
        let word = word.advance(1).charged(u64::MAX);
        assert_eq!((word.tick(), word.window(), word.newest()), (2, 7, 7));
        assert!(word.is_full());
        assert_eq!(word.refund(0, 1), None, "the sum of the window is saturated");
        // A saturated sum leaves the window with its cells, as an exact one would.
        assert_eq!(word.advance(2).window(), 7);
        assert_eq!(word.advance(3).window(), 0);
        assert_eq!(word.advance(layout.last_tick() - word.tick()).window(), 0);
    }

    /// The caller's memory may hold any word, for example one in which the sum of more cells is the smaller one.
    #[test]
    fn a_refund_to_a_word_that_no_decision_has_written_does_not_panic() {
        let layout = PackedLayout::new(5, 3).unwrap();
        for sums in 0..1_u64 << layout.sums_bits {
            let word = layout.decode((9 << layout.sums_bits) | sums);
            for tick in 6..11 {
                for permits in 1..9 {
                    let refunded = word.refund(tick, permits);
                    assert!(refunded.is_none() || (7..=9).contains(&tick) && !word.is_full());
                }
            }
        }
    }

    #[test]
    fn sums_that_leave_no_tick_do_not_fit() {
        assert!(PackedLayout::new(1, 31).is_none());
        assert!(PackedLayout::new((1 << 40) - 2, 2).is_none());
        assert_eq!(PackedLayout::new(1, 30).unwrap().last_tick(), 3);
    }
}
