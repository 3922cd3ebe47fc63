use alloc::format;
use core::fmt;
use core::time::Duration;

use super::cells::UnitCells;
use super::choose::choose;
use crate::algorithm::attempt::Attempt;
use crate::algorithm::cell_window::{StrictLimit, WindowLimit};
use crate::algorithm::forward::{forward_reclaim_to_cells, forward_to_cells};
use crate::algorithm::traits::{Algorithm, Reclaim, begin_and_charge, lowered_limit};
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

/// An exact sliding window in one word: at most the limit in any interval of one window.
///
/// It counts *units* of u = 2^k permits in N cells. The constructor chooses N and u so that a client that asks at an even pace
/// gets the largest guaranteed share. A [`SlidingWindow`](crate::SlidingWindow) uses it for tables of keys.
///
/// | limit | cells of a unit, per second | guaranteed | per minute | guaranteed | per day | guaranteed |
/// |--:|--:|--:|--:|--:|--:|--:|
/// | 1 | 26 of 1 | 50 % | 31 of 1 | 50 % | 41 of 1 | 50 % |
/// | 2 | 25 of 1 | 67 % | 30 of 1 | 67 % | 40 of 1 | 67 % |
/// | 5 | 22 of 1 | 83 % | 27 of 1 | 83 % | 37 of 1 | 83 % |
/// | 10 | 17 of 1 | 91 % | 23 of 1 | 91 % | 33 of 1 | 91 % |
/// | 30 | 12 of 2 | 88 % | 17 of 2 | 91 % | 14 of 1 | 91 % |
/// | 60 | 11 of 4 | 86 % | 16 of 4 | 89 % | 26 of 4 | 90 % |
/// | 100 | 13 of 8 | 86 % | 18 of 8 | 88 % | 17 of 4 | 92 % |
/// | 1,000 | 7 of 64 | 82 % | 12 of 64 | 86 % | 22 of 64 | 90 % |
/// | 10,000 | 9 of 1,024 | 81 % | 14 of 1,024 | 84 % | 16 of 512 | 89 % |
/// | 1,000,000 | 5 of 131,072 | 72 % | 10 of 131,072 | 79 % | 13 of 65,536 | 87 % |
/// | 1,000,000,000 | 1 of 536,870,912 | 23 % | 4 of 268,435,456 | 59 % | 10 of 134,217,728 | 79 % |
///
/// The guaranteed share is (L − u + 1)/⌈L·(N + 1)/N⌉. A denial lasts up to one cell, and the time in which a unit fills,
/// longer than by an exact log.
///
/// # Guarantee
///
/// A window holds at most [`bound`](Algorithm::bound) permits, the limit. A unit is forgotten no earlier than any of its permits.
/// Debt and lower limits are exact to one unit.
///
/// A refund releases exactly the refunded permits. In the cell of the charge it restores the state. In a later cell it moves up
/// to u − 1 older permits to the newest cell, where they count for longer: for a window again, even if they have left the window
/// since the last decision. So permits that are often refunded or settled later are better counted by a
/// [`CounterRing`](crate::CounterRing).
///
/// # Cost
///
/// A decision is one load and one compare-exchange. A denial writes nothing. The state takes 8 bytes.
///
/// # Examples
///
/// ```
/// use ringgate::{Algorithm, KeyedRateLimiter, Quota, UnitRing};
///
/// let ring = UnitRing::new(Quota::per_minute(60)?)?;
/// assert_eq!((ring.words(), ring.bound(), ring.cells(), ring.unit()), (1, 60, 16, 4));
/// let limiter = KeyedRateLimiter::new(ring, 50_000)?;
/// assert!(limiter.check("alice").is_ok());
/// # Ok::<(), ringgate::ConfigError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct UnitRing {
    cells: UnitCells<StrictLimit>,
    /// W in nanoseconds.
    window: u64,
}

/// Runs an expression on the cells.
macro_rules! cells {
    ($ring:expr, $cells:ident => $work:expr) => {{
        let $cells = &$ring.cells;
        $work
    }};
}

