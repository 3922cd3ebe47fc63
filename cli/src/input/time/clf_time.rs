//! The time of the common log format.

use crate::input::time::calendar::{self, two};

/// Bytes of `17/May/2015:10:05:03 +0000`.
pub(crate) const STAMP: usize = 26;

/// A parser that caches the last time, since a busy log repeats it.
#[derive(Debug, Default)]
pub(crate) struct ClfTimes {
    last: Option<([u8; STAMP], i64)>,
}

impl ClfTimes {
    /// Parses `17/May/2015:10:05:03 +0000` into seconds since 1970-01-01T00:00:00Z; `None` if the text has another form or
    /// there is no such time.
    #[inline]
    pub(crate) fn second(&mut self, text: &[u8; STAMP]) -> Option<i64> {
        match self.last {
            Some((last, second)) if last == *text => Some(second),
            _ => {
                let second = instant(text)?;
                self.last = Some((*text, second));
                Some(second)
            }
        }
    }
}

/// Checks the form; `calendar` checks that the time exists.
fn instant(text: &[u8; STAMP]) -> Option<i64> {
    let (local, [b' ', zone @ ..]) = local(text)? else {
        return None;
    };
    Some(local - calendar::utc_offset(zone)?)
}

/// The second of `17/May/2015:10:05:03` as if it was in UTC, and the rest of the text. Python's servers write a space before
/// the time of day.
pub(crate) fn local(text: &[u8]) -> Option<(i64, &[u8])> {
    let (&[d0, d1, b'/', m0, m1, m2, b'/', c0, c1, y0, y1, b':' | b' '], time) = text.split_first_chunk()?
    else {
        return None;
    };
    let (&[h0, h1, b':', n0, n1, b':', s0, s1], rest) = time.split_first_chunk()? else {
        return None;
    };
    let date = calendar::Date {
        year: i16::from(two(c0, c1)?) * 100 + i16::from(two(y0, y1)?),
        month: calendar::month([m0, m1, m2])?,
        day: two(d0, d1)?,
    };
    let second = calendar::second(date, [two(h0, h1)?, two(n0, n1)?, two(s0, s1)?])?;
    Some((second, rest))
}

#[cfg(test)]
mod tests {
    use super::ClfTimes;

    fn second(text: &str) -> Option<i64> {
        ClfTimes::default().second(text.as_bytes().try_into().unwrap())
    }

    /// The result of jiff's parser, which is slower.
    fn expected(text: &str) -> i64 {
        let broken = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).unwrap();
        broken.to_timestamp().unwrap().as_second()
    }

    #[test]
    fn times_equal_those_of_jiff() {
        for text in [
            "17/May/2015:10:05:03 +0000",
            "01/Jan/1970:00:00:00 +0000",
            "31/Dec/1969:23:59:59 -0000",
            "29/Feb/2024:23:59:59 +1345",
            "29/Feb/2000:00:00:00 -0930",
            "30/Jun/2015:23:59:60 +0000",
            "01/Mar/2100:00:00:00 -1200",
        ] {
            assert_eq!(second(text), Some(expected(text)), "{text}");
        }
        assert_eq!(second("17/May/2015:10:05:03 +0000"), Some(1_431_857_103));
        assert_eq!(second("17/May/2015:12:05:03 +0200"), Some(1_431_857_103));
        assert_eq!(second("17/May/2015 12:05:03 +0200"), Some(1_431_857_103));
        assert_eq!(second("17/May/2015:04:35:03 -0530"), Some(1_431_857_103));
    }

    #[test]
    fn every_month_is_known() {
        for (month, name) in (1..).zip([
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ]) {
            let iso: jiff::Timestamp = format!("2023-{month:02}-28T01:02:03Z").parse().unwrap();
            assert_eq!(
                second(&format!("28/{name}/2023:01:02:03 +0000")),
                Some(iso.as_second())
            );
        }
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in [
            "31/Feb/2015:10:05:03 +0000",
            "29/Feb/2100:10:05:03 +0000",
            "00/May/2015:10:05:03 +0000",
            "17/May/2015:24:05:03 +0000",
            "17/May/2015:10:60:03 +0000",
            "17/May/2015:10:05:61 +0000",
            "17/May/2015:10:05:03 +0060",
            "17/May/2015:10:05:03 +9900",
            "17/May/2015:10:05:03  0000",
            "17/may/2015:10:05:03 +0000",
            "17/05 /2015:10:05:03 +0000",
            "17-May-2015:10:05:03 +0000",
            " 7/May/2015:10:05:03 +0000",
            "+7/May/2015:10:05:03 +0000",
        ] {
            assert_eq!(second(text), None, "{text}");
        }
        assert_eq!(ClfTimes::default().second(&[0; super::STAMP]), None);
    }

    #[test]
    fn the_cache_compares_the_whole_text() {
        let mut clf_times = ClfTimes::default();
        let mut at = |text: &[u8; super::STAMP]| clf_times.second(text);
        let first = at(b"17/May/2015:10:05:03 +0000");
        assert_eq!(at(b"17/May/2015:10:05:03 +0000"), first);
        assert_eq!(at(b"17/May/2015:10:05:04 +0000"), first.map(|second| second + 1));
        assert_eq!(at(b"32/May/2015:10:05:04 +0000"), None);
        assert_eq!(at(b"17/May/2015:10:05:04 -0001"), first.map(|second| second + 61));
    }
}
