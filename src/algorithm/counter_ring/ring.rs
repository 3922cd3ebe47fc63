use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use crate::algorithm::attempt::Attempt;
use crate::algorithm::cell_window::CellWindow;
use crate::algorithm::packed_ring::PackedRing;
use crate::algorithm::traits::{Algorithm, Reclaim, earliest};
use crate::algorithm::wide_ring::WideRing;
use crate::error::ConfigError;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

/// The sliding window counter: the window as N cells, and a count for each.
///
/// | strict, by cells | bytes of state | bytes a key in a table | a client paced at the limit gets | `Retry-After` after a burst, limit per minute |
/// |--:|--:|--:|--:|--:|
/// | 5 | 8 or 56 | 16 or 64 | 83.3 % | up to 72 s |
/// | 13 | 8 or 120 | 16 or 128 | 92.8 % | up to 65 s |
/// | 29 | 248 | 256 | 96.6 % | up to 63 s |
/// | 60, the default | 496 | 512 | 98.3 % | up to 61 s |
/// | 61 | 504 | 512 | 98.3 % | up to 61 s |
///
/// The fourth column is N/(N + 1) of the requests, for a limit that is a multiple of N. For any limit L it is at least
/// L/⌈L·(N + 1)/N⌉: with 60 cells 98 % from a limit of 300 on, 97 % from 60 on, and L/(L + 1) below 60. A limit of up to 60
/// is better kept by a [`TimestampRing`](crate::TimestampRing): it takes 8·(L + 1) bytes, no more than 60 cells, and admits
/// all requests of a paced client (to within its unit of time). The smaller size of a row is that of a quota that fits into one word.
///
/// | made by | worst case in any interval of one window W | saturated throughput |
/// |---|---|---|
/// | [`new`](Self::new), strict | L | at least L·N/(N+1) per W |
/// | [`classic`](crate::algorithm::CounterRingBuilder::classic) | 2L | L per W |
/// | [`even`](crate::algorithm::CounterRingBuilder::even) | L + ⌈L/N⌉ | L per W, paced |
/// | [`fixed_window`](Self::fixed_window) | 2L | L per W |
///
/// Strict counts the current cell and the N before it, which is all that an interval of one window
/// can touch. Classic, which is what most limiters do, counts N cells. Even is classic with a share
/// of the limit for each cell, so that the limit cannot be used up at the window's beginning.
///
/// # Cost
///
/// A decision is one load and one compare-exchange on the control word, and one load of the base,
/// however many cells there are; the first look at a new cell enters it, in a number of steps that
/// grows with N. State: 8 bytes when the quota fits into one word (5 per minute or 30 per second
/// with 5 cells, 100 per minute with 4; none with 60), else 8·(N + 2) bytes, for classic and even 8·(N + 1) (24 at the
/// least). Which of the two it is follows from the quota; the promise is the same.
///
/// # Examples
///
/// ```
/// use ringgate::{CounterRing, Quota, RateLimiter};
///
/// # #[cfg(feature = "quanta")]
/// # fn main() -> Result<(), ringgate::ConfigError> {
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
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "quanta"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug)]
#[doc(alias = "sliding window")]
pub struct CounterRing {
    pub(super) window: Duration,
    pub(super) repr: Repr,
}

/// The two representations of a ring. They differ in words, not in decisions.
#[derive(Clone, Debug)]
pub(super) enum Repr {
    Packed(PackedRing),
    Wide(WideRing),
}

/// Runs the same expression on either representation.
macro_rules! either {
    ($ring:expr, $repr:ident => $work:expr) => {
        match &$ring.repr {
            Repr::Packed($repr) => $work,
            Repr::Wide($repr) => $work,
        }
    };
}

impl CounterRing {
    /// Cells per window of a strict ring, unless others are set: 496 bytes of state. A strict ring denies for up to one cell
    /// too long, so with fewer cells it would deny more requests of clients that keep to the limit.
    pub const DEFAULT_CELLS: u64 = 60;

    /// Cells per window of a classic or even ring, unless others are set. These rings do not deny a client that keeps to the
    /// limit, whatever their cells.
    pub const DEFAULT_CLASSIC_CELLS: u64 = 5;

    /// The most cells that a window is divided into.
    pub const MAX_CELLS: u64 = 4096;

    /// Width of a cell; with several windows, of the tick that all their cells consist of.
    #[must_use]
    pub fn cell(&self) -> Duration {
        Duration::from_nanos(either!(self, repr => repr.cells()).width())
    }

    /// This ring with a lower limit for each window, over the same words.
    pub(crate) fn with_limits(&self, limits: &[u64]) -> Result<Self, ConfigError> {
        let most = self.limits();
        if most.len() != limits.len() {
            return Err(ConfigError::new(
                "windows",
                format!("{}", most.len()),
                "one window for a ring whose limit is lowered",
            ));
        }
        if let Some((limit, most)) = limits
            .iter()
            .zip(most)
            .find(|&(&limit, most)| limit == 0 || limit > most)
        {
            return Err(ConfigError::new(
                "limit",
                format!("{limit}"),
                format!("1 to {most} permits, the limit that is lowered"),
            ));
        }
        let repr = match &self.repr {
            Repr::Packed(packed) => Repr::Packed(packed.with_limit(limits[0])),
            Repr::Wide(wide) => Repr::Wide(wide.with_limit(limits)),
        };
        Ok(Self {
            window: self.window,
            repr,
        })
    }

