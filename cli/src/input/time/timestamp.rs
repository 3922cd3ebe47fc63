//! Timestamps in all supported formats.
//!
//! Civil times are those of the crate jiff. Its parsers accept no fraction after a comma, no ` UTC`, and no text without a zone.

use clap::ValueEnum;
use jiff::civil::{Date, Time};

use crate::input::time::calendar::{self, SECOND, two};
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

/// Bytes of `17/May/2015:10:05:03 +0000`.
pub(crate) const STAMP: usize = 26;

/// A parser of timestamps.
#[derive(Debug)]
pub(crate) struct TimestampParser {
    format: TimestampFormat,
    /// The last time of the common format, which a busy log repeats.
    last: Option<([u8; STAMP], i64)>,
    inference: YearInference,
    /// The UTC offset, in seconds, of timestamps without a zone, and whether there was one.
    zone: i64,
    is_zone_used: bool,
}

impl TimestampParser {
    pub(crate) fn new(format: TimestampFormat, inference: YearInference, zone: i64) -> Self {
        Self {
            format,
            last: None,
            inference,
            zone,
            is_zone_used: false,
        }
    }

    /// A parser that detects the format of each timestamp, for timestamps that are not kept.
    pub(crate) fn detecting() -> Self {
        Self::new(TimestampFormat::Auto, YearInference::new(None, 0), 0)
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

    /// Parses `17/May/2015:10:05:03 +0000`, also with a fraction of the second, and without the zone or with its name.
    #[inline]
    fn clf(&mut self, text: &[u8]) -> Option<i64> {
        let stamp = <&[u8; STAMP]>::try_from(text).ok();
        if let (Some((last, time)), Some(stamp)) = (&self.last, stamp)
            && last == stamp
        {
            return Some(*time);
        }
        let inner = text.strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]"));
        // Python's servers write a space before the time of day.
        let (&[d0, d1, b'/', m0, m1, m2, b'/', ref year @ .., b':' | b' '], rest) =
            inner.unwrap_or(text).split_first_chunk::<12>()?
        else {
            return None;
        };
        let date = date(*year, calendar::month([m0, m1, m2])?, [d0, d1])?;
        let time = self.clock(rest)?.on(date)?;
        self.last = stamp.map(|stamp| (*stamp, time)).or(self.last);
        Some(time)
    }

    /// Parses `2015-05-17T10:05:03.123+00:00`, also with slashes in the date, whatever the chosen format is.
    pub(crate) fn rfc3339(&mut self, text: &[u8]) -> Option<i64> {
        let (
            &[
                c0,
                c1,
                y0,
                y1,
                dash @ (b'-' | b'/'),
                m0,
                m1,
                other,
                d0,
                d1,
                b'T' | b't' | b' ',
            ],
            rest,
        ) = text.split_first_chunk()?
        else {
            return None;
        };
        let date = date([c0, c1, y0, y1], two(m0, m1)?, [d0, d1]).filter(|_| dash == other)?;
        self.clock(rest)?.on(date)
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
        let clock = self.clock(rest)?;
        self.inference
            .resolve(|year| clock.on(Date::new(year, month, day).ok()?))
    }

    /// Parses a time of day with its fraction and its zone: `Z`, `+00:00`, ` UTC`, or that of times without a zone.
    fn clock(&mut self, text: &[u8]) -> Option<Clock> {
        let (&[h0, h1, b':', n0, n1, b':', s0, s1], rest) = text.split_first_chunk()? else {
            return None;
        };
        let (fraction, rest) = fraction(rest)?;
        self.is_zone_used |= rest.is_empty();
        let zone = match rest {
            [] => self.zone,
            zone => calendar::utc_offset(zone.strip_prefix(b" ").unwrap_or(zone))?,
        };
        // A leap second is second 59, as in jiff's parsers.
        let second = match two(s0, s1)? {
            60 => 59,
            second => second,
        };
        Some(Clock {
            time: Time::new(two(h0, h1)?, two(n0, n1)?, second, 0).ok()?,
            nanos: fraction - zone * SECOND,
        })
    }

    /// The year that was assumed for the first timestamp without one, if none was given.
    pub(crate) const fn assumed_year(&self) -> Option<i16> {
        self.inference.assumed()
    }

    /// Whether timestamps without a zone were taken as UTC.
    pub(crate) const fn assumed_utc(&self) -> bool {
        self.is_zone_used && self.zone == 0
    }

    /// Parses a timestamp by its form, whatever the chosen format is.
    #[inline]
    pub(crate) fn detected(&mut self, text: &[u8]) -> Option<i64> {
        match *text {
            [b'[', ..] | [_, _, b'/', ..] => self.clf(text),
            [_, _, _, _, b'-', _, _, b'-', ..] | [_, _, _, _, b'/', _, _, b'/', ..] => self.rfc3339(text),
            [b'A'..=b'Z', ..] => self.syslog(text),
            _ => epoch(text, None),
        }
    }
}

/// A time of day.
#[derive(Clone, Copy, Debug)]
struct Clock {
    time: Time,
    /// The fraction of the second, less the UTC offset.
    nanos: i64,
}

