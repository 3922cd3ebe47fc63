use self::word::{TotalLayout, TotalWord};
use super::attempt::{Attempt, opaque_copy, until_decided};
use super::cell_window::{CellWindow, WindowLimit as _};
use crate::sync::Words;
use crate::time::{Cells, Nanos, Ticks};

mod state;
pub(super) mod word;

pub(super) use state::State;

/// A counter ring in several words, whose control word names the current cell. A cell is *entered* before it is charged: the base
/// of its sum is published, and then the control word opens it.
pub(super) trait EnteredRing {
    /// The layout of the control word.
    fn layout(&self) -> TotalLayout;

    fn cells(&self) -> &Cells;

    /// The window, or the first of several.
    fn cell_window(&self) -> &CellWindow;

    /// The first tick at which no window sums the cells of `tick`.
    fn empty_from(&self, tick: u64) -> u64;

    /// Publishes the other words of the cell that is being entered, and opens it. Any thread may do this, any number of times. A
    /// call after the cell was opened changes nothing. No cell between the tick `newest_before` and the new cell was entered.
    fn publish_and_open<W: Words>(&self, words: W, entering: TotalWord, newest_before: u64);

    /// Decides once, with `limit` in place of the own limit of [`cell_window`](Self::cell_window). `Admitted` has the tick that
    /// is charged. `Retry`: the cell is not open, or another thread changed the control word.
    fn attempt<W: Words>(&self, limit: u64, words: W, tick: u64, permits: u64) -> Attempt<u64>;

    #[inline]
    fn state<W: Words>(&self, words: W) -> State<W> {
        State::new(words, self.layout())
    }

    /// Finishes the cell that is being entered, or else enters the cell at `tick` if it is newer than the current one.
    #[cold]
    fn enter<W: Words>(&self, words: W, tick: u64) {
        let state = self.state(words);
        let seen = state.control();
        // Claim: counter_ring 7, a thread finishes the cell that a suspended one is entering.
        // Claim: grouped_ring 8, a thread finishes the cell that a suspended one is entering.
        if seen.entering() {
            // The control word no longer has the tick that came before, so the new one is `newest_before`.
            self.publish_and_open(words, seen, seen.tick());
        } else if seen.tick() < tick {
            let entering = seen.enter(tick);
            if state.exchange_control(seen, entering) {
                self.publish_and_open(words, entering, seen.tick());
            }
        }
    }

    #[inline(always)]
    fn ticks(&self) -> &Ticks {
        self.cells().ticks()
    }

    /// The tick of the cell that contains `now`.
    #[inline(always)]
    fn tick(&self, now: Nanos) -> u64 {
        self.cells().tick(now)
    }

    /// Decides, and returns the tick that is charged. `None`: the request is denied.
    #[inline(always)]
    fn decide<W: Words>(&self, words: W, tick: u64, permits: u64) -> Option<u64> {
        self.attempt(self.cell_window().limit(), words, tick, permits)
            .or_else(|| self.retry(opaque_copy(words), tick, permits))
    }

    /// Enters the cell and attempts to decide, again and again until an attempt decides.
    #[cold]
    #[inline(never)]
    fn retry<W: Words>(&self, words: W, tick: u64, permits: u64) -> Option<u64> {
        until_decided(|| self.enter_and_attempt(self.cell_window().limit(), words, tick, permits))
    }

    /// Attempts to decide. If the attempt returns `Retry`, helps to enter the cell and attempts once more.
    #[inline(always)]
    fn attempt_or_enter<W: Words>(&self, limit: u64, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        match self.attempt(limit, words, tick, permits) {
            Attempt::Retry => self.enter_and_attempt(limit, opaque_copy(words), tick, permits),
            decided => decided,
        }
    }

    /// Helps to enter the cell at `tick`, or another cell that is being entered, and then attempts to decide.
    #[cold]
    #[inline(never)]
    fn enter_and_attempt<W: Words>(&self, limit: u64, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        self.enter(words, tick);
        self.attempt(limit, words, tick, permits)
    }

    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        let control = self.layout().decode(first);
        // A state whose cell is being entered is not idle, since a thread is about to charge that cell.
        !control.entering() && self.tick(now) >= self.empty_from(control.tick())
    }

    /// The control word of a later cell, which is being entered: the next decision publishes its bases and slots, and opens it.
    fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        let control = self.layout().decode(first);
        let current = self.tick(now);
        let tick = current.max(control.tick() + 1);
        let last = self.cells().last().min(current + 1);
        (!control.entering() && tick <= last).then(|| control.enter(tick).raw())
    }

    fn idle_from(&self, first: u64) -> Option<Nanos> {
        let control = self.layout().decode(first);
        if control.entering() {
            return None;
        }
        self.cells().start(self.empty_from(control.tick()))
    }

    fn latest_time(&self, first: u64) -> Nanos {
        let control = self.layout().decode(first);
        self.cells().start(control.tick()).unwrap_or(Nanos::MAX)
    }
}
