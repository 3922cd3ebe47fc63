use core::fmt;
use core::time::Duration;

use super::any::AnyAlgorithm;
use super::attempt::{Attempt, opaque_copy};
use super::counter_ring::CounterRing;
use super::forward::{forward_algorithm, forward_reclaim};
use super::timestamp_ring::TimestampRing;
use super::traits::{Algorithm, Reclaim};
use super::unit_ring::UnitRing;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

/// An exact sliding window that chooses its own representation: at most the limit in any interval of one window.
///
/// It is the default algorithm. It chooses by its place, and by the limit:
///
/// | place | limit | representation |
/// |---|--:|---|
/// | one resource | up to 64 | an exact log: a [`TimestampRing`] |
/// | one resource | above 64, or with permits that are settled later | 60 cells: a [`CounterRing`] |
/// | a table of keys | any | one word: a [`UnitRing`] |
/// | a table of keys | with permits that are settled later, or with low tiers | 60 cells: a [`CounterRing`] |
///
/// The rules of a rule set choose as a table does, and have 60 cells if they have no key. A tier of a table is low if one word
/// would guarantee its clients less than 70 % of their limit. Permits that are [refunded](crate::RateLimiter::refund) or settled
/// later need [`settled`](Self::settled): a log forfeits most refunds.
///
/// | representation, limit per minute | a paced client gets at least | `Retry-After` after a burst | bytes | bytes a key in a table | ns |
/// |---|--:|--:|--:|--:|--:|
/// | log, 60 | 100 % | 60 s | 488 | – | 10 |
/// | 60 cells, 1,000 | 98 % | 61 s | 496 | 200 | 9, and 22 in a table |
/// | one word, 10 | 91 % | 63 s | 8 | 33 | 16 in a table |
/// | one word, 60 | 89 % | 64 s | 8 | 33 | 16 in a table |
/// | one word, 1,000 | 86 % | 65 s | 8 | 33 | 16 in a table |
/// | one word, 1,000,000 | 79 % | 66 s | 8 | 33 | 16 in a table |
///
/// A paced client asks evenly, at the rate of the limit. A log takes 8·(L + 1) bytes for a limit of L. 60 cells take 160 to 200 bytes
/// a key of a table for a limit of 60 to 1,000 per minute, and 640 in a rule. The last column is an admission by one thread in
/// nanoseconds, in a table of 100,000 keys that are asked equally often: `benches/README.md` in the repository has the machine and
/// the other times. [`UnitRing`] has the shares for each limit and window. To choose the cells yourself, use a [`CounterRing`].
///
/// # Guarantee
///
/// The bound is the limit, in each representation. `Display` states the chosen representation. A version of this crate that chooses
/// differently refuses the saved tables of the other.
///
/// # Cost
///
/// That of the chosen algorithm.
///
/// # Examples
///
/// ```
/// use ringgate::{KeyedRateLimiter, ManualClock, Quota, RateLimiter, SlidingWindow};
/// use core::time::Duration;
///
/// let clock = ManualClock::new();
/// let window = SlidingWindow::new(Quota::per_minute(2)?)?;
/// assert_eq!(window.to_string(), "an exact log of 2 permits");
/// let limiter = RateLimiter::with_clock(window, clock.clone());
/// assert!(limiter.check_n(2).is_ok() && limiter.check().is_err());
/// clock.advance(Duration::from_secs(60));
/// assert!(limiter.check().is_ok());
///
/// // Five in any minute for each of 50,000 keys.
/// let keys = KeyedRateLimiter::per_minute(5, 50_000)?;
/// assert_eq!(keys.algorithm().to_string(), "one word of 27 cells in units of 1");
/// # Ok::<(), ringgate::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SlidingWindow {
    quota: Quota,
    form: Form,
    /// Whether permits are settled later, so that it counts in cells at every place.
    settled: bool,
}

/// The highest limit of one resource that is counted by an exact log. Its state takes 520 bytes, about as many as 60 cells.
const MAX_LOG_LIMIT: u64 = 64;

/// The representation of the window that was chosen.
#[derive(Clone, Debug)]
enum Form {
    Word(UnitRing),
    Log(TimestampRing),
    Cells(CounterRing),
}

/// Runs the same expression on each form.
macro_rules! each {
    ($window:expr, $form:ident => $work:expr) => {
        match &$window.form {
            Form::Word($form) => $work,
            Form::Log($form) => $work,
            Form::Cells($form) => $work,
        }
    };
}

