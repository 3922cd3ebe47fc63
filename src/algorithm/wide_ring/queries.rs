//! Read-only queries of a wide ring.

use super::WideRing;
use super::window::Window;
use crate::algorithm::attempt::opaque_copy;
use crate::algorithm::cell_window::WindowLimit as _;
use crate::algorithm::entered_ring::word::TotalWord;
use crate::algorithm::entered_ring::{EnteredRing as _, State};
use crate::sync::Words;
use crate::time::Nanos;

impl WideRing {
    /// Calls `query` with a consistent state of the words: repeats it until the control word is unchanged afterwards. The
    /// arguments are the state, the control word, and the tick that the query is about.
    #[inline]
    fn observe<W: Words, T>(
        &self,
        words: W,
        now: Nanos,
        mut query: impl FnMut(State<W>, TotalWord, u64) -> T,
    ) -> T {
        let state = self.state(words);
        loop {
            let seen = state.control();
            let result = query(state, seen, self.cells.tick(now).max(seen.tick()));
            if state.control() == seen {
                return result;
            }
        }
    }

    #[inline(always)]
    pub(in crate::algorithm) fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        let state = self.state(words);
        let seen = state.control();
        if !seen.entering() && seen.tick() == self.cells.tick(now) {
            // The cell is open, so its bases are published, as for a decision.
            let capacity = self.least_capacity(&self.first.cell_window, state, seen);
            if state.control() == seen {
                return capacity;
            }
        }
        self.remaining_in_any_cell(opaque_copy(words), now)
    }

    #[cold]
    #[inline(never)]
    fn remaining_in_any_cell<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.observe(words, now, |state, seen, tick| {
            self.windows()
                .map(|window| Self::capacity(state, window, seen, tick))
                .min()
                .unwrap_or(0)
        })
    }

    pub(in crate::algorithm) fn remaining_in<W: Words>(&self, window: usize, words: W, now: Nanos) -> u64 {
        let window = self.window(window);
        self.observe(words, now, |state, seen, tick| {
            Self::capacity(state, window, seen, tick)
        })
    }

    fn window(&self, window: usize) -> &Window {
        self.rest.get(window.wrapping_sub(1)).unwrap_or(&self.first)
    }

    /// The earliest instant, `now` or later, at which the window with the index `window` has the capacity for `permits`.
    pub(in crate::algorithm) fn ready_in<W: Words>(
        &self,
        window: usize,
        words: W,
        now: Nanos,
        permits: u64,
    ) -> Option<Nanos> {
        let window = self.window(window);
        if permits == 0 {
            return Some(now);
        }
        self.observe(words, now, |state, seen, tick| {
            let held = Held::at(state, window, seen, tick);
            self.ready_in_window(state, window, seen, (now, &held), permits)
        })
    }

    /// The capacity left in the window with the index `window`, and the earliest instant at which it is larger.
    pub(in crate::algorithm) fn remaining_and_reset_in<W: Words>(
        &self,
        window: usize,
        words: W,
        now: Nanos,
    ) -> (u64, Option<Nanos>) {
        let window = self.window(window);
        self.observe(words, now, |state, seen, tick| {
            let held = Held::at(state, window, seen, tick);
            let remaining = held.capacity(state, window, seen);
            let reset = self.ready_in_window(state, window, seen, (now, &held), remaining + 1);
            (remaining, reset)
        })
    }

    /// The first instant, `now` or later, at which a window has the capacity for `permits`. `held` is at the tick of `now`.
    #[inline]
    fn ready_in_window<W: Words>(
        &self,
        state: State<W>,
        window: &Window,
        seen: TotalWord,
        (now, held): (Nanos, &Held),
        permits: u64,
    ) -> Option<Nanos> {
        if permits > window.cell_window.max_request() {
            return None;
        }
        let most = window.cell_window.limit().saturating_sub(permits);
        let from = held.first_tick_with(state, window, seen, most);
        self.first_instant(state, seen, (now, held.tick), permits, from)
    }

    /// The capacity of a window at `tick`, which need not have been entered.
    #[inline]
    fn capacity<W: Words>(state: State<W>, window: &Window, seen: TotalWord, tick: u64) -> u64 {
        Held::at(state, window, seen, tick).capacity(state, window, seen)
    }

    /// The sum of a window whose current cell is `cell`, which need not have been entered.
    #[inline(always)]
    fn sum_at<W: Words>(state: State<W>, window: &Window, seen: TotalWord, cell: u64) -> u64 {
        if !seen.entering() && window.cell(seen.tick()) == cell {
            // The cell is open, so its base is published, as for a decision.
            return seen.since(state.total(window.base));
        }
        // The base is read after the slots. If it is not of this cell, no slot was of this cell when it was read, so the
        // slot of the oldest cell was not replaced yet.
        let first = Self::first_entered(state, window, window.oldest(cell)..=cell);
        let base = state.total(window.base);
        let first = if base.tick() == cell { Some(base) } else { first };
        // If neither has a total, no cell of the window was entered, so the sum is 0.
        first.map_or(0, |first| seen.since(first))
    }

    pub(in crate::algorithm) fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.observe(words, now, |state, seen, tick| {
            self.windows()
                .map(|window| Self::sum_at(state, window, seen, window.cell(tick)))
                .max()
                .unwrap_or(0)
        })
    }

    pub(in crate::algorithm) fn ready_at<W: Words>(
        &self,
        words: W,
        now: Nanos,
        permits: u64,
    ) -> Option<Nanos> {
        self.observe(words, now, |state, seen, tick| {
            let first_tick = |window: &Window| {
                let most = window.cell_window.limit().saturating_sub(permits);
                Held::at(state, window, seen, tick).first_tick_with(state, window, seen, most)
            };
            let from = self.windows().map(first_tick).fold(tick, u64::max);
            self.first_instant(state, seen, (now, tick), permits, from)
        })
    }

    /// The first instant, `now` or later, at which a request for `permits` would be admitted. `tick` is the tick of `now`. From
    /// the tick `from` on, the limits of all windows leave `permits`.
    #[inline]
    fn first_instant<W: Words>(
        &self,
        state: State<W>,
        seen: TotalWord,
        (now, tick): (Nanos, u64),
        permits: u64,
        from: u64,
    ) -> Option<Nanos> {
        // Only the first window can have shares, and then there is no other window. The shares repeat after N cells. A cell after
        // the newest is empty, so its share alone decides, and no slot is read.
        let ready = match self.first.cell_window.shares() {
            None => Some(from),
            Some(shares) => (from..=from + shares.cells()).find(|&tick| match tick > seen.tick() {
                true => permits <= shares.of(self.first.cell(tick)),
                false => permits <= Self::capacity(state, &self.first, seen, tick),
            }),
        };
        self.instant(now, tick, ready?)
    }

    pub(in crate::algorithm) fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        self.observe(words, now, |state, seen, tick| {
            let empty = self
                .windows()
                .map(|window| Held::at(state, window, seen, tick).first_tick_with(state, window, seen, 0))
                .fold(tick, u64::max);
            self.instant(now, tick, empty)
        })
    }

    /// Converts a tick to an instant: `now` if it is the current tick, otherwise its beginning.
    #[inline]
    fn instant(&self, now: Nanos, current: u64, tick: u64) -> Option<Nanos> {
        if tick == current {
            Some(now)
        } else {
            self.cells.start(tick)
        }
    }
}

