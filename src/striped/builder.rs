use alloc::format;
use std::thread;

use crossbeam_utils::CachePadded;

use super::account::Account;
use super::closed::Closed;
use super::ring::Ring;
use super::stripe::Stripe;
use super::{StripedLimiter, periods};
use crate::algorithm::CounterRing;
use crate::clock::Clock;
#[cfg(feature = "quanta")]
use crate::clock::QuantaClock;
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::time::Nanos;

/// A [`StripedLimiter`] in the making.
///
/// # Examples
///
/// ```
/// use ringgate::striped::StripedBuilder;
/// use ringgate::{ManualClock, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = StripedBuilder::new(Quota::per_second(10_000)?)
///     .stripes(8)
///     .hold(50)
///     .build_with(ManualClock::new())?;
/// // 400 permits are set aside for the stripes, and the rest is what one request can get.
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
    hold: Option<u64>,
}

/// The share of the limit that all holds together are when nothing is said: one in 32.
const SHARE: u64 = 32;

/// The least hold that is chosen: with less, too many admissions are charges.
const LEAST_HOLD: u64 = 8;

impl StripedBuilder {
    /// The most stripes that there can be.
    pub const MAX_STRIPES: u64 = 64;

    /// The most permits that one stripe can hold. More would save next to nothing: a charge is then
    /// one in 4096 admissions.
    pub const MAX_HOLD: u64 = Account::MAX_HOLD;

    /// The limit and the window of all threads together.
    pub const fn new(quota: Quota) -> Self {
        Self {
            quota,
            cells: CounterRing::DEFAULT_CELLS,
            stripes: None,
            hold: None,
        }
    }

    /// Cells of the ring behind, as [`CounterRingBuilder::cells`](crate::algorithm::CounterRingBuilder::cells):
    /// [`CounterRing::DEFAULT_CELLS`] when nothing is said.
    pub fn cells(mut self, cells: u64) -> Self {
        self.cells = cells;
        self
    }

    /// How many stripes there are, a power of two up to 64.
    ///
    /// When nothing is said, as many as there are cores, rounded up to a power of two; or fewer where the holds would
    /// be of less than 8 permits, or those asked for do not fit into the limit. Threads that outnumber the stripes
    /// share them, and an [`OwnLane`](super::OwnLane) takes one for itself: leave some for those who ask without.
    pub fn stripes(mut self, stripes: u64) -> Self {
        self.stripes = Some(stripes);
        self
    }

    /// How many permits each stripe holds, 1 to 4096, and no more than what all holds leave of the limit.
    ///
    /// When nothing is said, a 32nd of the limit divided among the stripes; if that is less than 8
    /// permits for each, there are no stripes, however many were asked for, and the ring alone decides.
    pub fn hold(mut self, permits: u64) -> Self {
        self.hold = Some(permits);
        self
    }

    /// Builds the limiter, with a clock of its own.
    ///
    /// The first clock of a process calibrates the processor's counter, for up to 200 ms.
    ///
    /// # Errors
    ///
    /// As [`build_with`](Self::build_with).
    #[cfg(feature = "quanta")]
    pub fn build(self) -> Result<StripedLimiter, ConfigError> {
        self.build_with(QuantaClock::new())
    }

    /// Builds the limiter, with the given clock.
    ///
    /// # Errors
    ///
    /// - `stripes`: not a power of two from 1 to 64;
    /// - `hold`: not 1 to 4096 permits, or more than what all holds leave of the limit;
    /// - `cells` and `limit`: as [`CounterRingBuilder::build`](crate::algorithm::CounterRingBuilder::build).
    pub fn build_with<C: Clock>(self, clock: C) -> Result<StripedLimiter<C>, ConfigError> {
        let (stripes, hold) = self.shape()?;
        let (limit, held) = (self.quota.limit(), stripes * hold);
        let behind = Quota::new(limit - held, self.quota.window())?;
        let ring = CounterRing::builder(behind).cells(self.cells).build();
        let ring = ring.map_err(|error| match error.field {
            // The ring knows only what the holds leave.
            "limit" if held > 0 => ConfigError::new(
                "limit",
                format!("{limit} permits, without holds {}", error.given),
                error.expected,
            ),
            _ => error,
        })?;
        Ok(StripedLimiter {
            stripes: (0..stripes).map(|_| CachePadded::new(Stripe::new())).collect(),
            hold,
            closed: CachePadded::new(Closed::new(Nanos::from_duration(ring.cell()).get())),
            ring: Ring::new(ring),
            periods: periods(self.quota.window()),
            window: self.quota.window_nanos(),
            clock,
        })
    }

    /// How many stripes, and the hold of each; zero and zero where the limit is too small.
    fn shape(&self) -> Result<(u64, u64), ConfigError> {
        let limit = self.quota.limit();
        if let Some(stripes) = self.stripes
            && !(stripes.is_power_of_two() && stripes <= Self::MAX_STRIPES)
        {
            return Err(ConfigError::new(
                "stripes",
                format!("{stripes} stripes"),
                format!("a power of two from 1 to {}", Self::MAX_STRIPES),
            ));
        }
        if let Some(hold) = self.hold
            && (hold == 0 || hold > Self::MAX_HOLD)
        {
            return Err(ConfigError::new(
                "hold",
                format!("{hold} permits"),
                format!("1 to {} permits", Self::MAX_HOLD),
            ));
        }
        let chosen = |stripes: u64| (limit / SHARE / stripes).min(Self::MAX_HOLD);
        let fits = |stripes: u64| match self.hold {
            // The ring behind must have room for the charge of a full stripe.
            Some(hold) => (stripes + 1) * hold <= limit,
            None => chosen(stripes) >= LEAST_HOLD,
        };
        let stripes = self.stripes.unwrap_or_else(|| {
            let halves = (0..).map(|halvings| cores() >> halvings);
            halves
                .take_while(|&stripes| stripes > 0)
                .find(|&stripes| fits(stripes))
                .unwrap_or(1)
        });
        match self.hold {
            Some(hold) if fits(stripes) => Ok((stripes, hold)),
            Some(hold) => Err(ConfigError::new(
                "hold",
                format!("{hold} permits for each of {stripes} stripes"),
                match limit / (stripes + 1) {
                    0 => format!(
                        "a hold only with a limit of at least {} permits, and this is {limit}",
                        stripes + 1
                    ),
                    most => format!("at most {most} permits, with a limit of {limit} permits"),
                },
            )),
            None if fits(stripes) => Ok((stripes, chosen(stripes))),
            None => Ok((0, 0)),
        }
    }
}

/// The number of cores, as stripes.
fn cores() -> u64 {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    cores.next_power_of_two().min(StripedBuilder::MAX_STRIPES)
}
