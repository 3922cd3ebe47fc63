use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use super::ring::{CounterRing, Repr};
use crate::algorithm::cell_window::{CellWindow, Variant};
use crate::algorithm::packed_ring::PackedRing;
use crate::algorithm::traits::FIRST_WORD_BITS;
use crate::algorithm::wide_ring::TotalLayout;
use crate::algorithm::wide_ring::WideRing;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::time::HORIZON;

/// A [`CounterRing`] in the making.
///
/// # Examples
///
/// ```
/// use ringgate::{Algorithm, CounterRing};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// // Five cells: 8 bytes instead of 496, and a denial may last 12 s too long instead of 1 s.
/// let small = CounterRing::builder("5/min".parse()?).cells(5).build()?;
/// // A tenth of the limit in each tenth of the window, and not all at once.
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
    /// The number that was set.
    cells: Option<u64>,
    variant: Variant,
    packed: bool,
}

impl CounterRingBuilder {
    /// The defaults: strict, [`CounterRing::DEFAULT_CELLS`] cells, in one word where it fits.
    pub(super) const fn new(quota: Quota) -> Self {
        Self {
            first: quota,
            more: Vec::new(),
            cells: None,
            variant: Variant::Strict,
            packed: true,
        }
    }

    /// Sets the cells per window, 1 to [`CounterRing::MAX_CELLS`]. The default is [`CounterRing::DEFAULT_CELLS`] for a
    /// strict ring, and [`CounterRing::DEFAULT_CLASSIC_CELLS`] for a classic or even one.
    ///
    /// More cells follow an exact log more closely, because decisions differ from it by less than a cell. They cost memory,
    /// and steps when a cell is entered or a retry time is computed. Other decisions cost the same. [`CounterRing`] has a
    /// table.
    pub fn cells(mut self, cells: u64) -> Self {
        self.cells = Some(cells);
        self
    }

    /// Counts the current cell and the N before it: never more than L in a window. The default.
    pub fn strict(mut self) -> Self {
        self.variant = Variant::Strict;
        self
    }

    /// Counts N cells, the current one included: up to 2L in a window, and L per W when saturated.
    pub fn classic(mut self) -> Self {
        self.variant = Variant::Classic;
        self
    }

    /// Gives each cell its own share of the limit: up to L + ⌈L/N⌉ in a window, and spread over it. A
    /// request for more than the largest share ⌈L/N⌉ is never admitted.
    pub fn even(mut self) -> Self {
        self.variant = Variant::Even;
        self
    }

    /// Adds a window over the same state: a request is admitted when every window has room, and
    /// charged to all in one compare-exchange. Each window has the same number of cells; strict and
    /// classic only.
    pub fn also(mut self, quota: Quota) -> Self {
        self.more.push(quota);
        self
    }

    /// Keeps one word per cell even where the quota fits into a single word, for comparing the two
    /// forms. Decisions are the same; a debt of more than about the limit is forgiven here, where a
    /// single word has no need to.
    pub fn unpacked(mut self) -> Self {
        self.packed = false;
        self
    }

    /// Builds the ring.
    ///
    /// # Errors
    ///
    /// - `cells`: not 1 to 4096, or so many that a cell is under 10 nanoseconds wide;
    /// - `limit`: so large that its counts and the ticks of 20 years do not share a word (a limit of
    ///   10^6 needs cells of 0.6 ms, 10^9 of 0.6 s, 10^12 of 10.1 min);
    /// - `windows`: several windows for an even ring.
    pub fn build(self) -> Result<CounterRing, ConfigError> {
        let cells = self.cells.unwrap_or(match self.variant {
            Variant::Strict => CounterRing::DEFAULT_CELLS,
            Variant::Classic | Variant::Even => CounterRing::DEFAULT_CLASSIC_CELLS,
        });
        if cells == 0 || cells > CounterRing::MAX_CELLS {
            return Err(ConfigError::new(
                "cells",
                format!("{cells}"),
                format!("1 to {}", CounterRing::MAX_CELLS),
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
        let (width, ticks) = ticks(&quotas, cells);
        let windows: Vec<(CellWindow, u64)> = quotas
            .iter()
            .zip(ticks)
            .map(|(quota, ticks)| (CellWindow::new(self.variant, quota.limit(), cells), ticks))
            .collect();
        let horizon = HORIZON / width;
        let repr = match windows.as_slice() {
            &[(cell_window, _)] if self.packed => {
                PackedRing::new(cell_window, width, horizon).map(Repr::Packed)
            }
            _ => None,
        };
        let repr = match repr {
            Some(repr) => repr,
            None => Repr::Wide(wide(&quotas, width, horizon, &windows)?),
        };
        Ok(CounterRing { window, repr })
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

    /// The fixed window: one cell, which begins anew at every multiple of the window. At most twice
    /// the limit in any interval of one window, as much within an instant around the edge.
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

/// The narrowest cell, in nanoseconds: rounding up to a whole one then widens a cell by less than a tenth.
const MIN_CELL: u64 = 10;

/// The nanoseconds of a tick, and for each window the ticks of a cell: so many that N cells cover
/// the window, since rounding up makes a ring stricter only.
///
/// A tick is the narrowest cell if the other windows' cells are about whole numbers of it, else a
/// part of it: the coarsest that makes no cell more than a twentieth too wide, or the best of
/// sixteen.
fn ticks(quotas: &[Quota], cells: u64) -> (u64, Vec<u64>) {
    let wanted = |quota: &Quota| quota.window_nanos().div_ceil(cells);
    let narrowest = quotas.iter().map(wanted).min().unwrap_or(1);
    let too_wide = |width: u64| {
        let excess = |quota| wanted(quota).next_multiple_of(width) - wanted(quota);
        // In twentieths of the cell, rounded down.
        quotas
            .iter()
            .map(|quota| 20 * excess(quota) / wanted(quota))
            .max()
            .unwrap_or(0)
    };
    let width = (1..=16)
        .map(|parts| narrowest.div_ceil(parts))
        .min_by_key(|&width| too_wide(width))
        .unwrap_or(narrowest);
    (
        width,
        quotas.iter().map(|quota| wanted(quota).div_ceil(width)).collect(),
    )
}

fn wide(
    quotas: &[Quota],
    width: u64,
    horizon: u64,
    windows: &[(CellWindow, u64)],
) -> Result<WideRing, ConfigError> {
    let limit = quotas.iter().map(|quota| quota.limit()).max().unwrap_or(0);
    // Later than one sum of every window, so that a zeroed slot is in none; and a multiple of its
    // cells, so that shares fall on the same cells as in a packed ring, whose first tick is
    // one cell_window.
    let first_tick = windows
        .iter()
        .map(|(cell_window, ticks)| 2 * cell_window.summed() * ticks)
        .max()
        .unwrap_or(0);
    let layout = TotalLayout::new(limit);
    let last = horizon + first_tick;
    if layout.last_tick() < last {
        // One bit is the flag, one keeps debt apart; the rest is for the tick and the limit.
        let bits = FIRST_WORD_BITS - 2 - (u64::BITS - last.leading_zeros());
        return Err(ConfigError::new(
            "limit",
            format!("{limit} permits with cells of {:?}", Duration::from_nanos(width)),
            format!(
                "at most {} permits with such cells, or fewer and wider cells",
                (1_u64 << bits) - 1
            ),
        ));
    }
    Ok(WideRing::new(layout, width, first_tick, windows))
}