impl Clock {
    /// The instant of the time on a date.
    fn on(self, date: Date) -> Option<i64> {
        calendar::nanos(date.to_datetime(self.time))?.checked_add(self.nanos)
    }
}

fn date([c0, c1, y0, y1]: [u8; 4], month: i8, [d0, d1]: [u8; 2]) -> Option<Date> {
    let year = i16::from(two(c0, c1)?) * 100 + i16::from(two(y0, y1)?);
    Date::new(year, month, two(d0, d1)?).ok()
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

/// The largest exponent of a time: nanoseconds since 1970 have 19 digits.
const LARGEST_EXPONENT: usize = 18;

/// Parses a number of units since 1970 into nanoseconds, also with an exponent as in `1.4318571e+09`. Without a unit, the number
/// of digits decides: seconds reach up to the year 5138, milliseconds and smaller units begin in 1973.
fn epoch(text: &[u8], unit: Option<i64>) -> Option<i64> {
    let (text, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&text[..at], str::from_utf8(&text[at + 1..]).ok()?.parse().ok()?),
        None => (text, 0),
    };
    let unsigned = text.strip_prefix(b"-");
    let digits = unsigned.unwrap_or(text);
    let point = digits.iter().position(|byte| matches!(byte, b'.' | b','));
    let (whole, part) = point.map_or((digits, &b"0"[..]), |at| (&digits[..at], &digits[at + 1..]));
    if whole.is_empty() || part.is_empty() || exponent > LARGEST_EXPONENT {
        return None;
    }
    // The exponent moves the point.
    let mut digits = [whole, part].concat();
    let point = whole.len() + exponent;
    digits.resize(digits.len().max(point), b'0');
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (whole, part) = digits.split_at(point);
    let number: i64 = str::from_utf8(whole).ok()?.parse().ok()?;
    let unit = unit.unwrap_or(match number.checked_ilog10() {
        None | Some(..11) => SECOND,
        Some(11..14) => 1_000_000,
        Some(14..17) => 1_000,
        Some(17..) => 1,
    });
    let nanos = number.checked_mul(unit)?.checked_add(decimals(part, unit))?;
    Some(if unsigned.is_some() { -nanos } else { nanos })
}

#[cfg(test)]
mod tests {
    use super::{SECOND, TimestampFormat, TimestampParser};
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
            (Clf, "17/May/2015:11:05:03.65500", AT + 655_000_000),
            (Clf, "17/May/2015 12:05:03 +0200", AT),
            (Clf, "17/May/2015:04:35:03 -0530", AT),
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

    /// jiff's own parser is slower.
    #[test]
    fn times_of_the_common_format_equal_those_of_jiff() {
        let months = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        let of_months = months.map(|month| format!("28/{month}/2023:01:02:03 +0000"));
        let others = [
            "01/Jan/1970:00:00:00 +0000",
            "31/Dec/1969:23:59:59 -0000",
            "29/Feb/2024:23:59:59 +1345",
            "29/Feb/2000:00:00:00 -0930",
            "30/Jun/2015:23:59:60 +0000",
            "01/Mar/2100:00:00:00 -1200",
        ];
        // One parser, which remembers the last text.
        let mut parser = TimestampParser::detecting();
        for text in of_months.iter().map(String::as_str).chain(others) {
            let broken = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).unwrap();
            let expected = broken.to_timestamp().unwrap().as_second() * SECOND;
            for _ in 0..2 {
                assert_eq!(parser.read(text.as_bytes()), Some(expected), "{text}");
            }
            let invalid = text.replace(":0", ":9").replace(":2", ":9");
            assert_eq!(parser.read(invalid.as_bytes()), None, "{invalid}");
        }
    }

    #[test]
    fn invalid_times_are_rejected() {
        let invalid = "|-|.5|5.|1e-9|1e19|e9|1.e9|1e|1.5.5e9|+1431857103|99999999999999999999|\
                       9223372036854775807.0.0|29/Feb/2100:10:05:03 +0000|00/May/2015:10:05:03 +0000|\
                       17/May/2015:24:05:03 +0000|17/May/2015:10:60:03 +0000|17/May/2015:10:05:61 +0000|\
                       17/May/2015:10:05:03 +0060|17/May/2015:10:05:03  0000|17/may/2015:10:05:03 +0000|\
                       17/05 /2015:10:05:03 +0000|+7/May/2015:10:05:03 +0000|17/May/2015:10:05:03 CEST|\
                       17/May/2015-10:05:03|2015-05/17 10:05:03|[17/May/2015:10:05:03 +0000|\
                       31/Feb/2015:10:05:03 +0000|2015-02-29T10:05:03Z|2015-05-17|2015-05-17T10:05|\
                       2015-05-17T10:05:03.Z|2015-05-17T10:05:03 |2015-05-17T10:05:03+2|\
                       2015-05-17T10:05:03+25:00|17/May/2015:10:05:03.|17/May/2015:10:05:03.5x|\
                       2015-13-17T10:05:03Z|1600-05-17T10:05:03Z|2300-05-17T10:05:03Z|May 32 10:05:03|\
                       May 17 10:05:03 x|Mai 17 10:05:03|Feb 29 10:05:03|\u{e9}t\u{e9}| 7/May/2015:10:05:03 +0000";
        for text in invalid.split('|') {
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
