use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::algorithm::attempt::Attempt;
use crate::algorithm::cell_window::{CellWindow, WindowLimit as _};
use crate::algorithm::entered_ring::EnteredRing;
use crate::algorithm::forward::{forward_reclaim_to_cells, forward_to_cells};
use crate::algorithm::grouped_ring::GroupedRing;
use crate::algorithm::traits::{
    Algorithm, Reclaim, begin_and_charge, earliest, lowered_limit, remaining_and_reset,
};
use crate::algorithm::unit_ring::{UnitCells, UnitRing};
use crate::algorithm::wide_ring::WideRing;
use crate::error::ConfigError;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

/// The sliding window counter: it divides the window into N cells, and keeps a count for each.
///
/// | cells of a strict ring | bytes of state | bytes per entry of a table | a client paced at the limit gets | `Retry-After` after a burst, limit per minute |
/// |--:|--:|--:|--:|--:|
/// | 5 | 8 or 56 | 16 or 48 | 83.3 % | up to 72 s |
/// | 13 | 8 or 120 | 16 or 64 | 92.8 % | up to 65 s |
/// | 29 | 248 | 96 | 96.6 % | up to 63 s |
/// | 60, the default | 496 | 160 | 98.3 % | up to 61 s |
/// | 61 | 504 | 160 | 98.3 % | up to 61 s |
///
/// The smaller size of a row applies to a quota that fits into one word. A table with states of one word has two entries for each
/// key of its capacity. Other tables have five for every four keys.
///
/// In a table, a ring of one window keeps several counts in a word. The third column is for a limit of 1,000 per minute. With 60
/// cells, an entry takes 144 bytes for a limit of 100, and 288 for 10,000. Windows of a second, and larger limits, take more.
/// Even rings, rings of several windows and the rings of rules take one word for a cell, as outside a table. The words of a rule
/// must also hold a limit that a reload raises.
///
/// The fourth column is N/(N + 1) of the requests, for a limit that is a multiple of N. For any limit L it is at least
/// L/⌈L·(N + 1)/N⌉. With 60 cells this is 98 % from a limit of 300 on, 97 % from 60 on, and L/(L + 1) below 60.
///
/// A permit counts for one window and the rest of its cell. So a test that takes the whole limit, advances a
/// [`ManualClock`](crate::ManualClock) by the window and expects capacity fails by one cell. Advance it by the
/// [`retry_after`](crate::Denied::retry_after) of a denial: see [`ManualClock`](crate::ManualClock).
///
/// For a limit of up to 60, a [`TimestampRing`](crate::TimestampRing) is a better choice. It takes 8·(L + 1) bytes, no more than
/// 60 cells do. It admits all requests of a paced client, to within its unit of time.
///
/// | constructor | worst case in any interval of one window W | saturated throughput |
/// |---|---|---|
/// | [`new`](Self::new), strict | L | at least L·N/(N+1) per W |
/// | [`classic`](crate::algorithm::CounterRingBuilder::classic) | 2L | L per W |
/// | [`even`](crate::algorithm::CounterRingBuilder::even) | L + ⌈L/N⌉ | L per W, paced |
/// | [`fixed_window`](Self::fixed_window) | 2L | L per W |
///
/// - Strict counts the current cell and the N cells before it: all cells that an interval of one window can touch.
/// - Classic counts N cells, as most limiters do.
/// - Even is classic with a share of the limit for each cell, so that the limit cannot be used up at the beginning of the
///   window.
///
/// # Cost
///
/// A decision is one load and one compare-exchange of the control word, and one load of the base, for any number of cells. An
/// admission in a table does not load the base. The first decision in a new cell enters the cell, in a number of steps that grows
/// with N.
///
/// The state takes 8 bytes if the quota fits into one word (up to 30 per minute or 24 per second with 5 cells, no quota with
/// 60, and every fixed window). Otherwise it takes 8·(N + 2) bytes, for classic and even 8·(N + 1) and at least 24. The quota alone
/// determines which, and the bounds are the same.
///
/// # Examples
///
/// ```
/// use ringgate::{CounterRing, Quota, RateLimiter};
///
/// // At most 100 in any minute.
/// let strict = RateLimiter::new(CounterRing::new(Quota::per_minute(100)?)?);
/// assert_eq!(strict.bound(), 100);
///
/// // Several windows over one state, decided in one step.
/// let login = CounterRing::builder("10/s".parse()?)
///     .also("100/min".parse()?)
///     .also("1000/h".parse()?)
///     .build()?;
/// assert!(RateLimiter::new(login).check().is_ok());
/// # Ok::<(), ringgate::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "sliding window")]
pub struct CounterRing {
    window: Duration,
    repr: Repr,
    /// The highest limit that [`with_limit`](Reclaim::with_limit) accepts: the limit, or 0 with several windows.
    highest: u64,
}

/// The three representations of a ring. Their words differ, and their decisions are the same.
#[derive(Clone, Debug)]
pub(super) enum Repr {
    Packed(UnitCells),
    /// One window in a table of keys.
    Grouped(GroupedRing),
    Wide(WideRing),
}

