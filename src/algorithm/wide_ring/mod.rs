//! A counter ring in several words, by [the protocol of counter rings](super::counter_ring).

use alloc::boxed::Box;

use self::window::Window;
use super::attempt::{Attempt, opaque_copy};
use super::cell_window::{CellWindow, WindowLimit as _};
use super::entered_ring::word::{TotalLayout, TotalWord};
use super::entered_ring::{EnteredRing, State};
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::{Cells, Nanos};

mod queries;
mod state;
mod window;

/// A counter ring in several words: one control word, and a base and slots for each window.
///
/// Time is counted in *ticks*, and a cell of a window lasts one tick or more. The control word has the current tick and the total
/// of all admissions. Each slot belongs to a cell, and has the total at which that cell was entered. The base has the same for
/// the oldest entered cell that the window sums. So the sum is the total in the control word minus the total in the base.
#[derive(Clone, Debug)]
pub(super) struct WideRing {
    layout: TotalLayout,
    cells: Cells,
    /// The first window that was configured. No other window limits its cells to shares of the limit (`Variant::Even`).
    first: Window,
    rest: Box<[Window]>,
    /// Whether the sum of the first window alone decides.
    needs_one_sum: bool,
}

impl WideRing {
    /// Creates a ring with ticks of `tick` nanoseconds. `cell_windows` has each window with the width of its cells in ticks.
    pub(super) fn new(
        layout: TotalLayout,
        tick: u64,
        first_tick: u64,
        cell_windows: &[(CellWindow, u64)],
    ) -> Self {
        let mut windows = Window::all(cell_windows);
        let rest = windows.split_off(1).into_boxed_slice();
        let first = windows.swap_remove(0);
        Self {
            layout,
            cells: Cells::new(tick, first_tick, layout.last_tick()),
            needs_one_sum: rest.is_empty() && first.cell_window.shares().is_none(),
            first,
            rest,
        }
    }

    /// This ring with a lower limit for each window, over the same words.
    pub(super) fn with_limit(&self, limits: &[u64]) -> Self {
        let rest = self.rest.iter().zip(&limits[1..]);
        Self {
            first: self.first.with_limit(limits[0]),
            rest: rest.map(|(window, &limit)| window.with_limit(limit)).collect(),
            ..*self
        }
    }

    /// The longest time for which any window sums a cell, in ticks.
    pub(super) fn longest(&self) -> u64 {
        let summed_ticks = |window: &Window| window.cell_window.summed() * window.width.divisor();
        self.windows().map(summed_ticks).max().unwrap_or(0)
    }

    pub(super) fn cell_windows(&self) -> impl Iterator<Item = &CellWindow> {
        self.windows().map(|window| &window.cell_window)
    }

    /// Whether the sum of the first window alone decides: there is no other window, and no cell is limited to a share of the
    /// limit.
    pub(super) const fn needs_one_sum(&self) -> bool {
        self.needs_one_sum
    }

    pub(super) fn words(&self) -> usize {
        1 + self
            .cell_windows()
            .map(|window| 1 + Window::slots(window))
            .sum::<usize>()
    }

    #[inline]
    fn windows(&self) -> impl Iterator<Item = &Window> {
        core::iter::once(&self.first).chain(&self.rest)
    }

    /// Decides once, by the shares and the sums of all windows. `first` is the first window, with the limit for this request.
    #[inline(never)]
    fn attempt_all<W: Words>(&self, first: &CellWindow, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        self.attempt_by(Some(first), first.limit(), words, tick, permits)
    }

    /// Decides once, with `limit` for the first window. `first` is that window with this limit, or `None` if its sum alone
    /// decides (`needs_one_sum`).
    #[inline(always)]
    fn attempt_by<W: Words>(
        &self,
        first: Option<&CellWindow>,
        limit: u64,
        words: W,
        tick: u64,
        permits: u64,
    ) -> Attempt<u64> {
        let state = self.state(words);
        let seen = state.control();
        if seen.entering() || seen.tick() < tick {
            return Attempt::Retry;
        }
        let capacity = match first {
            Some(first) => self.least_capacity(first, state, seen),
            None => limit.saturating_sub(Self::sum(state, Window::FIRST_BASE, seen)),
        };
        // Claim: counter_ring 4, a denial has read the same control word twice.
        if permits <= capacity {
            if state.exchange_control(seen, seen.plus(permits)) {
                return Attempt::Admitted(seen.tick());
            }
        } else if state.control() == seen {
            // Since the first read of the control word, a refund may have raised a base, and so lowered a sum. At that read each
            // sum was as high or higher, so the request did not fit.
            return Attempt::Denied;
        }
        Attempt::Retry
    }

    /// The least capacity of all windows at an open control word. The first window has the limit and the shares of `first`. The
    /// result is valid only if the control word is unchanged afterwards.
    #[inline(always)]
    fn least_capacity<W: Words>(&self, first: &CellWindow, state: State<W>, seen: TotalWord) -> u64 {
        let sum = Self::sum(state, Window::FIRST_BASE, seen);
        let cell = self.first.cell(seen.tick());
        let newest = || seen.since(state.total(self.first.slot(cell)));
        let of_first = first.capacity(sum, cell, newest);
        let of_rest = self.rest.iter().map(|window| {
            let limit = window.cell_window.limit();
            limit.saturating_sub(Self::sum(state, window.base, seen))
        });
        of_rest.fold(of_first, u64::min)
    }

