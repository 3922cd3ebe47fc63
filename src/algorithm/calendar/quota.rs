use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::time::SystemTime;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use super::word::Word;
use crate::error::ConfigError;
use crate::quota::{Quota, limit_from_text};
use crate::time::HORIZON;

/// A limit for each calendar day, week, month or year in a time zone. The time zone is UTC unless [`in_zone`](Self::in_zone) sets
/// another.
///
/// A period begins at the first instant of a civil day, which is not always midnight: in some zones clocks are set forward then. A
/// civil day that a zone has skipped is no period.
///
/// # Examples
///
/// ```
/// use ringgate::algorithm::CalendarQuota;
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let quota = CalendarQuota::per_month(50_000)?.from_day(5)?.in_zone("Europe/Berlin")?;
/// // The same quota, parsed from text.
/// assert_eq!(quota, "50_000/month from 5".parse::<CalendarQuota>()?.in_zone("Europe/Berlin")?);
/// assert_eq!(quota.to_string(), "50000/month from 5, Europe/Berlin");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarQuota {
    pub(super) limit: u64,
    pub(super) period: Period,
    time_zone: TimeZone,
}

/// The periods, and where they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Period {
    Day,
    /// Weeks that begin with this day: 1 is Monday, 7 is Sunday.
    Week(i8),
    /// Months that begin with this day, 1 to 28.
    Month(i8),
    Year,
}

/// The names of the days of a week. Monday is 1.
const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// The accepted texts, for errors.
const TEXTS: &str = "a limit, \"/\" or \"per\", and a period: 1000/day, 5000/week, 5000/week from sunday, 50000/month, \
    50000/month from 5, 1000000/year";

impl CalendarQuota {
    /// Creates a quota of `limit` permits for each civil day.
    ///
    /// # Errors
    ///
    /// `limit`: 0, or more than [`Quota::MAX_LIMIT`].
    pub fn per_day(limit: u64) -> Result<Self, ConfigError> {
        Self::new(limit, Period::Day)
    }

    /// Creates a quota of `limit` permits for each week from Monday to Sunday.
    ///
    /// # Errors
    ///
    /// `limit`: 0, or more than [`Quota::MAX_LIMIT`].
    pub fn per_week(limit: u64) -> Result<Self, ConfigError> {
        Self::new(limit, Period::Week(1))
    }

    /// Creates a quota of `limit` permits for each month.
    ///
    /// # Errors
    ///
    /// `limit`: 0, or more than [`Quota::MAX_LIMIT`].
    pub fn per_month(limit: u64) -> Result<Self, ConfigError> {
        Self::new(limit, Period::Month(1))
    }

    /// Creates a quota of `limit` permits for each year.
    ///
    /// # Errors
    ///
    /// `limit`: 0, or more than [`Quota::MAX_LIMIT`].
    pub fn per_year(limit: u64) -> Result<Self, ConfigError> {
        Self::new(limit, Period::Year)
    }

    fn new(limit: u64, period: Period) -> Result<Self, ConfigError> {
        let quota = Self {
            limit,
            period,
            time_zone: TimeZone::UTC,
        };
        quota.with_limit(limit)
    }

    /// Replaces the limit.
    ///
    /// # Errors
    ///
    /// `limit`: 0, or more than [`Quota::MAX_LIMIT`].
    pub fn with_limit(self, limit: u64) -> Result<Self, ConfigError> {
        const { assert!(Quota::MAX_LIMIT <= Word::MAX_USED / 2) };
        if limit == 0 || limit > Quota::MAX_LIMIT {
            return Err(ConfigError::new(
                "limit",
                format!("{limit}"),
                format!("1 to {} permits", Quota::MAX_LIMIT),
            ));
        }
        Ok(Self { limit, ..self })
    }

