#![doc = include_str!("protocol.md")]

use self::groups::Groups;
use super::attempt::Attempt;
use super::cell_window::{CellWindow, WindowLimit as _};
use super::entered_ring::word::{TotalLayout, TotalWord};
use super::entered_ring::{EnteredRing, State};
use super::wide_ring::WideRing;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::{Cells, HORIZON, Nanos};

mod groups;
mod queries;
mod state;

/// A counter ring of one window in a table of keys, with several counts in a word.
#[derive(Clone, Debug)]
pub(super) struct GroupedRing {
    layout: TotalLayout,
    groups: Groups,
    cells: Cells,
    cell_window: CellWindow,
}

impl GroupedRing {
    /// Creates a ring of the same window as `wide`. `None` if that has several windows or shares, or if its counts do not fit into
    /// slots.
    pub(super) fn of_wide(wide: &WideRing) -> Option<Self> {
        let (layout, cells, cell_window) = (wide.layout(), *wide.cells(), *wide.cell_window());
        let horizon = cells.tick(Nanos::new(HORIZON));
        let groups = Groups::new(cell_window.limit(), cell_window.summed() - 1, horizon)?;
        wide.needs_one_sum().then_some(Self {
            layout,
            cells: cells.with_last(groups.last().min(cells.last())),
            groups,
            cell_window,
        })
    }

    /// The number of cells before the current one that are summed.
    fn older(&self) -> u64 {
        self.cell_window.summed() - 1
    }

    /// This ring with a lower limit, over the same words.
    pub(super) fn with_limit(&self, limit: u64) -> Self {
        Self {
            cell_window: self.cell_window.with_limit(limit),
            ..*self
        }
    }

    pub(super) fn words(&self) -> usize {
        state::words(&self.groups)
    }

    /// The permits that count at an open control word. `None` if its cell is no longer the current one.
    #[inline(always)]
    fn held<W: Words>(state: State<W>, seen: TotalWord) -> Option<u64> {
        // Claim: grouped_ring 5, the refunds of a later cell do not stand for those of this one.
        let refunds = state.refunds(seen.tick())?;
        Some(seen.total().saturating_sub(refunds))
    }

    pub(super) fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        let state = self.state(words);
        let charged = receipt.mark();
        loop {
            let seen = state.control();
            if seen.entering() {
                // The counts of all earlier cells must be published before a refund lowers one.
                self.publish_and_open(words, seen, seen.tick());
            } else if charged != seen.tick() {
                // A receipt may be of a later cell if the words are fresh, or belong to another key now.
                let is_summed = charged < seen.tick() && seen.tick() - charged <= self.older();
                return is_summed && self.refund_older(state, seen.tick(), charged, permits);
            } else {
                let base = state.base();
                if base.tick() == seen.tick() && permits <= seen.total().saturating_sub(base.total()) {
                    if state.exchange_control(seen, seen.minus(permits)) {
                        return true;
                    }
                } else if state.control() == seen {
                    return false;
                }
            }
        }
    }

    /// Refunds permits of a cell before the `current` one. Control is not read again after the count is lowered.
    #[cold]
    fn refund_older<W: Words>(&self, state: State<W>, current: u64, charged: u64, permits: u64) -> bool {
        let lowered = state.lower_count(&self.groups, charged, permits);
        if lowered {
            // Claim: table 9, a refund is added to no cell of a later owner.
            // Claim: grouped_ring 6, a refund is added to the cell that it has read first.
            // This counts only if no other cell has been entered meanwhile. The base of such a cell is a sum of the counts.
            state.add_refund(current, permits);
        }
        lowered
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
            // Both the total and the count of the cell must stay within their bits. If the base is of a later cell, the exchange
            // fails.
            let count = seen.total().saturating_sub(state.base().total());
            // Claim: grouped_ring 7, a charge stays within the bits of the total.
            let charged = permits
                .min(self.layout.largest_sum().saturating_sub(seen.total()))
                .min(self.groups.largest_count().saturating_sub(count));
            if state.exchange_control(seen, seen.plus(charged)) {
                return charged;
            }
        }
    }
}

impl EnteredRing for GroupedRing {
    fn layout(&self) -> TotalLayout {
        self.layout
    }

    #[inline(always)]
    fn cells(&self) -> &Cells {
        &self.cells
    }

    #[inline(always)]
    fn cell_window(&self) -> &CellWindow {
        &self.cell_window
    }

    fn empty_from(&self, tick: u64) -> u64 {
        tick + self.cell_window.summed()
    }

    /// Publishes the count of the cell before, and the base. The base has the tick of the newest cell that was open before.
    fn publish_and_open<W: Words>(&self, words: W, entering: TotalWord, _newest_before: u64) {
        let state = self.state(words);
        let tick = entering.tick();
        let oldest = tick.saturating_sub(self.older());
        loop {
            let base = state.base();
            if base.tick() > tick {
                return;
            }
            if base.tick() == tick {
                // The total of the base, because the sum of another helper may be lower than this thread's by a refund.
                state.exchange_control(entering, base);
                return;
            }
            // The base is of the newest cell that was open before.
            // Claim: grouped_ring 3, a count is published if the window sums it.
            let sum = if base.tick() < oldest {
                0
            } else {
                let count = entering.total().saturating_sub(base.total());
                state.publish_count(&self.groups, base.tick(), count);
                state.sum_of_counts(&self.groups, oldest, base.tick())
            };
            let opened = self.layout.word(tick, sum);
            // Claim: grouped_ring 2, a base expects the word that its sum began from.
            match state.exchange_base(base, opened) {
                Ok(_) => {
                    state.exchange_control(entering, opened);
                    return;
                }
                // These words cannot be exchanged: they are read-only, or their entry belongs to another key now.
                Err(same) if same == base.raw() => return,
                Err(_) => {}
            }
        }
    }

    #[inline(always)]
    fn attempt<W: Words>(&self, limit: u64, words: W, tick: u64, permits: u64) -> Attempt<u64> {
        let state = self.state(words);
        let seen = state.control();
        if seen.entering() || seen.tick() < tick {
            return Attempt::Retry;
        }
        // The total is at least the permits that count, because the refunds from older cells are not subtracted yet. So most
        // admissions read no other word.
        if permits > limit.saturating_sub(seen.total()) {
            match Self::held(state, seen) {
                // A later cell was entered, so the refunds of this one may be gone.
                None => return Attempt::Retry,
                // Refunds only grow within a cell. So the window did not have the capacity when the control word was read.
                Some(held) if permits > limit.saturating_sub(held) => return Attempt::Denied,
                Some(_) => {}
            }
        }
        if state.exchange_control(seen, seen.plus(permits)) {
            Attempt::Admitted(seen.tick())
        } else {
            Attempt::Retry
        }
    }
}
