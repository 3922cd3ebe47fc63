//! The decisions over one word of cells and units.

use super::word::UnitLayout;
use crate::algorithm::attempt::{Attempt, opaque_copy, until_decided};
use crate::algorithm::cell_window::{CellWindow, Shares, StrictLimit, Variant, WindowLimit};
use crate::algorithm::one_word::OneWord;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::{Cells, Nanos, Ticks};

/// The cells of one window in one word. [`UnitRing`](super::UnitRing) uses units of any size. A
/// [`CounterRing`](crate::CounterRing) uses units of one permit, so that it counts exactly.
#[derive(Clone, Copy, Debug)]
pub(in crate::algorithm) struct UnitCells<L = CellWindow> {
    layout: UnitLayout,
    ticks: Ticks,
    cell_window: L,
}

impl UnitCells {
    /// Cells of `width` nanoseconds that count units of 2^`unit_bits` permits. Returns `None` if the word has too few bits for the
    /// ticks of `horizon` cells.
    pub(in crate::algorithm) fn new(
        cell_window: CellWindow,
        unit_bits: u32,
        width: u64,
        horizon: u64,
    ) -> Option<Self> {
        Self::with_window(cell_window, cell_window.summed(), unit_bits, width, horizon)
    }

    /// Cells that count every permit exactly: in units of one permit, or for a single cell in a unit above the limit. Returns
    /// `None` if the word is too short.
    pub(in crate::algorithm) fn exact(cell_window: CellWindow, width: u64, horizon: u64) -> Option<Self> {
        let unit_bits = if cell_window.summed() == 1 {
            u64::BITS - cell_window.limit().leading_zeros()
        } else {
            0
        };
        Self::new(cell_window, unit_bits, width, horizon)
    }
}

impl UnitCells<StrictLimit> {
    /// Strict cells, of which the current one and the `count` cells before it are summed. `None` as in [`new`](UnitCells::new).
    pub(super) fn strict(limit: u64, count: u64, unit_bits: u32, width: u64, horizon: u64) -> Option<Self> {
        Self::with_window(StrictLimit(limit), count + 1, unit_bits, width, horizon)
    }

    /// N, the number of cells in a window.
    pub(super) const fn count(&self) -> u64 {
        self.layout.summed() - 1
    }

    /// These cells, over the same word, as those of a [`CounterRing`](crate::CounterRing).
    pub(in crate::algorithm) fn of_counter(&self) -> UnitCells {
        UnitCells {
            layout: self.layout,
            ticks: self.ticks,
            cell_window: CellWindow::new(Variant::Strict, self.cell_window.limit(), self.count()),
        }
    }
}

impl<L: WindowLimit> UnitCells<L> {
    fn with_window(cell_window: L, summed: u64, unit_bits: u32, width: u64, horizon: u64) -> Option<Self> {
        let layout = UnitLayout::new(cell_window.limit(), summed, unit_bits)?;
        // The first tick is not 0, so a written word is not 0. With shares it is N, a multiple of their period, as in a wide
        // ring, so that both give the same share to the same cell.
        let first_tick = summed;
        (layout.last_tick() >= horizon + first_tick).then(|| Self {
            layout,
            ticks: Ticks::new(width, first_tick),
            cell_window,
        })
    }

    /// These cells with a lower limit, over the same word.
    pub(in crate::algorithm) fn with_limit(&self, limit: u64) -> Self {
        Self {
            cell_window: self.cell_window.with_limit(limit),
            ..*self
        }
    }

    #[inline(always)]
    pub(in crate::algorithm) const fn cell_window(&self) -> &L {
        &self.cell_window
    }

    /// The cells up to the last tick that the word can hold.
    #[inline(always)]
    pub(in crate::algorithm) const fn cells(&self) -> Cells {
        self.ticks.until(self.layout.last_tick())
    }

    #[inline(always)]
    pub(in crate::algorithm) const fn ticks(&self) -> &Ticks {
        &self.ticks
    }

    /// The tick of the cell that contains `now`. If it is later than the last one of [`cells`](Self::cells), an attempt at `now`
    /// charges the last one.
    #[inline(always)]
    pub(in crate::algorithm) const fn tick(&self, now: Nanos) -> u64 {
        self.ticks.at(now)
    }

    /// The number of permits in a unit.
    pub(in crate::algorithm) const fn unit(&self) -> u64 {
        self.layout.unit()
    }

    /// The permits left in a state.
    fn capacity(&self, state: u64) -> u64 {
        let (spent, tick) = (self.layout.spent(state), self.layout.tick(state));
        self.cell_window
            .capacity(spent, tick, || self.layout.newest(state))
    }

    /// Decides, and returns the tick that is charged.
    #[inline(always)]
    pub(in crate::algorithm) fn decide<W: Words>(&self, words: W, tick: u64, permits: u64) -> Option<u64> {
        self.attempt_or_enter(self.cell_window.limit(), words, tick, permits)
            .or_else(|| self.retry(words, tick, permits))
    }

    /// Repeats the attempt until it decides.
    #[cold]
    #[inline(never)]
    pub(in crate::algorithm) fn retry<W: Words>(&self, words: W, tick: u64, permits: u64) -> Option<u64> {
        until_decided(|| self.attempt_or_enter(self.cell_window.limit(), words, tick, permits))
    }

