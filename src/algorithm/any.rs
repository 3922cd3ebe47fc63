use alloc::boxed::Box;
use core::fmt;
use core::time::Duration;

use super::attempt::Attempt;
use super::calendar::Calendar;
use super::counter_ring::CounterRing;
use super::forward::{forward_algorithm, forward_reclaim};
use super::gcra::Gcra;
use super::in_flight::InFlight;
use super::in_units::InUnits;
use super::timestamp_ring::TimestampRing;
use super::traits::{Algorithm, Reclaim, remaining_and_reset};
use super::unit_ring::UnitRing;
use super::violations::Violations;
use crate::error::ConfigError;
use crate::quota::Unit;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

/// Any of the crate's algorithms, chosen at run time, for example by a configuration file.
///
/// # Cost
///
/// The cost of the algorithm, and one branch. An algorithm in a box, which is seldom used, also costs a pointer and a call.
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
    /// An algorithm that counts units of permits.
    InUnits(Box<InUnits<Self>>),
    /// A quota for each calendar period.
    Calendar(Box<Calendar>),
    /// A limit of requests in flight. Only a rule makes it: [`Rule::in_flight`](crate::Rule::in_flight).
    InFlight(Box<InFlight>),
    /// The violations of a rule, and the blocks of its keys. Only a rule makes it: [`Rule::block`](crate::Rule::block).
    Violations(Box<Violations>),
}

/// Converts each algorithm to its variant.
macro_rules! from_each {
    ($($given:ident: $algorithm:ty => $any:expr,)+) => {$(
        impl From<$algorithm> for AnyAlgorithm {
            fn from($given: $algorithm) -> Self {
                $any
            }
        }
    )+};
}

from_each! {
    ring: CounterRing => Self::Counter(ring),
    ring: UnitRing => Self::Counter(CounterRing::of_units(&ring)),
    log: TimestampRing => Self::Log(log),
    bucket: Gcra => Self::Gcra(bucket),
    it: InUnits<Self> => Self::InUnits(Box::new(it)),
    calendar: Calendar => Self::Calendar(Box::new(calendar)),
    in_flight: InFlight => Self::InFlight(Box::new(in_flight)),
    violations: Violations => Self::Violations(Box::new(violations)),
}

/// Runs the same expression on the algorithm of any variant, or another one for the variants in a box.
macro_rules! each {
    ($any:expr, $algorithm:ident => $work:expr) => {
        match $any {
            AnyAlgorithm::Counter($algorithm) => $work,
            AnyAlgorithm::Log($algorithm) => $work,
            AnyAlgorithm::Gcra($algorithm) => $work,
            AnyAlgorithm::InUnits($algorithm) => $work,
            AnyAlgorithm::Calendar($algorithm) => $work,
            AnyAlgorithm::InFlight($algorithm) => $work,
            AnyAlgorithm::Violations($algorithm) => $work,
        }
    };
    ($any:expr, $algorithm:ident => $work:expr, boxed => $boxed:expr) => {
        match $any {
            AnyAlgorithm::Counter($algorithm) => $work,
            AnyAlgorithm::Log($algorithm) => $work,
            AnyAlgorithm::Gcra($algorithm) => $work,
            AnyAlgorithm::InUnits(_)
            | AnyAlgorithm::Calendar(_)
            | AnyAlgorithm::InFlight(_)
            | AnyAlgorithm::Violations(_) => $boxed,
        }
    };
}

/// The always inlined methods, as functions for the variants in a box. These functions are never inlined, because [`InUnits`]
/// calls the inlined methods again, and so that decisions by the other variants stay short.
impl AnyAlgorithm {
    #[inline(never)]
    fn decide_boxed<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        each!(self, it => it.decide(words, now, permits))
    }

    #[inline(never)]
    fn attempt_boxed<W: Words>(&self, limit: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt {
        each!(self, it => it.attempt(limit, words, now, permits))
    }

    #[inline(never)]
    fn remaining_boxed<W: Words>(&self, words: W, now: Nanos) -> u64 {
        each!(self, it => it.remaining(words, now))
    }
}

/// The algorithm and its form: `60 cells`, `one word of 16 cells in units of 4`, `an exact log of 5 permits`.
impl fmt::Display for AnyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counter(ring) => ring.fmt(f),
            Self::Log(log) => write!(f, "an exact log of {} permits", log.bound()),
            Self::Gcra(bucket) => write!(f, "a bucket of {} permits", bucket.max_request()),
            Self::InUnits(it) => write!(f, "{}, each permit a unit of {}", it.algorithm(), it.unit()),
            Self::Calendar(_) => f.write_str("calendar periods"),
            Self::InFlight(_) => f.write_str("requests in flight"),
            Self::Violations(_) => f.write_str("violations and blocks"),
        }
    }
}

