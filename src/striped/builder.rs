use alloc::format;
use core::time::Duration;
use std::thread;

use crossbeam_utils::CachePadded;

use super::limiter::StripedLimiter;
use super::published_denial::PublishedDenial;
use super::ring::Ring;
use super::stripe::Stripe;
use super::word::StripeWord;
use crate::algorithm::CounterRing;
use crate::clock::Clock;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::time::{Cells, Nanos};

/// A builder of a [`StripedLimiter`].
///
/// # Examples
///
/// ```
/// use ringgate::{ManualClock, Quota, StripedLimiter};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = StripedLimiter::builder(Quota::per_second(10_000)?)
///     .stripes(8)
///     .batch(50)
///     .build_with(ManualClock::new())?;
/// // 400 permits are reserved for the stripes. One request can get at most the rest.
/// assert_eq!(limiter.bound(), 10_000);
/// assert_eq!(limiter.max_request(), 9_600);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct StripedBuilder {
    quota: Quota,
    cells: u64,
    stripes: Option<u64>,
    batch: Option<u64>,
}

/// By default, all batches together are this part of the limit.
const LIMIT_PER_BATCHES: u64 = 32;

/// The maximum number of stripes.
const MAX_STRIPES: u64 = 64;

/// The smallest default batch. With a smaller one, too many admissions would charge the ring.
const MIN_DEFAULT_BATCH: u64 = 8;

impl StripedLimiter {
    /// Returns a builder for the number of stripes, the batch, the cells and the clock. `quota` is the limit and the window of all
    /// threads together.
    pub const fn builder(quota: Quota) -> StripedBuilder {
        StripedBuilder {
            quota,
            cells: CounterRing::DEFAULT_CELLS,
            stripes: None,
            batch: None,
        }
    }
}

impl StripedBuilder {
    /// Sets the number of cells of the ring, see
    /// [`CounterRingBuilder::cells`](crate::algorithm::CounterRingBuilder::cells). The default is
    /// [`CounterRing::DEFAULT_CELLS`].
    pub fn cells(mut self, cells: u64) -> Self {
        self.cells = cells;
        self
    }

    /// Sets the number of stripes, a power of two up to 64.
    ///
    /// The default is the number of cores, rounded up to a power of two. It is halved while the batches would have fewer
    /// than 8 permits, or while the batches that were set do not fit into the limit. If there are more threads than
    /// stripes, threads share stripes. A [`LocalStripe`](super::LocalStripe) claims a stripe for one thread: leave stripes for
    /// the callers without one.
    pub fn stripes(mut self, stripes: u64) -> Self {
        self.stripes = Some(stripes);
        self
    }

    /// Sets how many permits a stripe may admit before it charges the ring: 1 to 4096, and at most the limit less the
    /// batches of all stripes.
    ///
    /// By default a 32nd of the limit is divided among the stripes. If that is less than 8 permits for each stripe,
    /// there are no stripes, even if [`stripes`](Self::stripes) was set, and the ring decides alone.
    pub fn batch(mut self, permits: u64) -> Self {
        self.batch = Some(permits);
        self
    }

    /// Builds the limiter with the given clock.
    ///
    /// # Errors
    ///
    /// - `stripes`: not a power of two from 1 to 64;
    /// - `batch`: not 1 to 4096 permits, or more than the limit less all batches;
    /// - `cells` and `limit`: see [`CounterRingBuilder::build`](crate::algorithm::CounterRingBuilder::build).
    pub fn build_with<C: Clock>(self, clock: C) -> Result<StripedLimiter<C>, ConfigError> {
        let (stripes, batch) = self.stripes_and_batch()?;
        let (limit, reserved) = (self.quota.limit(), stripes * batch);
        let ring_quota = Quota::new(limit - reserved, self.quota.window())?;
        let ring = CounterRing::builder(ring_quota).cells(self.cells).build();
        let ring = ring.map_err(|error| match error.field {
            // The error of the ring names the limit less all batches.
            "limit" if reserved > 0 => ConfigError::new(
                "limit",
                format!("{limit} permits, without batches {}", error.given),
                error.expected,
            ),
            _ => error,
        })?;
        Ok(StripedLimiter {
            stripes: (0..stripes).map(|_| CachePadded::new(Stripe::new())).collect(),
            batch,
            published_denial: CachePadded::new(PublishedDenial::new(Nanos::from_duration(ring.cell()).get())),
            ring: Ring::new(ring),
            periods: periods(self.quota.window()),
            window: self.quota.window_nanos(),
            clock,
        })
    }

