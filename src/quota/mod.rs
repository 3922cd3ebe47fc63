//! A validated limit per window.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::error::ConfigError;

mod nearest;
mod unit;

pub(crate) use unit::Unit;

/// The largest limit in units. A counter ring of 60 cells accepts it for a window of one second.
const MAX_UNITS: u64 = (1 << 24) - 1;

/// The shortest time per unit, in nanoseconds. [`Gcra`](crate::Gcra) rounds the time up to a multiple of half a nanosecond,
/// which lowers the rate by less than one percent.
const MIN_TIME: u64 = 64;

/// A limit and a window: at most `limit` permits per `window`.
///
/// The worst case in any interval of one window depends on the algorithm: see the table in the
/// [crate documentation](crate).
///
/// The limit is 1 to 10^12 permits, the window 1 microsecond to 366 days.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use ringgate::Quota;
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let quota = Quota::new(100, Duration::from_secs(60))?;
/// // The same quota, parsed from text and created by the name of its window.
/// assert_eq!(quota, "100/60s".parse()?);
/// assert_eq!(quota, Quota::per_minute(100)?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    limit: u64,
    window: u64,
}

impl Quota {
    /// The largest limit, in permits.
    pub const MAX_LIMIT: u64 = 1_000_000_000_000;

    /// The shortest window that can be divided into cells of whole nanoseconds.
    pub(crate) const MIN_WINDOW: Duration = Duration::from_micros(1);

    /// The longest window, 366 days, which every packed word can hold.
    pub(crate) const MAX_WINDOW: Duration = Duration::from_secs(366 * 24 * 3600);