    /// Decides once, by a limit that is at most that of the cells. `Admitted` has the tick that is charged. `Retry`: another thread
    /// changed the word. There is no cell to enter first, unlike in a wide ring.
    #[inline(always)]
    pub(in crate::algorithm) fn attempt_or_enter<W: Words>(
        &self,
        limit: u64,
        words: W,
        tick: u64,
        permits: u64,
    ) -> Attempt<u64> {
        if self.cell_window.shares().is_some() {
            return self.attempt_even(limit, opaque_copy(words), tick, permits);
        }
        if L::is_one_cell(self.layout.summed()) {
            let seen = OneWord(words).read();
            let charged = self
                .layout
                .admit_to_one_cell(self.layout.at(seen, tick), limit, permits);
            return self.publish(words, seen, charged);
        }
        let seen = OneWord(words).read();
        let charged = self.layout.admit(self.layout.at(seen, tick), limit, permits);
        self.publish(words, seen, charged)
    }

    /// Decides once, by the shares of an even ring in `limit`.
    #[inline(never)]
    fn attempt_even<W: Words>(&self, limit: u64, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        let seen = OneWord(words).read();
        let state = self.layout.at(seen, tick);
        let fits = permits <= self.with_limit(limit).capacity(state);
        let charged = fits.then(|| self.layout.admit(state, limit, permits)).flatten();
        self.publish(words, seen, charged)
    }

    /// Ends an attempt, which saw the word `seen`: publishes the word that an admission leaves.
    #[inline(always)]
    fn publish<W: Words>(&self, words: W, seen: u64, charged: Option<u64>) -> Attempt<u64> {
        OneWord(words).finish(seen, charged.map(|charged| (charged, self.layout.tick(charged))))
    }

    pub(in crate::algorithm) fn is_idle(&self, first: u64, now: Nanos) -> bool {
        let (own, tick) = (self.layout.tick(first), self.cells().tick(now));
        tick > own && tick - own >= self.layout.cells_until_idle(first)
    }

    pub(in crate::algorithm) fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        let current = self.cells().tick(now);
        let tick = current.max(self.layout.tick(first) + 1);
        (tick <= self.layout.last_tick().min(current + 1)).then(|| self.layout.at(first, tick))
    }

    pub(in crate::algorithm) fn idle_from(&self, first: u64) -> Option<Nanos> {
        self.cells()
            .start(self.layout.tick(first) + self.layout.cells_until_idle(first).max(1))
    }

    pub(in crate::algorithm) fn latest_time(&self, first: u64) -> Nanos {
        self.cells().start(self.layout.tick(first)).unwrap_or(Nanos::MAX)
    }

    pub(in crate::algorithm) fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.capacity(self.state_at(words, now))
    }

    pub(in crate::algorithm) fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.layout.spent(self.state_at(words, now))
    }

    #[inline]
    fn state_at<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.layout.at(OneWord(words).read(), self.tick(now))
    }

    /// `permits` is at most the largest request.
    pub(in crate::algorithm) fn ready_at<W: Words>(
        &self,
        words: W,
        now: Nanos,
        permits: u64,
    ) -> Option<Nanos> {
        let seen = OneWord(words).read();
        match self.cell_window.shares() {
            None => {
                let cells = self
                    .layout
                    .cells_until_fit(seen, self.cell_window.limit(), permits);
                self.start_or_now(self.layout.tick(seen) + cells, cells, now)
            }
            Some(shares) => self.ready_by_shares(shares, seen, now, permits),
        }
    }

    /// The first instant from `now` on at which an even ring has the capacity.
    fn ready_by_shares(&self, shares: &Shares, seen: u64, now: Nanos, permits: u64) -> Option<Nanos> {
        let state = self.layout.at(seen, self.tick(now));
        let tick = self.layout.tick(state);
        // After the summed cells the window is empty. After one more period of the shares, each share has been current.
        let horizon = self.layout.summed() + shares.cells();
        let later = (0..=horizon)
            .take_while(|later| tick + later <= self.layout.last_tick())
            .find(|&later| permits <= self.capacity(self.layout.at(state, tick + later)))?;
        self.start_or_now(tick + later, later, now)
    }

    pub(in crate::algorithm) fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        let seen = OneWord(words).read();
        let cells = self.layout.cells_until_idle(seen);
        self.start_or_now(self.layout.tick(seen) + cells, cells, now)
    }

    /// The start of the cell at `tick`, which is `cells` cells after that of a word. Returns `now` if that is later, or if
    /// `cells` is 0.
    fn start_or_now(&self, tick: u64, cells: u64, now: Nanos) -> Option<Nanos> {
        if cells == 0 || tick <= self.cells().tick(now) {
            Some(now)
        } else {
            self.cells().start(tick)
        }
    }

    pub(in crate::algorithm) fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        let refunded = |seen| Some((self.layout.refund(seen, receipt.mark(), permits)?, ()));
        OneWord(words).update(refunded).is_some()
    }

    /// Charges all `permits`. A string without room for more units decides as a longer one would.
    pub(in crate::algorithm) fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        let tick = self.tick(now);
        let charged = |seen| Some((self.layout.charge(self.layout.at(seen, tick), permits), permits));
        OneWord(words).update(charged).unwrap_or(0)
    }
}
