//! Where readings of time come from.

use alloc::sync::Arc;
use core::time::Duration;

use crate::time::Nanos;

#[cfg(feature = "quanta")]
mod coarse;
mod manual;
#[cfg(feature = "quanta")]
mod quanta;

#[cfg(feature = "quanta")]
pub use self::quanta::QuantaClock;
#[cfg(feature = "quanta")]
pub use coarse::{CoarseClock, CoarseClockError};
pub use manual::ManualClock;

/// A source of readings, in nanoseconds since an origin of its own.
///
/// Readings need not be monotonic, within a thread or between threads: a limiter adopts the newest
/// time that anybody has published, so an older reading makes it stricter, never looser. (A
/// [`StripedLimiter`](crate::StripedLimiter) is the exception: its window is shorter by as much as the clock steps
/// back.) A clock that jumps ahead is believed: windows end early, and readings that come after it are older ones.
///
/// Readings of one limiter must come from one clock (or from clocks with one origin).
///
/// # Examples
///
/// ```
/// use core::sync::atomic::{AtomicU64, Ordering};
/// use ringgate::{Clock, CounterRing, Nanos, Quota, RateLimiter};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// /// Milliseconds that an event loop has read when it woke up.
/// struct LoopTime(AtomicU64);
///
/// impl Clock for LoopTime {
///     fn now(&self) -> Nanos {
///         Nanos::new(self.0.load(Ordering::Relaxed).saturating_mul(1_000_000))
///     }
/// }
///
/// let clock = LoopTime(AtomicU64::new(0));
/// let limiter = RateLimiter::with_clock(CounterRing::new(Quota::per_second(1)?)?, &clock);
/// assert!(limiter.check().is_ok());
/// assert!(limiter.check().is_err());
/// # Ok(())
/// # }
/// ```
pub trait Clock {
    /// The time now.
    ///
    /// Called once for every decision, so it should cost no more than the decision: no system call, no
    /// lock.
    fn now(&self) -> Nanos;

    /// How far the time between two readings may be from the true time between them, when that is `over`.
    ///
    /// A limiter promises its bound for every interval of one window *by the readings*. In true time the
    /// promise is for intervals shorter by this much ([`RateLimiter::promise`](crate::RateLimiter::promise)).
    fn error(&self, over: Duration) -> Duration {
        let _ = over;
        Duration::ZERO
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    #[inline]
    fn now(&self) -> Nanos {
        (**self).now()
    }

    fn error(&self, over: Duration) -> Duration {
        (**self).error(over)
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    #[inline]
    fn now(&self) -> Nanos {
        (**self).now()
    }

    fn error(&self, over: Duration) -> Duration {
        (**self).error(over)
    }
}
