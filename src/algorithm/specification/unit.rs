//! The unit ring, and the other rings in its word.
//!
//! A case is { variant, limit, cells, unit bits, word, step, tick, lower limit, permits, tick of a charge }.

use super::case::{
    ADMIT, ADVANCE, CHARGE, Case, IDLE_AT, IS_IDLE, Outcome, READY, REFUND, REMAINING, Random, SPENT,
    Subject, is_admitted, on_word, or_zero,
};
use crate::algorithm::cell_window::{CellWindow, Variant};
use crate::algorithm::unit_ring::UnitCells;
use crate::receipt::Receipt;
use crate::time::Nanos;

pub(super) const SUBJECT: Subject = Subject {
    name: "unit",
    any_case,
    specified,
    performed,
};

const STRICT: u64 = 0;
const EVEN: u64 = 2;

const STEPS: u64 = 9;

/// The largest limit.
const MOST_PERMITS: u64 = 1_000_000_000_000;

/// The layout of a word.
struct Layout {
    even: bool,
    limit: u64,
    cells: u64,
    summed: u64,
    unit_bits: u64,
    length: u64,
    last_tick: u64,
}

impl Layout {
    /// `None` if a word has no room for it.
    fn new([variant, limit, cells, unit_bits, ..]: &Case) -> Option<Self> {
        let summed = if *variant == STRICT { cells + 1 } else { *cells };
        let length = (limit >> unit_bits).checked_add(summed)?;
        let bits = length.checked_add(*unit_bits)?;
        let last_tick = (bits < 62).then(|| (1 << (62 - bits)) - 1)?;
        (last_tick >= summed).then_some(Self {
            even: *variant == EVEN,
            limit: *limit,
            cells: *cells,
            summed,
            unit_bits: *unit_bits,
            length,
            last_tick,
        })
    }

    const fn unit(&self) -> u128 {
        1 << self.unit_bits
    }

    fn mask(&self) -> u64 {
        (1 << self.length) - 1
    }

    /// The share of the cell at `tick` in `limit`.
    fn share(&self, limit: u64, tick: u64) -> u128 {
        let (limit, cells) = (u128::from(limit), u128::from(self.cells));
        let cell = u128::from(tick) % cells;
        (cell + 1) * limit / cells - cell * limit / cells
    }
}

/// The state of a word: its tick, the marks, and the permits of the partial unit.
#[derive(Clone, Copy)]
struct State {
    tick: u64,
    partial: u128,
    marks: u64,
}

impl State {
    fn of(layout: &Layout, word: u64) -> Self {
        Self {
            tick: word >> (layout.length + layout.unit_bits),
            marks: (word >> layout.unit_bits) & layout.mask(),
            partial: u128::from(word & ((1 << layout.unit_bits) - 1)),
        }
    }

    fn word(self, layout: &Layout) -> u64 {
        let partial = u64::try_from(self.partial).expect("less than a unit");
        (((self.tick << layout.length) | self.marks) << layout.unit_bits) | partial
    }

    /// The marks of the newest `cells` cells: those before the zero with this number.
    fn newest(self, cells: u64) -> u64 {
        let (mut marks, mut zeros) = (0, 0);
        for bit in 0..u64::BITS {
            // There is no mark above the highest one.
            if zeros == cells || self.marks >> bit == 0 {
                break;
            }
            if self.marks >> bit & 1 == 1 {
                marks += 1;
            } else {
                zeros += 1;
            }
        }
        marks
    }

    fn spent(self, layout: &Layout) -> u128 {
        u128::from(self.newest(layout.summed)) * layout.unit() + self.partial
    }

    /// The state in the cell of `tick`, or in its own if that is newer.
    fn at(self, layout: &Layout, tick: u64) -> Self {
        let mut state = self;
        for _ in 0..tick.saturating_sub(self.tick).min(layout.summed) {
            state.marks = (state.marks << 1) & layout.mask();
        }
        if tick.saturating_sub(self.tick) >= layout.summed {
            (state.partial, state.marks) = (0, 0);
        }
        state.tick = tick.max(self.tick);
        state
    }

    /// The state with `total` permits in place of the partial unit.
    fn appended(self, layout: &Layout, total: u128) -> Self {
        let mut state = self;
        state.partial = total;
        for _ in 0..layout.length {
            if state.partial < layout.unit() {
                break;
            }
            state.partial -= layout.unit();
            state.marks = ((state.marks << 1) | 1) & layout.mask();
        }
        state
    }

