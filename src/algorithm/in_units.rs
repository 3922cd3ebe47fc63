use core::time::Duration;

use super::attempt::Attempt;
use super::traits::{Algorithm, Reclaim};
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

/// Counts in units of 2^k permits, for limits in bytes that an algorithm cannot count one by one.
///
/// A request is rounded up to whole units, and the limit down. So the algorithm's bound holds, and a request of one byte
/// costs as much as a whole unit. All methods still take and return permits, so a permit stays a byte for
/// [`RateLimiter`](crate::RateLimiter), [`Fair`](crate::Fair) and `throttle::Throttled`.
///
/// The unit is the smallest power of two in which the limit is less than 2^24 units, and at most one unit per 64 ns of the
/// window, and which the algorithm accepts:
///
/// | limit, per second | 10 to 125 Mbit/s | 1 Gbit/s | 10 Gbit/s | 25 Gbit/s | 100 Gbit/s | 400 Gbit/s |
/// |---|--:|--:|--:|--:|--:|--:|
/// | unit of [`Gcra`](crate::Gcra) and [`CounterRing`](crate::CounterRing) | 1 | 8 | 128 | 256 | 1024 | 4096 |
/// | unit of [`TimestampRing`](crate::TimestampRing) | 2 to 16 | 128 | 2048 | 4096 | 16384 | 65536 |
///
/// # Cost
///
/// A decision costs one addition and one shift more.
///
/// # Examples
///
/// ```
/// use ringgate::algorithm::InUnits;
/// use ringgate::{Algorithm, CounterRing, Gcra, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// // 25 Gbit/s, never more in any second.
/// let rate = Quota::per_second(3_125_000_000)?;
/// let hard = InUnits::new(rate, |units, _| CounterRing::new(units))?;
/// assert_eq!((hard.unit(), hard.bound()), (256, 3_125_000_000 / 256 * 256));
///
/// // A steady rate with bursts of 10 ms; the burst is in units, too.
/// let steady = InUnits::new(rate, |units, unit| Gcra::token_bucket(units, 31_250_000 / unit))?;
/// assert_eq!(steady.max_request(), 31_250_000 / 256 * 256);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct InUnits<A> {
    algorithm: A,
    /// The unit is two to this power.
    shift: u32,
}

/// The most units of a limit. A counter ring of 60 cells counts them in a second.
const MOST_UNITS: u64 = (1 << 24) - 1;

/// The shortest time of a unit, in nanoseconds. [`Gcra`](crate::Gcra) rounds it up to half a nanosecond, which lowers the rate by
/// less than one percent.
const LEAST_TIME: u64 = 64;

impl<A: Algorithm> InUnits<A> {
    /// Builds the algorithm by `build`, which gets the quota in units, and the permits of a unit.
    ///
    /// # Errors
    ///
    /// The error of `build`, which names units. If it is about the limit, larger units were tried up to the whole limit.
    pub fn new(
        quota: Quota,
        build: impl Fn(Quota, u64) -> Result<A, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let most = MOST_UNITS.min(quota.window_nanos() / LEAST_TIME).max(1);
        let mut shift = 0;
        while quota.limit() >> shift > most {
            shift += 1;
        }
        let build_in = |shift: u32| {
            build(
                Quota::new(quota.limit() >> shift, quota.window())?,
                1_u64 << shift,
            )
        };
        let mut built = build_in(shift);
        while matches!(&built, Err(error) if error.field == "limit") && quota.limit() >> (shift + 1) > 0 {
            shift += 1;
            built = build_in(shift);
        }
        Ok(Self {
            algorithm: built?,
            shift,
        })
    }
}

impl<A> InUnits<A> {
    /// Returns the permits of a unit, a power of two.
    #[must_use]
    pub const fn unit(&self) -> u64 {
        1 << self.shift
    }

    /// Returns the algorithm, which counts units.
    #[must_use]
    pub const fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// The units of a request, rounded up.
    #[inline(always)]
    const fn units(&self, permits: u64) -> u64 {
        permits.div_ceil(1 << self.shift)
    }

    const fn permits(&self, units: u64) -> u64 {
        units.saturating_mul(1 << self.shift)
    }
}

/// The receipt of a request for `permits`, whose units were charged.
#[inline(always)]
fn in_permits(receipt: &Receipt, permits: u64) -> Receipt {
    Receipt::new(receipt.at(), permits, receipt.mark())
}

impl<A: Algorithm> Algorithm for InUnits<A> {
    fn words(&self) -> usize {
        self.algorithm.words()
    }

    fn max_request(&self) -> u64 {
        self.permits(self.algorithm.max_request())
    }

    fn bound(&self) -> u64 {
        self.permits(self.algorithm.bound())
    }

    fn window(&self) -> Duration {
        self.algorithm.window()
    }

    #[inline(always)]
    fn decide<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        let receipt = self.algorithm.decide(words, now, self.units(permits))?;
        Some(in_permits(&receipt, permits))
    }

    fn ready_at<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        self.algorithm.ready_at(words, now, self.units(permits))
    }

    fn earliest<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        self.algorithm.earliest(words, now, self.units(permits))
    }

    fn remaining<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.permits(self.algorithm.remaining(words, now))
    }

    fn refund<W: Words>(&self, words: W, receipt: &Receipt, permits: u64) -> bool {
        let Some(kept) = receipt.permits().checked_sub(permits) else {
            return false;
        };
        let charged = self.units(receipt.permits());
        let refunded = charged - self.units(kept);
        let receipt = in_permits(receipt, charged);
        // Permits of a unit that is still needed cannot be refunded, and nothing else is to be done.
        refunded == 0 || self.algorithm.refund(words, &receipt, refunded)
    }

    fn charge<W: Words>(&self, words: W, now: Nanos, permits: u64) -> u64 {
        let charged = self.algorithm.charge(words, now, self.units(permits));
        self.permits(charged).min(permits)
    }

    fn spent<W: Words>(&self, words: W, now: Nanos) -> u64 {
        self.permits(self.algorithm.spent(words, now))
    }

    fn idle_at<W: Words>(&self, words: W, now: Nanos) -> Option<Nanos> {
        self.algorithm.idle_at(words, now)
    }
}

impl<A: Reclaim> Reclaim for InUnits<A> {
    fn span(&self) -> Duration {
        self.algorithm.span()
    }

    #[inline(always)]
    fn attempt<W: Words>(&self, words: W, now: Nanos, permits: u64) -> Attempt {
        self.algorithm
            .attempt(words, now, self.units(permits))
            .map(|receipt| in_permits(&receipt, permits))
    }

    fn is_idle(&self, first: u64, now: Nanos) -> bool {
        self.algorithm.is_idle(first, now)
    }

    fn advance(&self, first: u64, now: Nanos) -> Option<u64> {
        self.algorithm.advance(first, now)
    }

    fn idle_from(&self, first: u64) -> Option<Nanos> {
        self.algorithm.idle_from(first)
    }

    fn latest_time(&self, first: u64) -> Nanos {
        self.algorithm.latest_time(first)
    }

    /// The lower limit is rounded down to whole units.
    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        Ok(Self {
            algorithm: self.algorithm.with_limit(limit >> self.shift)?,
            shift: self.shift,
        })
    }
}