    /// The permits counted by the window whose base has the index `base`.
    #[inline]
    fn sum<W: Words>(state: State<W>, base: usize, seen: TotalWord) -> u64 {
        seen.since(state.total(base))
    }

    /// The slot of the first cell among `cells` that has been entered. `None` if none of these cells has a slot.
    #[inline]
    fn first_entered<W: Words>(
        state: State<W>,
        window: &Window,
        mut cells: impl Iterator<Item = u64>,
    ) -> Option<TotalWord> {
        cells.find_map(|cell| Self::slot_of(state, window, cell))
    }

    /// The slot of a cell. `None` if the cell was not entered, or a later cell has replaced its slot.
    #[inline]
    fn slot_of<W: Words>(state: State<W>, window: &Window, cell: u64) -> Option<TotalWord> {
        let slot = state.total(window.slot(cell));
        (slot.tick() == cell).then_some(slot)
    }

    pub(super) fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        let state = self.state(words);
        let charged = receipt.mark();
        loop {
            let seen = state.control();
            if seen.entering() {
                // The bases must be of the current cell before a refund raises them.
                self.publish_and_open(words, seen, seen.tick());
            } else if seen.tick() != charged {
                return self.refund_older(state, seen.tick(), charged, permits);
            } else {
                let slot = state.total(self.first.slot(self.first.cell(charged)));
                if permits <= seen.since(slot) {
                    if state.exchange_control(seen, seen.minus(permits)) {
                        return true;
                    }
                } else if state.control() == seen {
                    // The cell counts fewer permits, so the charge of the receipt is not in these words.
                    return false;
                }
            }
        }
    }

    /// Refunds permits that were charged at the tick `charged`, before the current one. In each window that still sums the cell
    /// of that tick, this raises the base and the slots up to that cell, so the window no longer counts the permits. Returns
    /// false if no window sums such a cell.
    #[cold]
    fn refund_older<W: Words>(&self, state: State<W>, current: u64, charged: u64, permits: u64) -> bool {
        // A receipt may be of a cell after the current one if the words are fresh, or belong to another key now.
        if charged > current {
            return false;
        }
        let mut counted = false;
        for window in self.windows() {
            let (current_cell, charged_cell) = (window.cell(current), window.cell(charged));
            let oldest = window.oldest(current_cell);
            if charged_cell < oldest {
                continue;
            }
            counted = true;
            // The slots are raised before the base. In the other order, a request could take the freed permits, and the next cell
            // could get its base from a slot not yet raised: its sum would count both.
            for cell in (oldest..=charged_cell).rev() {
                state.raise(window.slot(cell), cell, permits);
            }
            // If another cell has been entered meanwhile, this changes nothing. The base of that cell may have been taken from a
            // raised slot, and must not be raised twice.
            // Claim: counter_ring 5, a refund raises no base of a later cell.
            state.raise(window.base, current_cell, permits);
        }
        counted
    }

    pub(super) fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        let state = self.state(words);
        let tick = self.cells.tick(now);
        loop {
            let seen = state.control();
            if seen.entering() || seen.tick() < tick {
                self.enter(words, tick);
                continue;
            }
            // No sum may exceed `largest_sum`, because a total wraps around above that number.
            let capacity = |window: &Window| self.layout.largest_sum() - seen.since(state.total(window.base));
            let charged = self.windows().map(capacity).fold(permits, u64::min);
            if state.exchange_control(seen, seen.plus(charged)) {
                return charged;
            }
        }
    }
}

impl EnteredRing for WideRing {
    fn layout(&self) -> TotalLayout {
        self.layout
    }

    #[inline(always)]
    fn cells(&self) -> &Cells {
        &self.cells
    }

    #[inline(always)]
    fn cell_window(&self) -> &CellWindow {
        &self.first.cell_window
    }

    fn empty_from(&self, tick: u64) -> u64 {
        let empty_from =
            |window: &Window| (window.cell(tick) + window.cell_window.summed()) * window.width.divisor();
        self.windows().map(empty_from).fold(0, u64::max)
    }

    /// Publishes the bases and slots. No slot of a cell after `newest_before` is read. If a window does not sum the cell of
    /// `newest_before`, none of its slots is searched.
    fn publish_and_open<W: Words>(&self, words: W, entering: TotalWord, newest_before: u64) {
        let state = self.state(words);
        for window in self.windows() {
            let cell = window.cell(entering.tick());
            let total = entering.with_tick(cell);
            let end = cell.min(window.cell(newest_before) + 1);
            // If no earlier cell of the sum was entered, the new cell is the oldest.
            let base = Self::first_entered(state, window, window.oldest(cell)..end).unwrap_or(total);
            // The new slot replaces that of the oldest cell, and from then on only the base has the total of that cell. So a
            // thread that finds the old slot replaced must also find the base published.
            // Claim: counter_ring 1, the base is published before the slot.
            state.publish_total(window.base, base.with_tick(cell));
            state.publish_total(window.slot(cell), total);
        }
        // If it fails, another helper has opened the cell.
        state.exchange_control(entering, entering.open());
    }

    #[inline(always)]
    fn attempt<W: Words>(&self, limit: u64, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        if self.needs_one_sum {
            self.attempt_by(None, limit, words, tick, permits)
        } else if limit == self.first.cell_window.limit() {
            self.attempt_all(&self.first.cell_window, opaque_copy(words), tick, permits)
        } else {
            let first = self.first.cell_window.with_limit(limit);
            self.attempt_all(&first, opaque_copy(words), tick, permits)
        }
    }
}
