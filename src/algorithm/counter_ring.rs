#![doc = include_str!("counter_ring.md")]

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use super::packed_ring::PackedRing;
use super::span::{Span, Variant};
use super::wide_ring::WideRing;
use super::{Algorithm, Reclaim};
use crate::decision::{Receipt, Refusal};
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::sync::Words;
use crate::time::{Cells, HORIZON, Nanos};
use crate::word::{FIRST_WORD_BITS, MarkLayout};

/// The sliding window counter: the window as N cells, and a count for each.
///
/// | made by | worst case in any interval of one window W | saturated throughput |
/// |---|---|---|
/// | [`new`](Self::new), strict | L | at least L·N/(N+1) per W |
/// | [`classic`](CounterRingBuilder::classic) | 2L | L per W |
/// | [`even`](CounterRingBuilder::even) | L + ⌈L/N⌉ | L per W, paced |
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
/// with 5 cells, 100 per minute with 4), else 8·(N + 2) bytes, for classic and even 8·(N + 1) (24 at the
/// least).
/// Which of the two is chosen from the quota; the promise is the same.
///
/// # Examples
///
/// ```
/// use ringgate::{CounterRing, Quota, RateLimiter};
///
/// # #[cfg(feature = "quanta")]
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// // 100 in any minute, whichever minute is looked at.
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
    window: Duration,
    form: Form,
}

/// The two forms of a ring. They differ in words, not in decisions.
#[derive(Clone, Debug)]
enum Form {
    Packed(PackedRing),
    Wide(WideRing),
}

/// Runs the same expression on either form.
macro_rules! either {
    ($ring:expr, $form:ident => $work:expr) => {
        match &$ring.form {
            Form::Packed($form) => $work,
            Form::Wide($form) => $work,
        }
    };
}

impl CounterRing {
    /// Cells per window when none are named: a ring of five cells is 56 bytes, and strict lets
    /// 5/6 of the limit through when saturated.
    pub const DEFAULT_CELLS: u64 = 5;

    /// The most cells that a window is divided into.
    pub const MAX_CELLS: u64 = 4096;

    /// A strict ring of [`DEFAULT_CELLS`](Self::DEFAULT_CELLS) cells: at most the limit in any
    /// interval of one window.
    ///
    /// # Errors
    ///
    /// As [`CounterRingBuilder::build`].
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Self::builder(quota).build()
    }

    /// The fixed window: one cell, which begins anew at every multiple of the window. At most twice
    /// the limit in any interval of one window, as much within an instant around the edge.
    ///
    /// # Errors
    ///
    /// As [`CounterRingBuilder::build`].
    pub fn fixed_window(quota: Quota) -> Result<Self, ConfigError> {
        Self::builder(quota).classic().cells(1).build()
    }

    /// A ring with its cells and its way of counting to be chosen.
    pub fn builder(quota: Quota) -> CounterRingBuilder {
        CounterRingBuilder {
            first: quota,
            more: Vec::new(),
            cells: Self::DEFAULT_CELLS,
            variant: Variant::Strict,
            packed: true,
        }
    }

    /// Width of a cell; with several windows, of the tick that all their cells consist of.
    #[must_use]
    pub fn cell(&self) -> Duration {
        Duration::from_nanos(either!(self, form => form.cells()).width())
    }
}

impl Algorithm for CounterRing {
    fn words(&self) -> usize {
        match &self.form {
            Form::Packed(_) => 1,
            Form::Wide(wide) => wide.words(),
        }
    }

    fn most(&self) -> u64 {
        match &self.form {
            Form::Packed(packed) => packed.span().most(),
            Form::Wide(wide) => wide.spans().map(Span::most).min().unwrap_or(0),
        }
    }

    /// With several windows: the bound of the first that was given, which
    /// [`window`](Self::window) is.
    fn bound(&self) -> u64 {
        either!(self, form => form.span().bound())
    }

    fn window(&self) -> Duration {
        self.window
    }

    #[inline(always)]
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Result<Receipt, Refusal> {
        if permits == 0 {
            return Ok(Receipt::new(now, 0, 0));
        }
        either!(self, form => {
            let tick = form.cells().tick(now);
            answer(form.cells(), now, tick, permits, form.decide(words, tick, permits))
        })
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        match permits {
            0 => Some(now),
            permits if permits > self.most() => None,
            permits => either!(self, form => form.ready_at(words, now, permits)),
        }
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        either!(self, form => form.remaining(words, now))
    }

    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        if permits == 0 || permits > receipt.permits() {
            return permits == 0;
        }
        either!(self, form => form.refund(words, receipt, permits))
    }

    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        if permits == 0 {
            return 0;
        }
        either!(self, form => form.charge(words, now, permits))
    }

    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        either!(self, form => form.spent(words, now))
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        either!(self, form => form.idle_at(words, now))
    }
}

impl Reclaim for CounterRing {
    fn span(&self) -> Duration {
        let ticks = match &self.form {
            Form::Packed(packed) => packed.span().summed(),
            Form::Wide(wide) => wide.longest(),
        };
        self.cell() * u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn attempt<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Result<Receipt, Refusal>> {
        if permits == 0 {
            return Some(Ok(Receipt::new(now, 0, 0)));
        }
        either!(self, form => {
            let tick = form.cells().tick(now);
            form.attempt_or_advance(words, tick, permits)
                .answered(|taken| answer(form.cells(), now, tick, permits, taken))
        })
    }

    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        either!(self, form => form.is_idle(first, now))
    }