    /// Sets the day with which a month begins, 1 to 28, or a week: 1 is Monday, 7 is Sunday.
    ///
    /// No month begins with day 29, 30 or 31, because some months do not have it.
    ///
    /// # Errors
    ///
    /// `from`: another day, or given for days or years.
    pub fn from_day(self, day: u8) -> Result<Self, ConfigError> {
        let invalid = |expected| ConfigError::new("from", format!("{day}"), expected);
        let in_range = |last: i8, expected| {
            let day = i8::try_from(day).ok();
            day.filter(|day| (1..=last).contains(day))
                .ok_or_else(|| invalid(expected))
        };
        let period = match self.period {
            Period::Week(_) => Period::Week(in_range(7, "1 (Monday) to 7 (Sunday)")?),
            Period::Month(_) => Period::Month(in_range(28, "1 to 28, the days that every month has")?),
            Period::Day | Period::Year => return Err(invalid("no day, except for weeks and months")),
        };
        Ok(Self { period, ..self })
    }

    /// Sets the time zone, by its name in the time zone database of the IANA, such as `Europe/Berlin`.
    ///
    /// The database is that of the operating system, or else one that is a part of the program.
    ///
    /// # Errors
    ///
    /// `time_zone`: not in the database.
    pub fn in_zone(self, name: &str) -> Result<Self, ConfigError> {
        let time_zone = TimeZone::get(name).map_err(|_| {
            ConfigError::new(
                "time_zone",
                format!("{name:?}"),
                "UTC, or a name of the time zone database, such as Europe/Berlin",
            )
        })?;
        Ok(Self { time_zone, ..self })
    }

    /// Returns the permits for each period.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The starts of the periods as nanoseconds since `origin`, in increasing order, up to the end of time. The first is 0, for the
    /// period that contains the origin, which began as many nanoseconds before it as the second result. `None` if a time is out of the
    /// range of the calendar.
    pub(super) fn starts(&self, origin: SystemTime) -> Option<(Vec<u64>, u64)> {
        let origin = Timestamp::try_from(origin)
            .ok()
            .filter(|&it| it >= Timestamp::UNIX_EPOCH)?;
        let date = origin.to_zoned(self.time_zone.clone()).date();
        let first = self.first_day(date)?;
        let began = self.first_instant(first)?;
        let before = u64::try_from(origin.as_nanosecond() - began.as_nanosecond()).unwrap_or(0);
        let mut starts = alloc::vec![0];
        for periods in 1.. {
            let start = self.first_instant(self.after(first, periods)?)?;
            let since = u64::try_from(start.as_nanosecond() - origin.as_nanosecond()).unwrap_or(0);
            if since > HORIZON {
                break;
            }
            // A skipped day begins when the next one does.
            if since > starts[starts.len() - 1] {
                starts.push(since);
            }
        }
        debug_assert!(
            starts.len() as u64 <= Word::MAX_PERIOD,
            "{} periods",
            starts.len()
        );
        Some((starts, before))
    }

    /// The start and the end of the period that contains `now`, as times since 1970. `None` if a time is out of the range of the
    /// calendar.
    pub(crate) fn period_of(&self, now: SystemTime) -> Option<(Duration, Duration)> {
        let now = Timestamp::try_from(now)
            .ok()
            .filter(|&it| it >= Timestamp::UNIX_EPOCH)?;
        let first = self.first_day(now.to_zoned(self.time_zone.clone()).date())?;
        let since_1970 = |at: Timestamp| {
            let nanos = u64::try_from(at.as_nanosecond().max(0)).ok()?;
            Some(Duration::from_nanos(nanos))
        };
        let start = since_1970(self.first_instant(first)?)?;
        let end = since_1970(self.first_instant(self.after(first, 1)?)?)?;
        Some((start, end))
    }

    /// The first day of the period that contains `date`.
    fn first_day(&self, date: Date) -> Option<Date> {
        match self.period {
            Period::Day => Some(date),
            Period::Week(from) => {
                let day = date.weekday().to_monday_one_offset();
                date.checked_sub(i32::from((day - from).rem_euclid(7)).days())
                    .ok()
            }
            Period::Month(from) => {
                let in_month = date.with().day(from).build().ok()?;
                if date >= in_month {
                    Some(in_month)
                } else {
                    in_month.checked_sub(1.month()).ok()
                }
            }
            Period::Year => date.with().month(1).day(1).build().ok(),
        }
    }

