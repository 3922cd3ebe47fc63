use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use super::date::Day;
use super::word::Word;
use super::zone::Zone;
use crate::error::ConfigError;
use crate::quota::{Quota, limit_from_text};
use crate::time::HORIZON;

/// A limit for each calendar day, week, month or year. The time zone is UTC unless [`in_zone`](Self::in_zone) sets another (feature
/// `calendar`).
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
/// let quota = CalendarQuota::per_month(50_000)?;
/// // The same quota, parsed from text.
/// assert_eq!(quota, "50_000/month".parse::<CalendarQuota>()?);
/// // Each month begins with the fifth.
/// let quota: CalendarQuota = "50_000/month from 5".parse()?;
/// assert_eq!(quota.to_string(), "50000/month from 5, UTC");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarQuota {
    pub(super) limit: u64,
    pub(super) period: Period,
    zone: Zone,
}

/// The periods, and where they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Period {
    Day,
    /// Weeks that begin with this day: 1 is Monday, 7 is Sunday.
    Week(u8),
    /// Months that begin with this day, 1 to 28.
    Month(u8),
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
            zone: Zone::UTC,
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
    fn with_first_day(self, day: u8) -> Result<Self, ConfigError> {
        let invalid = |expected| ConfigError::new("from", format!("{day}"), expected);
        let in_range = |last: u8, expected| match (1..=last).contains(&day) {
            true => Ok(day),
            false => Err(invalid(expected)),
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
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::algorithm::CalendarQuota;
    ///
    /// # fn main() -> Result<(), ringgate::ConfigError> {
    /// let quota = CalendarQuota::per_month(50_000)?.in_zone("Europe/Berlin")?;
    /// assert_eq!(quota.to_string(), "50000/month, Europe/Berlin");
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "calendar")]
    pub fn in_zone(self, name: &str) -> Result<Self, ConfigError> {
        self.in_named_zone(name)
    }

    /// Sets the time zone by its name. Without the feature `calendar`, only UTC is accepted.
    pub(crate) fn in_named_zone(self, name: &str) -> Result<Self, ConfigError> {
        let zone = Zone::from_name(name)?;
        Ok(Self { zone, ..self })
    }

    /// Returns the permits for each period.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The starts of the periods as nanoseconds since `origin`, in increasing order, up to the end of time. The first start is 0:
    /// that of the period that contains the origin. The second result is the time from the beginning of this period to the
    /// origin. `None` if a time is out of the range of the calendar. The origin is a time since 1970.
    pub(super) fn starts(&self, origin: Duration) -> Option<(Vec<u64>, u64)> {
        let first = self.number(self.zone.day_at(origin)?);
        let origin = i128::try_from(origin.as_nanos()).ok()?;
        let before = u64::try_from(origin - self.start(first)?).unwrap_or(0);
        let mut starts = alloc::vec![0];
        for number in first + 1.. {
            let since = u64::try_from(self.start(number)? - origin).unwrap_or(0);
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

    /// The start and the end of the period that contains `now`. All of these are times since 1970. `None` if a time is out of the
    /// range of the calendar.
    pub(crate) fn period_of(&self, now: Duration) -> Option<(Duration, Duration)> {
        let number = self.number(self.zone.day_at(now)?);
        let since_1970 = |start: i128| {
            let nanos = u64::try_from(start.max(0)).ok()?;
            Some(Duration::from_nanos(nanos))
        };
        Some((
            since_1970(self.start(number)?)?,
            since_1970(self.start(number + 1)?)?,
        ))
    }

    /// The number of the period that contains a day. Consecutive periods have consecutive numbers.
    fn number(&self, day: Day) -> i64 {
        let (month, in_month) = day.month_and_day();
        match self.period {
            Period::Day => day.0,
            Period::Week(from) => day.week(from.into()),
            Period::Month(from) => month - i64::from(in_month < from.into()),
            Period::Year => month.div_euclid(12),
        }
    }

    /// The first instant of a period, in nanoseconds since 1970.
    fn start(&self, number: i64) -> Option<i128> {
        self.zone.first_instant(match self.period {
            Period::Day => Day(number),
            Period::Week(from) => Day::first_of_week(number, from.into()),
            Period::Month(from) => Day::in_month(number, from.into()),
            Period::Year => Day::in_month(12 * number, 1),
        })
    }
}

/// Parses text such as `1000/day`, `5000 per week from sunday` or `50_000/month from the 5th`.
///
/// The limit is written as that of a [`Quota`], and may have a unit of bytes. The period is `day`, `week`, `month` or `year`. A
/// week may be followed by `from` and a weekday, and a month by `from` and a day, 1 to 28. Not every month has the later days. The
/// time zone is not part of the text.
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
                quota.with_first_day(index as u8 + 1)
            }
            (Some(day), Period::Month(_)) => {
                let digits = day.strip_prefix("the ").unwrap_or(day);
                let digits = digits.trim_end_matches(|c: char| c.is_ascii_alphabetic());
                let number = digits.parse().ok().filter(|&number| is_day(day, digits, number));
                let number = number.ok_or_else(|| {
                    ConfigError::new("from", format!("{day:?}"), "a day of the month: 5, or the 5th")
                })?;
                quota.with_first_day(number)
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
                let weekday = WEEKDAYS[usize::from(from) - 1];
                write!(f, "{limit}/week from {weekday}")
            }
            Period::Month(1) => write!(f, "{limit}/month"),
            Period::Month(from) => write!(f, "{limit}/month from {from}"),
            Period::Year => write!(f, "{limit}/year"),
        }?;
        write!(f, ", {}", self.zone.name())
    }
}