    /// Creates a quota of `limit` permits per `window`.
    ///
    /// # Errors
    ///
    /// `limit` or `window`: out of range.
    pub fn new(limit: u64, window: Duration) -> Result<Self, ConfigError> {
        if limit == 0 || limit > Self::MAX_LIMIT {
            return Err(ConfigError::new(
                "limit",
                format!("{limit}"),
                format!("1 to {} permits", Self::MAX_LIMIT),
            ));
        }
        if window < Self::MIN_WINDOW || window > Self::MAX_WINDOW {
            return Err(ConfigError::new("window", format!("{window:?}"), Self::WINDOWS));
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "at most 366 days, 55 bits of nanoseconds"
        )]
        let window = window.as_nanos() as u64;
        Ok(Self { limit, window })
    }

    /// Creates a quota of `limit` permits per second.
    ///
    /// # Errors
    ///
    /// `limit`: out of range.
    pub fn per_second(limit: u64) -> Result<Self, ConfigError> {
        Self::new(limit, Duration::from_secs(1))
    }

    /// Creates a quota of `limit` permits per minute.
    ///
    /// # Errors
    ///
    /// `limit`: out of range.
    pub fn per_minute(limit: u64) -> Result<Self, ConfigError> {
        Self::new(limit, Duration::from_secs(60))
    }

    /// Creates a quota of `limit` permits per hour.
    ///
    /// # Errors
    ///
    /// `limit`: out of range.
    pub fn per_hour(limit: u64) -> Result<Self, ConfigError> {
        Self::new(limit, Duration::from_secs(3600))
    }

    /// Creates a quota of `limit` permits per day of 24 hours.
    ///
    /// # Errors
    ///
    /// `limit`: out of range.
    pub fn per_day(limit: u64) -> Result<Self, ConfigError> {
        Self::new(limit, Duration::from_secs(24 * 3600))
    }

    /// Returns the permits per window.
    #[must_use]
    pub const fn limit(self) -> u64 {
        self.limit
    }

    /// This quota in units of `unit` permits, rounded down.
    pub(crate) fn in_units(self, unit: Unit) -> Result<Self, ConfigError> {
        Self::new(unit.whole_units(self.limit), self.window())
    }

    /// Calls `build` with the smallest unit that it accepts, and in which the limit of each quota is less than 2^24 units and at
    /// most one unit per 64 ns of its window. Returns the result and the unit.
    ///
    /// # Errors
    ///
    /// The error of `build`. If it is about the limit, `build` has rejected every larger unit up to the lowest limit.
    pub(crate) fn in_smallest_unit<T>(
        quotas: &[Self],
        build: impl Fn(Unit) -> Result<T, ConfigError>,
    ) -> Result<(T, Unit), ConfigError> {
        let has_few_units = |quota: &Self, unit: Unit| {
            unit.whole_units(quota.limit) <= MAX_UNITS.min(quota.window / MIN_TIME).max(1)
        };
        let mut unit = Unit::ONE;
        while !quotas.iter().all(|quota| has_few_units(quota, unit)) {
            unit = unit.doubled();
        }
        let mut built = build(unit);
        while matches!(&built, Err(error) if error.field == "limit")
            && quotas
                .iter()
                .all(|quota| unit.doubled().whole_units(quota.limit) > 0)
        {
            unit = unit.doubled();
            built = build(unit);
        }
        Ok((built?, unit))
    }

    /// The quota of one period of a calendar, whose limit was checked.
    pub(crate) const fn of_period(limit: u64, period: Duration) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "at most 366 days and a few hours")]
        let window = period.as_nanos() as u64;
        Self { limit, window }
    }

    /// The quota of a rule that limits requests in flight: a limit without a window. No limiter is built of it.
    pub(crate) const fn in_flight(limit: u64) -> Self {
        Self { limit, window: 0 }
    }

    /// Whether this is a limit of requests in flight.
    pub(crate) const fn is_in_flight(self) -> bool {
        self.window == 0
    }

    /// The window in words, after a number of permits.
    pub(crate) fn per_window(self) -> String {
        match self.window {
            0 => String::from("in flight"),
            _ => format!("per {:?}", self.window()),
        }
    }

    /// Checks that this is a limit per window. A quota that was read from a rule may be a limit of requests in flight.
    pub(crate) fn validate(self) -> Result<(), ConfigError> {
        Self::new(self.limit, self.window()).map(|_| ())
    }

    /// Returns the window. It is zero for the quota of a rule that limits requests in flight.
    #[must_use]
    pub const fn window(self) -> Duration {
        Duration::from_nanos(self.window)
    }

    /// This quota with a lower limit, which is at least 1.
    #[inline]
    pub(crate) const fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// The window in nanoseconds.
    pub(crate) const fn window_nanos(self) -> u64 {
        self.window
    }

    /// The accepted windows, for errors.
    const WINDOWS: &'static str = "1µs to 366 days";
}

/// Formats the limit, and the window in the largest unit of which it is a multiple: `100/60s` as `100/1min`. A
/// limit of requests in flight is formatted as `100 in flight`.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.window == 0 {
            return write!(f, "{} in flight", self.limit);
        }
        let (nanos, unit) = UNITS
            .iter()
            .rev()
            .find_map(|&(nanos, names)| self.window.is_multiple_of(nanos).then_some((nanos, names[0])))
            .unwrap_or((1, "ns"));
        write!(f, "{}/{}{unit}", self.limit, self.window / nanos)
    }
}

/// The nanoseconds of each unit, and its names. `Display` uses the first.
const UNITS: [(u64, &[&str]); 7] = [
    (1, &["ns", "nanosecond", "nanoseconds"]),
    (1_000, &["us", "µs", "μs", "microsecond", "microseconds"]),
    (1_000_000, &["ms", "millisecond", "milliseconds"]),
    (1_000_000_000, &["s", "sec", "secs", "second", "seconds"]),
    (60_000_000_000, &["min", "m", "mins", "minute", "minutes"]),
    (3_600_000_000_000, &["h", "hr", "hrs", "hour", "hours"]),
    (86_400_000_000_000, &["d", "day", "days"]),
];

