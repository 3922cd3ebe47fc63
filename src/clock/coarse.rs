use alloc::sync::Arc;
use core::cell::Cell;
use core::time::Duration;
use std::io;

use super::calibration::Scale;
use super::source::Clock;
use crate::error::ConfigError;
use crate::time::Nanos;

const NANOS_PER_SEC: u64 = 1_000_000_000;

std::thread_local! {
    /// The last reading of this thread, and the number of times in a row that the thread has read it.
    static SEEN: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
}

/// A clock whose time an upkeep thread updates every `interval`, so that a reading is one load.
///
/// A reading is late by up to the interval, plus the scheduling delay of the upkeep thread.
/// [`error`](Clock::error) is twice the interval, and
/// [`RateLimiter::promise`](crate::RateLimiter::promise) subtracts it from the interval in true time for which the bound
/// holds. To keep the bound in every true window, widen the quota's window by the error.
///
/// # Cost
///
/// A reading is one load of the coarse time, and one load and one store of a thread-local count: 1 to 2 ns. After 64 readings
/// of the same time in a row, a reading also reads the precise clock.
///
/// # Caveats
///
/// The upkeep thread does not survive a fork, and may be starved. So a thread that has read the same time 64 times in a row
/// reads the precise clock. If that is more than two intervals ahead, the coarse clock has stopped, and the thread uses the
/// precise time until the coarse time changes. The coarse time may then be a little behind the precise one, so readings can
/// step back. Limiters tolerate this, as documented in [`Clock`]. The window of a
/// [`StripedLimiter`](crate::StripedLimiter) is shortened by the same time.
///
/// The stated error assumes that the upkeep thread is scheduled in time. With all cores busy, readings of a clock with an
/// interval of 1 ms were up to 6 ms late. In threads that read it only every 100 µs they were up to 24 ms late, because 64
/// readings take longer there. If the bound must hold in true time on an overloaded machine, use
/// [`QuantaClock`](super::QuantaClock).
///
/// Dropping the last clone stops the upkeep thread, and waits up to one interval for it.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::clock::CoarseClock;
/// use ringgate::{CounterRing, Quota, RateLimiter};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let clock = CoarseClock::start(Duration::from_millis(1))?;
/// let limiter = RateLimiter::with_clock(CounterRing::new(Quota::per_second(10)?)?, clock.clone());
/// assert!(limiter.check().is_ok());
/// // The error is twice the interval, plus the error of the precise clock.
/// assert!(limiter.promise().interval < Duration::from_millis(998));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CoarseClock {
    clock: ::quanta::Clock,
    origin: ::quanta::Instant,
    scale: Scale,
    interval: Duration,
    /// Stops the upkeep thread when the last clone is dropped.
    _upkeep: Arc<::quanta::Handle>,
}

impl CoarseClock {
    /// The number of equal readings in a row after which a thread reads the precise clock.
    const MAX_REPEATS: u32 = 64;

    /// Starts the upkeep thread of the process, and returns a clock whose origin is now.
    ///
    /// # Errors
    ///
    /// - [`InvalidInput`](io::ErrorKind::InvalidInput): the interval is zero.
    /// - [`AlreadyExists`](io::ErrorKind::AlreadyExists): this process already has an upkeep thread. Use a clone of the first clock.
    /// - The error of [`spawn`](std::thread::Builder::spawn), if the thread cannot be spawned.
    pub fn start(interval: Duration) -> io::Result<Self> {
        if interval.is_zero() {
            let error = ConfigError::new("interval", "0s", "more than 0s");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let clock = ::quanta::Clock::new();
        let upkeep = ::quanta::Upkeep::new_with_clock(interval, clock.clone())
            .start()
            .map_err(|error| match error {
                ::quanta::Error::UpkeepRunning => io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "this process has an upkeep thread already; clone the clock that started it",
                ),
                ::quanta::Error::FailedToSpawnUpkeepThread(error) => error,
            })?;
        let scale = Scale::of_process(&clock);
        let origin = clock.recent();
        Ok(Self {
            clock,
            origin,
            scale,
            interval,
            _upkeep: Arc::new(upkeep),
        })
    }

    #[inline]
    fn since_origin(&self, now: ::quanta::Instant) -> Nanos {
        Nanos::new(self.scale.correct(nanos_between(self.origin, now)))
    }

    /// Returns the precise time if the coarse clock has stopped, and the coarse time otherwise.
    #[cold]
    fn recheck(&self, coarse: Nanos) -> Nanos {
        let precise = self.since_origin(self.clock.now());
        if precise.saturating_since(coarse) > self.interval.saturating_mul(2) {
            precise
        } else {
            SEEN.set((coarse.get(), 0));
            coarse
        }
    }
}

impl Clock for CoarseClock {
    #[inline]
    fn now(&self) -> Nanos {
        let coarse = self.since_origin(self.clock.recent());
        let (last, repeats) = SEEN.get();
        if last != coarse.get() {
            SEEN.set((coarse.get(), 1));
        } else if repeats < Self::MAX_REPEATS {
            SEEN.set((last, repeats + 1));
        } else {
            return self.recheck(coarse);
        }
        coarse
    }

    /// The error of the precise clock plus twice the interval: one interval until the update, and one until a thread detects
    /// that the clock has stopped.
    fn error(&self, over: Duration) -> Duration {
        super::quanta::error(over).saturating_add(self.interval.saturating_mul(2))
    }
}

/// The nanoseconds from `origin` to `now` by the calibration of `quanta`.
#[inline]
fn nanos_between(origin: ::quanta::Instant, now: ::quanta::Instant) -> u64 {
    let since = now.saturating_duration_since(origin);
    // An instant of quanta is 64 bits of nanoseconds, so nothing overflows here. The compiler reduces this form to a
    // subtraction, unlike `Nanos::from_duration`.
    since.as_secs() * NANOS_PER_SEC + u64::from(since.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::nanos_between;
    use core::time::Duration;

    /// Only the correction of the rate may change a reading, and it is 1 in most processes but not on a busy machine. So this
    /// test has no clock.
    #[test]
    fn a_coarse_reading_is_exact_before_it_is_corrected() {
        let origin = ::quanta::Instant::recent();
        for nanos in [
            0,
            1,
            999_999_999,
            1_000_000_000,
            5_000_000_007,
            86_400_999_999_999,
            1 << 63,
        ] {
            let later = origin + Duration::from_nanos(nanos);
            assert_eq!(nanos_between(origin, later), nanos);
            assert_eq!(
                nanos_between(later, origin),
                0,
                "a coarse clock that is set back stands"
            );
        }
    }
}
