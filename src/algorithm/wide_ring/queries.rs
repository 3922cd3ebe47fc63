//! Read-only queries of a wide ring.

use super::WideRing;
use super::state::State;
use super::window::Window;
use super::word::TotalWord;
use crate::sync::Words;
use crate::time::Nanos;

impl WideRing {
    /// Computes `work` from one consistent state of the words, without writing. Repeats it until the control
    /// word is unchanged afterwards. Passes the control word and the tick of the query.
    fn observe<W: Words, T>(
        &self,
        words: W,
        now: Nanos,
        mut work: impl FnMut(State<W>, TotalWord, u64) -> T,
    ) -> T {
        let state = self.state(words);
        loop {
            let seen = state.control();
            let result = work(state, seen, self.cells.tick(now).max(seen.tick()));
            if state.control() == seen {
                return result;
            }
        }
    }

    #[inline]
    pub(in crate::algorithm) fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        let state = self.state(words);
        let seen = state.control();
        if !seen.entering() && seen.tick() == self.cells.tick(now) {
            // The bases are of this cell, as when deciding.
            let room = self.room_in(state, seen);
            if state.control() == seen {
                return room;
            }
        }
        self.remaining_in_any_cell(words, now)
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

    #[cfg(feature = "rules")]
    pub(in crate::algorithm) fn remaining_in<W: Words>(&self, window: usize, words: W, now: Nanos) -> u64 {
        let window = self.window(window);
        self.observe(words, now, |state, seen, tick| {
            Self::capacity(state, window, seen, tick)
        })
    }

    #[cfg(feature = "rules")]
    fn window(&self, window: usize) -> &Window {
        self.rest.get(window.wrapping_sub(1)).unwrap_or(&self.first)
    }

    /// The earliest instant at which one window has the capacity for `permits`.
    #[cfg(feature = "rules")]
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
        if permits > window.cell_window.max_request() {
            return None;
        }
        self.observe(words, now, |state, seen, tick| {
            let empty = Self::roomy_at(state, window, seen, tick, permits);
            self.ready(state, seen, (now, tick), permits, empty)
        })
    }

    /// The room in a window at `tick`, entered or not.
    fn capacity<W: Words>(state: State<W>, window: &Window, seen: TotalWord, tick: u64) -> u64 {
        let cell = window.cell(tick);
        let sum = Self::sum_at(state, window, seen, cell);
        window.cell_window.capacity(sum, cell, || {
            Self::slot_of(state, window, cell).map_or(0, |mark| seen.since(mark))
        })
    }

    /// The sum of a window whose current cell is `cell`, entered or not.
    fn sum_at<W: Words>(state: State<W>, window: &Window, seen: TotalWord, cell: u64) -> u64 {
        // The base after the slots: if it is not of this cell even then, no slot was of this cell when it
        // was read, and the oldest cell's was still there.
        let first = Self::first_entered(state, window, window.oldest(cell)..=cell);
        let base = state.total(window.base);
        let first = if base.tick() == cell { Some(base) } else { first };
        // If neither has the total, the window begins with the present one.
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
            let roomy = |window| Self::roomy_at(state, window, seen, tick, permits);
            let empty = self.windows().map(roomy).fold(tick, u64::max);
            self.ready(state, seen, (now, tick), permits, empty)
        })
    }

    /// The first tick from `tick` on at which a window's sum, left alone, leaves room for `permits`.
    fn roomy_at<W: Words>(state: State<W>, window: &Window, seen: TotalWord, tick: u64, permits: u64) -> u64 {
        let sum = window.cell_window.limit().saturating_sub(permits);
        Self::thinned_at(state, window, seen, tick, sum)
    }

    /// The first instant from `now`, in the cell `tick`, on at which there is room for `permits`, when the sums leave
    /// it from the tick `empty` on.
    fn ready<W: Words>(
        &self,
        state: State<W>,
        seen: TotalWord,
        (now, tick): (Nanos, u64),
        permits: u64,
        empty: u64,
    ) -> Option<Nanos> {
        // Shares come round after N cells; only the first window has any, and then there is no other.
        let shared = match self.first.cell_window.shares() {
            None => Some(empty),
            Some(shares) => (empty..=empty + shares.cells())
                .find(|&tick| permits <= Self::capacity(state, &self.first, seen, tick)),
        };
        self.instant(now, tick, shared?)
    }

    pub(in crate::algorithm) fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        self.observe(words, now, |state, seen, tick| {
            let empty = self
                .windows()
                .map(|window| Self::thinned_at(state, window, seen, tick, 0))
                .fold(tick, u64::max);
            self.instant(now, tick, empty)
        })
    }

    /// The first tick from `tick` on at which a window, left alone, holds at most `sum`.
    fn thinned_at<W: Words>(state: State<W>, window: &Window, seen: TotalWord, tick: u64, sum: u64) -> u64 {
        let cell = window.cell(tick);
        let oldest = window.oldest(cell);
        // The window must have left behind the newest cell since which more was admitted. Of the oldest there
        // may be no slot, but if it is none of the others it is that one.
        (oldest + 1..=cell)
            .rev()
            .find(|&cell| Self::slot_of(state, window, cell).is_some_and(|mark| seen.since(mark) > sum))
            .or_else(|| (Self::sum_at(state, window, seen, cell) > sum).then_some(oldest))
            .map_or(tick, |last| {
                (last + window.cell_window.summed()) * window.ticks.divisor()
            })
    }

    /// `now` for the present tick, the beginning of a later one.
    fn instant(&self, now: Nanos, present: u64, tick: u64) -> Option<Nanos> {
        if tick == present {
            Some(now)
        } else {
            self.cells.start(tick)
        }
    }
}
