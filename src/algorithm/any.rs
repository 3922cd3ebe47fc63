use core::time::Duration;

use super::attempt::Attempt;
use super::counter_ring::CounterRing;
use super::gcra::Gcra;
use super::timestamp_ring::TimestampRing;
#[cfg(feature = "rules")]
use super::traits::remaining_and_reset;
use super::traits::{Algorithm, Reclaim};
use crate::error::ConfigError;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

/// Any of the crate's algorithms, chosen at run time, for example by a configuration file.
///
/// # Cost
///
/// The cost of the algorithm, and one branch, which is the same for every decision and so is predicted.
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
    /// The sliding window counter, or the fixed window.
    Counter(CounterRing),
    /// The sliding log.
    Log(TimestampRing),
    /// The token bucket, or the leaky bucket.
    Gcra(Gcra),
}

impl From<CounterRing> for AnyAlgorithm {
    fn from(ring: CounterRing) -> Self {
        Self::Counter(ring)
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

/// Runs the same expression on each algorithm.
macro_rules! each {
    ($any:expr, $algorithm:ident => $work:expr) => {
        match $any {
            AnyAlgorithm::Counter($algorithm) => $work,
            AnyAlgorithm::Log($algorithm) => $work,
            AnyAlgorithm::Gcra($algorithm) => $work,
        }
    };
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
        each!(self, it => it.decide(words, now, permits))
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        each!(self, it => it.ready_at(words, now, permits))
    }

    #[inline]
    fn earliest<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        each!(self, it => it.earliest(words, now, permits))
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        each!(self, it => it.remaining(words, now))
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
        each!(self, it => it.attempt(words, now, permits))
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

    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        Ok(each!(self, it => it.with_limit(limit)?.into()))
    }
}

impl AnyAlgorithm {
    /// The capacity left in one window of a counter ring with several, by the window's index. Other algorithms have one
    /// window.
    #[cfg(feature = "rules")]
    pub(crate) fn remaining_in<W: Words>(&self, window: usize, words: W, now: Nanos) -> u64 {
        match self {
            Self::Counter(ring) => ring.remaining_in(window, words, now),
            Self::Log(_) | Self::Gcra(_) => self.remaining(words, now),
        }
    }

    /// The earliest instant, `now` or later, at which the window with the index `window` has the capacity for `permits`.
    #[cfg(feature = "rules")]
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
        }
    }

    /// The capacity left in the window with the index `window`, and the earliest instant at which it is larger. `None` if
    /// it never is.
    #[cfg(feature = "rules")]
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
        }
    }
}
