use core::time::Duration;
use std::sync::OnceLock;

use super::calibration::{FRACTION, Scale};
use super::source::Clock;
use crate::time::Nanos;

/// The default clock: the processor's time stamp counter, through [`quanta`](https://docs.rs/quanta).
///
/// On processors without a usable counter it is the system's monotonic clock.
///
/// The origin is the moment of construction. A reading takes about 10 ns, without a system call. Constructing the first clock
/// of a process calibrates the counter, for up to 200 ms, and verifies the result for about 10 ms.
///
/// If the counter stops while the machine is suspended, that time is not counted. This makes a limiter stricter. If the counter is
/// broken, use an [`InstantClock`](super::InstantClock).
///
/// # Examples
///
/// ```
/// use ringgate::{Clock, CounterRing, QuantaClock, Quota, RateLimiter};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// // Calibrated once. Clones share the origin and cost nothing.
/// let clock = QuantaClock::new();
/// let ring = CounterRing::new(Quota::per_second(10)?)?;
/// let limiters: Vec<_> = (0..3).map(|_| RateLimiter::with_clock(ring.clone(), clock.clone())).collect();
/// assert!(limiters[0].check_at(clock.now(), 1).is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct QuantaClock {
    clock: ::quanta::Clock,
    origin: u64,
    /// Nanoseconds per count of the counter, in units of 2^-[`FRACTION`].
    scale: u64,
}

impl QuantaClock {
    /// Creates a clock whose origin is now.
    #[must_use]
    pub fn new() -> Self {
        let clock = ::quanta::Clock::new();
        let scale = Scale::of_process(&clock).verified;
        let origin = clock.raw();
        Self { clock, origin, scale }
    }

    /// Returns the clock of the process, whose origin is the first call. A [`LogLimiter`](crate::LogLimiter) reads it.
    ///
    /// Call it at the start of a process that has no other clock, so that no request waits for the calibration.
    #[must_use]
    #[inline]
    pub fn of_process() -> &'static Self {
        static CLOCK: OnceLock<QuantaClock> = OnceLock::new();
        CLOCK.get_or_init(Self::new)
    }
}

impl Default for QuantaClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for QuantaClock {
    #[inline]
    fn now(&self) -> Nanos {
        let Some(counts) = self.clock.raw().checked_sub(self.origin) else {
            return before_origin();
        };
        let nanos = (u128::from(counts) * u128::from(self.scale)) >> FRACTION;
        #[expect(clippy::cast_possible_truncation, reason = "the time wraps after 584 years")]
        let nanos = nanos as u64;
        if nanos > Nanos::MAX.get() {
            return after_end();
        }
        Nanos::new(nanos)
    }

    /// 1 µs plus 50 millionths of `over`.
    ///
    /// The microsecond is for readings of two threads. The rate of the counter is verified by the system's clock, to 45 millionths.
    fn error(&self, over: Duration) -> Duration {
        error(over)
    }
}

// Both edges are calls, so the compiler makes branches to them, which are always predicted. Conditional moves would delay each
// decision, since its exchange waits for the reading.

/// The reading of a counter that is behind the origin, for example after a snapshot was restored.
#[cold]
#[inline(never)]
fn before_origin() -> Nanos {
    Nanos::ZERO
}

#[cold]
#[inline(never)]
fn after_end() -> Nanos {
    Nanos::MAX
}

/// The error of the counter, between two threads and over time.
pub(super) fn error(over: Duration) -> Duration {
    Duration::from_micros(1).saturating_add(over / 20_000)
}