    fn admitted(self, layout: &Layout, limit: u64, permits: u64) -> Option<Self> {
        let total = self.partial + u128::from(permits);
        let newest = u128::from(self.newest(1)) * layout.unit() + self.partial;
        if layout.even && newest + u128::from(permits) > layout.share(limit, self.tick) {
            return None;
        }
        // In units, rounded down: as many marks as the limit leaves.
        let left = u128::from(limit).checked_sub(total)? / layout.unit();
        (u128::from(self.newest(layout.summed)) <= left).then(|| self.appended(layout, total))
    }

    fn charged(self, layout: &Layout, permits: u64) -> Self {
        // More units than the string has bits leave it full of marks.
        let most = (u128::from(layout.length) + 1) * layout.unit() - 1;
        self.appended(layout, (self.partial + u128::from(permits)).min(most))
    }

    /// The state without the mark that has `newer` marks below it. The older bits move down.
    fn without(self, newer: u64) -> Self {
        let mut marks = 0;
        let (mut kept, mut seen) = (0, 0);
        for bit in 0..u64::BITS {
            let is_mark = self.marks >> bit & 1;
            let is_removed = is_mark == 1 && seen == newer;
            seen += is_mark;
            if !is_removed {
                marks |= is_mark << kept;
                kept += 1;
            }
        }
        Self { marks, ..self }
    }

    fn refunded(self, layout: &Layout, tick: u64, permits: u64) -> Option<Self> {
        let age = self.tick.checked_sub(tick)?;
        let debt = self.newest(layout.summed) > layout.limit >> layout.unit_bits;
        if age >= layout.summed || debt {
            return None;
        }
        let mut state = self;
        let mut left = u128::from(permits);
        while left >= layout.unit() {
            state = state.without(state.newest(age + 1).checked_sub(1)?);
            left -= layout.unit();
        }
        if left == 0 {
            return Some(state);
        }
        if state.newest(age + 1) > 0 {
            state = state.without(state.newest(age + 1) - 1);
            return Some(state.appended(layout, state.partial + layout.unit() - left));
        }
        let partial = state.partial.checked_sub(left)?;
        Some(Self { partial, ..state })
    }

    fn remaining(self, layout: &Layout, limit: u64) -> u64 {
        let mut left = u128::from(limit).saturating_sub(self.spent(layout));
        if layout.even {
            let newest = u128::from(self.newest(1)) * layout.unit() + self.partial;
            left = left.min(layout.share(limit, self.tick).saturating_sub(newest));
        }
        u64::try_from(left).expect("at most the limit")
    }
}

fn any_case(random: &mut Random) -> Case {
    loop {
        let variant = random.below(3);
        let unit_bits = random.below(62);
        let cells = 1 + random.below(61);
        let units = random.below(62);
        // Most of these have no room in a word. An even ring and one cell get other units below.
        let marks = units.min(MOST_PERMITS >> unit_bits);
        if variant != EVEN && cells > 1 && marks + cells + unit_bits >= 62 {
            continue;
        }
        let limit = (units << unit_bits) + random.up_to((1 << unit_bits) - 1);
        // An even ring counts singly. One cell counts in the partial unit alone.
        let limit = if variant == EVEN {
            limit >> random.below(62)
        } else {
            limit
        };
        let limit = limit.clamp(1, MOST_PERMITS);
        let unit_bits = match cells {
            1 if variant != STRICT => u64::from(u64::BITS - limit.leading_zeros()),
            _ if variant == EVEN => 0,
            _ => unit_bits,
        };
        let mut case = [0; 12];
        case[..4].copy_from_slice(&[variant, limit, cells, unit_bits]);
        let Some(layout) = Layout::new(&case) else {
            continue;
        };
        let marks = match random.below(4) {
            0 => random.bits() & random.bits() & random.bits(),
            1 => random.bits() | random.bits(),
            2 => random.bits() & random.bits(),
            _ => random.bits() & (u64::MAX >> random.below(64)),
        };
        let state = State {
            tick: random.up_to(layout.last_tick),
            partial: u128::from(random.up_to((1 << unit_bits) - 1)),
            marks: marks & layout.mask(),
        };
        let ahead = random.below(layout.summed + 4);
        let tick = match random.below(4) {
            0 => state.tick.saturating_sub(ahead),
            1 => state.tick,
            _ => state.tick + ahead,
        };
        let lower = 1 + random.up_to(limit - 1);
        let spent = u64::try_from(state.spent(&layout)).unwrap_or(u64::MAX);
        let step = random.below(STEPS);
        let permits = match random.below(4) {
            0 => random.near(lower.saturating_sub(spent), 2 * limit),
            1 => random.near(lower, 2 * limit),
            2 => 1 + random.up_to(2 * limit),
            _ if step == CHARGE => random.up_to(u64::MAX),
            _ => 1 + random.below(limit),
        };
        let charged = state.tick.saturating_sub(random.below(layout.summed + 2)) + random.below(2);
        case[4..10].copy_from_slice(&[
            state.word(&layout),
            step,
            tick.clamp(layout.summed, layout.last_tick),
            lower,
            if step == READY {
                permits.clamp(1, lower)
            } else {
                permits.max(1)
            },
            charged,
        ]);
        return case;
    }
}

