//! Calendars whose periods are found by the time of the operating system.

use alloc::format;
use core::time::Duration;
use std::time::SystemTime;

use super::{Calendar, CalendarQuota};
use crate::clock::Clock;
use crate::error::ConfigError;

impl Calendar {
    /// Creates the algorithm for limiters that use `clock`. The time of the operating system is read once, to learn the time at the
    /// clock's origin.
    ///
    /// # Errors
    ///
    /// `origin`: the time of the operating system is before 1970 or after the year 9900.
    pub fn new(quota: &CalendarQuota, clock: &impl Clock) -> Result<Self, ConfigError> {
        Self::with_origin(quota, Self::origin_of(clock))
    }

    /// Reads the time of the operating system at the origin of a clock.
    pub(crate) fn origin_of(clock: &impl Clock) -> SystemTime {
        let since_origin = Duration::from_nanos(clock.now().get());
        let now = SystemTime::now();
        now.checked_sub(since_origin).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// Creates the algorithm for limiters whose clock has its origin at the time `origin`, for tests and simulations.
    ///
    /// # Errors
    ///
    /// `origin`: before 1970 or after the year 9900.
    pub fn with_origin(quota: &CalendarQuota, origin: SystemTime) -> Result<Self, ConfigError> {
        let since_1970 = origin.duration_since(SystemTime::UNIX_EPOCH).ok();
        let calendar = since_1970.and_then(|origin| Self::with_origin_since_1970(quota, origin));
        calendar.ok_or_else(|| {
            ConfigError::new(
                "origin",
                format!("{origin:?}"),
                "a time in the years 1970 to 9900",
            )
        })
    }
}