    /// The first day of the period that begins this many periods after the one that begins with `first`.
    fn after(&self, first: Date, periods: i32) -> Option<Date> {
        let later = match self.period {
            Period::Day => periods.days(),
            Period::Week(_) => periods.weeks(),
            Period::Month(_) => periods.months(),
            Period::Year => periods.years(),
        };
        first.checked_add(later).ok()
    }

    /// The first instant of a civil day. If clocks are set forward at midnight, it is the end of the gap. If midnight occurs twice,
    /// it is the first one.
    fn first_instant(&self, day: Date) -> Option<Timestamp> {
        let zoned = day.to_zoned(self.time_zone.clone()).ok()?;
        Some(zoned.timestamp())
    }
}

/// Parses text such as `1000/day`, `5000 per week from sunday` or `50_000/month from the 5th`.
///
/// The limit is written as that of a [`Quota`], and may have a unit of bytes. The period is `day`, `week`, `month` or `year`. `from`
/// and a weekday may follow a week, and `from` and a day a month. The time zone is not part of the text.
impl FromStr for CalendarQuota {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let invalid = || ConfigError::new("quota", format!("{text:?}"), TEXTS);
        let lower = text.to_ascii_lowercase();
        let (limit_end, separator) = ["/", " per "]
            .iter()
            .find_map(|separator| Some((lower.find(separator)?, separator)))
            .ok_or_else(invalid)?;
        let limit = limit_from_text(text[..limit_end].trim()).ok_or_else(invalid)??;
        let period = &lower[limit_end + separator.len()..];
        let (period, from) = match period.split_once(" from ") {
            Some((period, from)) => (period.trim(), Some(from.trim())),
            None => (period.trim(), None),
        };
        let quota = match period {
            "day" => Self::per_day(limit),
            "week" => Self::per_week(limit),
            "month" => Self::per_month(limit),
            "year" => Self::per_year(limit),
            _ => return Err(invalid()),
        }?;
        match (from, quota.period) {
            (None, _) => Ok(quota),
            (Some(day), Period::Week(_)) => {
                let index = WEEKDAYS.iter().position(|name| *name == day).ok_or_else(|| {
                    ConfigError::new("from", format!("{day:?}"), "a day of the week, monday to sunday")
                })?;
                quota.from_day(index as u8 + 1)
            }
            (Some(day), Period::Month(_)) => {
                let digits = day.strip_prefix("the ").unwrap_or(day);
                let digits = digits.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let number = digits.parse().ok().filter(|&number| is_day(day, digits, number));
                let number = number.ok_or_else(|| {
                    ConfigError::new("from", format!("{day:?}"), "a day of the month: 5, or the 5th")
                })?;
                quota.from_day(number)
            }
            (Some(day), Period::Day | Period::Year) => Err(ConfigError::new(
                "from",
                format!("{day:?}"),
                "no day, except for weeks and months",
            )),
        }
    }
}

/// Whether `text` is a day of the month: `5`, `5th` or `the 5th`.
fn is_day(text: &str, digits: &str, number: u8) -> bool {
    let ordinal = match (number % 10, number / 10) {
        (_, 1) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    let text = text.strip_prefix("the ").unwrap_or(text);
    text == digits || text.strip_prefix(digits) == Some(ordinal)
}

/// Formats the quota as text that [`FromStr`] can parse, followed by the time zone.
impl fmt::Display for CalendarQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit;
        match self.period {
            Period::Day => write!(f, "{limit}/day"),
            Period::Week(1) => write!(f, "{limit}/week"),
            Period::Week(from) => {
                let weekday = WEEKDAYS[usize::from(from.unsigned_abs()) - 1];
                write!(f, "{limit}/week from {weekday}")
            }
            Period::Month(1) => write!(f, "{limit}/month"),
            Period::Month(from) => write!(f, "{limit}/month from {from}"),
            Period::Year => write!(f, "{limit}/year"),
        }?;
        write!(f, ", {}", self.time_zone.iana_name().unwrap_or("UTC"))
    }
}
