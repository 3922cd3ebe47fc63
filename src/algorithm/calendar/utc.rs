use alloc::format;
use core::time::Duration;

use super::date::Day;
use crate::error::ConfigError;

/// The 31st of December 9999, the last day of the calendar.
const LAST: Day = Day(2_932_896);

/// The only time zone of a program without the time zone database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Zone;

impl Zone {
    pub(super) const UTC: Self = Self;

    pub(super) fn from_name(name: &str) -> Result<Self, ConfigError> {
        let expected = "UTC: this program was built without the feature `calendar` of ringgate";
        match name {
            "UTC" => Ok(Self),
            _ => Err(ConfigError::new("time_zone", format!("{name:?}"), expected)),
        }
    }

    pub(super) const fn name(&self) -> &str {
        "UTC"
    }

    /// The day at a time since 1970. `None` if the time is after the last day.
    pub(super) fn day_at(&self, since_1970: Duration) -> Option<Day> {
        let day = i64::try_from(since_1970.as_secs() / 86_400).ok().map(Day);
        day.filter(|&day| day <= LAST)
    }

    /// Midnight, in nanoseconds since 1970. `None` if the day is after the last one.
    pub(super) fn first_instant(&self, day: Day) -> Option<i128> {
        (day <= LAST).then(|| i128::from(day.0) * 86_400_000_000_000)
    }
}