/// Parses text such as `100/60s`, `5/min`, `10 per second` or `2 in 500ms`.
///
/// The text has four parts:
///
/// 1. the limit in digits, with optional `_` between them, or a number of bytes or bits: `50MiB`, `2.5Gbit`;
/// 2. `/`, ` per ` or ` in `;
/// 3. the number of units, which may be decimal and may be omitted;
/// 4. the unit: `ns`, `us`, `ms`, `s`, `min` or `m`, `h`, `d`, or its name.
///
/// Spaces around the parts and the case of letters are ignored.
///
/// A limit in bytes or bits has a number, which may be decimal, and one of these units. One permit is one byte:
///
/// | unit | bytes |
/// |---|---|
/// | `B`, `byte`, `bytes` | 1 |
/// | `kB`, `MB`, `GB`, `TB` | 1000, 1000², 1000³, 1000⁴ |
/// | `KiB`, `MiB`, `GiB`, `TiB` | 1024, 1024², 1024³, 1024⁴ |
/// | `kbit`, `Mbit`, `Gbit`, `Tbit` | 125, 125 · 1000, 125 · 1000², 125 · 1000³ |
///
/// The `B` of bytes is a capital letter, because `Mb` is read as megabits by some and as megabytes by others.
///
/// # Errors
///
/// Another spelling is an error. The error names the accepted text of the same rate, if the meaning is clear.
///
/// # Examples
///
/// ```
/// use ringgate::Quota;
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// assert_eq!("50MiB/s".parse(), Quota::per_second(52_428_800));
/// assert_eq!("10 GB per minute".parse(), Quota::per_minute(10_000_000_000));
/// assert_eq!("2.5Gbit/s".parse(), Quota::per_second(312_500_000));
///
/// let error = "0.5/s".parse::<Quota>().unwrap_err();
/// assert_eq!(error.to_string(), "invalid quota: \"0.5/s\" (expected \"1/2s\")");
/// # Ok(())
/// # }
/// ```
impl FromStr for Quota {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        Self::parse(text).map_err(|error| match Self::nearest(text) {
            Some(near) => ConfigError::new("quota", format!("{text:?}"), near),
            None => error,
        })
    }
}

impl Quota {
    /// Parses a text of the documented form.
    fn parse(text: &str) -> Result<Self, ConfigError> {
        let invalid = || {
            ConfigError::new(
                "quota",
                format!("{text:?}"),
                "a limit, \"/\" or \"per\" or \"in\", and a window: 100/60s, 5/min, 10 per second, 50MiB/s",
            )
        };
        // Only ASCII letters are changed to lower case, so that a part has the same place in both texts.
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        let (limit, window) = ["/", " per ", " in "]
            .iter()
            .find_map(|separator| {
                let at = lower.find(separator)?;
                Some((&text[..at], &text[at + separator.len()..]))
            })
            .ok_or_else(invalid)?;
        let limit = limit_from_text(limit.trim()).ok_or_else(invalid)??;
        let window = window.trim().to_lowercase();
        let unit_at = window.find(|c: char| c.is_alphabetic()).ok_or_else(invalid)?;
        let (amount, unit) = window.split_at(unit_at);
        let unit = UNITS
            .iter()
            .find_map(|&(nanos, names)| names.contains(&unit).then_some(nanos))
            .ok_or_else(invalid)?;
        let amount = amount.trim();
        let too_long = || ConfigError::new("window", window.as_str(), Self::WINDOWS);
        let nanos = match amount {
            "" => unit,
            amount => parse_decimal(amount, unit)
                .ok_or_else(invalid)?
                .ok_or_else(too_long)?,
        };
        Self::new(limit, Duration::from_nanos(nanos))
    }
}

/// Parses a limit in permits, bytes or bits. Returns `None` if it does not begin with a number.
pub(crate) fn limit_from_text(limit: &str) -> Option<Result<u64, ConfigError>> {
    match limit.find(|c: char| c.is_ascii_alphabetic()) {
        Some(unit_at) if limit.starts_with(|c: char| c.is_ascii_digit()) => Some(parse_bytes(limit, unit_at)),
        _ => parse_limit(limit),
    }
}