/// Runs the same expression on any representation.
macro_rules! either {
    ($ring:expr, $repr:ident => $work:expr) => {
        match &$ring.repr {
            Repr::Packed($repr) => $work,
            Repr::Grouped($repr) => $work,
            Repr::Wide($repr) => $work,
        }
    };
}

impl CounterRing {
    /// The default number of cells per window of a strict ring: 496 bytes of state. A strict ring may deny for one cell too
    /// long, so with fewer cells it denies more requests of clients that keep to the limit.
    pub const DEFAULT_CELLS: u64 = 60;

    /// The default number of cells per window of a classic or even ring. These rings do not deny a client that keeps to the
    /// limit, for any number of cells.
    pub const DEFAULT_CLASSIC_CELLS: u64 = 5;

    /// A ring of the same word as `ring`.
    pub(crate) fn of_units(ring: &UnitRing) -> Self {
        Self::of_repr(ring.window(), Repr::Packed(ring.unit_cells().of_counter()))
    }

    pub(super) fn of_repr(window: Duration, repr: Repr) -> Self {
        let highest = match &repr {
            Repr::Packed(packed) => packed.cell_window().limit(),
            Repr::Grouped(grouped) => grouped.cell_window().limit(),
            Repr::Wide(wide) if wide.cell_windows().count() > 1 => 0,
            Repr::Wide(wide) => wide.cell_window().limit(),
        };
        Self {
            window,
            repr,
            highest,
        }
    }

    /// Returns the width of a cell. With several windows, it is the width of a tick, of which the cells of each window are
    /// multiples.
    #[must_use]
    pub fn cell(&self) -> Duration {
        Duration::from_nanos(either!(self, repr => repr.cells().width()))
    }

    /// This ring with a lower limit for each window, over the same words.
    pub(crate) fn with_limits(&self, limits: &[u64]) -> Result<Self, ConfigError> {
        let current = || self.cell_windows().map(CellWindow::limit);
        let windows = current().count();
        if windows != limits.len() {
            return Err(ConfigError::new(
                "windows",
                format!("{windows}"),
                "one window for a ring whose limit is lowered",
            ));
        }
        for (&limit, current) in limits.iter().zip(current()) {
            lowered_limit(limit, current)?;
        }
        let repr = match &self.repr {
            Repr::Packed(packed) => Repr::Packed(packed.with_limit(limits[0])),
            Repr::Grouped(grouped) => Repr::Grouped(grouped.with_limit(limits[0])),
            Repr::Wide(wide) => Repr::Wide(wide.with_limit(limits)),
        };
        Ok(Self::of_repr(self.window, repr))
    }

    /// The limit of each window.
    pub(crate) fn limits(&self) -> Vec<u64> {
        self.cell_windows().map(CellWindow::limit).collect()
    }

    fn cell_windows(&self) -> impl Iterator<Item = &CellWindow> {
        let (one, several) = match &self.repr {
            Repr::Packed(packed) => (Some(packed.cell_window()), None),
            Repr::Grouped(grouped) => (Some(grouped.cell_window()), None),
            Repr::Wide(wide) => (None, Some(wide.cell_windows())),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }

    /// The capacity left in the window with the index `window`.
    pub(crate) fn remaining_in<W: Words>(&self, window: usize, words: W, now: Nanos) -> u64 {
        match &self.repr {
            Repr::Packed(packed) => packed.remaining(words, now),
            Repr::Grouped(grouped) => grouped.remaining(words, now),
            Repr::Wide(wide) => wide.remaining_in(window, words, now),
        }
    }

    /// The earliest instant, `now` or later, at which the window with the index `window` has the capacity for `permits`.
    pub(crate) fn ready_in<W: Words>(
        &self,
        window: usize,
        words: W,
        now: Nanos,
        permits: u64,
    ) -> Option<Nanos> {
        match &self.repr {
            Repr::Packed(_) | Repr::Grouped(_) => self.ready_at(words, now, permits),
            Repr::Wide(wide) => wide.ready_in(window, words, now, permits),
        }
    }

    /// The capacity left in the window with the index `window`, and the earliest instant at which it is larger.
    pub(crate) fn remaining_and_reset_in<W: Words>(
        &self,
        window: usize,
        words: W,
        now: Nanos,
    ) -> (u64, Option<Nanos>) {
        match &self.repr {
            Repr::Packed(_) => remaining_and_reset(self, words, now),
            Repr::Grouped(grouped) => grouped.remaining_and_reset(words, now),
            Repr::Wide(wide) => wide.remaining_and_reset_in(window, words, now),
        }
    }
}

/// The cells, and the word if there is only one: `60 cells`, `one word of 16 cells in units of 4`.
impl fmt::Display for CounterRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell_window = either!(self, repr => repr.cell_window());
        let unit = match &self.repr {
            Repr::Packed(packed) if cell_window.summed() > 1 => {
                f.write_str("one word of ")?;
                Some(packed.unit())
            }
            Repr::Packed(_) | Repr::Grouped(_) | Repr::Wide(_) => None,
        };
        cell_window.fmt(f)?;
        unit.map_or(Ok(()), |unit| write!(f, " in units of {unit}"))
    }
}

