use std::time::Instant;

use super::source::Clock;
use crate::time::Nanos;

/// The monotonic clock of the standard library, since the clock was created.
///
/// Use it where the processor's counter, which [`QuantaClock`](super::QuantaClock) reads, is broken or is not synchronized between
/// processors, for example in some virtual machines. On Linux the clock does not count time during which the machine is
/// suspended, which makes limits stricter. Clones have the same origin.
///
/// The target `wasm32-unknown-unknown` does not have this clock, because the standard library has none there.
///
/// # Cost
///
/// A reading is one call of [`Instant::now`]. On Linux this is no system call, and takes 20 to 50 ns.
///
/// # Examples
///
/// ```
/// use ringgate::clock::InstantClock;
/// use ringgate::keyed::{AnyKey, random_seeds};
/// use ringgate::{CounterRing, KeyedRateLimiter, Quota, RateLimiter};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let clock = InstantClock::new();
/// let ring = CounterRing::new(Quota::per_second(10)?)?;
/// let limiter = RateLimiter::with_clock(ring.clone(), clock);
/// assert!(limiter.check().is_ok());
///
/// let keys = AnyKey::with_seeds(random_seeds());
/// let users = KeyedRateLimiter::builder(ring).build_with(clock, keys)?;
/// assert!(users.check("ann").is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct InstantClock {
    origin: Instant,
}

impl InstantClock {
    /// Creates a clock whose origin is now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Default for InstantClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for InstantClock {
    fn now(&self) -> Nanos {
        Nanos::from_duration(self.origin.elapsed())
    }
}