impl Algorithm for AnyAlgorithm {
    forward_algorithm!(each);

    #[inline(always)]
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        each!(self, it => it.decide(words, now, permits), boxed => self.decide_boxed(words, now, permits))
    }

    #[inline(always)]
    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        each!(self, it => it.remaining(words, now), boxed => self.remaining_boxed(words, now))
    }

    fn for_limiter(self) -> Self {
        each!(self, it => it.for_limiter().into())
    }
}

impl Reclaim for AnyAlgorithm {
    forward_reclaim!(each);

    #[inline(always)]
    fn attempt<W: Words>(&self, limit: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt {
        each!(
            self,
            it => it.attempt(limit, words, now, permits),
            boxed => self.attempt_boxed(limit, words, now, permits)
        )
    }

    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        Ok(each!(self, it => it.with_limit(limit)?.into()))
    }

    fn for_table(self, lowest: u64) -> Result<Self, ConfigError> {
        Ok(each!(self, it => it.for_table(lowest)?.into()))
    }
}

impl AnyAlgorithm {
    /// Returns the algorithm in units of `unit` permits.
    pub(crate) fn in_units(self, unit: Unit) -> Self {
        match unit {
            Unit::ONE => self,
            unit => InUnits::with_unit(self, unit).into(),
        }
    }

    /// The bucket, and the number of permits in the unit that it counts. `None` for another algorithm.
    pub(crate) fn bucket(&self) -> Option<(&Gcra, u64)> {
        match self {
            Self::Gcra(bucket) => Some((bucket, 1)),
            Self::InUnits(it) => Some((it.algorithm().bucket()?.0, it.unit())),
            Self::Counter(_) | Self::Log(_) | Self::Calendar(_) | Self::InFlight(_) | Self::Violations(_) => {
                None
            }
        }
    }

    /// Whether its word is the time at which a bucket will be full.
    pub(crate) fn is_bucket(&self) -> bool {
        self.bucket().is_some()
    }

    /// The counter ring, and the unit that it counts. `None` for another algorithm.
    pub(crate) fn ring(&self) -> Option<(&CounterRing, Unit)> {
        match self {
            Self::Counter(ring) => Some((ring, Unit::ONE)),
            Self::InUnits(it) => Some((it.algorithm().ring()?.0, it.unit)),
            Self::Log(_) | Self::Gcra(_) | Self::Calendar(_) | Self::InFlight(_) | Self::Violations(_) => {
                None
            }
        }
    }

    /// Whether it is a bucket whose rate is more than one percent below its limit, because the time per permit is rounded up. A
    /// bucket in units has the unit that it needs.
    pub(crate) fn rounds_coarsely(&self) -> bool {
        self.bucket()
            .is_some_and(|(bucket, unit)| unit == 1 && bucket.rounds_coarsely())
    }

    /// The capacity left in one window of a counter ring with several, by the window's index. Other algorithms have one
    /// window.
    pub(crate) fn remaining_in<W: Words>(&self, window: usize, words: W, now: Nanos) -> u64 {
        match self.ring() {
            Some((ring, unit)) => unit.permits(ring.remaining_in(window, words, now)),
            None => self.remaining(words, now),
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
        match self.ring() {
            Some((ring, unit)) => ring.ready_in(window, words, now, unit.units(permits)),
            None => self.ready_at(words, now, permits),
        }
    }

    /// The capacity left in the window with the index `window`, and the earliest instant at which it is larger. The instant is
    /// `None` if time never makes it larger: it is never larger, or it grows only when a request in flight ends.
    pub(crate) fn remaining_and_reset_in<W: Words>(
        &self,
        window: usize,
        words: W,
        now: Nanos,
    ) -> (u64, Option<Nanos>) {
        if let Some((ring, unit)) = self.ring() {
            let (units, reset) = ring.remaining_and_reset_in(window, words, now);
            return (unit.permits(units), reset);
        }
        if let Self::InFlight(in_flight) = self {
            // Not `remaining_and_reset`, which reads the word twice. If a slot is released in between, it returns `now`.
            return (in_flight.remaining(words, now), None);
        }
        remaining_and_reset(self, words, now)
    }

    /// The length of the calendar period that contains `now`. `None` if the algorithm has no such periods.
    pub(crate) fn period_length(&self, now: Nanos) -> Option<Duration> {
        match self {
            Self::Calendar(calendar) => Some(calendar.length_at(now)),
            Self::Counter(_)
            | Self::Log(_)
            | Self::Gcra(_)
            | Self::InUnits(_)
            | Self::InFlight(_)
            | Self::Violations(_) => None,
        }
    }
}
