use alloc::format;
use core::time::Duration;

use super::attempt::Attempt;
use super::forward::{forward_first_word, inner};
use super::traits::{Algorithm, Reclaim};
use crate::error::ConfigError;
use crate::quota::{Quota, Unit};
use crate::receipt::Receipt;
use crate::sync::Words;
use crate::time::Nanos;

/// An algorithm that counts in units of 2^k permits, for limits in bytes that are too large to count singly.
///
/// A request is rounded up to whole units, and the limit is rounded down. So the algorithm's bound holds, and a request of
/// one byte costs a whole unit. All methods take and return permits, so a permit remains a byte for
/// [`RateLimiter`](crate::RateLimiter), [`Fair`](crate::Fair) and `throttle::Throttled`.
///
/// The unit is the smallest power of two that the algorithm accepts and in which the limit is less than 2^24 units and at
/// most one unit per 64 ns of the window:
///
/// | limit, per second | 10 to 125 Mbit/s | 1 Gbit/s | 10 Gbit/s | 25 Gbit/s | 100 Gbit/s | 400 Gbit/s |
/// |---|--:|--:|--:|--:|--:|--:|
/// | unit of [`Gcra`](crate::Gcra) and [`CounterRing`](crate::CounterRing) | 1 | 8 | 128 | 256 | 1024 | 4096 |
/// | unit of [`TimestampRing`](crate::TimestampRing) | 2 to 16 | 128 | 2048 | 4096 | 16384 | 65536 |
///
/// # Cost
///
/// A decision rounds the request up to units, and replaces the number in the receipt. This takes a few instructions in addition to
/// those of the algorithm.
///
/// # Examples
///
/// ```
/// use ringgate::algorithm::InUnits;
/// use ringgate::{Algorithm, CounterRing, Gcra, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// // At most 25 Gbit in any second.
/// let rate = Quota::per_second(3_125_000_000)?;
/// let hard = InUnits::new(rate, |units, _| CounterRing::new(units))?;
/// assert_eq!((hard.unit(), hard.bound()), (256, 3_125_000_000 / 256 * 256));
///
/// // A steady rate with bursts of 10 ms. The burst is in units, too.
/// let steady = InUnits::new(rate, |units, unit| Gcra::token_bucket(units, 31_250_000 / unit))?;
/// assert_eq!(steady.max_request(), 31_250_000 / 256 * 256);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct InUnits<A> {
    algorithm: A,
    pub(super) unit: Unit,
}

impl<A: Algorithm> InUnits<A> {
    /// Builds the algorithm by `build`, which gets the quota in units, and the number of permits in a unit.
    ///
    /// # Errors
    ///
    /// The error of `build`, in units. If the error is about the limit, `build` has rejected every larger unit up to the
    /// whole limit.
    pub fn new(
        quota: Quota,
        build: impl Fn(Quota, u64) -> Result<A, ConfigError>,
    ) -> Result<Self, ConfigError> {
        let build_with = |unit: Unit| build(quota.in_units(unit)?, unit.get());
        let (algorithm, unit) = Quota::in_smallest_unit(&[quota], build_with)?;
        Ok(Self { algorithm, unit })
    }
}

impl<A> InUnits<A> {
    /// An algorithm that counts units of `unit` permits.
    pub(super) const fn with_unit(algorithm: A, unit: Unit) -> Self {
        Self { algorithm, unit }
    }

    /// Returns the number of permits in a unit, a power of two.
    #[must_use]
    pub const fn unit(&self) -> u64 {
        self.unit.get()
    }

    /// The algorithm, which counts units.
    pub(super) const fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// The permits of a request in units, rounded up.
    #[inline(always)]
    const fn units(&self, permits: u64) -> u64 {
        self.unit.units(permits)
    }

    const fn permits(&self, units: u64) -> u64 {
        self.unit.permits(units)
    }

    /// The error of the algorithm about a lower limit, with the `limit` that was given in permits.
    #[cold]
    fn invalid_limit(&self, limit: u64, error: ConfigError) -> ConfigError {
        match error.field {
            "limit" => {
                let expected = format!("{}, each a unit of {}", error.expected, self.unit());
                ConfigError::new("limit", format!("{limit}"), expected)
            }
            _ => error,
        }
    }
}

/// The receipt of the same charge, with another number: the permits for the caller, or the units for the algorithm.
#[inline(always)]
fn with_permits(receipt: &Receipt, permits: u64) -> Receipt {
    Receipt::new(receipt.at(), permits, receipt.mark()).with_permit_time(receipt.permit_time())
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
        Some(with_permits(&receipt, permits))
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
        let receipt = with_permits(receipt, charged);
        // If the kept permits need as many units as were charged, there is nothing to refund.
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

    fn restored_at(&self, now: Nanos, idle_after: Duration) -> Nanos {
        self.algorithm.restored_at(now, idle_after)
    }

    fn restore<W: Words>(&self, words: W, at: Nanos, permits: u64) -> u64 {
        let charged = self.algorithm.restore(words, at, self.units(permits));
        self.permits(charged).min(permits)
    }
}

impl<A: Reclaim> Reclaim for InUnits<A> {
    fn span(&self) -> Duration {
        self.algorithm.span()
    }

    fn counts_until<W: Words>(&self, words: W, at: Nanos, permits: u64) -> Nanos {
        self.algorithm.counts_until(words, at, self.units(permits))
    }

    #[inline(always)]
    fn attempt<W: Words>(&self, limit: Option<u64>, words: W, now: Nanos, permits: u64) -> Attempt {
        let limit = limit.map(|limit| self.unit.whole_units(limit));
        self.algorithm
            .attempt(limit, words, now, self.units(permits))
            .map(|receipt| with_permits(&receipt, permits))
    }

    forward_first_word!(inner);

    fn finish_step<W: Words>(&self, words: W) {
        self.algorithm.finish_step(words);
    }

    fn cells_and_unit(&self) -> Option<(u64, u64)> {
        let (cells, unit) = self.algorithm.cells_and_unit()?;
        Some((cells, self.permits(unit)))
    }

    /// The lower limit is rounded down to whole units.
    fn with_limit(&self, limit: u64) -> Result<Self, ConfigError> {
        let algorithm = self.algorithm.with_limit(self.unit.whole_units(limit));
        Ok(Self {
            algorithm: algorithm.map_err(|error| self.invalid_limit(limit, error))?,
            unit: self.unit,
        })
    }

    fn for_table(self, lowest: u64) -> Result<Self, ConfigError> {
        Ok(Self {
            algorithm: self.algorithm.for_table(self.unit.whole_units(lowest).max(1))?,
            unit: self.unit,
        })
    }

    #[inline(always)]
    fn lower_limits(&self) -> (u64, u64) {
        // A limit up to a unit less one above the algorithm's own is rounded down to it.
        let (lowest, highest) = self.algorithm.lower_limits();
        let highest = self.permits(highest).saturating_add(self.unit() - 1);
        (self.permits(lowest), highest)
    }
}