    fn later(&self, first: u64, now: Nanos) -> Option<u64> {
        either!(self, form => form.later(first, now))
    }

    /// Cells stay what they are, so that the counts keep their meaning; of an even ring, the shares
    /// are those of the lower limit.
    fn lowered(&self, limit: u64) -> Result<Self, ConfigError> {
        let form = match &self.form {
            Form::Wide(wide) if wide.spans().count() > 1 => {
                return Err(ConfigError::new(
                    "windows",
                    format!("{} windows", wide.spans().count()),
                    "one window for a ring whose limit is lowered",
                ));
            }
            _ => {
                let most = either!(self, form => form.span().limit());
                if limit == 0 || limit > most {
                    return Err(ConfigError::new(
                        "limit",
                        format!("{limit} permits"),
                        format!("1 to {most} permits, the limit that is lowered"),
                    ));
                }
                match &self.form {
                    Form::Packed(packed) => Form::Packed(packed.lowered(limit)),
                    Form::Wide(wide) => Form::Wide(wide.lowered(limit)),
                }
            }
        };
        Ok(Self {
            window: self.window,
            form,
        })
    }
}

/// What a caller with the reading `now`, in the cell at `tick`, is told when the cell at `taken` was
/// charged, or none.
#[inline(always)]
fn answer(
    cells: &Cells,
    now: Nanos,
    tick: u64,
    permits: u64,
    taken: Option<u64>,
) -> Result<Receipt, Refusal> {
    taken
        .map(|taken| Receipt::new(cells.stamp(now, tick, taken), permits, taken))
        .ok_or(Refusal::new(now, permits))
}

/// A [`CounterRing`] in the making.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct CounterRingBuilder {
    first: Quota,
    more: Vec<Quota>,
    cells: u64,
    variant: Variant,
    packed: bool,
}

impl CounterRingBuilder {
    /// Cells per window, 1 to [`CounterRing::MAX_CELLS`]. More cells follow an exact log more
    /// closely (decisions differ from it by less than a cell) and cost memory, and steps where a
    /// cell is entered or a retry time is asked for; a decision costs the same.
    pub fn cells(mut self, cells: u64) -> Self {
        self.cells = cells;
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
        if self.cells == 0 || self.cells > CounterRing::MAX_CELLS {
            return Err(ConfigError::new(
                "cells",
                format!("{} cells", self.cells),
                format!("1 to {} cells", CounterRing::MAX_CELLS),
            ));
        }
        if self.variant == Variant::Even && !self.more.is_empty() {
            return Err(ConfigError::new(
                "windows",
                format!("{} windows for an even ring", self.more.len() + 1),
                "one window for an even ring, several for a strict or classic one",
            ));
        }
        let window = self.first.window();
        let mut quotas = self.more;
        quotas.insert(0, self.first);
        let narrowest = quotas.iter().map(|quota| quota.window_nanos()).min().unwrap_or(0) / self.cells;
        if narrowest < MIN_CELL {
            return Err(ConfigError::new(
                "cells",
                format!(
                    "{} cells in {:?}",
                    self.cells,
                    quotas.iter().map(|quota| quota.window()).min().unwrap_or(window)
                ),
                format!("cells of at least {:?}", Duration::from_nanos(MIN_CELL)),
            ));
        }
        let (width, ticks) = ticks(&quotas, self.cells);
        let spans: Vec<(Span, u64)> = quotas
            .iter()
            .zip(ticks)
            .map(|(quota, ticks)| (Span::new(self.variant, quota.limit(), self.cells), ticks))
            .collect();
        let horizon = HORIZON / width;
        let form = match spans.as_slice() {
            &[(span, _)] if self.packed => PackedRing::new(span, width, horizon).map(Form::Packed),
            _ => None,
        };
        let form = match form {
            Some(form) => form,
            None => Form::Wide(wide(&quotas, width, horizon, &spans)?),
        };
        Ok(CounterRing { window, form })
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

fn wide(quotas: &[Quota], width: u64, horizon: u64, spans: &[(Span, u64)]) -> Result<WideRing, ConfigError> {
    let limit = quotas.iter().map(|quota| quota.limit()).max().unwrap_or(0);
    // Later than one span of every window, so that a zeroed slot is in none; and a multiple of the
    // span's cells, so that shares fall on the same cells as in a packed ring, whose first tick is
    // one span.
    let first_tick = spans
        .iter()
        .map(|(span, ticks)| 2 * span.summed() * ticks)
        .max()
        .unwrap_or(0);
    let layout = MarkLayout::new(limit);
    let last = horizon + first_tick;
    if layout.last_tick() < last {
        // One bit is the flag, one keeps debt apart; the rest is for the tick and the limit.
        let bits = FIRST_WORD_BITS - 2 - (u64::BITS - last.leading_zeros());
        return Err(ConfigError::new(
            "limit",
            format!("{limit} permits with cells of {:?}", Duration::from_nanos(width)),
            format!(
                "at most {} permits with such cells, or wider cells",
                (1_u64 << bits) - 1
            ),
        ));
    }
    Ok(WideRing::new(layout, width, first_tick, spans))
}
