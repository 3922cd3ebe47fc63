use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use core::time::Duration;

use super::source::Clock;
use crate::sync::AtomicU64;
use crate::time::Nanos;

/// A clock that moves only when it is set or advanced, for tests and simulations.
///
/// Clones share the time. The clock can be set to any time, forward or back.
///
/// # A first test
///
/// Do not advance the clock by the window and expect capacity. A [`SlidingWindow`](crate::SlidingWindow), the default, counts in
/// 60 cells above a limit of 64, and in one word in a table of keys. Both count a permit for longer than the window: by up to one
/// cell, and one word by the time in which a unit fills, too. A denial says when there is capacity. Advance the clock by that
/// time:
///
/// ```
/// use core::time::Duration;
/// use ringgate::{ManualClock, Quota, RateLimiter, SlidingWindow};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let clock = ManualClock::new();
/// let limiter = RateLimiter::with_clock(SlidingWindow::new(Quota::per_minute(100)?)?, clock.clone());
/// assert!(limiter.check_n(100).is_ok());
/// let wait = limiter.check().unwrap_err().retry_after().expect("one permit is within the limit");
/// assert_eq!(wait, Duration::from_secs(61));
/// clock.advance(wait);
/// assert!(limiter.check().is_ok());
/// # Ok(())
/// # }
/// ```
///
/// A [`TimestampRing`](crate::TimestampRing) has capacity again exactly one window after the admission, as in the next example.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::{ManualClock, Quota, RateLimiter, TimestampRing};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let clock = ManualClock::new();
/// let limiter = RateLimiter::with_clock(TimestampRing::new(Quota::per_second(1)?)?, clock.clone());
/// assert!(limiter.check().is_ok());
/// assert!(limiter.check().is_err());
/// // One second later the first admission no longer counts.
/// clock.advance(Duration::from_secs(1));
/// assert!(limiter.check().is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
}

impl ManualClock {
    /// Creates a clock at its origin.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock forward.
    ///
    /// # Concurrency
    ///
    /// If two threads advance the clock at the same time, it moves by the sum.
    pub fn advance(&self, by: Duration) {
        // Relaxed throughout: the clock publishes nothing but its own value.
        let mut seen = self.nanos.load(Ordering::Relaxed);
        loop {
            let next = Nanos::new(seen).saturating_add(by).get();
            match self
                .nanos
                .compare_exchange(seen, next, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Sets the clock, forward or back.
    pub fn set(&self, now: Nanos) {
        // Relaxed: as in `advance`.
        self.nanos.store(now.get(), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    #[inline]
    fn now(&self) -> Nanos {
        // Relaxed: as in `advance`.
        Nanos::new(self.nanos.load(Ordering::Relaxed))
    }
}
