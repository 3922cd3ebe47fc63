//! Timestamps in all supported formats.

use clap::ValueEnum;

use crate::input::time::calendar::{self, Date, SECOND, two};
use crate::input::time::clf_time::{self, ClfTimes, STAMP};
use crate::input::time::infer_year::YearInference;

/// The value of `--time-format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimestampFormat {
    /// Detected for each timestamp
    #[default]
    Auto,
    /// 17/May/2015:10:05:03 +0000, in brackets or without a zone
    Clf,
    /// 2015-05-17T10:05:03.123+00:00, also without the zone
    Rfc3339,
    /// Seconds since 1970, as in 1431857103.123
    #[value(name = "s")]
    Seconds,
    /// Milliseconds since 1970
    #[value(name = "ms")]
    Millis,
    /// Microseconds since 1970
    #[value(name = "us", alias = "µs")]
    Micros,
    /// Nanoseconds since 1970
    #[value(name = "ns")]
    Nanos,
    /// May 17 10:05:03; see --year
    Syslog,
}

/// A parser of timestamps.
#[derive(Debug)]
pub(crate) struct TimestampParser {
    format: TimestampFormat,
    clf_times: ClfTimes,
    inference: YearInference,
    /// The UTC offset, in seconds, of timestamps without a zone, and whether there was one.
    zone: i64,
    is_zone_used: bool,
}

impl TimestampParser {
    pub(crate) fn new(format: TimestampFormat, inference: YearInference, zone: i64) -> Self {
        Self {
            format,
            clf_times: ClfTimes::default(),
            inference,
            zone,
            is_zone_used: false,
        }
    }

    /// Parses a text into nanoseconds since 1970-01-01T00:00:00Z; `None` if it has another form, there is no such time, or it
    /// is not between 1678 and 2261.
    #[inline]
    pub(crate) fn read(&mut self, text: &[u8]) -> Option<i64> {
        match self.format {
            TimestampFormat::Auto => self.detected(text),
            TimestampFormat::Clf => self.clf(text),
            TimestampFormat::Rfc3339 => self.rfc3339(text),
            TimestampFormat::Seconds => epoch(text, Some(SECOND)),
            TimestampFormat::Millis => epoch(text, Some(1_000_000)),
            TimestampFormat::Micros => epoch(text, Some(1_000)),
            TimestampFormat::Nanos => epoch(text, Some(1)),
            TimestampFormat::Syslog => self.syslog(text),
        }
    }

    /// Parses `17/May/2015:10:05:03 +0000`, whatever the chosen format is.
    #[inline]
    pub(crate) fn stamp(&mut self, text: &[u8; STAMP]) -> Option<i64> {
        self.clf_times.second(text)?.checked_mul(SECOND)
    }

    /// Parses `May 17 10:05:03`.
    pub(crate) fn syslog(&mut self, text: &[u8]) -> Option<i64> {
        let (name, rest) = text.split_first_chunk::<3>()?;
        let month = calendar::month(*name)?;
        let (day, rest) = match *rest {
            [b' ', b' ', d, b' ', ref rest @ ..] | [b' ', d, b' ', ref rest @ ..] => (two(b'0', d)?, rest),
            [b' ', d0, d1, b' ', ref rest @ ..] => (two(d0, d1)?, rest),
            _ => return None,
        };
        let (time, rest) = time_of_day(rest)?;
        let (fraction, rest) = fraction(rest)?;
        let zone = zone(rest, || self.local())?;
        let at = |year| {
            let second = calendar::second(Date { year, month, day }, time)? - zone;
            second.checked_mul(SECOND)?.checked_add(fraction)
        };
        self.inference.resolve(at)
    }

    /// The year that was assumed for the first timestamp without one, if none was given.
    pub(crate) const fn assumed_year(&self) -> Option<i16> {
        self.inference.assumed()
    }

