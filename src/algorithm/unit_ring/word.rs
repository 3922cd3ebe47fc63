//! The word of a unit ring.

use crate::algorithm::traits::FIRST_WORD_BITS;

/// The fields of a [unit ring's word](super).
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 2 | | clear ([`FIRST_WORD_BITS`]) |
/// | the rest | `tick` | the newest cell that was charged |
/// | k | `partial` | permits that are not yet a whole unit |
/// | H | `marks` | a string, the newest bit lowest: a 1 is a full unit, a 0 is the end of a cell |
///
/// The *age* of a mark is the number of zeros below it. The bits of `marks` above bit H − 1 are undefined until the state is
/// encoded: every step reads only the lowest bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::algorithm) struct UnitState {
    pub(in crate::algorithm) tick: u64,
    partial: u64,
    marks: u64,
}

/// The field widths of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::algorithm) struct UnitLayout {
    /// k: a unit is 2^k permits.
    unit_bits: u32,
    /// H, the length of the string. `partial` begins there.
    length: u32,
    /// H + k. The tick begins there.
    tick_at: u32,
    /// The number of cells that the window sums, which is the number of zeros that are counted.
    summed: u32,
    /// H ones.
    marks_mask: u64,
    /// 2^k − 1.
    partial_mask: u64,
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
        #[expect(clippy::cast_possible_truncation, reason = "below 62, as checked above")]
        let (length, summed) = (length as u32, summed as u32);
        Some(Self {
            unit_bits,
            length,
            tick_at: length + unit_bits,
            summed,
            marks_mask: (1 << length) - 1,
            partial_mask: (1 << unit_bits) - 1,
        })
    }

    /// The last tick that the word can hold.
    pub(in crate::algorithm) const fn last_tick(&self) -> u64 {
        u64::MAX >> (u64::BITS - FIRST_WORD_BITS + self.tick_at)
    }

    /// The number of permits in a unit.
    pub(in crate::algorithm) const fn unit(&self) -> u64 {
        1 << self.unit_bits
    }

    /// The tick of the word `raw`.
    #[inline(always)]
    pub(in crate::algorithm) const fn tick(&self, raw: u64) -> u64 {
        raw >> self.tick_at
    }

    /// The state of the word `raw` at its own tick.
    #[inline(always)]
    pub(in crate::algorithm) const fn decode(&self, raw: u64) -> UnitState {
        UnitState {
            tick: self.tick(raw),
            partial: (raw >> self.length) & self.partial_mask,
            marks: raw,
        }
    }

    #[inline(always)]
    pub(in crate::algorithm) const fn encode(&self, state: UnitState) -> u64 {
        (((state.tick << self.unit_bits) | state.partial) << self.length) | (state.marks & self.marks_mask)
    }

    /// The state of the word `raw` at `tick`, or at its own tick if that is newer: then another thread has published the word
    /// with a newer reading.
    ///
    /// Each cell that has ended appends a 0. The partial unit ends its count with the cell of its newest permit.
    #[inline(always)]
    pub(in crate::algorithm) const fn at(&self, raw: u64, tick: u64) -> UnitState {
        let own = self.tick(raw);
        let tick = if tick > own { tick } else { own };
        let cells = tick - own;
        if cells < self.summed as u64 {
            UnitState {
                tick,
                partial: (raw >> self.length) & self.partial_mask,
                marks: raw << cells,
            }
        } else {
            UnitState {
                tick,
                partial: 0,
                marks: 0,
            }
        }
    }

    /// The state with `permits` more, or `None` if the window would then hold more than `limit`, which is at most the limit
    /// of the layout.
    ///
    /// Let M be the number of full units that may be in the window beside the partial unit and the permits. The window holds
    /// at most M marks if and only if the lowest M + `summed` bits do: if the window ends within these bits, they hold at
    /// least its marks, and otherwise they hold fewer than `summed` zeros, so more than M marks.
    #[inline(always)]
    pub(in crate::algorithm) const fn admit(
        &self,
        state: UnitState,
        limit: u64,
        permits: u64,
    ) -> Option<UnitState> {
        let Some(total) = state.partial.checked_add(permits) else {
            return None;
        };
        if total > limit {
            return None;
        }
        let most = (limit - total) >> self.unit_bits;
        // 1 to H bits are counted, so the shift is 2 to 63.
        #[expect(clippy::cast_possible_truncation, reason = "at most H, which is below 62")]
        let counted = state.marks << (u64::BITS - self.summed - most as u32);
        if counted.count_ones() as u64 > most {
            return None;
        }
        Some(self.append(state, total))
    }

    /// The number of cells that the window sums.
    #[inline(always)]
    pub(in crate::algorithm) const fn summed(&self) -> u64 {
        self.summed as u64
    }

    /// The state of a single cell with `permits` more, as [`admit`](Self::admit) returns it. A unit of such a layout is above the
    /// limit, so only debt leaves a mark.
    #[inline(always)]
    pub(in crate::algorithm) fn admit_to_one_cell(
        &self,
        state: UnitState,
        limit: u64,
        permits: u64,
    ) -> Option<UnitState> {
        let total = state.partial.checked_add(permits)?;
        let has_debt = state.marks & self.marks_mask != 0;
        (total <= limit && !has_debt).then_some(UnitState {
            partial: total,
            ..state
        })
    }

    /// The state with `total` permits in place of the partial unit. Each full unit of them appends a 1. At most H units are
    /// appended, which is below 62.
    #[inline(always)]
    const fn append(&self, state: UnitState, total: u64) -> UnitState {
        let units = total >> self.unit_bits;
        UnitState {
            tick: state.tick,
            partial: total & self.partial_mask,
            marks: !(!state.marks << units),
        }
    }

    /// The state with `permits` more, whether they fit or not.
    ///
    /// A string of ones alone denies until its cell leaves the window, as any greater number would.
    pub(in crate::algorithm) const fn charge(&self, state: UnitState, permits: u64) -> UnitState {
        let total = state.partial.saturating_add(permits);
        let most = ((self.length as u64) << self.unit_bits) | self.partial_mask;
        self.append(state, if total < most { total } else { most })
    }

    /// The number of marks in the window.
    pub(in crate::algorithm) const fn marks(&self, state: UnitState) -> u64 {
        self.marks_before_zero(state, self.summed)
    }

    /// The number of marks below the zero with the number `zero`, counted from 1.
    const fn marks_before_zero(&self, state: UnitState, zero: u32) -> u64 {
        let marks = state.marks & self.marks_mask;
        let mut counted = 0;
        loop {
            let bits = zero + counted;
            let lowest = if bits >= self.length {
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
        (self.length - self.summed) as u64
    }

    /// The permits that count in the newest `age` + 1 cells.
    #[cfg(test)]
    pub(in crate::algorithm) fn spent_by_age(&self, state: UnitState, age: u64) -> u64 {
        let zero = u32::try_from(age).expect("few cells") + 1;
        (self.marks_before_zero(state, zero) << self.unit_bits) + state.partial
    }

    /// The permits that count in the window.
    pub(in crate::algorithm) const fn spent(&self, state: UnitState) -> u64 {
        (self.marks(state) << self.unit_bits) + state.partial
    }

    /// The permits of the newest cell, in a layout of one cell or with units of one permit.
    pub(in crate::algorithm) const fn newest(&self, state: UnitState) -> u64 {
        if self.summed == 1 {
            self.spent(state)
        } else {
            (state.marks & self.marks_mask).trailing_ones() as u64
        }
    }

    /// The number of cells after which `permits` fit into `limit`, if no other request comes before. `permits` is at most
    /// `limit`.
    pub(in crate::algorithm) const fn cells_until_fit(
        &self,
        state: UnitState,
        limit: u64,
        permits: u64,
    ) -> u64 {
        // The partial unit counts until the window has passed.
        let Some(left) = (limit - permits).checked_sub(state.partial) else {
            return self.summed as u64;
        };
        let most = left >> self.unit_bits;
        // Each cell moves the marks up by one bit, until at most `most` of them are in the lowest `most + summed` bits.
        let mut marks = state.marks & self.marks_mask;
        let mut lower = most;
        while lower > 0 && marks != 0 {
            marks &= marks - 1;
            lower -= 1;
        }
        if marks == 0 {
            return 0;
        }
        (most + self.summed as u64).saturating_sub(marks.trailing_zeros() as u64)
    }

    /// The number of cells after which nothing counts, if no other request comes before.
    pub(in crate::algorithm) const fn cells_until_idle(&self, state: UnitState) -> u64 {
        let marks = state.marks & self.marks_mask;
        if state.partial > 0 {
            self.summed as u64
        } else if marks == 0 {
            0
        } else {
            (self.summed as u64).saturating_sub(marks.trailing_zeros() as u64)
        }
    }

    /// The state without `permits` that were charged at `tick`. Returns `None` if they no longer count, if marks of the window
    /// may have been dropped by debt, or if fewer permits are marked.
    ///
    /// Whole units take the oldest marks that are no older than the charge. A remainder q takes one more mark, of which it puts
    /// back all but q permits, as permits of the newest cell. Only if there is no such mark, it is taken from the partial unit.
    pub(in crate::algorithm) const fn refund(
        &self,
        state: UnitState,
        tick: u64,
        permits: u64,
    ) -> Option<UnitState> {
        let Some(age) = state.tick.checked_sub(tick) else {
            return None;
        };
        // With ⌊limit / 2^k⌋ marks or fewer, the zero that ends the window is in the string, and so are all marks of the window.
        if age >= self.summed as u64 || self.marks(state) > self.most_marks() {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most the number of summed cells"
        )]
        let zero = age as u32 + 1;
        let charged = self.marks_before_zero(state, zero);
        let units = permits >> self.unit_bits;
        let rest = permits & self.partial_mask;
        if units > charged {
            return None;
        }
        let mut state = state;
        state.marks &= self.marks_mask;
        let mut left = charged;
        while left > charged - units {
            state.marks = Self::without_mark(state.marks, left);
            left -= 1;
        }
        if rest == 0 {
            return Some(state);
        }
        if left > 0 {
            state.marks = Self::without_mark(state.marks, left);
            let total = state.partial + (self.unit() - rest);
            return Some(self.append(state, total));
        }
        let Some(partial) = state.partial.checked_sub(rest) else {
            return None;
        };
        state.partial = partial;
        Some(state)
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
}