    /// Returns the number of stripes and the batch. Both are zero if the limit is too small.
    fn stripes_and_batch(&self) -> Result<(u64, u64), ConfigError> {
        let limit = self.quota.limit();
        if let Some(stripes) = self.stripes
            && !(stripes.is_power_of_two() && stripes <= MAX_STRIPES)
        {
            return Err(ConfigError::new(
                "stripes",
                format!("{stripes} stripes"),
                format!("a power of two from 1 to {MAX_STRIPES}"),
            ));
        }
        if let Some(batch) = self.batch
            && (batch == 0 || batch > StripeWord::MAX_BATCH)
        {
            return Err(ConfigError::new(
                "batch",
                format!("{batch} permits"),
                format!("1 to {} permits", StripeWord::MAX_BATCH),
            ));
        }
        let default_batch = |stripes: u64| (limit / LIMIT_PER_BATCHES / stripes).min(StripeWord::MAX_BATCH);
        let fits = |stripes: u64| match self.batch {
            // The ring must have capacity for the charge of a full stripe.
            Some(batch) => (stripes + 1) * batch <= limit,
            None => default_batch(stripes) >= MIN_DEFAULT_BATCH,
        };
        let stripes = self.stripes.unwrap_or_else(|| {
            let candidates = (0..).map(|halvings| default_stripes() >> halvings);
            candidates
                .take_while(|&stripes| stripes > 0)
                .find(|&stripes| fits(stripes))
                .unwrap_or(1)
        });
        match self.batch {
            Some(batch) if fits(stripes) => Ok((stripes, batch)),
            Some(batch) => Err(ConfigError::new(
                "batch",
                format!("{batch} permits for each of {stripes} stripes"),
                match limit / (stripes + 1) {
                    0 => format!(
                        "a batch only with a limit of at least {} permits, and this is {limit}",
                        stripes + 1
                    ),
                    max_batch => format!("at most {max_batch} permits, with a limit of {limit} permits"),
                },
            )),
            None if fits(stripes) => Ok((stripes, default_batch(stripes))),
            None => Ok((0, 0)),
        }
    }
}

/// The number of cores, rounded up to a power of two, and at most [`MAX_STRIPES`].
fn default_stripes() -> u64 {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    cores.next_power_of_two().min(MAX_STRIPES)
}

/// The periods in which stripes are charged and expire: eighths of the window. For a short window they are longer, so that a
/// stripe word can number the periods of 20 years.
fn periods(window: Duration) -> Cells {
    const MIN_WIDTH: Duration = Duration::from_nanos(2_048);
    let width = Nanos::from_duration((window / 8).max(MIN_WIDTH)).get();
    // The first period is 1, so that a fresh stripe (period 0) is older than every period.
    Cells::new(width, 1, StripeWord::LAST_TICK)
}

#[cfg(test)]
mod tests {
    use super::{StripeWord, periods};
    use crate::quota::Quota;
    use crate::time::HORIZON;

    #[test]
    fn periods_last_twenty_years() {
        for window in [Quota::MIN_WINDOW, Quota::MAX_WINDOW] {
            assert!(HORIZON / periods(window).width() + 1 < StripeWord::LAST_TICK);
        }
    }
}
