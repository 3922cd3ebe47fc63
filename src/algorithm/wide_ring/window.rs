use crate::algorithm::cell_window::CellWindow;
use crate::time::Divider;

/// One window over the control word's running total: where its base and its slots are.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) cell_window: CellWindow,
    /// Ticks of the control word in one cell of this window.
    pub(super) ticks: Divider,
    /// Slots: one fewer than cells are summed, because the base holds the total of the oldest; at least one.
    slots: Divider,
    /// The index of the base word; the slots follow it.
    pub(super) base: usize,
}

impl Window {
    /// A window whose cells are `ticks` wide, with its words from `base` on.
    pub(super) fn new(cell_window: CellWindow, ticks: u64, base: usize) -> Self {
        Self {
            cell_window,
            ticks: Divider::new(ticks),
            slots: Divider::new(Self::slots(&cell_window)),
            base,
        }
    }

    /// How many slots a window has.
    fn slots(cell_window: &CellWindow) -> u64 {
        (cell_window.summed() - 1).max(1)
    }

    /// How many words a window has: its base and its slots.
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
        // Never below zero: the first tick of all is later than one cell_window.
        (cell + 1).saturating_sub(self.cell_window.summed())
    }
}
