//! Read-only queries of a grouped ring.

use super::GroupedRing;
use crate::algorithm::attempt::opaque_copy;
use crate::algorithm::cell_window::WindowLimit as _;
use crate::algorithm::entered_ring::word::TotalWord;
use crate::algorithm::entered_ring::{EnteredRing as _, State};
use crate::sync::Words;
use crate::time::Nanos;

impl GroupedRing {
    /// Calls `query` with a consistent state of the words: repeats it until the control word is unchanged afterwards. The
    /// argument is the state at the tick of `now`, or at the newer tick of the control word.
    #[inline]
    fn observe<W: Words, T>(&self, words: W, now: Nanos, mut query: impl FnMut(&Observed<'_, W>) -> T) -> T {
        let state = self.state(words);
        loop {
            let control = state.control();
            let base = state.base();
            if base.tick() > control.tick() {
                continue;
            }
            let observed = Observed {
                ring: self,
                state,
                control,
                base,
                tick: self.cells.tick(now).max(control.tick()),
            };
            let result = query(&observed);
            if state.control() == control {
                return result;
            }
        }
    }

    #[inline(always)]
    pub(in crate::algorithm) fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        let state = self.state(words);
        let seen = state.control();
        if !seen.entering() && seen.tick() == self.cells.tick(now) {
            let held = Self::held(state, seen).filter(|_| state.control() == seen);
            if let Some(held) = held {
                return self.cell_window.limit().saturating_sub(held);
            }
        }
        self.remaining_in_any_cell(opaque_copy(words), now)
    }

    #[cold]
    #[inline(never)]
    fn remaining_in_any_cell<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.cell_window.limit().saturating_sub(self.spent(words, now))
    }

    pub(in crate::algorithm) fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.observe(words, now, |observed| observed.sum())
    }

    /// The earliest instant, `now` or later, at which the window has the capacity for `permits`, which are at most the limit.
    pub(in crate::algorithm) fn ready_at<W: Words>(
        &self,
        words: W,
        now: Nanos,
        permits: u64,
    ) -> Option<Nanos> {
        let most = self.cell_window.limit().saturating_sub(permits);
        self.observe(words, now, |observed| observed.first_instant_with(most, now))
    }

    /// The capacity left, and the earliest instant at which it is larger.
    pub(in crate::algorithm) fn remaining_and_reset<W: Words>(
        &self,
        words: W,
        now: Nanos,
    ) -> (u64, Option<Nanos>) {
        let limit = self.cell_window.limit();
        self.observe(words, now, |observed| {
            let remaining = limit.saturating_sub(observed.sum());
            let reset = limit
                .checked_sub(remaining + 1)
                .and_then(|most| observed.first_instant_with(most, now));
            (remaining, reset)
        })
    }

    pub(in crate::algorithm) fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        self.observe(words, now, |observed| observed.first_instant_with(0, now))
    }
}

/// The words at a tick, which need not have been entered.
struct Observed<'a, W> {
    ring: &'a GroupedRing,
    state: State<W>,
    control: TotalWord,
    /// Read after `control`. Its cell is the newest one with permits.
    base: TotalWord,
    tick: u64,
}

impl<W: Words> Observed<'_, W> {
    /// The permits of the cell of the base. Later cells have none, and the counts of earlier cells are published.
    fn newest(&self) -> u64 {
        if self.control.entering() && self.base.tick() == self.control.tick() {
            // The cell has not been opened.
            0
        } else {
            self.control.total().saturating_sub(self.base.total())
        }
    }

    /// The permits that the window counts.
    fn sum(&self) -> u64 {
        if self.tick == self.control.tick() {
            if !self.control.entering() {
                // If the cell is no longer the current one, the result is discarded.
                return GroupedRing::held(self.state, self.control).unwrap_or(0);
            }
            if self.base.tick() == self.tick {
                // The cell will be opened with this total.
                return self.base.total();
            }
        }
        let oldest = self.tick.saturating_sub(self.ring.older());
        let newest = self.base.tick();
        if newest < oldest {
            return 0;
        }
        self.newest()
            + self
                .state
                .sum_of_counts(&self.ring.groups, oldest, newest.saturating_sub(1))
    }

    /// The first tick, this one or later, at which the window holds at most `most` permits, if no other request comes before.
    fn first_tick_with(&self, most: u64) -> u64 {
        if self.sum() <= most {
            return self.tick;
        }
        // Consider the permits that were admitted since the beginning of each cell, and find the newest cell for which they are
        // more than `most`. The window holds at most `most` as soon as it no longer sums this cell.
        let oldest = self.tick.saturating_sub(self.ring.older());
        let mut since = self.newest();
        let mut cell = self.base.tick();
        while since <= most && cell > oldest {
            cell -= 1;
            since += self.state.count(&self.ring.groups, cell);
        }
        if since > most {
            // If the base is of an earlier cell than the oldest, the sum is 0.
            cell + self.ring.cell_window.summed()
        } else {
            // The permits were refunded while the current cell was entered. They count until the next cell is entered.
            self.tick + 1
        }
    }

    /// The instant at which the window holds at most `most` permits: `now` if it is in the current cell.
    fn first_instant_with(&self, most: u64, now: Nanos) -> Option<Nanos> {
        match self.first_tick_with(most) {
            tick if tick == self.tick => Some(now),
            tick => self.ring.cells.start(tick),
        }
    }
}