    /// Whether timestamps without a zone were taken as UTC.
    pub(crate) const fn assumed_utc(&self) -> bool {
        self.is_zone_used && self.zone == 0
    }

    /// The UTC offset of a timestamp without a zone.
    fn local(&mut self) -> i64 {
        self.is_zone_used = true;
        self.zone
    }

    /// Parses `2015-05-17T10:05:03.123+00:00`, whatever the chosen format is.
    pub(crate) fn rfc3339(&mut self, text: &[u8]) -> Option<i64> {
        rfc3339(text, || self.local())
    }

    /// Parses the time in the brackets of a common log format: `17/May/2015:10:05:03 +0000`, or another time with a date and
    /// a year.
    #[inline]
    pub(crate) fn bracketed(&mut self, text: &[u8]) -> Option<i64> {
        match *text {
            [_, _, b'/', ..] => self.clf(text),
            [_, _, _, _, b'-' | b'/', ..] => self.rfc3339(text),
            _ => None,
        }
    }

    /// Parses `17/May/2015:10:05:03 +0000`, also with a fraction of the second, and without the zone or with its name.
    fn clf(&mut self, text: &[u8]) -> Option<i64> {
        let inner = text.strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]"));
        let text = inner.unwrap_or(text);
        if let Ok(stamp) = text.try_into() {
            return self.stamp(stamp);
        }
        let (second, rest) = clf_time::local(text)?;
        let (fraction, rest) = fraction(rest)?;
        let zone = zone(rest, || self.local())?;
        (second - zone).checked_mul(SECOND)?.checked_add(fraction)
    }

    /// Parses a timestamp by its form, whatever the chosen format is.
    pub(crate) fn detected(&mut self, text: &[u8]) -> Option<i64> {
        match *text {
            [b'[', ..] | [_, _, b'/', ..] => self.clf(text),
            [_, _, _, _, b'-', _, _, b'-', ..] | [_, _, _, _, b'/', _, _, b'/', ..] => self.rfc3339(text),
            [b'A'..=b'Z', ..] => self.syslog(text),
            _ => epoch(text, None),
        }
    }
}

/// Parses `2015-05-17T10:05:03.123+00:00`, also with slashes in the date.
fn rfc3339(text: &[u8], local: impl FnOnce() -> i64) -> Option<i64> {
    let &[
        c0,
        c1,
        y0,
        y1,
        dash @ (b'-' | b'/'),
        m0,
        m1,
        other_dash,
        d0,
        d1,
        b'T' | b't' | b' ',
        ref rest @ ..,
    ] = text
    else {
        return None;
    };
    if dash != other_dash {
        return None;
    }
    let date = Date {
        year: i16::from(two(c0, c1)?) * 100 + i16::from(two(y0, y1)?),
        month: two(m0, m1)?,
        day: two(d0, d1)?,
    };
    let (time, rest) = time_of_day(rest)?;
    let (fraction, rest) = fraction(rest)?;
    let second = calendar::second(date, time)? - zone(rest, local)?;
    second.checked_mul(SECOND)?.checked_add(fraction)
}

/// The UTC offset behind a time of day: `Z`, `+00:00` or ` UTC`, or that of times without a zone if the text is empty.
fn zone(text: &[u8], local: impl FnOnce() -> i64) -> Option<i64> {
    match text.strip_prefix(b" ").unwrap_or(text) {
        [] if text.is_empty() => Some(local()),
        zone => calendar::utc_offset(zone),
    }
}

/// Splits `10:05:03rest` into hour, minute and second, and the rest.
fn time_of_day(text: &[u8]) -> Option<([i8; 3], &[u8])> {
    let &[h0, h1, b':', n0, n1, b':', s0, s1, ref rest @ ..] = text else {
        return None;
    };
    Some(([two(h0, h1)?, two(n0, n1)?, two(s0, s1)?], rest))
}

