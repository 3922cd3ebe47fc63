use alloc::format;
use core::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use super::date::Day;
use crate::error::ConfigError;

/// A time zone of the database of the operating system, or else of the one that is a part of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Zone(TimeZone);

impl Zone {
    pub(super) const UTC: Self = Self(TimeZone::UTC);

    pub(super) fn from_name(name: &str) -> Result<Self, ConfigError> {
        let expected = "UTC, or a name of the time zone database, such as Europe/Berlin";
        let zone =
            TimeZone::get(name).map_err(|_| ConfigError::new("time_zone", format!("{name:?}"), expected))?;
        Ok(Self(zone))
    }

    pub(super) fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// The civil day at a time since 1970. `None` if the time is out of the range of the database.
    pub(super) fn day_at(&self, since_1970: Duration) -> Option<Day> {
        let second = i64::try_from(since_1970.as_secs()).ok()?;
        let offset = self.0.to_offset(Timestamp::from_second(second).ok()?);
        Some(Day((second + i64::from(offset.seconds())).div_euclid(86_400)))
    }

    /// The first instant of a civil day, in nanoseconds since 1970. If clocks are set forward at midnight, it is the end of the gap.
    /// If midnight occurs twice, it is the first one. `None` if the day is out of the range of the database.
    pub(super) fn first_instant(&self, day: Day) -> Option<i128> {
        const FIRST: Date = Date::constant(1970, 1, 1);
        let days = Span::new().try_days(day.0).ok()?;
        let zoned = FIRST.checked_add(days).ok()?.to_zoned(self.0.clone()).ok()?;
        Some(zoned.timestamp().as_nanosecond())
    }
}