impl SlidingWindow {
    /// Creates a sliding window for one resource, or for the keys of a table.
    ///
    /// # Errors
    ///
    /// `cells`, `limit` or `window`: invalid for the quota, as listed at [`TimestampRing::new`] and
    /// [`CounterRingBuilder::build`](crate::algorithm::CounterRingBuilder::build).
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        let settled = false;
        Self::of(quota, settled)
    }

    fn of(quota: Quota, settled: bool) -> Result<Self, ConfigError> {
        let has_log = quota.limit() <= MAX_LOG_LIMIT && !settled;
        let log = has_log.then(|| TimestampRing::new(quota)).and_then(Result::ok);
        // For a short window, the time units of a log and the cells of a high limit may be too wide. Units of permits then fit.
        let form = match (log, CounterRing::new(quota), UnitRing::new(quota)) {
            (Some(log), _, _) => Form::Log(log),
            (None, Ok(ring), _) => Form::Cells(ring),
            (None, Err(_), Ok(ring)) if !settled => Form::Word(ring),
            (None, Err(error), _) => return Err(error),
        };
        Ok(Self { quota, form, settled })
    }

    /// Creates a sliding window for permits that are often [refunded](crate::RateLimiter::refund) or
    /// [settled](crate::RateLimiter::settle) later, such as token budgets. It counts in 60 cells, in which every refund is exact,
    /// for one resource and in a table of keys.
    ///
    /// # Errors
    ///
    /// As listed at [`new`](Self::new).
    pub fn settled(quota: Quota) -> Result<Self, ConfigError> {
        let settled = true;
        Self::of(quota, settled)
    }

    /// Attempts a decision by the forms of many words. It is a function of its own because a table mostly has one word, and the
    /// registers that these forms need would be saved in every decision.
    #[inline(never)]
    fn attempt_by_many<W: Words>(&self, limit: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt {
        each!(self, it => it.attempt(limit, words, now, permits))
    }

    /// The ring of the one-word form. `None` for another form.
    #[inline]
    pub(crate) const fn unit_ring(&self) -> Option<&UnitRing> {
        match &self.form {
            Form::Word(ring) => Some(ring),
            Form::Log(_) | Form::Cells(_) => None,
        }
    }

    /// The one-word form for the lowest limit `lowest`, if it guarantees its clients at least 70 % of that limit.
    fn word(quota: Quota, lowest: u64) -> Option<UnitRing> {
        let ring = UnitRing::with_lowest_limit(quota, lowest).ok()?;
        let admitted = u128::from((lowest + 1).saturating_sub(ring.unit())) * u128::from(ring.cells());
        (10 * admitted >= 7 * u128::from(lowest) * u128::from(ring.cells() + 1)).then_some(ring)
    }
}

impl fmt::Display for SlidingWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.form {
            Form::Word(ring) => ring.fmt(f),
            Form::Log(log) => write!(f, "an exact log of {} permits", log.bound()),
            Form::Cells(ring) => ring.fmt(f),
        }
    }
}

/// The algorithm of the chosen form. For a table of keys, [`Reclaim::for_table`] chooses it first.
impl From<SlidingWindow> for AnyAlgorithm {
    fn from(window: SlidingWindow) -> Self {
        match window.form {
            Form::Word(ring) => ring.into(),
            Form::Log(log) => log.into(),
            Form::Cells(ring) => ring.into(),
        }
    }
}

impl Algorithm for SlidingWindow {
    forward_algorithm!(each);

    #[inline(always)]
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        each!(self, it => it.decide(words, now, permits))
    }

    #[inline]
    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        each!(self, it => it.remaining(words, now))
    }

    fn for_limiter(self) -> Self {
        let form = match self.form {
            Form::Log(log) => Form::Log(log.for_limiter()),
            form @ (Form::Word(_) | Form::Cells(_)) => form,
        };
        Self { form, ..self }
    }
}

impl Reclaim for SlidingWindow {
    forward_reclaim!(each);

    #[inline(always)]
    fn attempt<W: Words>(&self, limit: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt {
        match &self.form {
            Form::Word(ring) => ring.attempt(limit, words, now, permits),
            Form::Log(_) | Form::Cells(_) => self.attempt_by_many(limit, opaque_copy(words), now, permits),
        }
    }

    /// The form of one word is inlined.
    #[inline(always)]
    fn is_inline(&self) -> bool {
        self.unit_ring().is_some()
    }

    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        let form = match &self.form {
            Form::Word(ring) => Form::Word(ring.with_limit(limit)?),
            Form::Log(log) => Form::Log(log.with_limit(limit)?),
            Form::Cells(ring) => Form::Cells(ring.with_limit(limit)?),
        };
        Ok(Self { form, ..self.clone() })
    }

    fn for_table(self, lowest: u64) -> Result<Self, ConfigError> {
        let word = (!self.settled).then(|| Self::word(self.quota, lowest)).flatten();
        let form = match (word, CounterRing::new(self.quota)) {
            (Some(ring), _) => Form::Word(ring),
            (None, Ok(ring)) => Form::Cells(ring.for_table(lowest)?),
            // A high limit in a short window.
            (None, Err(error)) => match UnitRing::with_lowest_limit(self.quota, lowest) {
                Ok(ring) if !self.settled => Form::Word(ring),
                _ => return Err(error),
            },
        };
        Ok(Self { form, ..self })
    }
}