fn specified(case: &Case) -> Outcome {
    let layout = Layout::new(case).expect("a layout");
    let [_, _, _, _, word, step, tick, lower, permits, charged, ..] = *case;
    let state = State::of(&layout, word);
    let now = state.at(&layout, tick);
    let is_empty = |tick| state.at(&layout, tick).spent(&layout) == 0;
    let changed = |state: Option<State>| state.map_or((0, word), |state| (1, state.word(&layout)));
    match step {
        ADMIT => changed(now.admitted(&layout, lower, permits)),
        CHARGE => (permits, now.charged(&layout, permits).word(&layout)),
        REFUND => changed(state.refunded(&layout, charged, permits)),
        REMAINING => (now.remaining(&layout, lower), word),
        SPENT => (u64::try_from(now.spent(&layout)).expect("below 2^62"), word),
        IS_IDLE => (u64::from(tick > state.tick && is_empty(tick)), word),
        ADVANCE => {
            let later = tick.max(state.tick + 1);
            let possible = state.tick <= tick && later <= layout.last_tick;
            (
                or_zero(possible.then(|| state.at(&layout, later).word(&layout))),
                word,
            )
        }
        READY => {
            // After the summed cells nothing counts, and each share comes within the cells after that.
            let last = now.tick + layout.summed + layout.cells;
            let fits = |later: &u64| {
                let state = state.at(&layout, *later);
                permits <= state.remaining(&layout, lower)
            };
            let first = (now.tick..=last).find(fits);
            (
                or_zero(first.and_then(|first| instant(&layout, first, now.tick, tick))),
                word,
            )
        }
        IDLE_AT => {
            let first = (now.tick..=now.tick + layout.summed).find(|later| is_empty(*later));
            (
                or_zero(first.and_then(|first| instant(&layout, first, now.tick, tick))),
                word,
            )
        }
        _ => unreachable!("a step"),
    }
}

/// The tick of the first instant in the cell `first`: the reading `tick` if this is the cell `current`, in which it is decided.
fn instant(layout: &Layout, first: u64, current: u64, tick: u64) -> Option<u64> {
    if first == current {
        return Some(tick);
    }
    (first <= layout.last_tick).then_some(first)
}

fn performed(case: &Case) -> Outcome {
    let [
        variant,
        limit,
        cells,
        unit_bits,
        word,
        step,
        tick,
        lower,
        permits,
        charged,
        ..,
    ] = *case;
    let variant =
        [Variant::Strict, Variant::Classic, Variant::Even][usize::try_from(variant).expect("0 to 2")];
    let cell_window = CellWindow::new(variant, limit, cells);
    let summed = cell_window.summed();
    let unit_bits = u32::try_from(unit_bits).expect("few bits");
    // Cells of one nanosecond, the first of which has the tick `summed`.
    let ring = UnitCells::new(cell_window, unit_bits, 1, 0).expect("a layout");
    let lowered = ring.with_limit(lower);
    let now = Nanos::new(tick - summed);
    let tick_of = |instant: Option<Nanos>| or_zero(instant.map(|instant| instant.get() + summed));
    let receipt = Receipt::new(Nanos::ZERO, permits, charged);
    on_word(word, |words| match step {
        ADMIT => is_admitted(&ring.attempt_or_enter(lower, words, tick, permits)),
        CHARGE => ring.charge(words, now, permits),
        REFUND => u64::from(ring.refund(words, &receipt, permits)),
        REMAINING => lowered.remaining(words, now),
        SPENT => ring.spent(words, now),
        IS_IDLE => u64::from(ring.is_idle(word, now)),
        ADVANCE => or_zero(ring.advance(word, now)),
        READY => tick_of(lowered.ready_at(words, now, permits)),
        IDLE_AT => tick_of(ring.idle_at(words, now)),
        _ => unreachable!("a step"),
    })
}
