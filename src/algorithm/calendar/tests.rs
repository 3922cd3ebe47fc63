use alloc::string::ToString;
use alloc::vec::Vec;
use core::time::Duration;
use std::time::SystemTime;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::word::Word;
use super::{Calendar, CalendarQuota};
use crate::algorithm::{Algorithm, Reclaim};
use crate::sync::{AtomicU64, Shared};
use crate::time::{HORIZON, Nanos};

/// Zones with transitions at midnight, just after midnight, of half an hour, and over a whole day.
const ZONES: [&str; 14] = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "America/Havana",
    "America/New_York",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "UTC",
];

fn quota(text: &str, zone: &str) -> CalendarQuota {
    let quota: CalendarQuota = text.parse().expect(text);
    quota.in_zone(zone).expect(zone)
}

fn time(text: &str) -> SystemTime {
    text.parse::<Timestamp>().expect(text).into()
}

/// The starts of periods as times.
fn starts(quota: &CalendarQuota, origin: SystemTime) -> Vec<Timestamp> {
    let begin = Timestamp::try_from(origin).expect("a time");
    let since_1970 = origin.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let (nanos, _) = quota.starts(since_1970).expect("in range");
    let since = |nanos: u64| SignedDuration::from_nanos(i64::try_from(nanos).expect("20 years"));
    nanos.into_iter().map(|nanos| begin + since(nanos)).collect()
}

/// The first day of the period of a date, by another computation than that of the crate.
fn period_of(text: &str, date: Date) -> (i16, i8, i8) {
    let (year, month, day) = (date.year(), date.month(), date.day());
    match text {
        "1/day" => (year, month, day),
        "1/month from 5" if day >= 5 => (year, month, 5),
        "1/month from 5" if month == 1 => (year - 1, 12, 5),
        "1/month from 5" => (year, month - 1, 5),
        "1/year" => (year, 1, 1),
        _ => panic!("{text}"),
    }
}

/// Fifty years of hours: a period begins exactly when the civil date first reaches a new one. A date that clocks go back to has
/// begun before.
#[test]
fn each_period_begins_with_the_first_instant_of_its_day() {
    for zone in ZONES {
        let time_zone = TimeZone::get(zone).expect(zone);
        let date = |at: Timestamp| time_zone.to_datetime(at).date();
        // Months and years begin with days, so a few zones suffice.
        let texts: &[&str] = match zone {
            "America/St_Johns" | "Pacific/Apia" => &["1/day", "1/month from 5", "1/year"],
            _ => &["1/day"],
        };
        for &text in texts {
            for from in [
                "1976-03-04T05:06:07Z",
                "1990-01-01T00:00:00Z",
                "2006-12-31T23:59:59Z",
            ] {
                let starts = starts(&quota(text, zone), time(from));
                let mut next = starts.iter().skip(1).peekable();
                let mut hour: Timestamp = from.parse().expect("a time");
                let mut newest = date(hour);
                while let Some(start) = next.peek() {
                    let (began, offset) = (hour, time_zone.to_offset(hour));
                    hour += SignedDuration::from_hours(1);
                    let mut later = newest.max(date(hour));
                    if time_zone.to_offset(hour) != offset {
                        // Clocks are set in this hour. A date may last for a minute before they are set back.
                        let minutes = (1..60).map(|minute| began + SignedDuration::from_mins(minute));
                        later = minutes.map(date).fold(later, Date::max);
                    }
                    let has_begun = period_of(text, later) != period_of(text, newest);
                    newest = later;
                    assert_eq!(has_begun, **start <= hour, "{text} {zone}: {start} and {hour}");
                    if has_begun {
                        let (before, at) = (date(**start - SignedDuration::from_nanos(1)), date(**start));
                        assert!(
                            before < at && period_of(text, before) != period_of(text, at),
                            "{text} {zone}: {start} is not the first instant of {at}"
                        );
                        next.next();
                    }
                }
            }
        }
    }
}

