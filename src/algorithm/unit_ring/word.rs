//! The word of a unit ring.

use crate::algorithm::traits::FIRST_WORD_BITS;

/// The fields of a [unit ring's word](super).
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 2 | | clear ([`FIRST_WORD_BITS`]) |
/// | the rest | `tick` | the newest cell that was charged |
/// | H | `marks` | a string, the newest bit lowest: a 1 is a full unit, a 0 is the end of a cell |
/// | k | `partial` | permits that are not yet a whole unit |
///
/// The *age* of a mark is the number of zeros below it. A *state* is such a word, at the tick that it holds. Most steps work on
/// the fields in place, because each variable shift costs two instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::algorithm) struct UnitLayout {
    /// k: a unit is 2^k permits. `marks` begins there.
    unit_bits: u8,
    /// k + H. The tick begins there.
    tick_at: u8,
    /// The number of cells that the window sums, which is the number of zeros that are counted.
    summed: u8,
    /// 64 − k − `summed`. A shift to the left by this number less M leaves the lowest M + `summed` bits of `marks`, at the top.
    unread: u8,
    /// 2^(64 − `summed`): a number below it has zeros in the `summed` bits at the top.
    zeros_at_top: u64,
    /// 2^k − 1.
    partial_mask: u64,
    /// k + H ones.
    fields_mask: u64,
}

