//! The rate of the processor's counter, verified.
//!
//! `quanta` calibrates the counter once in a process, by pairs of readings: one of the system's clock, and then one of the
//! counter. If the thread is suspended within the first pair or the last, the time between them becomes a part of the rate. On a busy
//! machine, a few milliseconds of 200 are an error of several percent, for the life of the process. Of 500 processes on two cores
//! with 25 others, two were wrong by more than 50 millionths, one of them by 1,039.
//!
//! Here each reading of the counter lies between two readings of the system's clock. So a suspension only widens the bounds of
//! the rate, and the measurement continues until they are narrow.

use core::time::Duration;
use std::sync::OnceLock;
use std::time::Instant;

/// The number of fraction bits of a scale. The scale of the slowest counters (a few MHz) fits into 64 bits. The rounding of the scale
/// of the fastest ones causes an error of less than one nanosecond in a year.
pub(super) const FRACTION: u32 = 56;

/// The bounds are narrow if they differ by at most this part of the elapsed time, 20 millionths.
const NARROW: u32 = 50_000;

/// The part of the elapsed time by which the calibration of `quanta` may exceed the bounds, 25 millionths. With [`NARROW`] it is
/// at most the 50 millionths that [`error`](super::Clock::error) states.
const TOLERANCE: u32 = 40_000;

/// The longest measurement.
const LONGEST: Duration = Duration::from_millis(200);

/// The nanoseconds of one count, in units of 2^-[`FRACTION`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// By the calibration of `quanta`.
    pub(super) stated: u64,
    /// `stated` if the measurement confirms it, and otherwise the measured rate.
    pub(super) verified: u64,
}

impl Scale {
    /// The scale of the process. The first call measures for about 10 ms.
    pub(super) fn of_process(clock: &::quanta::Clock) -> Self {
        static SCALE: OnceLock<Scale> = OnceLock::new();
        *SCALE.get_or_init(|| {
            let stated = clock.delta_as_nanos(0, 1 << FRACTION);
            // A clock without a usable counter reads the system's clock.
            let verified = if stated == 1 << FRACTION {
                stated
            } else {
                Elapsed::measure(clock).verify(stated)
            };
            Self { stated, verified }
        })
    }

    /// A time in nanoseconds by the calibration of `quanta`, corrected.
    #[inline]
    pub(super) fn correct(&self, stated: u64) -> u64 {
        if self.stated == self.verified {
            stated
        } else {
            scaled(stated, self.verified, self.stated)
        }
    }
}

/// `value * numerator / denominator`, at most `u64::MAX`.
fn scaled(value: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// A reading of the counter between two of the system's clock.
struct Reading {
    before: Instant,
    count: u64,
    after: Instant,
}

impl Reading {
    /// The narrowest of several.
    fn narrowest(clock: &::quanta::Clock) -> Self {
        let read = || Self {
            before: Instant::now(),
            count: clock.raw(),
            after: Instant::now(),
        };
        (1..32).map(|_| read()).fold(
            read(),
            |best, next| if next.width() < best.width() { next } else { best },
        )
    }

    fn width(&self) -> Duration {
        self.after - self.before
    }
}

/// The counts of an interval, and the bounds of its length.
#[derive(Clone, Copy, Debug)]
struct Elapsed {
    counts: u64,
    least: Duration,
    most: Duration,
}

impl Elapsed {
    fn measure(clock: &::quanta::Clock) -> Self {
        let first = Reading::narrowest(clock);
        loop {
            let last = Reading::narrowest(clock);
            let elapsed = Self {
                counts: last.count.saturating_sub(first.count),
                least: last.before.saturating_duration_since(first.after),
                most: last.after - first.before,
            };
            if elapsed.is_narrow() || elapsed.most >= LONGEST {
                return elapsed;
            }
        }
    }

    fn is_narrow(&self) -> bool {
        self.most - self.least <= self.most / NARROW
    }

    /// Returns the scale `stated` if it agrees with narrow bounds, and otherwise that of their middle.
    fn verify(self, stated: u64) -> u64 {
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let (least, most) = (nanos(self.least), nanos(self.most));
        let tolerance = most / u64::from(TOLERANCE);
        let by_stated = scaled(self.counts, stated, 1 << FRACTION);
        let agrees = || (least.saturating_sub(tolerance)..=most + tolerance).contains(&by_stated);
        if self.counts == 0 || self.is_narrow() && agrees() {
            stated
        } else {
            scaled(1 << FRACTION, least + (most - least) / 2, self.counts)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Elapsed, FRACTION, Scale};
    use core::time::Duration;

    /// A counter of 2.5 GHz.
    const TRUE: u64 = (1 << FRACTION) * 2 / 5;

    /// Ten milliseconds, between bounds 100 ns apart.
    const TEN: Elapsed = Elapsed {
        counts: 25_000_000,
        least: Duration::from_nanos(9_999_950),
        most: Duration::from_nanos(10_000_050),
    };

    #[test]
    fn a_calibration_within_the_bounds_is_kept() {
        assert!(TEN.is_narrow());
        for millionths in [0, 5, 20] {
            for stated in [
                TRUE + TRUE / 1_000_000 * millionths,
                TRUE - TRUE / 1_000_000 * millionths,
            ] {
                assert_eq!(TEN.verify(stated), stated);
            }
        }
    }

    #[test]
    fn a_calibration_that_was_interrupted_is_replaced() {
        // Suspended for 4 ms of 200, for 50 µs, and for longer than the calibration.
        for stated in [TRUE / 50 * 51, TRUE / 50 * 49, TRUE / 10_000 * 10_001, 3 * TRUE] {
            let verified = TEN.verify(stated);
            assert!(
                verified.abs_diff(TRUE) < TRUE / 100_000,
                "{verified} is not {TRUE}"
            );
            let scale = Scale { stated, verified };
            assert_eq!(scale.correct(0), 0);
            let corrected =
                scale.correct(u64::try_from((u128::from(stated) * 25_000_000) >> FRACTION).unwrap());
            assert!(corrected.abs_diff(10_000_000) <= 2, "{corrected} ns");
        }
    }

    /// The clock of a system that takes 3 µs for a reading: the bounds of 200 ms are 6 µs apart, and the calibration is off by
    /// more than half of that.
    #[test]
    fn bounds_that_are_not_narrow_are_halved() {
        let wide = Elapsed {
            counts: 500_000_000,
            least: Duration::from_nanos(199_997_000),
            most: Duration::from_nanos(200_003_000),
        };
        assert!(!wide.is_narrow());
        let stated = TRUE + TRUE / 1_000_000 * 30;
        assert!(wide.verify(stated).abs_diff(TRUE) < TRUE / 1_000_000);
    }

    #[test]
    fn a_counter_that_does_not_run_is_left_to_the_library() {
        assert_eq!(Elapsed { counts: 0, ..TEN }.verify(TRUE), TRUE);
    }
}