#[test]
fn weeks_and_months_begin_with_their_day() {
    let months = starts(&quota("1/month from 16", "UTC"), time("2026-11-16T00:00:00Z"));
    assert_eq!(months[1].to_string(), "2026-12-16T00:00:00Z");
    for (text, first) in [
        ("1/week", "2026-11-16T00:00:00Z"),
        ("1/week from sunday", "2026-11-22T00:00:00Z"),
        ("1/week from monday", "2026-11-16T00:00:00Z"),
        ("1/week from tuesday", "2026-11-17T00:00:00Z"),
    ] {
        let origin = time("2026-11-16T00:00:00Z");
        let starts = starts(&quota(text, "UTC"), origin);
        let first: Timestamp = first.parse().expect("a time");
        let index = usize::from(first != starts[0]);
        assert_eq!(starts[index], first, "{text}");
        let week = SignedDuration::from_hours(7 * 24);
        assert!(starts[index..].windows(2).all(|pair| pair[0] + week == pair[1]));
    }
}

/// Samoa had no 30th of December 2011, and Berlin has days of 23 and 25 hours.
#[test]
fn skipped_days_and_long_days_are_periods_as_they_are() {
    let apia = starts(&quota("1/day", "Pacific/Apia"), time("2011-12-29T12:00:00Z"));
    let seconds: Vec<i64> = apia
        .windows(2)
        .skip(1)
        .take(2)
        .map(|pair| pair[1].as_second() - pair[0].as_second())
        .collect();
    assert_eq!(seconds, [24 * 3600, 24 * 3600]);
    let berlin = Calendar::with_origin(&quota("1/day", "Europe/Berlin"), time("2026-01-01T00:00:00Z"));
    let berlin = berlin.expect("in range");
    assert_eq!(berlin.shortest, Duration::from_secs(23 * 3600));
    assert_eq!(berlin.longest, Duration::from_secs(25 * 3600));
}

/// The guess of a period is wrong by at most two, so a decision searches few starts.
#[test]
fn the_guess_of_a_period_is_close() {
    for text in [
        "1/day",
        "1/week from sunday",
        "1/month",
        "1/month from 28",
        "1/year",
    ] {
        for zone in ZONES {
            for origin in [
                "1999-12-31T23:59:59Z",
                "2024-02-29T00:00:00Z",
                "2026-11-23T12:00:00Z",
            ] {
                let calendar = Calendar::with_origin(&quota(text, zone), time(origin)).expect("in range");
                for (index, &start) in calendar.starts.iter().enumerate() {
                    let period = index as u64 + 1;
                    assert_eq!(calendar.period_at(Nanos::new(start)), period, "{text} {zone}");
                    if start > 0 {
                        assert_eq!(calendar.period_at(Nanos::new(start - 1)), period - 1);
                    }
                    let guess = calendar.mean.quotient(start);
                    assert!(
                        guess.abs_diff(index as u64) <= 2,
                        "{text} {zone}: {guess} for {index}"
                    );
                }
                assert_eq!(calendar.period_at(Nanos::MAX), calendar.starts.len() as u64);
                assert!(calendar.starts[calendar.starts.len() - 1] <= HORIZON);
            }
        }
    }
}

/// An advanced word is above all words of its state, and fresh. At the end of time there is none.
#[test]
fn an_advanced_word_begins_a_later_period() {
    let calendar =
        Calendar::with_origin(&quota("9/day", "UTC"), time("2026-11-23T00:00:00Z")).expect("in range");
    let noon = |day: u64| Nanos::new((24 * day + 12) * 3_600_000_000_000);
    let word = |period, used| Word::new(period, used).0;
    assert_eq!(calendar.advance(0, noon(0)), Some(word(1, 0)));
    assert_eq!(calendar.advance(word(3, 9), noon(5)), Some(word(6, 0)));
    assert_eq!(calendar.advance(word(3, 9), noon(2)), Some(word(4, 0)));
    assert_eq!(calendar.advance(word(3, 9), noon(1)), None);
    let last = calendar.starts.len() as u64;
    assert_eq!(calendar.advance(word(last, 1), Nanos::MAX), None);
    assert_eq!(
        calendar.advance(word(last - 1, 1), Nanos::MAX),
        Some(word(last, 0))
    );
    assert_eq!(
        calendar.idle_from(word(3, 1)),
        Some(Nanos::new(3 * 24 * 3_600_000_000_000))
    );
    assert_eq!(calendar.idle_from(word(last, 1)), None);
    assert_eq!(
        calendar.latest_time(word(3, 1)),
        Nanos::new(2 * 24 * 3_600_000_000_000)
    );
}

