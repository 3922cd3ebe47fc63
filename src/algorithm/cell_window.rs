//! A window as a number of cells, and its capacity.

use core::fmt;

use crate::time::Divider;

/// Which cells a counter ring sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    /// The current cell and the N cells before it.
    Strict,
    /// N cells, the current one included.
    Classic,
    /// N cells, the current one included, and each cell is limited to its share of the limit.
    Even,
}

/// The number of cells that one window sums, and its limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellWindow {
    variant: Variant,
    limit: u64,
    /// The number of cells that are summed, the current one included.
    summed: u64,
    shares: Option<Shares>,
}

/// The limit of a window, and the shares of its cells if it has any.
pub(super) trait WindowLimit: Copy {
    fn limit(&self) -> u64;

    fn shares(&self) -> Option<&Shares>;

    /// Whether a window that sums `summed` cells is a single cell.
    fn is_one_cell(summed: u64) -> bool;

    /// This window with a lower limit.
    fn with_limit(&self, limit: u64) -> Self;

    /// The permits left in a window that holds `sum`, of which `newest()` are in the cell at `tick`.
    fn capacity(&self, sum: u64, tick: u64, newest: impl FnOnce() -> u64) -> u64;
}

/// A strict window as its limit alone. The owner knows the number of its cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct StrictLimit(pub(super) u64);

impl WindowLimit for StrictLimit {
    #[inline(always)]
    fn limit(&self) -> u64 {
        self.0
    }

    #[inline(always)]
    fn shares(&self) -> Option<&Shares> {
        None
    }

    /// A strict window sums the current cell and at least one before it.
    #[inline(always)]
    fn is_one_cell(_summed: u64) -> bool {
        false
    }

    #[inline(always)]
    fn with_limit(&self, limit: u64) -> Self {
        Self(limit)
    }

    #[inline(always)]
    fn capacity(&self, sum: u64, _tick: u64, _newest: impl FnOnce() -> u64) -> u64 {
        self.0.saturating_sub(sum)
    }
}

impl WindowLimit for CellWindow {
    #[inline(always)]
    fn limit(&self) -> u64 {
        self.limit
    }

    #[inline(always)]
    fn shares(&self) -> Option<&Shares> {
        self.shares.as_ref()
    }

    #[inline(always)]
    fn is_one_cell(summed: u64) -> bool {
        summed == 1
    }

    /// A decision makes it for one request, so it does not divide.
    #[inline(always)]
    fn with_limit(&self, limit: u64) -> Self {
        Self {
            limit,
            shares: self.shares.map(|shares| Shares::new(shares.cells, limit)),
            ..*self
        }
    }

    #[inline(always)]
    fn capacity(&self, sum: u64, tick: u64, newest: impl FnOnce() -> u64) -> u64 {
        let left = self.limit.saturating_sub(sum);
        match &self.shares {
            None => left,
            // Claim: counter_ring bounds, a cell of an even ring has its share.
            Some(shares) => left.min(shares.of(tick).saturating_sub(newest())),
        }
    }
}

impl CellWindow {
    pub(super) fn new(variant: Variant, limit: u64, cells: u64) -> Self {
        let shares = match variant {
            Variant::Even => Some(Shares::new(Divider::new(cells), limit)),
            Variant::Strict | Variant::Classic => None,
        };
        let summed = match variant {
            // An interval of one window touches at most N + 1 cells. The decision of its last admission sums all of them.
            // Claim: counter_ring bounds, a strict sum has one cell more than the window.
            Variant::Strict => cells + 1,
            Variant::Classic | Variant::Even => cells,
        };
        Self {
            variant,
            limit,
            summed,
            shares,
        }
    }

    /// N, the number of cells in a window.
    pub(super) const fn cells(&self) -> u64 {
        match self.variant {
            Variant::Strict => self.summed - 1,
            Variant::Classic | Variant::Even => self.summed,
        }
    }

    /// The most permits in any interval of one window.
    pub(super) fn bound(&self) -> u64 {
        // An interval of one window touches at most N + 1 cells. A sum of N cells that includes the last of them does not
        // include the first, so the permits of the first cell are added.
        match self.variant {
            Variant::Strict => self.limit,
            Variant::Classic | Variant::Even => self.limit + self.max_request(),
        }
    }

    #[inline]
    pub(super) const fn summed(&self) -> u64 {
        self.summed
    }

    /// The most permits that one request can ever get.
    pub(super) fn max_request(&self) -> u64 {
        self.shares.map_or(self.limit, |shares| shares.largest())
    }
}

/// The number and the kind of the cells: `60 cells`, `5 classic cells`, `a fixed window`.
impl fmt::Display for CellWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.variant, self.cells()) {
            (Variant::Strict, cells) => write!(f, "{cells} cells"),
            (Variant::Classic, 1) => f.write_str("a fixed window"),
            (Variant::Classic, cells) => write!(f, "{cells} classic cells"),
            (Variant::Even, cells) => write!(f, "{cells} even cells"),
        }
    }
}

/// The shares of N cells in a limit L. Cell i gets ⌊(i + 1)·L/N⌋ − ⌊i·L/N⌋, so the shares of any N consecutive cells add
/// up to L.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    cells: Divider,
    /// ⌊L/N⌋, which every cell gets.
    quotient: u64,
    /// L mod N: the number of cells that get one more.
    remainder: u64,
}

impl Shares {
    #[inline]
    fn new(cells: Divider, limit: u64) -> Self {
        Self {
            cells,
            quotient: cells.quotient(limit),
            remainder: cells.remainder(limit),
        }
    }

    /// The share of the cell at `tick`.
    #[inline]
    pub(super) fn of(&self, tick: u64) -> u64 {
        let cell = self.cells.remainder(tick);
        // Only the remainder is multiplied, so the products stay below N².
        let extra_before = |cell| self.cells.quotient(cell * self.remainder);
        self.quotient + extra_before(cell + 1) - extra_before(cell)
    }

    fn largest(&self) -> u64 {
        self.quotient + u64::from(self.remainder > 0)
    }

    /// N, the period of the shares.
    pub(super) const fn cells(&self) -> u64 {
        self.cells.divisor()
    }
}

#[cfg(test)]
mod tests {
    use super::{CellWindow, Variant, WindowLimit as _};

    #[test]
    fn shares_of_consecutive_cells_add_up_to_the_limit() {
        for limit in 1..40 {
            for cells in 1..20 {
                let window = CellWindow::new(Variant::Even, limit, cells);
                let shares = window.shares().unwrap();
                for first in 0..2 * cells {
                    let sum: u64 = (first..first + cells).map(|tick| shares.of(tick)).sum();
                    assert_eq!(sum, limit);
                    assert!(shares.of(first) <= window.max_request());
                }
            }
        }
    }
}