/// Splits an optional fraction such as `.123`, in nanoseconds, from the rest. Digits after the ninth are ignored.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let [b'.' | b',', rest @ ..] = text else {
        return Some((0, text));
    };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = rest.split_at(length);
    (length > 0).then(|| (decimals(digits, SECOND), rest))
}

/// The digits after a point as a part of `unit`.
fn decimals(digits: &[u8], unit: i64) -> i64 {
    let mut place = unit;
    digits.iter().fold(0, |sum, digit| {
        place /= 10;
        sum + i64::from(digit - b'0') * place
    })
}

/// Parses a number of units since 1970 into nanoseconds. Without a unit, the number of digits decides: seconds reach up to
/// the year 5138, milliseconds and smaller units begin in 1973.
fn epoch(text: &[u8], unit: Option<i64>) -> Option<i64> {
    match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => decimal_epoch(&without_exponent(&text[..at], &text[at + 1..])?, unit),
        None => decimal_epoch(text, unit),
    }
}

/// The largest exponent of a time: nanoseconds since 1970 have 19 digits.
const LARGEST_EXPONENT: usize = 18;

/// The decimal number of `1.4318571` with the exponent `+09`; `None` if the exponent is negative or too large.
fn without_exponent(number: &[u8], exponent: &[u8]) -> Option<Vec<u8>> {
    let exponent: usize = str::from_utf8(exponent).ok()?.parse().ok()?;
    let point = number
        .iter()
        .position(|byte| *byte == b'.')
        .unwrap_or(number.len());
    let (whole, part) = (&number[..point], number.get(point + 1..).unwrap_or(b"0"));
    if exponent > LARGEST_EXPONENT || whole.is_empty() || part.is_empty() {
        return None;
    }
    let mut digits = [whole, part].concat();
    let end = whole.len() + exponent;
    digits.resize(digits.len().max(end + 1), b'0');
    digits.insert(end, b'.');
    Some(digits)
}

fn decimal_epoch(text: &[u8], unit: Option<i64>) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let point = digits.iter().position(|byte| *byte == b'.' || *byte == b',');
    let (whole, part) = match point {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &b"0"[..]),
    };
    let all_digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    if !all_digits(whole) || !all_digits(part) {
        return None;
    }
    let number = whole.iter().try_fold(0_i64, |number, digit| {
        number.checked_mul(10)?.checked_add(i64::from(digit - b'0'))
    })?;
    let unit = unit.unwrap_or(match number.checked_ilog10() {
        None | Some(..11) => SECOND,
        Some(11..14) => 1_000_000,
        Some(14..17) => 1_000,
        Some(17..) => 1,
    });
    let nanos = number.checked_mul(unit)?.checked_add(decimals(part, unit))?;
    Some(if negative { -nanos } else { nanos })
}

#[cfg(test)]
mod tests {
    use super::{TimestampFormat, TimestampParser};
    use crate::input::time::infer_year::YearInference;

    fn read(format: TimestampFormat, text: &str) -> Option<i64> {
        TimestampParser::new(format, YearInference::new(Some(2015), 0), 3600).read(text.as_bytes())
    }

    const AT: i64 = 1_431_857_103_000_000_000;