#[test]
fn texts_are_parsed_and_formatted() {
    for (text, formatted) in [
        ("1000/day", "1000/day, UTC"),
        ("1_000 per Day", "1000/day, UTC"),
        ("5000/week", "5000/week, UTC"),
        ("5000/week from Sunday", "5000/week from sunday, UTC"),
        ("50000/month", "50000/month, UTC"),
        ("50000/month from 1", "50000/month, UTC"),
        ("50000/month from 5", "50000/month from 5, UTC"),
        ("50000/month from the 5th", "50000/month from 5, UTC"),
        ("50000/month from the 1st", "50000/month, UTC"),
        ("50000/month from 22nd", "50000/month from 22, UTC"),
        ("50000/month from 23rd", "50000/month from 23, UTC"),
        ("50000/month from the 11th", "50000/month from 11, UTC"),
        ("10GB/month", "10000000000/month, UTC"),
        ("7/year", "7/year, UTC"),
    ] {
        let quota: CalendarQuota = text.parse().expect(text);
        assert_eq!(quota.to_string(), formatted);
        let without_zone = formatted.trim_end_matches(", UTC");
        assert_eq!(without_zone.parse().as_ref(), Ok(&quota));
    }
}

#[test]
fn invalid_quotas_are_errors() {
    for (text, field) in [
        ("", "quota"),
        ("1000", "quota"),
        ("many/day", "quota"),
        ("1000/hour", "quota"),
        ("1000/2 days", "quota"),
        ("1000/day from", "quota"),
        ("0/day", "limit"),
        ("1000000000001/day", "limit"),
        ("99999999999999999999999/day", "limit"),
        ("1/day from 5", "from"),
        ("1/year from march", "from"),
        ("1/week from 5", "from"),
        ("1/week from someday", "from"),
        ("1/month from 0", "from"),
        ("1/month from 29", "from"),
        ("1/month from 300", "from"),
        ("1/month from the 5st", "from"),
        ("1/month from the 12nd", "from"),
        ("1/month from the 5thth", "from"),
        ("1/month from monday", "from"),
    ] {
        let error = text.parse::<CalendarQuota>().expect_err(text);
        assert_eq!(error.field, field, "{text:?}: {error}");
    }
    let zone = CalendarQuota::per_day(1).and_then(|quota| quota.in_zone("Europe/Bonn"));
    assert_eq!(
        zone.expect_err("no such zone").to_string(),
        "invalid time_zone: \"Europe/Bonn\" (expected UTC, or a name of the time zone database, such as Europe/Berlin)"
    );
    for (seconds, fits) in [(0, true), (250_000_000_000, true), (253_000_000_000, false)] {
        let origin = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let quota = CalendarQuota::per_day(1).expect("a quota");
        assert_eq!(Calendar::with_origin(&quota, origin).is_ok(), fits, "{seconds}");
    }
    let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
    let error = Calendar::with_origin(&CalendarQuota::per_day(1).expect("a quota"), before);
    assert_eq!(error.expect_err("before 1970").field, "origin");
}

/// The number of a period that no clock reaches is not below that of an earlier one.
#[test]
fn requests_for_more_than_all_periods_are_never_ready() {
    let calendar =
        Calendar::with_origin(&quota("1/day", "UTC"), time("2026-01-01T00:00:00Z")).expect("a calendar");
    let word = AtomicU64::new(0);
    let at = Nanos::from_duration(Duration::from_secs(3 * 86_400));
    assert_eq!(
        calendar.earliest(Shared::new(core::slice::from_ref(&word)), at, u64::MAX),
        None
    );
}

/// Requests of one permit each, of which a period admits ten, are ready one period after the other.
#[test]
fn each_period_admits_the_limit_of_a_queue() {
    let origin = Duration::from_secs(20_000 * 24 * 3600);
    let calendar = Calendar::with_origin_since_1970(&quota("10/day", "UTC"), origin).expect("a calendar");
    let word = AtomicU64::new(0);
    let words = Shared::new(core::slice::from_ref(&word));
    let now = Nanos::from_duration(Duration::from_secs(3600));
    assert!(calendar.decide(words, now, 4).is_some());
    for (permits, days) in [(1, 0), (6, 0), (7, 1), (16, 1), (17, 2), (26, 2), (27, 3)] {
        let begin = Nanos::from_duration(Duration::from_secs(days * 24 * 3600));
        assert_eq!(
            calendar.earliest(words, now, permits),
            Some(begin.max(now)),
            "{permits}"
        );
    }
}