impl Algorithm for CounterRing {
    fn words(&self) -> usize {
        match &self.repr {
            Repr::Packed(_) => 1,
            Repr::Grouped(grouped) => grouped.words(),
            Repr::Wide(wide) => wide.words(),
        }
    }

    fn max_request(&self) -> u64 {
        match &self.repr {
            Repr::Packed(packed) => packed.cell_window().max_request(),
            Repr::Grouped(grouped) => grouped.cell_window().max_request(),
            Repr::Wide(wide) => wide
                .cell_windows()
                .map(CellWindow::max_request)
                .min()
                .unwrap_or(0),
        }
    }

    /// With several windows, it is the bound of the first one, and [`window`](Self::window) is that one.
    fn bound(&self) -> u64 {
        either!(self, repr => repr.cell_window().bound())
    }

    fn window(&self) -> Duration {
        self.window
    }

    forward_to_cells!(either);

    fn earliest<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        let max_request = self.max_request();
        // With shares, several requests in consecutive cells may get the permits sooner than one request does.
        // Without shares, the largest request may also be below the limit, which is then that of another window.
        let has_shares = either!(self, repr => {
            let cell_window = repr.cell_window();
            cell_window.shares().is_some() && max_request < cell_window.limit()
        });
        let at_once = if has_shares { 1 } else { max_request };
        let before = permits.saturating_sub(1);
        let Some(windows) = before.checked_div(self.highest).filter(|_| permits > 0) else {
            return earliest(self, words, now, permits, at_once);
        };
        // The summed cells hold at most the limit, so each `highest` permits after the first `rest + 1` take at least as many
        // cells as are summed. Of the rest, a cell admits at most `max_request`.
        let rest = before % self.highest;
        let ready = self.ready_at(words, now, (rest + 1).min(at_once))?;
        either!(self, repr => {
            let cells = repr.cells();
            let later = windows
                .saturating_mul(repr.cell_window().summed())
                .saturating_add(rest / max_request);
            match later {
                0 => Some(ready),
                later => cells.start(cells.tick(ready).saturating_add(later)),
            }
        })
    }

    /// The start of the next cell.
    ///
    /// A window that includes the restore may begin in a cell of the old clock that the saved state no longer summed. The bound
    /// has capacity for one such cell, in addition to the limit. Charged to the next cell, the saved permits count for a whole
    /// window after the restore, and in that window the ring admits no more than the rest of its limit.
    fn restored_at(&self, now: Nanos, idle_after: Duration) -> Nanos {
        // With several windows it is not known which one counts for so long.
        let span = if self.highest > 0 {
            self.span()
        } else {
            Duration::ZERO
        };
        either!(self, repr => repr.cells().restored_at(now, idle_after, span, self.span()))
    }
}

impl Reclaim for CounterRing {
    fn span(&self) -> Duration {
        let ticks = match &self.repr {
            Repr::Packed(packed) => packed.cell_window().summed(),
            Repr::Grouped(grouped) => grouped.cell_window().summed(),
            Repr::Wide(wide) => wide.longest(),
        };
        // A window is at most 366 days. With its cells rounded up it is still below 2^63 nanoseconds.
        let width = either!(self, repr => repr.cells().width());
        Duration::from_nanos(width.saturating_mul(ticks))
    }

    forward_reclaim_to_cells!(either);

    fn finish_step<W: Words>(&self, words: W) {
        // No cell is older than that of tick 0, so this enters no cell.
        match &self.repr {
            Repr::Packed(_) => {}
            Repr::Grouped(grouped) => grouped.enter(words, 0),
            Repr::Wide(wide) => wide.enter(words, 0),
        }
    }

    fn cells_and_unit(&self) -> Option<(u64, u64)> {
        match &self.repr {
            Repr::Packed(packed) if packed.cell_window().summed() > 1 => {
                Some((packed.cell_window().cells(), packed.unit()))
            }
            // A fixed window has no units, and the other cells have a word each.
            Repr::Packed(_) | Repr::Grouped(_) | Repr::Wide(_) => None,
        }
    }

    /// The cells do not change, so the counts keep their meaning. The shares of an even ring are those of the lower limit.
    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        self.with_limits(&[limit])
    }

    /// One window without shares keeps several counts in a word, if this takes fewer words. Every lower limit is counted exactly.
    fn for_table(self, _lowest: u64) -> Result<Self, ConfigError> {
        let grouped = match &self.repr {
            // With one or two cells it takes a word more, but an admission reads a word less.
            Repr::Wide(wide) => GroupedRing::of_wide(wide).filter(|it| it.words() <= wide.words().max(5)),
            Repr::Packed(_) | Repr::Grouped(_) => None,
        };
        Ok(match grouped {
            Some(grouped) => Self::of_repr(self.window, Repr::Grouped(grouped)),
            None => self,
        })
    }

    #[inline(always)]
    fn lower_limits(&self) -> (u64, u64) {
        (1, self.highest)
    }
}
