use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use super::ring::{CounterRing, Repr};
use crate::algorithm::cell_window::{CellWindow, Variant};
use crate::algorithm::entered_ring::word::TotalLayout;
use crate::algorithm::traits::FIRST_WORD_BITS;
use crate::algorithm::unit_ring::UnitCells;
use crate::algorithm::wide_ring::WideRing;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::time::HORIZON;

/// A builder of a [`CounterRing`].
///
/// # Examples
///
/// ```
/// use ringgate::{Algorithm, CounterRing};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// // Five cells take 8 bytes instead of 496. A denial may last 12 s too long, with 60 cells 1 s.
/// let small = CounterRing::builder("5/min".parse()?).cells(5).build()?;
/// // Each tenth of the window admits a tenth of the limit, so a burst cannot use the whole limit.
/// let even = CounterRing::builder("100/s".parse()?).cells(10).even().build()?;
/// assert_eq!((small.bound(), even.bound(), even.max_request()), (5, 110, 10));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct CounterRingBuilder {
    first: Quota,
    more: Vec<Quota>,
    /// The number of cells, if it was set.
    cells: Option<u64>,
    variant: Variant,
    packed: bool,
}

impl CounterRingBuilder {
    /// The defaults: strict, [`CounterRing::DEFAULT_CELLS`] cells, and one word if the quota fits into it.
    pub(super) const fn new(quota: Quota) -> Self {
        Self {
            first: quota,
            more: Vec::new(),
            cells: None,
            variant: Variant::Strict,
            packed: true,
        }
    }

    /// Sets the number of cells per window, 1 to 4096. The default is [`CounterRing::DEFAULT_CELLS`]
    /// for a strict ring, and [`CounterRing::DEFAULT_CLASSIC_CELLS`] for a classic or even ring.
    ///
    /// With more cells, the ring is closer to an exact log, from which it differs by less than the width of one cell. More cells
    /// take more memory, and more steps to enter a cell or to compute a retry time. Other decisions cost the same.
    /// [`CounterRing`] has a table of sizes.
    pub fn cells(mut self, cells: u64) -> Self {
        self.cells = Some(cells);
        self
    }

    /// Counts the current cell and the N − 1 cells before it. (A strict ring counts one cell more.) An interval of one window
    /// holds at most 2L permits. A saturated ring admits L per window.
    pub fn classic(mut self) -> Self {
        self.variant = Variant::Classic;
        self
    }

    /// Counts N cells, and limits each cell to its share of the limit. An interval of one window holds at most L + ⌈L/N⌉
    /// permits, and they are spread over it. A request for more than the largest share ⌈L/N⌉ is never admitted.
    pub fn even(mut self) -> Self {
        self.variant = Variant::Even;
        self
    }

    /// Adds a window over the same state. A request is admitted if every window has the capacity, and one compare-exchange
    /// charges it to all windows. Each window has the same number of cells. Only strict and classic rings can have several
    /// windows.
    pub fn also(mut self, quota: Quota) -> Self {
        self.more.push(quota);
        self
    }

    /// Uses one word per cell even if the quota fits into a single word. This is for comparing the representations. A table still
    /// keeps several counts in a word. The decisions are the same, except for debt: here a debt of more than about the limit
    /// is forgiven, and a charge can be refunded also while debt keeps more than the limit in the window.
    pub fn unpacked(mut self) -> Self {
        self.packed = false;
        self
    }

    /// Builds the ring.
    ///
    /// # Errors
    ///
    /// - `cells`: not 1 to 4096, or so many that a cell is narrower than 10 nanoseconds.
    /// - `limit`: so large that its counts and the ticks of 20 years do not fit into one word. (A limit of 10^6 needs cells
    ///   of at least 0.6 ms, 10^9 of 0.6 s, 10^12 of 10.1 min.)
    /// - `windows`: several windows for an even ring.
    pub fn build(self) -> Result<CounterRing, ConfigError> {
        self.more
            .iter()
            .chain([&self.first])
            .try_for_each(|quota| quota.validate())?;
        let cells = self.cells.unwrap_or(match self.variant {
            Variant::Strict => CounterRing::DEFAULT_CELLS,
            Variant::Classic | Variant::Even => CounterRing::DEFAULT_CLASSIC_CELLS,
        });
        if cells == 0 || cells > MAX_CELLS {
            return Err(ConfigError::new(
                "cells",
                format!("{cells}"),
                format!("1 to {MAX_CELLS}"),
            ));
        }
        if self.variant == Variant::Even && !self.more.is_empty() {
            return Err(ConfigError::new(
                "windows",
                format!("{}", self.more.len() + 1),
                "one window for an even ring, several for a strict or classic one",
            ));
        }
        let window = self.first.window();
        let mut quotas = self.more;
        quotas.insert(0, self.first);
        let narrowest = quotas.iter().map(|quota| quota.window_nanos()).min().unwrap_or(0) / cells;
        if narrowest < MIN_CELL {
            return Err(ConfigError::new(
                "cells",
                format!(
                    "{cells} cells in {:?}",
                    quotas.iter().map(|quota| quota.window()).min().unwrap_or(window)
                ),
                format!("cells of at least {:?}", Duration::from_nanos(MIN_CELL)),
            ));
        }
        let (tick, cell_widths) = tick_and_cell_widths(&quotas, cells);
        let windows: Vec<(CellWindow, u64)> = quotas
            .iter()
            .zip(cell_widths)
            .map(|(quota, width)| (CellWindow::new(self.variant, quota.limit(), cells), width))
            .collect();
        let horizon = HORIZON / tick;
        let repr = match windows.as_slice() {
            &[(cell_window, _)] if self.packed => {
                UnitCells::exact(cell_window, tick, horizon).map(Repr::Packed)
            }
            _ => None,
        };
        let repr = match repr {
            Some(repr) => repr,
            None => Repr::Wide(wide(&quotas, tick, horizon, &windows)?),
        };
        Ok(CounterRing::of_repr(window, repr))
    }
}

