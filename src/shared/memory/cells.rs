//! The cells of a counter of a store in memory.

use alloc::collections::VecDeque;
use core::time::Duration;

/// The permits of a window, by the cells in which they were charged. Times are in nanoseconds of the store's clock.
#[derive(Debug)]
pub(super) struct Cells {
    /// The width of a cell, or 1 for a log: an entry of a log is a cell of one nanosecond.
    width: u64,
    /// The time for which a cell counts after it has begun.
    span: u64,
    /// The permits of each cell, by the cell's number, oldest first.
    cells: VecDeque<(u64, u64)>,
    charged: u64,
    /// Grows with each reset, so that permits from before one are not refunded after it.
    era: u64,
}

impl Cells {
    /// No permits. `era` is the second number of the first receipt.
    pub(super) const fn new(width: u64, span: u64, era: u64) -> Self {
        Self {
            width,
            span,
            cells: VecDeque::new(),
            charged: 0,
            era,
        }
    }

    /// The end of the time in which a cell counts.
    fn end_of(&self, cell: u64) -> u64 {
        cell.saturating_mul(self.width).saturating_add(self.span)
    }

    /// Removes the cells that no longer count at `now`.
    pub(super) fn advance(&mut self, now: u64) {
        while let Some(&(cell, permits)) = self.cells.front()
            && self.end_of(cell) <= now
        {
            self.charged -= permits;
            self.cells.pop_front();
        }
    }

    /// Whether no cell counts at `now`.
    pub(super) fn is_expired(&self, now: u64) -> bool {
        let last = self.cells.back();
        last.is_none_or(|&(cell, _)| self.end_of(cell) <= now)
    }

    pub(super) const fn charged(&self) -> u64 {
        self.charged
    }

    /// The time until the cells hold `leaving` permits fewer. `None`: no cell has to leave, or all together
    /// hold fewer.
    pub(super) fn wait(&self, mut leaving: u64, now: u64) -> Option<Duration> {
        for &(cell, permits) in &self.cells {
            leaving = leaving.saturating_sub(permits);
            if leaving == 0 {
                return Some(Duration::from_nanos(self.end_of(cell) - now));
            }
        }
        None
    }

    /// Charges permits, and returns a receipt.
    pub(super) fn charge(&mut self, permits: u64, now: u64) -> (u64, u64) {
        let cell = now / self.width;
        self.charged += permits;
        match self.cells.back_mut() {
            Some((last, charged)) if *last == cell => *charged += permits,
            Some(_) | None => self.cells.push_back((cell, permits)),
        }
        (cell, self.era)
    }

    /// Takes permits out of their cell, and returns how many: all of them, or none if the cell has left the window.
    pub(super) fn refund(&mut self, permits: u64, (cell, era): (u64, u64)) -> u64 {
        match self.cells.iter_mut().find(|(number, _)| *number == cell) {
            Some((_, charged)) if *charged >= permits && era == self.era => {
                *charged -= permits;
                self.charged -= permits;
                permits
            }
            Some(_) | None => 0,
        }
    }

    /// Forgets the permits.
    pub(super) fn reset(&mut self) {
        self.cells.clear();
        self.charged = 0;
        self.era += 1;
    }
}
