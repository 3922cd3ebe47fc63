//! A counter ring of several words: see [the protocol](super::counter_ring).

use alloc::boxed::Box;
use alloc::vec::Vec;

use self::state::State;
use self::window::Window;
use self::word::TotalWord;
use super::attempt::{Attempt, lent, until_decided};
use super::cell_window::CellWindow;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::{Cells, Nanos};

mod queries;
mod state;
mod window;
mod word;

pub(super) use word::TotalLayout;

#[derive(Clone, Debug)]
pub(super) struct WideRing {
    layout: TotalLayout,
    cells: Cells,
    /// The window that was given first: the only one in a ring with shares.
    first: Window,
    rest: Box<[Window]>,
    /// Whether there is one window, without shares.
    plain: bool,
}

impl WideRing {
    /// The windows, with the width of their cells in ticks.
    pub(super) fn new(
        layout: TotalLayout,
        width: u64,
        first_tick: u64,
        cell_windows: &[(CellWindow, u64)],
    ) -> Self {
        let mut base = 1;
        let mut windows: Vec<Window> = Vec::with_capacity(cell_windows.len());
        for &(cell_window, ticks) in cell_windows {
            windows.push(Window::new(cell_window, ticks, base));
            base += Window::words(&cell_window);
        }
        let rest = windows.split_off(1).into_boxed_slice();
        let first = windows.swap_remove(0);
        Self {
            layout,
            cells: Cells::new(width, first_tick, layout.last_tick()),
            plain: rest.is_empty() && first.cell_window.shares().is_none(),
            first,
            rest,
        }
    }

    /// This ring over its own words, with a lower limit for each window.
    pub(super) fn with_limit(&self, limits: &[u64]) -> Self {
        let mut ring = self.clone();
        let windows = core::iter::once(&mut ring.first).chain(&mut ring.rest);
        for (window, &limit) in windows.zip(limits) {
            window.cell_window = window.cell_window.with_limit(limit);
        }
        ring
    }

    /// The longest time that a cell is summed for, in ticks.
    pub(super) fn longest(&self) -> u64 {
        let ticks = |window: &Window| window.cell_window.summed() * window.ticks.divisor();
        self.windows().map(ticks).max().unwrap_or(0)
    }

    pub(super) const fn cell_window(&self) -> &CellWindow {
        &self.first.cell_window
    }

    pub(super) fn cell_windows(&self) -> impl Iterator<Item = &CellWindow> {
        self.windows().map(|window| &window.cell_window)
    }

    pub(super) const fn cells(&self) -> &Cells {
        &self.cells
    }

    pub(super) fn words(&self) -> usize {
        1 + self.cell_windows().map(Window::words).sum::<usize>()
    }

    #[inline]
    fn windows(&self) -> impl Iterator<Item = &Window> {
        core::iter::once(&self.first).chain(&self.rest)
    }

    fn state<W: Words>(&self, words: W) -> State<W> {
        State::new(words, self.layout)
    }

    /// Decides: the tick that is charged.
    #[inline(always)]
    pub(super) fn decide<W: Words>(&self, words: W, tick: u64, permits: u64) -> Option<u64> {
        self.attempt(words, tick, permits)
            .or_else(|| self.retry(lent(words), tick, permits))
    }

    /// Decides as `attempt`; if that is not possible, does one step towards it and tries again.
    #[inline(always)]
    pub(super) fn attempt_or_enter<W: Words>(&self, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        match self.attempt(words, tick, permits) {
            Attempt::Retry => self.enter_and_attempt(lent(words), tick, permits),
            decided => decided,
        }
    }

    /// Repeats the attempt until the cell is open and it decides.
    #[cold]
    #[inline(never)]
    fn retry<W: Words>(&self, words: W, tick: u64, permits: u64) -> Option<u64> {
        until_decided(|| self.enter_and_attempt(words, tick, permits))
    }