/// Parses a limit. Returns `None` if it is not a number, and an error if it does not fit into 64 bits.
fn parse_limit(text: &str) -> Option<Result<u64, ConfigError>> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) || !text.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut limit = Some(0_u64);
    for c in text.chars().filter(|&c| c != '_') {
        let digit = u64::from(c.to_digit(10)?);
        limit = limit.and_then(|limit| limit.checked_mul(10)?.checked_add(digit));
    }
    Some(limit.ok_or_else(|| ConfigError::new("limit", text, format!("1 to {} permits", Quota::MAX_LIMIT))))
}

/// The bytes of each unit of a limit, and its names in lower case. Those that end in `b` are written with a capital `B`.
const BYTES: [(u64, &[&str]); 13] = [
    (1, &["b", "byte", "bytes"]),
    (1_000, &["kb"]),
    (1_000_000, &["mb"]),
    (1_000_000_000, &["gb"]),
    (1_000_000_000_000, &["tb"]),
    (1 << 10, &["kib"]),
    (1 << 20, &["mib"]),
    (1 << 30, &["gib"]),
    (1 << 40, &["tib"]),
    (125, &["kbit"]),
    (125_000, &["mbit"]),
    (125_000_000, &["gbit"]),
    (125_000_000_000, &["tbit"]),
];

/// Parses a limit in bytes or bits, whose unit begins at `unit_at`.
fn parse_bytes(text: &str, unit_at: usize) -> Result<u64, ConfigError> {
    let (amount, name) = text.split_at(unit_at);
    let amount = amount.trim_end();
    let lower = name.to_ascii_lowercase();
    let unit = BYTES
        .iter()
        .find_map(|&(bytes, names)| names.contains(&lower.as_str()).then_some(bytes))
        .filter(|_| !name.ends_with('b'))
        .ok_or_else(|| {
            ConfigError::new(
                "limit",
                format!("{text:?}"),
                "a number of permits, or of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, kbit, Mbit, Gbit or Tbit",
            )
        })?;
    let out_of_range = || {
        ConfigError::new(
            "limit",
            format!("{text:?}"),
            format!("1 to {} bytes", Quota::MAX_LIMIT),
        )
    };
    let bytes = match amount.contains('.') {
        true => parse_decimal(amount, unit),
        false => parse_limit(amount).map(|amount| amount.ok().and_then(|amount| amount.checked_mul(unit))),
    };
    let whole = || ConfigError::new("limit", format!("{text:?}"), "a number of whole bytes");
    bytes
        .ok_or_else(whole)?
        .filter(|bytes| (1..=Quota::MAX_LIMIT).contains(bytes))
        .ok_or_else(out_of_range)
}

/// Parses `amount` as a decimal number, and returns the whole number that is `amount` times `unit`. `unit` is the size of one
/// unit, such as its nanoseconds.
///
/// Returns `None` if `amount` is not a decimal number, or if the result is not a whole number. Returns `Some(None)` if the
/// result is too large.
#[expect(clippy::option_option, reason = "the callers report two different errors")]
fn parse_decimal(amount: &str, unit: u64) -> Option<Option<u64>> {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let scale = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let part = match fraction {
        "" => 0,
        fraction => fraction.parse::<u64>().ok()?,
    };
    let part = u128::from(part) * u128::from(unit);
    if !part.is_multiple_of(u128::from(scale)) {
        return None;
    }
    let converted = whole
        .parse::<u64>()
        .ok()
        .and_then(|whole| whole.checked_mul(unit))
        .zip(u64::try_from(part / u128::from(scale)).ok())
        .and_then(|(whole, part)| whole.checked_add(part));
    Some(converted)
}

/// Serializes as text that [`FromStr`] can parse.
#[cfg(feature = "serde")]
impl serde::Serialize for Quota {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Quota {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = alloc::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
