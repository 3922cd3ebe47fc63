//! Conversion between dates with times of day and seconds since 1970-01-01T00:00:00Z.

use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{Timestamp, Zoned};

/// Nanoseconds in a second.
pub(crate) const SECOND: i64 = 1_000_000_000;

const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// The month with this name, from 1.
pub(crate) fn month(name: [u8; 3]) -> Option<i8> {
    let place = MONTHS.iter().position(|month| **month == name)?;
    i8::try_from(place).ok().map(|place| place + 1)
}

/// The number with these two digits.
#[inline]
pub(crate) fn two(tens: u8, ones: u8) -> Option<i8> {
    if !tens.is_ascii_digit() || !ones.is_ascii_digit() {
        return None;
    }
    // At most 99.
    i8::try_from((tens - b'0') * 10 + (ones - b'0')).ok()
}

/// A UTC date and time of day in nanoseconds since 1970; `None` if 64 bits do not have them.
pub(crate) fn nanos(time: DateTime) -> Option<i64> {
    let time = Offset::UTC.to_timestamp(time).ok()?;
    i64::try_from(time.as_nanosecond()).ok()
}

/// Parses a UTC offset such as `+0000`, `-05:30`, `Z`, `UTC` or `GMT` into seconds. Other names of zones have several meanings.
pub(crate) fn utc_offset(text: &[u8]) -> Option<i64> {
    let (sign, [h0, h1, m0, m1]) = match *text {
        [b'Z' | b'z'] | [b'U', b'T', b'C'] | [b'G', b'M', b'T'] => return Some(0),
        [sign, h0, h1, m0, m1] | [sign, h0, h1, b':', m0, m1] => (sign, [h0, h1, m0, m1]),
        [sign, h0, h1] => (sign, [h0, h1, b'0', b'0']),
        _ => return None,
    };
    let (hours, minutes) = (i64::from(two(h0, h1)?), i64::from(two(m0, m1)?));
    let east = hours * 3600 + minutes * 60;
    // Offsets in use are from -12 to +14 hours.
    if east > 14 * 3600 || minutes > 59 {
        return None;
    }
    match sign {
        b'+' => Some(east),
        b'-' => Some(-east),
        _ => None,
    }
}

/// Parses a date such as `2015-05-17`, or a time such as `2015-05-17T10:05:03Z`, into nanoseconds since 1970. Without an
/// offset of its own, it has the given one, in seconds.
pub(crate) fn instant(text: &str, offset: i64) -> Option<i64> {
    // A zone in brackets, as in 2015-05-17T10:05:03[Europe/Berlin]. Other types of time would leave it out.
    if text.contains('[') {
        let zoned: Zoned = text.parse().ok()?;
        return i64::try_from(zoned.timestamp().as_nanosecond()).ok();
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return i64::try_from(timestamp.as_nanosecond()).ok();
    }
    nanos(text.parse().ok()?)?.checked_sub(offset * SECOND)
}

/// The UTC year of an instant.
pub(crate) fn year(nanos: i64) -> i16 {
    Offset::UTC.to_datetime(timestamp(nanos)).year()
}

/// An instant, given in nanoseconds, as text of RFC 3339.
pub(crate) fn text(nanos: i64) -> String {
    timestamp(nanos).to_string()
}

fn timestamp(nanos: i64) -> Timestamp {
    // All instants of 64 bits of nanoseconds are within jiff's range.
    Timestamp::from_nanosecond(i128::from(nanos)).unwrap_or_default()
}

/// Milliseconds since 1970, rounded down.
pub(crate) const fn millis(nanos: i64) -> i64 {
    nanos.div_euclid(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::{millis, text, utc_offset, year};

    #[test]
    fn utc_offsets_are_hours_and_minutes() {
        for (given, expected) in [
            ("Z", Some(0)),
            ("+0000", Some(0)),
            ("-05:30", Some(-19_800)),
            ("+1345", Some(49_500)),
            ("+02", Some(7200)),
            ("+14:00", Some(50_400)),
            ("-14:00", Some(-50_400)),
            ("UTC", Some(0)),
            ("GMT", Some(0)),
            ("CST", None),
            ("+14:01", None),
            ("+25:00", None),
            ("+0060", None),
            ("+9900", None),
            ("0000", None),
            (" 0000", None),
            ("+02:0", None),
            ("", None),
        ] {
            assert_eq!(utc_offset(given.as_bytes()), expected, "{given}");
        }
    }

    #[test]
    fn instants_before_1970_round_down() {
        assert_eq!(millis(-1), -1);
        assert_eq!(
            (text(-1), year(-1)),
            ("1969-12-31T23:59:59.999999999Z".into(), 1969)
        );
    }
}