    /// Does one step towards an open cell at `tick`, for this thread or another, and then attempts.
    #[cold]
    #[inline(never)]
    fn enter_and_attempt<W: Words>(&self, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        let state = self.state(words);
        self.enter_cell(state, state.control(), tick);
        self.attempt(words, tick, permits)
    }

    /// Decides once, and returns the tick that is charged. Retry: the cell is not open, or another thread was faster.
    #[inline(always)]
    fn attempt<W: Words>(&self, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        if self.plain {
            self.attempt_where(
                words,
                tick,
                |state, seen| permits <= Self::left(state, &self.first, seen),
                permits,
            )
        } else {
            self.attempt_in_full(lent(words), tick, permits)
        }
    }

    /// As `attempt`, with shares and further windows.
    #[inline(never)]
    fn attempt_in_full<W: Words>(&self, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        self.attempt_where(
            words,
            tick,
            |state, seen| self.fits(state, seen, permits),
            permits,
        )
    }

    #[inline(always)]
    fn attempt_where<W: Words>(
        &self,
        words: W,
        tick: u64,
        fits: impl FnOnce(State<W>, TotalWord) -> bool,
        permits: u64,
    ) -> Attempt<u64> {
        let state = self.state(words);
        let seen = state.control();
        if seen.entering() || seen.tick() < tick {
            return Attempt::Retry;
        }
        if fits(state, seen) {
            if state.move_on(seen, seen.plus(permits)) {
                return Attempt::Admitted(seen.tick());
            }
        } else if state.control() == seen {
            // The bases were read between two looks at one control word: at the second, the window
            // had no room.
            return Attempt::Denied;
        }
        Attempt::Retry
    }

    /// Whether every window has room at an open control word. Right only if it still is the control
    /// word afterwards.
    #[inline]
    fn fits<W: Words>(&self, state: State<W>, seen: TotalWord, permits: u64) -> bool {
        permits <= self.room_in(state, seen)
    }

    /// The least capacity of all windows at an open control word. Right only if it still is the control word afterwards.
    #[inline]
    fn room_in<W: Words>(&self, state: State<W>, seen: TotalWord) -> u64 {
        // Only the first window has shares.
        let first = match self.first.cell_window.shares() {
            None => Self::left(state, &self.first, seen),
            Some(_) => Self::left(state, &self.first, seen).min(self.share_left(state, seen)),
        };
        let rest = self.rest.iter().map(|window| Self::left(state, window, seen));
        rest.fold(first, u64::min)
    }

    /// The rest of a window's limit.
    #[inline]
    fn left<W: Words>(state: State<W>, window: &Window, seen: TotalWord) -> u64 {
        let sum = seen.since(state.total(window.base));
        window.cell_window.limit().saturating_sub(sum)
    }

    /// The rest of the share of the first window's current cell.
    #[inline]
    fn share_left<W: Words>(&self, state: State<W>, seen: TotalWord) -> u64 {
        let cell = self.first.cell(seen.tick());
        let newest = || seen.since(state.total(self.first.slot(cell)));
        self.first.cell_window.capacity(0, cell, newest)
    }

    /// Brings the control word nearer to being open at `tick`, unless it is open there or later.
    #[cold]
    fn enter_cell<W: Words>(&self, state: State<W>, seen: TotalWord, tick: u64) {
        if seen.entering() {
            self.finish(state, seen);
        } else if seen.tick() < tick {
            let entering = seen.enter(tick);
            if state.move_on(seen, entering) {
                self.finish(state, entering);
            }
        }
    }

    /// Publishes the bases and slots of the cell that is being entered, and opens it. Any thread may do
    /// this, any number of times, however late.
    fn finish<W: Words>(&self, state: State<W>, entering: TotalWord) {
        for window in self.windows() {
            let cell = window.cell(entering.tick());
            let here = entering.at(cell);
            // The base first: the slot replaces that of the oldest cell, whose total the base holds. A thread
            // that finds the old slot replaced finds the base published.
            let base = Self::first_entered(state, window, window.oldest(cell)..cell).unwrap_or(here);
            state.publish(window.base, base.at(cell));
            state.publish(window.slot(cell), here);
        }
        state.open(entering);
    }