    #[test]
    fn all_formats_are_parsed_and_detected() {
        use TimestampFormat::{Auto, Clf, Micros, Millis, Nanos, Rfc3339, Seconds, Syslog};
        for (format, text, expected) in [
            (Clf, "17/May/2015:10:05:03 +0000", AT),
            (Clf, "[17/May/2015:12:05:03 +0200]", AT),
            (Clf, "17/May/2015:11:05:03.655", AT + 655_000_000),
            (Rfc3339, "2015-05-17T10:05:03Z", AT),
            (Rfc3339, "2015-05-17t10:05:03.5z", AT + 500_000_000),
            (Rfc3339, "2015-05-17 12:35:03,000000001 +02:30", AT + 1),
            (Rfc3339, "2015-05-17T10:05:03.1234567899+0000", AT + 123_456_789),
            // Without a zone, the given offset counts.
            (Rfc3339, "2015-05-17T11:05:03", AT),
            (Seconds, "1431857103", AT),
            (Seconds, "1431857103.25", AT + 250_000_000),
            (Millis, "1431857103000", AT),
            (Millis, "1431857103000.5", AT + 500_000),
            (Seconds, "1.431857103e+09", AT),
            (Seconds, "1.43185710325E9", AT + 250_000_000),
            (Seconds, "1431857103e0", AT),
            (Seconds, "14318571.03e2", AT),
            (Millis, "1.431857103e12", AT),
            (Nanos, "1.431857103000000007e+18", AT + 7),
            (Clf, "17/May/2015:11:05:03", AT),
            (Clf, "17/May/2015 11:05:03", AT),
            (Clf, "17/May/2015 11:05:03,5", AT + 500_000_000),
            (Clf, "17/May/2015:10:05:03.655 +0000", AT + 655_000_000),
            (Clf, "[17/May/2015:10:05:03 UTC]", AT),
            (Clf, "17/May/2015:12:05:03 +02:00", AT),
            (Rfc3339, "2015-05-17 10:05:03 UTC", AT),
            (Rfc3339, "2015-05-17T10:05:03.25 GMT", AT + 250_000_000),
            (Rfc3339, "2015/05/17 11:05:03", AT),
            (Rfc3339, "2015/05/17 10:05:03.5 +0000", AT + 500_000_000),
            (Syslog, "May 17 10:05:03 UTC", AT),
            (Micros, "1431857103000000", AT),
            (Nanos, "1431857103000000007", AT + 7),
            (Seconds, "-1.5", -1_500_000_000),
            (Syslog, "May 17 11:05:03", AT),
            (Syslog, "May 17 11:05:03.5", AT + 500_000_000),
            (Syslog, "May  7 11:05:03", AT - 10 * 86_400_000_000_000),
            (Syslog, "May 7 11:05:03", AT - 10 * 86_400_000_000_000),
        ] {
            assert_eq!(read(format, text), Some(expected), "{text}");
            assert_eq!(read(Auto, text), Some(expected), "{text}");
        }
        assert_eq!(read(Millis, "5"), Some(5_000_000));
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in [
            "",
            "-",
            ".5",
            "5.",
            "1e-9",
            "1e19",
            "e9",
            "1.e9",
            "1e",
            "1.5.5e9",
            "+1431857103",
            "99999999999999999999",
            "9223372036854775807.0.0",
            "17/May/2015:10:05:03 CEST",
            "17/May/2015-10:05:03",
            "2015-05/17 10:05:03",
            "[17/May/2015:10:05:03 +0000",
            "31/Feb/2015:10:05:03 +0000",
            "2015-02-29T10:05:03Z",
            "2015-05-17",
            "2015-05-17T10:05",
            "2015-05-17T10:05:03.Z",
            "2015-05-17T10:05:03 ",
            "2015-05-17T10:05:03+2",
            "2015-05-17T10:05:03+25:00",
            "17/May/2015:10:05:03.",
            "17/May/2015:10:05:03.5x",
            "2015-13-17T10:05:03Z",
            "1600-05-17T10:05:03Z",
            "2300-05-17T10:05:03Z",
            "May 32 10:05:03",
            "May 17 10:05:03 x",
            "Mai 17 10:05:03",
            "Feb 29 10:05:03",
            "\u{e9}t\u{e9}",
        ] {
            assert_eq!(read(TimestampFormat::Auto, text), None, "{text}");
        }
        for format in [
            TimestampFormat::Clf,
            TimestampFormat::Rfc3339,
            TimestampFormat::Syslog,
            TimestampFormat::Seconds,
        ] {
            assert_eq!(read(format, "x"), None);
        }
        assert_eq!(read(TimestampFormat::Seconds, "2015-05-17T10:05:03Z"), None);
    }
}
