use alloc::vec::Vec;

use crate::algorithm::cell_window::{CellWindow, WindowLimit as _};
use crate::time::Divider;

/// One window of a wide ring: its cells, and the indices of its base and slots.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) cell_window: CellWindow,
    /// The width of a cell in ticks of the control word.
    pub(super) width: Divider,
    /// The number of slots: one fewer than the summed cells, because the base holds the total of the oldest cell, and at
    /// least one.
    slots: Divider,
    /// The index of the base.
    pub(super) base: usize,
    /// The index of the first slot.
    first_slot: usize,
}

impl Window {
    /// The index of the base of the first window. It is a constant, so a decision in a table need not compute the place of the
    /// word.
    pub(super) const FIRST_BASE: usize = 1;

    /// Creates the windows of a ring, whose words follow the control word. `cell_windows` has each window with the width of its
    /// cells in ticks.
    pub(super) fn all(cell_windows: &[(CellWindow, u64)]) -> Vec<Self> {
        // The bases come first, because each decision reads them.
        let mut first_slot = Self::FIRST_BASE + cell_windows.len();
        let mut windows = Vec::with_capacity(cell_windows.len());
        for (base, &(cell_window, width)) in (Self::FIRST_BASE..).zip(cell_windows) {
            windows.push(Self::new(cell_window, width, base, first_slot));
            first_slot += Self::slots(&cell_window);
        }
        windows
    }

    /// Creates a window whose cells are `width` ticks wide. `base` is the index of its base, and `first_slot` that of its first
    /// slot.
    fn new(cell_window: CellWindow, width: u64, base: usize, first_slot: usize) -> Self {
        Self {
            cell_window,
            width: Divider::new(width),
            slots: Divider::new(Self::slots(&cell_window) as u64),
            base,
            first_slot,
        }
    }

    /// This window with a lower limit.
    pub(super) fn with_limit(&self, limit: u64) -> Self {
        Self {
            cell_window: self.cell_window.with_limit(limit),
            ..*self
        }
    }

    /// The number of slots of a window.
    pub(super) fn slots(cell_window: &CellWindow) -> usize {
        usize::try_from((cell_window.summed() - 1).max(1)).expect("a window of a few thousand cells")
    }

    #[inline]
    pub(super) fn cell(&self, tick: u64) -> u64 {
        self.width.quotient(tick)
    }

    pub(super) fn slot(&self, cell: u64) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "below the number of slots, which are in memory"
        )]
        let slot = self.slots.remainder(cell) as usize;
        self.first_slot + slot
    }

    /// The oldest cell that is summed when `cell` is the current one.
    pub(super) fn oldest(&self, cell: u64) -> u64 {
        // Never below zero: the first tick is later than the summed cells.
        (cell + 1).saturating_sub(self.cell_window.summed())
    }
}
