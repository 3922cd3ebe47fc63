//! The words with a tick and a total, of wide and grouped rings.

use crate::algorithm::traits::FIRST_WORD_BITS;
use crate::debug::debug_fields;

/// The control word of a ring, a base, the refunds of a grouped ring, or a slot of a wide one.
///
/// | bits, from the top | field | meaning |
/// |---|---|---|
/// | 2 | | clear ([`FIRST_WORD_BITS`]) |
/// | 61 − b | `tick` | the number of the cell that the word belongs to |
/// | b | `total` | the running total of admitted permits, modulo 2^b |
/// | 1 | `entering` | in the control word: whether the cell is being entered, so that the total is frozen |
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::algorithm) struct TotalWord {
    raw: u64,
    layout: TotalLayout,
}

/// The field widths of a [`TotalWord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::algorithm) struct TotalLayout {
    /// b + 1, the bits of the total and of the flag. The tick begins there.
    tick_at: u32,
    /// The mask of the total, as it is in the word.
    total_mask: u64,
}

impl TotalLayout {
    /// A layout for window sums of up to `limit`, and as much again for debt.
    pub(in crate::algorithm) const fn new(limit: u64) -> Self {
        let total_bits = u64::BITS - limit.leading_zeros() + 1;
        Self {
            tick_at: total_bits + 1,
            total_mask: ((1 << total_bits) - 1) << 1,
        }
    }

    /// The last tick that a word can hold.
    pub(in crate::algorithm) const fn last_tick(self) -> u64 {
        u64::MAX >> (u64::BITS - FIRST_WORD_BITS + self.tick_at)
    }

    /// The largest window sum that a difference of totals can represent.
    pub(in crate::algorithm) const fn largest_sum(self) -> u64 {
        self.total_mask >> 1
    }

    #[inline]
    pub(in crate::algorithm) const fn decode(self, raw: u64) -> TotalWord {
        TotalWord { raw, layout: self }
    }

    /// `{ tick, total, open }`.
    #[inline]
    pub(in crate::algorithm) const fn word(self, tick: u64, total: u64) -> TotalWord {
        self.decode((tick << self.tick_at) | ((total << 1) & self.total_mask))
    }
}

impl TotalWord {
    const ENTERING: u64 = 1;

    #[inline]
    pub(in crate::algorithm) const fn raw(self) -> u64 {
        self.raw
    }

    #[inline]
    pub(in crate::algorithm) const fn tick(self) -> u64 {
        self.raw >> self.layout.tick_at
    }

    #[inline]
    pub(in crate::algorithm) const fn entering(self) -> bool {
        self.raw & Self::ENTERING != 0
    }

    #[inline]
    pub(in crate::algorithm) const fn total(self) -> u64 {
        (self.raw & self.layout.total_mask) >> 1
    }

    /// The permits that were admitted between `base` and this word.
    #[inline]
    pub(in crate::algorithm) const fn since(self, base: Self) -> u64 {
        // The difference modulo 2^b is exact, since a window sum stays below 2^b. A base or a slot has no flag, so nothing is
        // borrowed from the total.
        (self.raw.wrapping_sub(base.raw) & self.layout.total_mask) >> 1
    }

    /// `{ tick: t, total: c }` → `{ tick: t, total: c + permits }`, modulo 2^b.
    #[inline]
    pub(in crate::algorithm) const fn plus(self, permits: u64) -> Self {
        self.with_total(self.raw.wrapping_add(permits << 1))
    }

    /// `{ tick: t, total: c }` → `{ tick: t, total: c − permits }`, modulo 2^b.
    pub(in crate::algorithm) const fn minus(self, permits: u64) -> Self {
        self.with_total(self.raw.wrapping_sub(permits << 1))
    }

    /// This word with the total of the word `other`.
    const fn with_total(self, other: u64) -> Self {
        let total_mask = self.layout.total_mask;
        self.layout
            .decode((self.raw & !total_mask) | (other & total_mask))
    }

    /// `{ t, c, _ }` → `{ tick, c, open }`.
    pub(in crate::algorithm) const fn with_tick(self, tick: u64) -> Self {
        let total = self.raw & self.layout.total_mask;
        self.layout.decode((tick << self.layout.tick_at) | total)
    }

    /// `{ t, c, open }` → `{ tick, c, entering }`.
    pub(in crate::algorithm) const fn enter(self, tick: u64) -> Self {
        self.layout.decode(self.with_tick(tick).raw | Self::ENTERING)
    }

    /// `{ t, c, entering }` → `{ t, c, open }`.
    pub(in crate::algorithm) const fn open(self) -> Self {
        self.layout.decode(self.raw & !Self::ENTERING)
    }
}

debug_fields!(TotalWord {
    tick,
    total,
    entering
});