    /// The limit of each window.
    pub(crate) fn limits(&self) -> Vec<u64> {
        match &self.repr {
            Repr::Packed(packed) => alloc::vec![packed.cell_window().limit()],
            Repr::Wide(wide) => wide.cell_windows().map(CellWindow::limit).collect(),
        }
    }

    /// The capacity left in one window.
    #[cfg(feature = "rules")]
    pub(crate) fn remaining_in<W: Words>(&self, window: usize, words: W, now: Nanos) -> u64 {
        match &self.repr {
            Repr::Packed(packed) => packed.remaining(words, now),
            Repr::Wide(wide) => wide.remaining_in(window, words, now),
        }
    }

    /// The earliest instant, `now` or later, at which one window has room for `permits`.
    #[cfg(feature = "rules")]
    pub(crate) fn ready_in<W: Words>(
        &self,
        window: usize,
        words: W,
        now: Nanos,
        permits: u64,
    ) -> Option<Nanos> {
        match &self.repr {
            Repr::Packed(_) => self.ready_at(words, now, permits),
            Repr::Wide(wide) => wide.ready_in(window, words, now, permits),
        }
    }
}

impl Algorithm for CounterRing {
    fn words(&self) -> usize {
        match &self.repr {
            Repr::Packed(_) => 1,
            Repr::Wide(wide) => wide.words(),
        }
    }

    fn max_request(&self) -> u64 {
        match &self.repr {
            Repr::Packed(packed) => packed.cell_window().max_request(),
            Repr::Wide(wide) => wide
                .cell_windows()
                .map(CellWindow::max_request)
                .min()
                .unwrap_or(0),
        }
    }

    /// With several windows: the bound of the first that was given, which
    /// [`window`](Self::window) is.
    fn bound(&self) -> u64 {
        either!(self, repr => repr.cell_window().bound())
    }

    fn window(&self) -> Duration {
        self.window
    }

    #[inline(always)]
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        if permits == 0 {
            return Some(Receipt::new(now, 0, 0));
        }
        either!(self, repr => {
            let tick = repr.cells().tick(now);
            repr.decide(words, tick, permits)
                .map(|charged| Receipt::new(repr.cells().stamp(now, tick, charged), permits, charged))
        })
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        match permits {
            0 => Some(now),
            permits if permits > self.max_request() => None,
            permits => either!(self, repr => repr.ready_at(words, now, permits)),
        }
    }

    fn earliest<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        let most = self.max_request();
        // Shares come one after the other, so what is more than some of them may be had sooner in parts.
        let shared = most < either!(self, repr => repr.cell_window().limit());
        earliest(self, words, now, permits, if shared { 1 } else { most })
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        either!(self, repr => repr.remaining(words, now))
    }

    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        if permits == 0 || permits > receipt.permits() {
            return permits == 0;
        }
        either!(self, repr => repr.refund(words, receipt, permits))
    }

    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        if permits == 0 {
            return 0;
        }
        either!(self, repr => repr.charge(words, now, permits))
    }

    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        either!(self, repr => repr.spent(words, now))
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        either!(self, repr => repr.idle_at(words, now))
    }
}

impl Reclaim for CounterRing {
    fn span(&self) -> Duration {
        let ticks = match &self.repr {
            Repr::Packed(packed) => packed.cell_window().summed(),
            Repr::Wide(wide) => wide.longest(),
        };
        // A window is at most 366 days; with its cells rounded up, still below 2^63 nanoseconds.
        let width = either!(self, repr => repr.cells()).width();
        Duration::from_nanos(width.saturating_mul(ticks))
    }

    #[inline(always)]
    fn attempt<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Attempt {
        if permits == 0 {
            return Attempt::Admitted(Receipt::new(now, 0, 0));
        }
        either!(self, repr => {
            let tick = repr.cells().tick(now);
            repr.attempt_or_enter(words, tick, permits)
                .map(|charged| Receipt::new(repr.cells().stamp(now, tick, charged), permits, charged))
        })
    }

    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        either!(self, repr => repr.is_idle(first, now))
    }

    fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        either!(self, repr => repr.advance(first, now))
    }

    fn idle_from(&self, first: u64) -> Option<Nanos> {
        either!(self, repr => repr.idle_from(first))
    }

    fn latest_time(&self, first: u64) -> Nanos {
        either!(self, repr => repr.latest_time(first))
    }

    /// Cells stay what they are, so that the counts keep their meaning; of an even ring, the shares
    /// are those of the lower limit.
    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        self.with_limits(&[limit])
    }
}
