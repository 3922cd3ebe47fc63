use crate::algorithm::cell_window::CellWindow;
use crate::time::Divider;

/// One window of a wide ring: its cells, and the indices of its base and slots.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) cell_window: CellWindow,
    /// The width of a cell in ticks of the control word.
    pub(super) ticks: Divider,
    /// The number of slots: one fewer than the summed cells, because the base holds the total of the oldest cell, and at
    /// least one.
    slots: Divider,
    /// The index of the base. The slots follow it.
    pub(super) base: usize,
}

impl Window {
    /// Creates a window whose cells are `ticks` wide, and whose words begin at the index `base`.
    pub(super) fn new(cell_window: CellWindow, ticks: u64, base: usize) -> Self {
        Self {
            cell_window,
            ticks: Divider::new(ticks),
            slots: Divider::new(Self::slots(&cell_window)),
            base,
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
    fn slots(cell_window: &CellWindow) -> u64 {
        (cell_window.summed() - 1).max(1)
    }

    /// The number of words of a window: its base and its slots.
    pub(super) fn words(cell_window: &CellWindow) -> usize {
        1 + usize::try_from(Self::slots(cell_window)).expect("a window of a few thousand cells")
    }

    #[inline]
    pub(super) fn cell(&self, tick: u64) -> u64 {
        self.ticks.quotient(tick)
    }

    pub(super) fn slot(&self, cell: u64) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "below the number of slots, which are in memory"
        )]
        let slot = self.slots.remainder(cell) as usize;
        self.base + 1 + slot
    }

    /// The oldest cell that is summed when `cell` is the current one.
    pub(super) fn oldest(&self, cell: u64) -> u64 {
        // Never below zero: the first tick is later than the summed cells.
        (cell + 1).saturating_sub(self.cell_window.summed())
    }
}