impl UnitRing {
    /// Creates a ring with the cells and the unit that guarantee the largest share to a client at the limit.
    ///
    /// # Errors
    ///
    /// `limit`: so large for the window that no unit leaves enough bits for the ticks of 20 years, as with more than 10^9
    /// permits in a millisecond.
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Self::with_lowest_limit(quota, quota.limit())
    }

    /// Creates a ring with the cells and the unit that guarantee the largest share to a client at the limit `lowest`, 1 to the
    /// limit of the quota. Use it if some keys have a [lower limit](Reclaim::with_limit), because a unit of the highest limit is
    /// coarse for them.
    ///
    /// # Errors
    ///
    /// As listed at [`new`](Self::new), and `limit` if `lowest` is 0 or above the limit.
    pub fn with_lowest_limit(quota: Quota, lowest: u64) -> Result<Self, ConfigError> {
        quota.validate()?;
        lowered_limit(lowest, quota.limit())?;
        let Some(choice) = choose(quota, lowest) else {
            return Err(ConfigError::new(
                "limit",
                format!("{} permits in {:?}", quota.limit(), quota.window()),
                "a limit and a window whose cells fit into one word",
            ));
        };
        Ok(Self {
            cells: choice.cells,
            window: quota.window_nanos(),
        })
    }

    /// Returns N, the number of cells in a window. The ring sums the current cell and the N cells before it.
    #[must_use]
    pub const fn cells(&self) -> u64 {
        self.cells.count()
    }

    /// Returns u, the number of permits in a unit.
    #[must_use]
    pub const fn unit(&self) -> u64 {
        self.cells.unit()
    }

    /// Returns the share of requests that are surely admitted of a client that asks evenly, at the rate of the limit, as the
    /// pair (admitted, asked).
    ///
    /// The client gets at least L − u + 1 of ⌈L·(N + 1)/N⌉ requests: a denial proves that the N + 1 summed cells hold more
    /// than L − u permits.
    #[must_use]
    pub fn guaranteed_share(&self) -> (u64, u64) {
        let limit = self.cells.cell_window().limit();
        let cells = u128::from(self.cells());
        let asked = (u128::from(limit) * (cells + 1)).div_ceil(cells);
        (
            (limit + 1).saturating_sub(self.unit()),
            u64::try_from(asked).unwrap_or(u64::MAX),
        )
    }

    pub(in crate::algorithm) const fn unit_cells(&self) -> &UnitCells<StrictLimit> {
        &self.cells
    }
}

impl fmt::Display for UnitRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "one word of {} cells in units of {}",
            self.cells(),
            self.unit()
        )
    }
}

impl Algorithm for UnitRing {
    fn words(&self) -> usize {
        1
    }

    fn max_request(&self) -> u64 {
        self.cells.cell_window().limit()
    }

    fn bound(&self) -> u64 {
        self.cells.cell_window().limit()
    }

    fn window(&self) -> Duration {
        Duration::from_nanos(self.window)
    }

    forward_to_cells!(cells);

    /// The start of the next cell, as for a [`CounterRing`](crate::CounterRing).
    fn restored_at(&self, now: Nanos, idle_after: Duration) -> Nanos {
        let span = self.span();
        self.cells.cells().restored_at(now, idle_after, span, span)
    }
}

impl Reclaim for UnitRing {
    fn span(&self) -> Duration {
        Duration::from_nanos(self.cells.cells().width().saturating_mul(self.cells() + 1))
    }

    forward_reclaim_to_cells!(cells);

    fn cells_and_unit(&self) -> Option<(u64, u64)> {
        Some((self.cells(), self.unit()))
    }

    /// The cells and the unit do not change, so the marks keep their meaning.
    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        lowered_limit(limit, self.bound())?;
        Ok(Self {
            cells: self.cells.with_limit(limit),
            ..*self
        })
    }

    #[inline(always)]
    fn lower_limits(&self) -> (u64, u64) {
        (1, self.cells.cell_window().limit())
    }
}
