use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use crate::algorithm::attempt::Attempt;
use crate::algorithm::calendar::Calendar;
use crate::algorithm::counter_ring::CounterRing;
use crate::algorithm::gcra::Gcra;
use crate::algorithm::in_flight::InFlight;
use crate::algorithm::in_units::InUnits;
use crate::algorithm::timestamp_ring::TimestampRing;
use crate::algorithm::traits::{Algorithm, Reclaim};
use crate::algorithm::unit_ring::UnitRing;
use crate::algorithm::violations::Violations;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

mod of_rules;

/// Any of the crate's algorithms, chosen at run time, for example by a configuration file.
///
/// # Cost
///
/// The cost of the algorithm, and one branch. An [`OtherAlgorithm`] also costs a second branch, a pointer and a call.
///
/// # Examples
///
/// ```
/// use ringgate::{AnyAlgorithm, CounterRing, Gcra, ManualClock, Quota, RateLimiter};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let quota = Quota::per_second(5)?;
/// for algorithm in [AnyAlgorithm::from(CounterRing::new(quota)?), Gcra::new(quota)?.into()] {
///     assert!(RateLimiter::with_clock(algorithm, ManualClock::new()).check_n(5).is_ok());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyAlgorithm {
    /// The sliding window counter, a unit ring, or the fixed window.
    Counter(CounterRing),
    /// The sliding log.
    Log(TimestampRing),
    /// The token bucket, or the leaky bucket.
    Gcra(Gcra),
    /// An algorithm that is seldom used. It is in a box, so that decisions by the others stay fast.
    Other(Box<OtherAlgorithm>),
}

/// The algorithms of [`AnyAlgorithm`] that are seldom used.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OtherAlgorithm {
    /// An algorithm that counts units of permits.
    InUnits(InUnits<AnyAlgorithm>),
    /// A quota for each calendar period.
    Calendar(Calendar),
    /// A limit of requests in flight. Only a rule makes it: [`Rule::in_flight`](crate::Rule::in_flight).
    InFlight(InFlight),
    /// The violations of a rule, and the blocks of its keys. Only a rule makes it: [`Rule::block`](crate::Rule::block).
    Violations(Violations),
}

impl From<CounterRing> for AnyAlgorithm {
    fn from(ring: CounterRing) -> Self {
        Self::Counter(ring)
    }
}

impl From<UnitRing> for AnyAlgorithm {
    fn from(ring: UnitRing) -> Self {
        Self::Counter(CounterRing::of_units(&ring))
    }
}

impl From<TimestampRing> for AnyAlgorithm {
    fn from(ring: TimestampRing) -> Self {
        Self::Log(ring)
    }
}

impl From<Gcra> for AnyAlgorithm {
    fn from(gcra: Gcra) -> Self {
        Self::Gcra(gcra)
    }
}

impl From<InUnits<Self>> for AnyAlgorithm {
    fn from(in_units: InUnits<Self>) -> Self {
        Self::Other(Box::new(OtherAlgorithm::InUnits(in_units)))
    }
}

impl From<Calendar> for AnyAlgorithm {
    fn from(calendar: Calendar) -> Self {
        Self::Other(Box::new(OtherAlgorithm::Calendar(calendar)))
    }
}

impl From<InFlight> for AnyAlgorithm {
    fn from(in_flight: InFlight) -> Self {
        Self::Other(Box::new(OtherAlgorithm::InFlight(in_flight)))
    }
}

impl From<Violations> for AnyAlgorithm {
    fn from(violations: Violations) -> Self {
        Self::Other(Box::new(OtherAlgorithm::Violations(violations)))
    }
}

/// Runs the same expression on each algorithm that is seldom used.
macro_rules! each_other {
    ($other:expr, $algorithm:ident => $work:expr) => {
        match $other {
            OtherAlgorithm::InUnits($algorithm) => $work,
            OtherAlgorithm::Calendar($algorithm) => $work,
            OtherAlgorithm::InFlight($algorithm) => $work,
            OtherAlgorithm::Violations($algorithm) => $work,
        }
    };
}

/// Runs the same expression on each algorithm.
macro_rules! each {
    ($any:expr, $algorithm:ident => $work:expr) => {
        match $any {
            AnyAlgorithm::Counter($algorithm) => $work,
            AnyAlgorithm::Log($algorithm) => $work,
            AnyAlgorithm::Gcra($algorithm) => $work,
            AnyAlgorithm::Other(other) => each_other!(&**other, $algorithm => $work),
        }
    };
}

/// Runs the same expression on each algorithm, in a function that is always inlined. The functions of [`OtherAlgorithm`] are never
/// inlined, because [`InUnits`] calls the inlined function again. So the code of the other algorithms stays close together, too.
macro_rules! each_inlined {
    ($any:expr, $algorithm:ident => $work:expr) => {
        match $any {
            AnyAlgorithm::Counter($algorithm) => $work,
            AnyAlgorithm::Log($algorithm) => $work,
            AnyAlgorithm::Gcra($algorithm) => $work,
            AnyAlgorithm::Other($algorithm) => $work,
        }
    };
}

impl OtherAlgorithm {
    #[inline(never)]
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        each_other!(self, it => it.decide(words, now, permits))
    }

    #[inline(never)]
    fn attempt<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Attempt {
        each_other!(self, it => it.attempt(words, now, permits))
    }

    #[inline(never)]
    fn attempt_with_limit<W: Words>(&self, limit: u64, words: W, now: Nanos, permits: u64) -> Attempt {
        each_other!(self, it => it.attempt_with_limit(limit, words, now, permits))
    }

    #[inline(never)]
    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        each_other!(self, it => it.remaining(words, now))
    }
}

