//! The parts of calendars that only rules use.

use core::time::Duration;

use super::quota::Period;
use super::{Calendar, CalendarQuota};
use crate::quota::Quota;
use crate::time::Nanos;

const DAY: Duration = Duration::from_secs(24 * 3600);

impl Calendar {
    /// The length of the period that contains `now`. Without an end, it is that of the longest period.
    pub(crate) fn length_at(&self, now: Nanos) -> Duration {
        let period = self.period_at(now);
        let before = if period == 1 { self.before_origin } else { 0 };
        match (self.start_of(period), self.start_of(period + 1)) {
            (Some(start), Some(end)) => Duration::from_nanos(end.get() - start.get() + before),
            _ => self.longest,
        }
    }

    /// Whether both have the same periods with the same numbers, so that they read the same from a word.
    pub(crate) fn has_periods_of(&self, other: &Self) -> bool {
        self.starts == other.starts
    }
}

impl CalendarQuota {
    /// The quota with the longest window that a period can have, apart from changes of the clocks.
    pub(crate) fn longest(&self) -> Quota {
        let days = match self.period {
            Period::Day => 1,
            Period::Week(_) => 7,
            Period::Month(_) => 31,
            Period::Year => 366,
        };
        Quota::of_period(self.limit, DAY * days)
    }
}