    /// The total of the first cell among `cells` that was ever entered, if a slot still holds it.
    fn first_entered<W: Words>(
        state: State<W>,
        window: &Window,
        mut cells: impl Iterator<Item = u64>,
    ) -> Option<TotalWord> {
        cells.find_map(|cell| Self::slot_of(state, window, cell))
    }

    fn slot_of<W: Words>(state: State<W>, window: &Window, cell: u64) -> Option<TotalWord> {
        let mark = state.total(window.slot(cell));
        (mark.tick() == cell).then_some(mark)
    }

    pub(super) fn is_idle(&self, first: u64, now: Nanos) -> bool {
        let (control, tick) = (self.layout.decode(first), self.cells.tick(now));
        // A cell that is being entered is not idle: a thread is about to charge it.
        let passed =
            |window: &Window| window.cell(tick) >= window.cell(control.tick()) + window.cell_window.summed();
        !control.entering() && self.windows().all(passed)
    }

    /// The next control word leaves its cell entering: the next decision opens it.
    pub(super) fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        let control = self.layout.decode(first);
        let here = self.cells.tick(now);
        let tick = here.max(control.tick() + 1);
        let last = self.layout.last_tick().min(here + 1);
        (!control.entering() && tick <= last).then(|| control.enter(tick).raw())
    }

    pub(super) fn idle_from(&self, first: u64) -> Option<Nanos> {
        let control = self.layout.decode(first);
        if control.entering() {
            return None;
        }
        let passed = |window: &Window| {
            (window.cell(control.tick()) + window.cell_window.summed()) * window.ticks.divisor()
        };
        self.cells.start(self.windows().map(passed).fold(0, u64::max))
    }

    pub(super) fn latest_time(&self, first: u64) -> Nanos {
        self.cells
            .start(self.layout.decode(first).tick())
            .unwrap_or(Nanos::MAX)
    }

    pub(super) fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        let state = self.state(words);
        let charged = receipt.mark();
        loop {
            let seen = state.control();
            if seen.entering() {
                // Which cell a base is of must be known before the base is raised.
                self.finish(state, seen);
            } else if seen.tick() != charged {
                return self.refund_older(state, seen.tick(), charged, permits);
            } else {
                let here = state.total(self.first.slot(self.first.cell(charged)));
                if permits <= seen.since(here) {
                    if state.move_on(seen, seen.minus(permits)) {
                        return true;
                    }
                } else if state.control() == seen {
                    return false;
                }
            }
        }
    }

    /// Refunds permits of a cell before the current one, in each window that still sums it: raises the totals that the
    /// cell's permits are counted from.
    #[cold]
    fn refund_older<W: Words>(&self, state: State<W>, current: u64, charged: u64, permits: u64) -> bool {
        let mut counted = false;
        // Of words that are fresh, or that the key has lost, a receipt may be of a later cell.
        let windows = self.windows().filter(|_| charged < current);
        for window in windows {
            let (current, charged) = (window.cell(current), window.cell(charged));
            let oldest = window.oldest(current);
            if charged < oldest {
                continue;
            }
            counted = true;
            // The slots first: a thread that finds the base raised, and admits because of it, finds the slots raised when it
            // enters the next cell.
            for cell in (oldest..=charged).rev() {
                state.raise(window.slot(cell), cell, permits);
            }
            // If another cell has been entered meanwhile, its base was computed from the slots.
            state.raise(window.base, current, permits);
        }
        counted
    }

    pub(super) fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        let state = self.state(words);
        let tick = self.cells.tick(now);
        loop {
            let seen = state.control();
            if seen.entering() || seen.tick() < tick {
                self.enter_cell(state, seen, tick);
                continue;
            }
            // Every window's sum must stay within what the total can tell apart.
            let room = |window: &Window| self.layout.largest_sum() - seen.since(state.total(window.base));
            let charged = self.windows().map(room).fold(permits, u64::min);
            if state.move_on(seen, seen.plus(charged)) {
                return charged;
            }
        }
    }
}