impl UnitLayout {
    /// A layout for up to `limit` permits in `summed` cells, in units of 2^`unit_bits` permits. Returns `None` if it leaves no
    /// bit for the tick.
    ///
    /// The string has ⌊limit / 2^k⌋ + `summed` bits. A decision reads M + `summed` of them, with M ≤ ⌊limit / 2^k⌋.
    pub(in crate::algorithm) const fn new(limit: u64, summed: u64, unit_bits: u32) -> Option<Self> {
        if unit_bits >= FIRST_WORD_BITS || summed == 0 || summed >= FIRST_WORD_BITS as u64 {
            return None;
        }
        let length = (limit >> unit_bits).saturating_add(summed);
        if length >= (FIRST_WORD_BITS - unit_bits) as u64 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "below 64, as checked above")]
        let (unit_bits, length, summed) = (unit_bits as u8, length as u8, summed as u8);
        Some(Self {
            unit_bits,
            tick_at: unit_bits + length,
            summed,
            unread: 64 - unit_bits - summed,
            zeros_at_top: 1 << (64 - summed),
            partial_mask: (1 << unit_bits) - 1,
            fields_mask: (1 << (unit_bits + length)) - 1,
        })
    }

    /// The last tick that the word can hold.
    pub(in crate::algorithm) const fn last_tick(&self) -> u64 {
        u64::MAX >> (u64::BITS - FIRST_WORD_BITS + self.tick_at as u32)
    }

    /// The number of permits in a unit.
    pub(in crate::algorithm) const fn unit(&self) -> u64 {
        1 << self.unit_bits
    }

    #[inline(always)]
    pub(in crate::algorithm) const fn summed(&self) -> u64 {
        self.summed as u64
    }

    #[inline(always)]
    pub(in crate::algorithm) const fn tick(&self, state: u64) -> u64 {
        state >> self.tick_at
    }

    /// The permits of a state that are not yet a whole unit.
    #[inline(always)]
    const fn partial(&self, state: u64) -> u64 {
        state & self.partial_mask
    }

    /// The string of a state, from bit 0.
    const fn marks(&self, state: u64) -> u64 {
        (state & self.fields_mask) >> self.unit_bits
    }

    /// The length of the string, H.
    const fn length(&self) -> u32 {
        (self.tick_at - self.unit_bits) as u32
    }

    /// The state with other fields below its tick. Bits of `fields` above them are ignored.
    #[inline(always)]
    const fn with_fields(&self, state: u64, fields: u64) -> u64 {
        state ^ ((state ^ fields) & self.fields_mask)
    }

    /// The state at `tick`, or at the last tick if `tick` is later. The state is unchanged if its own tick is as new: then another
    /// thread has published it with a newer reading.
    ///
    /// Each cell that has ended appends a 0. The partial unit ends its count with the cell of its newest permit.
    #[inline(always)]
    pub(in crate::algorithm) const fn at(&self, state: u64, tick: u64) -> u64 {
        let own = self.tick(state);
        if tick <= own {
            return state;
        }
        let last = self.last_tick();
        let tick = if tick < last { tick } else { last };
        // A word above the last tick is no state of this layout. The difference wraps then, so it counts as a fresh word.
        let (cells, partial) = (tick.wrapping_sub(own), self.partial(state));
        // A product, because the compiler would compute the shift that `tick_at` allows before every decision.
        let later = tick * (self.fields_mask + 1);
        if cells < self.summed() {
            later | ((((state - partial) << cells) | partial) & self.fields_mask)
        } else {
            later
        }
    }

    /// The state with `permits` more, or `None` if the window would then hold more than `limit`, which is at most the limit
    /// of the layout.
    ///
    /// Let M be the number of full units that may be in the window beside the partial unit and the permits. The window holds
    /// at most M marks if and only if the lowest M + `summed` bits do: if the window ends within these bits, they hold at
    /// least its marks, and otherwise they hold fewer than `summed` zeros, so more than M marks.
    #[inline(always)]
    pub(in crate::algorithm) const fn admit(&self, state: u64, limit: u64, permits: u64) -> Option<u64> {
        // A limit is below 2^62, so such a request never fits. The sum of any other request does not overflow.
        if permits >> FIRST_WORD_BITS != 0 {
            return None;
        }
        let partial = self.partial(state);
        let total = partial + permits;
        let Some(left) = limit.checked_sub(total) else {
            return None;
        };
        let most = left >> self.unit_bits;
        // 1 to H bits of the string are read, so the shift is 2 to 63.
        #[expect(clippy::cast_possible_truncation, reason = "at most H, which is below 62")]
        let read = (state - partial) << (self.unread as u32 - most as u32);
        // Most bursts end here: with `summed` zeros at the top, at most M bits remain that can be ones.
        if read >= self.zeros_at_top && read.count_ones() as u64 > most {
            return None;
        }
        Some(self.append(state, total))
    }

    /// The state of a single cell with `permits` more, as [`admit`](Self::admit) returns it. A unit of such a layout is above the
    /// limit, so only debt leaves a mark.
    #[inline(always)]
    pub(in crate::algorithm) const fn admit_to_one_cell(
        &self,
        state: u64,
        limit: u64,
        permits: u64,
    ) -> Option<u64> {
        let Some(left) = limit.checked_sub(permits) else {
            return None;
        };
        // With a mark, the fields are at least a unit.
        if state & self.fields_mask > left {
            return None;
        }
        Some(state + permits)
    }

    /// The state with `total` permits in place of the partial unit. Each full unit of them appends a 1. At most H units are
    /// appended, which is below 62.
    #[inline(always)]
    const fn append(&self, state: u64, total: u64) -> u64 {
        if total <= self.partial_mask {
            return state - self.partial(state) + total;
        }
        let partial = total & self.partial_mask;
        let units = total >> self.unit_bits;
        let marked = !(!(state | self.partial_mask) << units);
        self.with_fields(state, (marked ^ self.partial_mask) | partial)
    }

    /// The state with `permits` more, whether they fit or not.
    ///
    /// A string of ones alone denies until its cell leaves the window, as any greater number would.
    pub(in crate::algorithm) const fn charge(&self, state: u64, permits: u64) -> u64 {
        let total = self.partial(state).saturating_add(permits);
        let most = ((self.length() as u64) << self.unit_bits) | self.partial_mask;
        self.append(state, if total < most { total } else { most })
    }

    /// The number of marks in the window.
    pub(in crate::algorithm) const fn marks_in_window(&self, state: u64) -> u64 {
        self.marks_before_zero(state, self.summed as u32)
    }

    /// The number of marks below the zero with the number `zero`, counted from 1.
    const fn marks_before_zero(&self, state: u64, zero: u32) -> u64 {
        let marks = self.marks(state);
        let mut counted = 0;
        loop {
            let bits = zero + counted;
            let lowest = if bits >= self.length() {
                marks
            } else {
                marks & ((1 << bits) - 1)
            };
            // The first `zero + counted` bits hold `counted` marks, so they end with the zero or after it.
            if lowest.count_ones() == counted {
                return counted as u64;
            }
            counted = lowest.count_ones();
        }
    }

    /// ⌊limit / 2^k⌋. A window with more marks holds debt.
    pub(in crate::algorithm) const fn most_marks(&self) -> u64 {
        self.length() as u64 - self.summed()
    }

    /// The permits that count in the window.
    pub(in crate::algorithm) const fn spent(&self, state: u64) -> u64 {
        (self.marks_in_window(state) << self.unit_bits) + self.partial(state)
    }

    /// The permits of the newest cell, in a layout of one cell or with units of one permit.
    pub(in crate::algorithm) const fn newest(&self, state: u64) -> u64 {
        if self.summed == 1 {
            self.spent(state)
        } else {
            self.marks(state).trailing_ones() as u64
        }
    }

    /// The number of cells after which `permits` fit into `limit`, if no other request comes before. `permits` is at most
    /// `limit`.
    pub(in crate::algorithm) const fn cells_until_fit(&self, state: u64, limit: u64, permits: u64) -> u64 {
        // The partial unit counts until the window has passed.
        let Some(left) = (limit - permits).checked_sub(self.partial(state)) else {
            return self.summed();
        };
        let most = left >> self.unit_bits;
        // Each cell moves the marks up by one bit, until at most `most` of them are in the lowest `most + summed` bits.
        let mut marks = self.marks(state);
        let mut lower = most;
        while lower > 0 && marks != 0 {
            marks &= marks - 1;
            lower -= 1;
        }
        if marks == 0 {
            return 0;
        }
        (most + self.summed()).saturating_sub(marks.trailing_zeros() as u64)
    }

    /// The number of cells after which nothing counts, if no other request comes before.
    pub(in crate::algorithm) const fn cells_until_idle(&self, state: u64) -> u64 {
        let marks = self.marks(state);
        if self.partial(state) > 0 {
            self.summed()
        } else if marks == 0 {
            0
        } else {
            self.summed().saturating_sub(marks.trailing_zeros() as u64)
        }
    }

    /// The state without `permits` that were charged at `tick`. Returns `None` if they no longer count, if marks of the window
    /// may have been dropped by debt, or if fewer permits are marked.
    ///
    /// Whole units remove the oldest marks that are no older than the charge. A rest of q permits removes one more such mark, and
    /// adds 2^k − q permits to the partial unit. If there is no such mark, q permits are taken from the partial unit.
    pub(in crate::algorithm) const fn refund(&self, state: u64, tick: u64, permits: u64) -> Option<u64> {
        let Some(age) = self.tick(state).checked_sub(tick) else {
            return None;
        };
        // With ⌊limit / 2^k⌋ marks or fewer, the zero that ends the window is in the string, and so are all marks of the window.
        if age >= self.summed() || self.marks_in_window(state) > self.most_marks() {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most the number of summed cells"
        )]
        let zero = age as u32 + 1;
        let removable = self.marks_before_zero(state, zero);
        let units = permits >> self.unit_bits;
        let rest = permits & self.partial_mask;
        if units > removable {
            return None;
        }
        let partial = self.partial(state);
        let (mut marks, mut left) = (self.marks(state), removable);
        while left > removable - units {
            marks = without_mark(marks, left);
            left -= 1;
        }
        if rest > 0 && left > 0 {
            marks = without_mark(marks, left);
            let state = self.with_fields(state, marks << self.unit_bits);
            return Some(self.append(state, partial + self.unit() - rest));
        }
        let Some(partial) = partial.checked_sub(rest) else {
            return None;
        };
        Some(self.with_fields(state, (marks << self.unit_bits) | partial))
    }
}

/// Removes the mark with the number `mark`, counted from 1 at the newest. The older bits move down.
const fn without_mark(marks: u64, mark: u64) -> u64 {
    let mut higher = marks;
    let mut newer = mark - 1;
    while newer > 0 {
        higher &= higher - 1;
        newer -= 1;
    }
    let below = (1 << higher.trailing_zeros()) - 1;
    (marks & below) | ((marks >> 1) & !below)
}