impl CounterRing {
    /// Creates a strict ring of [`DEFAULT_CELLS`](Self::DEFAULT_CELLS) cells: at most the limit in any interval of one
    /// window.
    ///
    /// Its state takes 496 bytes. For a large table of keys, set fewer cells by [`builder`](Self::builder).
    ///
    /// # Errors
    ///
    /// `cells` or `limit`: invalid for the quota, as listed at [`CounterRingBuilder::build`].
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Self::builder(quota).build()
    }

    /// Creates a fixed window: one cell, which begins at every multiple of the window. Any interval of one window holds at
    /// most twice the limit, and these permits may all be admitted around the edge of two cells.
    ///
    /// # Errors
    ///
    /// `cells` or `limit`: invalid for the quota, as listed at [`CounterRingBuilder::build`].
    pub fn fixed_window(quota: Quota) -> Result<Self, ConfigError> {
        Self::builder(quota).classic().cells(1).build()
    }

    /// Returns a builder, which sets the cells and the way of counting.
    pub fn builder(quota: Quota) -> CounterRingBuilder {
        CounterRingBuilder::new(quota)
    }
}

/// The maximum number of cells per window.
const MAX_CELLS: u64 = 4096;

/// The minimum width of a cell, in nanoseconds. Rounding up to a whole nanosecond then widens a cell by less than a tenth.
const MIN_CELL: u64 = 10;

/// The width of a tick in nanoseconds, and for each window the width of a cell in ticks.
///
/// Cell widths are rounded up to whole ticks, so N cells cover the window. A wider cell makes a ring only stricter.
///
/// A tick is 1/k of the narrowest cell, rounded up, for a k of 1 to 16. The chosen k is the smallest for which rounding widens
/// every cell by less than a twentieth. If there is none, it is the k for which the worst widening, in whole twentieths, is
/// least.
fn tick_and_cell_widths(quotas: &[Quota], cells: u64) -> (u64, Vec<u64>) {
    let exact_width = |quota: &Quota| quota.window_nanos().div_ceil(cells);
    let narrowest = quotas.iter().map(exact_width).min().unwrap_or(1);
    // In twentieths of the exact width, rounded down.
    let worst_widening = |tick: u64| {
        let excess = |quota| exact_width(quota).next_multiple_of(tick) - exact_width(quota);
        quotas
            .iter()
            .map(|quota| 20 * excess(quota) / exact_width(quota))
            .max()
            .unwrap_or(0)
    };
    let tick = (1..=16)
        .map(|parts| narrowest.div_ceil(parts))
        .min_by_key(|&tick| worst_widening(tick))
        .unwrap_or(narrowest);
    (
        tick,
        quotas
            .iter()
            .map(|quota| exact_width(quota).div_ceil(tick))
            .collect(),
    )
}

fn wide(
    quotas: &[Quota],
    tick: u64,
    horizon: u64,
    windows: &[(CellWindow, u64)],
) -> Result<WideRing, ConfigError> {
    let limit = quotas.iter().map(|quota| quota.limit()).max().unwrap_or(0);
    // The first tick is later than the summed cells of every window, so a zeroed slot is in no sum. In a ring with shares it
    // is a multiple of N, as in a packed ring, so that both give the same share to the same cell.
    let first_tick = windows
        .iter()
        .map(|(cell_window, width)| 2 * cell_window.summed() * width)
        .max()
        .unwrap_or(0);
    let layout = TotalLayout::new(limit);
    let last = horizon + first_tick;
    if layout.last_tick() < last {
        // One bit is the flag `entering`, and one is for debt. The other bits hold the tick and the limit.
        let bits = FIRST_WORD_BITS - 2 - (u64::BITS - last.leading_zeros());
        return Err(ConfigError::new(
            "limit",
            format!("{limit} permits with cells of {:?}", Duration::from_nanos(tick)),
            format!(
                "at most {} permits with such cells, or fewer and wider cells",
                (1_u64 << bits) - 1
            ),
        ));
    }
    Ok(WideRing::new(layout, tick, first_tick, windows))
}
