//! The conversion of a log's time to the readings of a limiter's clock.

use core::time::Duration;
use std::time::SystemTime;

use ringgate::Nanos;

/// The times of the first and of the last request, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) first: i64,
    pub(crate) last: i64,
    /// The reading at `first`: the distance from the last common multiple of the windows.
    phase: u64,
}

/// The span is longer than this number of days.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooLong(pub(crate) u64);

/// Fifteen years in nanoseconds. Every algorithm can represent times up to this one. A token bucket can represent no
/// later time.
const HORIZON: u64 = 15 * 366 * DAY;

/// The largest common multiple of the windows that is used. The clock starts at most this long before the first
/// request.
const COMMON: u64 = 400 * DAY;

const DAY: u64 = 24 * 3600 * 1_000_000_000;

impl Span {
    /// The span for windows that are given in nanoseconds.
    ///
    /// # Errors
    ///
    /// When the span is longer than a limiter can represent.
    pub(crate) fn new(first: i64, last: i64, windows: impl Iterator<Item = i64>) -> Result<Self, TooLong> {
        let windows: Vec<u64> = windows.filter_map(|window| u64::try_from(window).ok()).collect();
        let longest = windows.iter().copied().max().unwrap_or(1);
        let common = windows.iter().try_fold(1, |common, &window| {
            let multiple = u128::from(common / greatest_divisor(common, window)) * u128::from(window);
            u64::try_from(multiple)
                .ok()
                .filter(|multiple| *multiple <= COMMON)
        });
        let period = common.unwrap_or(longest);
        // The phase is less than the period.
        let phase = u64::try_from(i128::from(first).rem_euclid(i128::from(period))).unwrap_or(0);
        let most = HORIZON - longest - phase;
        if first.abs_diff(last) > most {
            return Err(TooLong(most / DAY));
        }
        Ok(Self { first, last, phase })
    }

    /// The time at which the reading is zero.
    pub(crate) fn origin(&self) -> SystemTime {
        // The phase is at most 400 days.
        let nanos = self.first.saturating_sub_unsigned(self.phase);
        let distance = Duration::from_nanos(nanos.unsigned_abs());
        if nanos < 0 {
            SystemTime::UNIX_EPOCH - distance
        } else {
            SystemTime::UNIX_EPOCH + distance
        }
    }

    /// The reading at a time that is not before the first request.
    #[inline]
    pub(crate) const fn reading(&self, time: i64) -> Nanos {
        Nanos::new(self.phase + time.abs_diff(self.first))
    }
}

fn greatest_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one.max(1)
}

#[cfg(test)]
mod tests {
    use super::{DAY, Span, TooLong};
    use ringgate::Nanos;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn readings_count_from_a_multiple_of_the_windows() -> Result<(), TooLong> {
        let reading = |first: i64, windows: &[i64], at: i64| {
            Ok::<_, TooLong>(Span::new(first, at, windows.iter().copied())?.reading(at).get())
        };
        let minute = 60 * SECOND;
        assert_eq!(reading(125 * SECOND, &[minute], 126 * SECOND)?, 6_000_000_000);
        // Before 1970, too, the phase counts from the multiple before.
        assert_eq!(reading(-125 * SECOND, &[minute], -125 * SECOND)?, 55_000_000_000);
        // A window that does not divide a second.
        assert_eq!(reading(SECOND, &[300_000_000], SECOND)?, 100_000_000);
        // Several windows: from a common multiple.
        assert_eq!(
            reading(125 * SECOND, &[minute, 40 * SECOND], 125 * SECOND)?,
            5_000_000_000
        );
        // Without a common multiple: from a multiple of the longest.
        let (day, odd) = (86_400 * SECOND, 86_399 * SECOND + 1);
        assert_eq!(reading(odd + 7, &[odd, day - SECOND], odd + 7)?, 7);
        Ok(())
    }

    #[test]
    fn the_longest_windows_leave_thirteen_years() -> Result<(), TooLong> {
        let year = i64::try_from(366 * DAY).unwrap_or(i64::MAX);
        let span = Span::new(-1, 13 * year - 2, [year].into_iter())?;
        assert_eq!(
            span.reading(13 * year - 2),
            Nanos::new(366 * DAY - 1 + 13 * 366 * DAY - 1)
        );
        assert!(Span::new(-1, 13 * year + 1, [year].into_iter()).is_err());
        assert!(Span::new(i64::MIN, i64::MAX, [1].into_iter()).is_err());
        Ok(())
    }
}
