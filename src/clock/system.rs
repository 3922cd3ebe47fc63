use core::time::Duration;
use std::time::SystemTime;

use super::source::Clock;
use crate::time::Nanos;

/// The time of the operating system, since the clock was created.
///
/// It follows each correction of that time, so use it for limits that depend on the date. For other limits, a monotonic clock
/// such as [`QuantaClock`](super::QuantaClock) is better: if the time of the operating system is set ahead, windows end early,
/// and if it is set back, limiters are stricter until it has caught up.
///
/// Before its origin, the reading is zero. Clones have the same origin.
///
/// # Cost
///
/// A reading is one call of [`SystemTime::now`]. On Linux this is no system call, and takes 20 to 50 ns.
///
/// # Examples
///
/// ```
/// use ringgate::clock::SystemClock;
/// use ringgate::{CounterRing, Quota, RateLimiter};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let limiter = RateLimiter::with_clock(CounterRing::new(Quota::per_second(10)?)?, SystemClock::new());
/// assert!(limiter.check().is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: SystemTime,
}

impl SystemClock {
    /// Creates a clock whose origin is now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            origin: SystemTime::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Nanos {
        let since_origin = SystemTime::now().duration_since(self.origin);
        Nanos::from_duration(since_origin.unwrap_or(Duration::ZERO))
    }
}
