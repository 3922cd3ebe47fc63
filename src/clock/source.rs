use alloc::sync::Arc;
use core::time::Duration;

use crate::time::Nanos;

/// A source of clock readings, in nanoseconds since the clock's origin.
///
/// Readings need not be monotonic, within a thread or between threads. A limiter adopts the newest time that any thread has
/// published, so an older reading makes it stricter. The exception is a [`StripedLimiter`](crate::StripedLimiter): if the clock
/// steps back, its window is shortened by the same time.
///
/// A jump ahead is not detected. It ends windows early, and readings that are behind it are decided at its time until they
/// catch up.
///
/// All readings of a limiter must come from one clock, or from clocks with the same origin.
///
/// # Examples
///
/// ```
/// use core::sync::atomic::{AtomicU64, Ordering};
/// use ringgate::{Clock, CounterRing, Nanos, Quota, RateLimiter};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// /// The time that an event loop has read at its last wake-up, in milliseconds.
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
    /// It is called once per decision, so it should cost no more than the decision. It should make no system call and take no
    /// lock.
    fn now(&self) -> Nanos;

    /// Returns the largest error of the time between two readings whose true distance is `over`.
    ///
    /// By the readings, a limiter keeps its bound in every interval of one window. In true time it keeps its bound in
    /// intervals that are shorter by this error ([`RateLimiter::promise`](crate::RateLimiter::promise)).
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