/// The permits that a window counts at a tick.
struct Held {
    tick: u64,
    /// The cell at the tick.
    cell: u64,
    sum: u64,
}

impl Held {
    /// The permits at `tick`, which need not have been entered.
    #[inline(always)]
    fn at<W: Words>(state: State<W>, window: &Window, seen: TotalWord, tick: u64) -> Self {
        let cell = window.cell(tick);
        let sum = WideRing::sum_at(state, window, seen, cell);
        Self { tick, cell, sum }
    }

    #[inline]
    fn capacity<W: Words>(&self, state: State<W>, window: &Window, seen: TotalWord) -> u64 {
        window.cell_window.capacity(self.sum, self.cell, || {
            WideRing::slot_of(state, window, self.cell).map_or(0, |slot| seen.since(slot))
        })
    }

    /// The first tick, this one or later, at which the window holds at most `most` permits, if no other request comes before.
    #[inline]
    fn first_tick_with<W: Words>(&self, state: State<W>, window: &Window, seen: TotalWord, most: u64) -> u64 {
        if self.sum <= most {
            return self.tick;
        }
        // Consider the permits that were admitted since the beginning of each cell, and find the newest cell for which they are
        // more than `most`. The window holds at most `most` as soon as it no longer sums this cell. The oldest cell may have no
        // slot, but its permits are the sum of the window.
        let oldest = window.oldest(self.cell);
        let last = (oldest + 1..=self.cell)
            .rev()
            .find(|&cell| WideRing::slot_of(state, window, cell).is_some_and(|slot| seen.since(slot) > most))
            .unwrap_or(oldest);
        (last + window.cell_window.summed()) * window.width.divisor()
    }
}
