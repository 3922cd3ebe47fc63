use alloc::sync::Arc;
use core::time::Duration;

use crate::time::Nanos;

/// A source of readings, in nanoseconds since an origin of its own.
///
/// Readings need not be monotonic, within a thread or between threads. A limiter adopts the newest
/// time that any thread has published, so an older reading makes it stricter, never looser. The exception is a
/// [`StripedLimiter`](crate::StripedLimiter), whose window is shorter by as much as the clock steps back.
///
/// A jump ahead is not detected: windows end early, and later readings count as older ones until they catch up.
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
/// /// The milliseconds that an event loop has read at its last wakeup.
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
    /// Returns the current time.
    ///
    /// It is called once per decision, so it should cost no more than the decision: no system call, no
    /// lock.
    fn now(&self) -> Nanos;

    /// Returns the largest error of the time between two readings whose true distance is `over`.
    ///
    /// A limiter keeps its bound in every interval of one window *by the readings*. In true time it keeps it
    /// in intervals that are shorter by this error ([`RateLimiter::promise`](crate::RateLimiter::promise)).
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