/// The algorithm and its form: `60 cells`, `one word of 16 cells in units of 4`, `an exact log of 5 permits`.
impl fmt::Display for AnyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter(ring) => ring.fmt(f),
            Self::Log(log) => write!(f, "an exact log of {} permits", log.bound()),
            Self::Gcra(bucket) => write!(f, "a bucket of {} permits", bucket.max_request()),
            Self::Other(other) => match &**other {
                OtherAlgorithm::InUnits(it) => {
                    write!(f, "{}, each permit a unit of {}", it.algorithm(), it.unit())
                }
                OtherAlgorithm::Calendar(_) => f.write_str("calendar periods"),
                OtherAlgorithm::InFlight(_) => f.write_str("requests in flight"),
                OtherAlgorithm::Violations(_) => f.write_str("violations and blocks"),
            },
        }
    }
}

impl Algorithm for AnyAlgorithm {
    fn words(&self) -> usize {
        each!(self, it => it.words())
    }

    fn max_request(&self) -> u64 {
        each!(self, it => it.max_request())
    }

    fn bound(&self) -> u64 {
        each!(self, it => it.bound())
    }

    fn window(&self) -> Duration {
        each!(self, it => it.window())
    }

    #[inline(always)]
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        each_inlined!(self, it => it.decide(words, now, permits))
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        each!(self, it => it.ready_at(words, now, permits))
    }

    #[inline]
    fn earliest<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        each!(self, it => it.earliest(words, now, permits))
    }

    #[inline(always)]
    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        each_inlined!(self, it => it.remaining(words, now))
    }

    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        each!(self, it => it.refund(words, receipt, permits))
    }

    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        each!(self, it => it.charge(words, now, permits))
    }

    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        each!(self, it => it.spent(words, now))
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        each!(self, it => it.idle_at(words, now))
    }

    fn restored_at(&self, now: Nanos, idle_after: Duration) -> Nanos {
        each!(self, it => it.restored_at(now, idle_after))
    }

    fn restore<W: Words>(&self, words: W, at: Nanos, permits: u64) -> u64 {
        each!(self, it => it.restore(words, at, permits))
    }

    fn for_limiter(self) -> Self {
        match self {
            Self::Log(log) => Self::Log(log.for_limiter()),
            other => other,
        }
    }
}

impl Reclaim for AnyAlgorithm {
    fn span(&self) -> Duration {
        each!(self, it => it.span())
    }

    fn counts_until<W: Words>(&self, words: W, at: Nanos, permits: u64) -> Nanos {
        each!(self, it => it.counts_until(words, at, permits))
    }

    #[inline(always)]
    fn attempt<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Attempt {
        each_inlined!(self, it => it.attempt(words, now, permits))
    }

    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        each!(self, it => it.is_idle(first, now))
    }

    fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        each!(self, it => it.advance(first, now))
    }

    fn idle_from(&self, first: u64) -> Option<Nanos> {
        each!(self, it => it.idle_from(first))
    }

    fn latest_time(&self, first: u64) -> Nanos {
        each!(self, it => it.latest_time(first))
    }

    fn cells_and_unit(&self) -> Option<(u64, u64)> {
        each!(self, it => it.cells_and_unit())
    }

    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        Ok(each!(self, it => it.with_limit(limit)?.into()))
    }

    #[inline]
    fn validate_limit(&self, limit: u64) -> Result<(), ConfigError> {
        each!(self, it => it.validate_limit(limit))
    }

    #[inline(always)]
    fn attempt_with_limit<W: Words>(&self, limit: u64, words: W, now: Nanos, permits: u64) -> Attempt {
        each_inlined!(self, it => it.attempt_with_limit(limit, words, now, permits))
    }

    fn for_table(self, lowest: u64) -> Result<Self, ConfigError> {
        Ok(match self {
            Self::Counter(ring) => ring.for_table(lowest)?.into(),
            Self::Log(log) => log.for_table(lowest)?.into(),
            other => other,
        })
    }
}

impl AnyAlgorithm {
    /// Builds an algorithm as a rule with a cost does: with the unit 1 if that is accepted, and otherwise in
    /// [units](InUnits::new). A bucket also counts units if single permits would make its rate more than one percent too low.
    ///
    /// `build` gets the quota in units, and the number of permits in a unit.
    ///
    /// # Errors
    ///
    /// The error of `build` for the unit 1, if no unit is accepted.
    pub fn for_costs(
        quota: Quota,
        build: impl Fn(Quota, u64) -> Result<Self, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let single = build(quota, 1);
        match &single {
            Ok(algorithm) if !algorithm.rounds_coarsely() => return single,
            Err(error) if error.field != "limit" => return single,
            Ok(_) | Err(_) => {}
        }
        InUnits::new(quota, build).map_or(single, |units| Ok(units.into()))
    }

    /// Whether it is a bucket whose rate is more than one percent below its limit, because the time per permit is rounded up.
    pub(crate) fn rounds_coarsely(&self) -> bool {
        match self {
            Self::Gcra(bucket) => bucket.rounds_coarsely(),
            // Rings and logs count whole permits, and the others are built in the unit that they need.
            Self::Counter(_) | Self::Log(_) | Self::Other(_) => false,
        }
    }
}
