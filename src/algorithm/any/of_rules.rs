//! The parts of [`AnyAlgorithm`] that only rules use.

use core::time::Duration;

use super::{AnyAlgorithm, OtherAlgorithm};
use crate::algorithm::gcra::Gcra;
use crate::algorithm::in_units::InUnits;
use crate::algorithm::traits::{Algorithm, remaining_and_reset};
use crate::sync::Words;
use crate::time::Nanos;

impl AnyAlgorithm {
    /// Whether its word is the time at which a bucket will be full.
    pub(crate) fn is_bucket(&self) -> bool {
        match self {
            Self::Counter(_) | Self::Log(_) => false,
            Self::Gcra(_) => true,
            Self::Other(other) => match &**other {
                OtherAlgorithm::InUnits(it) => it.algorithm().is_bucket(),
                OtherAlgorithm::Calendar(_) | OtherAlgorithm::InFlight(_) | OtherAlgorithm::Violations(_) => {
                    false
                }
            },
        }
    }

    /// The bucket, and the number of permits in the unit that it counts. `None` for another algorithm.
    pub(crate) fn bucket(&self) -> Option<(&Gcra, u64)> {
        match self {
            Self::Gcra(bucket) => Some((bucket, 1)),
            Self::Other(other) => match &**other {
                OtherAlgorithm::InUnits(it) => Some((it.algorithm().bucket()?.0, it.unit())),
                OtherAlgorithm::Calendar(_) | OtherAlgorithm::InFlight(_) | OtherAlgorithm::Violations(_) => {
                    None
                }
            },
            Self::Counter(_) | Self::Log(_) => None,
        }
    }

    /// Whether it limits requests in flight.
    pub(crate) fn is_in_flight(&self) -> bool {
        match self {
            Self::Counter(_) | Self::Log(_) | Self::Gcra(_) => false,
            Self::Other(other) => match &**other {
                OtherAlgorithm::InFlight(_) => true,
                OtherAlgorithm::InUnits(_) | OtherAlgorithm::Calendar(_) | OtherAlgorithm::Violations(_) => {
                    false
                }
            },
        }
    }

    /// Returns the algorithm in units of 2^`shift` permits.
    pub(crate) fn in_units(self, shift: u32) -> Self {
        match shift {
            0 => self,
            shift => InUnits::with_shift(self, shift).into(),
        }
    }

    /// Returns a limit for [`with_limit`](crate::algorithm::Reclaim::with_limit): `at_most`, or the algorithm's own limit if that is lower, and at
    /// least one unit.
    #[inline(always)]
    pub(crate) fn lower_limit(&self, at_most: u64) -> u64 {
        let own = match self {
            Self::Counter(ring) => ring.limit(),
            Self::Log(log) => log.limit(),
            Self::Gcra(bucket) => bucket.limit(),
            Self::Other(other) => return other.lower_limit(at_most),
        };
        at_most.min(own).max(1)
    }

    /// The capacity left in one window of a counter ring with several, by the window's index. Other algorithms have one
    /// window.
    pub(crate) fn remaining_in<W: Words>(&self, window: usize, words: W, now: Nanos) -> u64 {
        match self {
            Self::Counter(ring) => ring.remaining_in(window, words, now),
            Self::Log(_) | Self::Gcra(_) => self.remaining(words, now),
            Self::Other(other) => match &**other {
                OtherAlgorithm::InUnits(it) => it.permits(it.algorithm().remaining_in(window, words, now)),
                OtherAlgorithm::Calendar(calendar) => calendar.remaining(words, now),
                OtherAlgorithm::InFlight(in_flight) => in_flight.remaining(words, now),
                OtherAlgorithm::Violations(violations) => violations.remaining(words, now),
            },
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
        match self {
            Self::Counter(ring) => ring.ready_in(window, words, now, permits),
            Self::Log(_) | Self::Gcra(_) => self.ready_at(words, now, permits),
            Self::Other(other) => match &**other {
                OtherAlgorithm::InUnits(it) => it.algorithm().ready_in(window, words, now, it.units(permits)),
                OtherAlgorithm::Calendar(calendar) => calendar.ready_at(words, now, permits),
                OtherAlgorithm::InFlight(in_flight) => in_flight.ready_at(words, now, permits),
                OtherAlgorithm::Violations(violations) => violations.ready_at(words, now, permits),
            },
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
        match self {
            Self::Counter(ring) => ring.remaining_and_reset_in(window, words, now),
            Self::Log(log) => remaining_and_reset(log, words, now),
            Self::Gcra(gcra) => remaining_and_reset(gcra, words, now),
            Self::Other(other) => match &**other {
                OtherAlgorithm::InUnits(it) => {
                    let (units, reset) = it.algorithm().remaining_and_reset_in(window, words, now);
                    (it.permits(units), reset)
                }
                OtherAlgorithm::Calendar(calendar) => remaining_and_reset(calendar, words, now),
                OtherAlgorithm::InFlight(in_flight) => (in_flight.remaining(words, now), None),
                OtherAlgorithm::Violations(violations) => remaining_and_reset(violations, words, now),
            },
        }
    }

    /// The length of the calendar period that contains `now`. `None` if the algorithm has no such periods.
    pub(crate) fn period_length(&self, now: Nanos) -> Option<Duration> {
        match self {
            Self::Counter(_) | Self::Log(_) | Self::Gcra(_) => None,
            Self::Other(other) => other.period_length(now),
        }
    }
}

impl OtherAlgorithm {
    /// Returns [`AnyAlgorithm::lower_limit`] of this algorithm.
    #[cold]
    #[inline(never)]
    fn lower_limit(&self, at_most: u64) -> u64 {
        match self {
            Self::InUnits(it) => it.permits(it.algorithm().lower_limit(at_most / it.unit())),
            Self::Calendar(calendar) => at_most.min(calendar.limit()).max(1),
            Self::InFlight(in_flight) => at_most.min(in_flight.limit()).max(1),
            Self::Violations(violations) => violations.bound(),
        }
    }

    /// Returns [`AnyAlgorithm::period_length`] of this algorithm.
    #[cold]
    #[inline(never)]
    fn period_length(&self, now: Nanos) -> Option<Duration> {
        match self {
            Self::Calendar(calendar) => Some(calendar.length_at(now)),
            Self::InUnits(_) | Self::InFlight(_) | Self::Violations(_) => None,
        }
    }
}
