//! Quotas from numbers and text: the accepted values, and the errors for other values.
#![cfg(not(ringgate_loom))]

use core::time::Duration;

use proptest::prelude::*;
use ringgate::{ConfigError, CounterRing, Gcra, Quota, TimestampRing};

const SECOND: u64 = 1_000_000_000;

/// The shortest and the longest window.
const SHORTEST: Duration = Duration::from_micros(1);
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

fn parsed(text: &str) -> (u64, u64) {
    let quota: Quota = text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"));
    (
        quota.limit(),
        u64::try_from(quota.window().as_nanos()).expect("at most 366 days"),
    )
}

fn refused(text: &str) -> ConfigError {
    match text.parse::<Quota>() {
        Ok(quota) => panic!("{text:?} was read as {quota}"),
        Err(error) => error,
    }
}

#[test]
fn text_in_every_documented_form_is_read() {
    for (text, limit, window) in [
        ("100/60s", 100, 60 * SECOND),
        ("5/min", 5, 60 * SECOND),
        ("10 per second", 10, SECOND),
        ("2 in 500ms", 2, SECOND / 2),
        ("  7  /  3  s  ", 7, 3 * SECOND),
        ("1/s", 1, SECOND),
        ("0012/1s", 12, SECOND),
        ("1_000_000/h", 1_000_000, 3600 * SECOND),
        ("1000000000000/366d", 1_000_000_000_000, 366 * 86_400 * SECOND),
        ("1/1000ns", 1, 1_000),
        ("1/1us", 1, 1_000),
        ("1/1.5µs", 1, 1_500),
        ("1/1μs", 1, 1_000),
        ("3/0.25 s", 3, SECOND / 4),
        ("3/1.000000001s", 3, SECOND + 1),
        ("3/1.50000000000000000000000000s", 3, SECOND * 3 / 2),
        ("3/0.5d", 3, 12 * 3600 * SECOND),
        ("3 PER 2 Hours", 3, 7200 * SECOND),
        ("3 In MIN", 3, 60 * SECOND),
        ("9/2000 nanoseconds", 9, 2_000),
        ("9 per microsecond", 9, 1_000),
        ("9 per 10 microseconds", 9, 10_000),
        ("9 per millisecond", 9, 1_000_000),
        ("9 per 10 milliseconds", 9, 10_000_000),
        ("9 per sec", 9, SECOND),
        ("9 per 2 secs", 9, 2 * SECOND),
        ("9 per 2 seconds", 9, 2 * SECOND),
        ("9 per m", 9, 60 * SECOND),
        ("9 per 2 mins", 9, 120 * SECOND),
        ("9 per minute", 9, 60 * SECOND),
        ("9 per 2 minutes", 9, 120 * SECOND),
        ("9 per hr", 9, 3600 * SECOND),
        ("9 per 2 hrs", 9, 7200 * SECOND),
        ("9 per hour", 9, 3600 * SECOND),
        ("9 per day", 9, 86_400 * SECOND),
        ("9 per 2 days", 9, 2 * 86_400 * SECOND),
    ] {
        assert_eq!(parsed(text), (limit, window), "{text:?}");
    }
}

#[test]
fn a_limit_in_bytes_is_read() {
    for (text, limit) in [
        ("1B/s", 1),
        ("7 bytes/s", 7),
        ("1 Byte per second", 1),
        ("1kB/s", 1_000),
        ("1_500KB/s", 1_500_000),
        ("10GB per minute", 10_000_000_000),
        ("10 MB in 5s", 10_000_000),
        ("1TB/s", 1_000_000_000_000),
        ("1KiB/s", 1 << 10),
        ("50MiB/s", 50 << 20),
        ("1.5 GiB/s", 3 << 29),
        ("0.5tiB/s", 1 << 39),
        ("8kbit/s", 1_000),
        ("100 MBIT/s", 12_500_000),
        ("2.5Gbit/s", 312_500_000),
        ("400Gbit/s", 50_000_000_000),
        ("8Tbit/s", 1_000_000_000_000),
        ("0.001kB/s", 1),
    ] {
        assert_eq!(parsed(text).0, limit, "{text:?}");
    }
}

#[test]
fn a_limit_in_unknown_or_fractional_bytes_is_an_error() {
    let units = "a number of permits, or of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB, kbit, Mbit, Gbit or Tbit";
    for (limit, expected) in [
        ("5Ki", units),
        ("5PB", units),
        // Megabits or megabytes.
        ("5Mb", units),
        ("5mib", units),
        ("5b", units),
        ("5bit", units),
        ("5MB2", units),
        ("5M B", units),
        ("0.5B", "a number of whole bytes"),
        ("0.0001kB", "a number of whole bytes"),
        ("1.2.3MB", "a number of whole bytes"),
        ("5_MB", "a number of whole bytes"),
        ("1_0.5MB", "a number of whole bytes"),
        ("0MB", "1 to 1000000000000 bytes"),
        ("1.1TB", "1 to 1000000000000 bytes"),
        ("99999999999999999999TiB", "1 to 1000000000000 bytes"),
    ] {
        let error = refused(&format!("{limit}/s"));
        assert_eq!(
            error.to_string(),
            format!("invalid limit: {limit:?} (expected {expected})")
        );
    }
}

#[test]
fn text_of_no_documented_form_is_an_error() {
    for text in [
        "",
        " ",
        "/",
        "5",
        "5/",
        "/s",
        "5/60",
        "5 s",
        "5s",
        "-5/s",
        "+5/s",
        "five/s",
        "_5/s",
        "5_/s",
        "5/-1s",
        "5/+1s",
        "5/1.2.3s",
        "5/1e3s",
        "5/0.1ns",
        "5/1.0000000001s",
        "5/1_000s",
        "5/s s",
        "5/60s/2",
        "5 per",
        "per s",
        "5/per s",
        "5/1s2",
        "5\u{0}/s",
        "٥/s",
        "5/0.00000000000000000000000000000000000000001d",
    ] {
        let error = refused(text);
        assert_eq!(error.field, "quota", "{text:?}: {error}");
        assert_eq!(
            error.to_string(),
            format!(
                "invalid quota: {text:?} (expected a limit, \"/\" or \"per\" or \"in\", and a window: 100/60s, 5/min, \
                 10 per second, 50MiB/s)"
            )
        );
    }
}

/// The error names the accepted text of the same rate.
#[test]
fn another_spelling_is_an_error_that_names_the_nearest_text() {
    for (text, near) in [
        ("10r/m", "10/min"),
        ("0.5/s", "1/2s"),
        ("1k/s", "1000/s"),
        ("10 requests per minute", "10/min"),
        ("1,000/s", "1000/s"),
        ("5/1h30m", "5/90min"),
        // Nouns, factors and exponents.
        ("100 req/s", "100/s"),
        ("1 Request / Second", "1/s"),
        ("2.5k requests/h", "2500/h"),
        ("1.5M/d", "1500000/d"),
        ("1e3/s", "1000/s"),
        ("5K/s", "5000/s"),
        // Fractions of a permit.
        ("5.0/s", "5/s"),
        ("2.5/s", "5/2s"),
        ("0.1 per minute", "1/10min"),
        ("0.125/h", "1/8h"),
        // Groups of digits.
        ("1,000,000/d", "1000000/d"),
        ("10 000/s", "10000/s"),
        ("1'000 per hour", "1000/h"),
        // Windows of several parts, and other signs of decimals.
        ("7 in 1 minute 30 seconds", "7/90s"),
        ("7 in 1 minute and 30 seconds", "7/90s"),
        ("3/1d12h", "3/36h"),
        ("3/1s500ms", "3/1500ms"),
        ("5/1,5s", "5/1500ms"),
        ("5/.5s", "5/500ms"),
        ("5/5.s", "5/5s"),
        ("5/min.", "5/min"),
        // Other separators.
        ("5per s", "5/s"),
        ("5 a second", "5/s"),
        ("5 every 10 seconds", "5/10s"),
        ("10 requests each minute", "10/min"),
        ("50rps", "50/s"),
        ("600 rpm", "600/min"),
        ("2kqps", "2000/s"),
        // Several weeks are no calendar period.
        ("5/2 weeks", "5/14d"),
        ("0.5/week", "1/14d"),
    ] {
        let error = refused(text);
        assert_eq!(error.field, "quota", "{text:?}");
        assert_eq!(
            error.to_string(),
            format!("invalid quota: {text:?} (expected {near:?})")
        );
        parsed(near);
    }
    for (text, near, calendar) in [
        ("1000/week", "1000/7d", "1000/week"),
        ("5/weeks", "5/7d", "5/week"),
        ("5/1 w", "5/7d", "5/week"),
        ("1k per month", "1000/30d", "1000/month"),
        ("1,000 requests/year", "1000/365d", "1000/year"),
        ("12/mo", "12/30d", "12/month"),
    ] {
        assert_eq!(
            refused(text).to_string(),
            format!("invalid quota: {text:?} (expected {near:?}, or the calendar {calendar:?})")
        );
        parsed(near);
        calendar
            .parse::<ringgate::algorithm::CalendarQuota>()
            .expect("a calendar");
    }
}

/// A text of two meanings has no nearest one.
#[test]
fn an_unclear_spelling_names_no_text() {
    for text in [
        // One permit with three decimals, or a thousand.
        "1.000/s",
        "12.500/min",
        // A thousand, or a part of a number.
        "1,00/s",
        "1,0000/s",
        "5m5/s",
        // More than the longest window.
        "5/2 years",
        "0.000001/d",
        "0.0/s",
        "1e99/s",
        "5/min/s",
        "5 fish/s",
        "5/s 5",
        "rps",
        "5/1h30",
    ] {
        let error = refused(text);
        assert!(!error.to_string().contains("(expected \""), "{error}");
    }
}

#[test]
fn numbers_out_of_range_are_errors_that_name_the_field() {
    for (text, words) in [
        ("0/s", "invalid limit: 0 (expected 1 to 1000000000000 permits)"),
        (
            "1000000000001/s",
            "invalid limit: 1000000000001 (expected 1 to 1000000000000 permits)",
        ),
        (
            "99999999999999999999999999/s",
            "invalid limit: 99999999999999999999999999 (expected 1 to 1000000000000 permits)",
        ),
        ("1/0s", "invalid window: 0ns (expected 1µs to 366 days)"),
        ("1/999ns", "invalid window: 999ns (expected 1µs to 366 days)"),
        ("1/366.5d", "invalid window: 31665600s (expected 1µs to 366 days)"),
        ("1/300000d", "invalid window: 300000d (expected 1µs to 366 days)"),
        (
            "1/99999999999999999999s",
            "invalid window: 99999999999999999999s (expected 1µs to 366 days)",
        ),
    ] {
        assert_eq!(refused(text).to_string(), words, "{text:?}");
    }
}

#[test]
fn numbers_make_quotas_within_the_ranges() {
    assert_eq!(Quota::new(1, SHORTEST).expect("the shortest").window(), SHORTEST);
    assert_eq!(Quota::new(1, LONGEST).expect("the longest").window(), LONGEST);
    assert_eq!(
        Quota::per_second(Quota::MAX_LIMIT).expect("the largest").limit(),
        Quota::MAX_LIMIT
    );
    for (quota, seconds) in [
        (Quota::per_second(3), 1),
        (Quota::per_minute(3), 60),
        (Quota::per_hour(3), 3_600),
        (Quota::per_day(3), 86_400),
    ] {
        let quota = quota.expect("three permits");
        assert_eq!((quota.limit(), quota.window()), (3, Duration::from_secs(seconds)));
    }
    for made in [
        Quota::per_second(0),
        Quota::per_minute(0),
        Quota::per_hour(0),
        Quota::per_day(0),
    ] {
        assert_eq!(made.expect_err("no permits").field, "limit");
    }
    for window in [
        Duration::ZERO,
        Duration::from_nanos(999),
        Duration::from_secs(366 * 86_400 + 1),
        Duration::MAX,
    ] {
        let error = Quota::new(1, window).expect_err("out of range");
        assert_eq!((error.field, error.given), ("window", format!("{window:?}")));
    }
    assert_eq!(
        Quota::new(u64::MAX, Duration::MAX)
            .expect_err("out of range")
            .field,
        "limit"
    );
}

#[test]
fn a_quota_is_written_in_the_largest_unit_that_divides_it() {
    for (text, written) in [
        ("100/60s", "100/1min"),
        ("100/61s", "100/61s"),
        ("5/24h", "5/1d"),
        ("5/90min", "5/90min"),
        ("5/1500ms", "5/1500ms"),
        ("5/1us", "5/1us"),
        ("5/1001ns", "5/1001ns"),
    ] {
        assert_eq!(text.parse::<Quota>().expect("a quota").to_string(), written);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        // A character takes microseconds under Miri.
        cases: if cfg!(miri) { 4 } else { 2_000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_written_quota_is_read_back(
        limit in prop_oneof![1..100_u64, 1..=Quota::MAX_LIMIT],
        units in 1..40_000_u64,
        unit in prop::sample::select(vec![1, 1_000, 1_000_000, SECOND, 60 * SECOND, 3600 * SECOND, 86_400 * SECOND]),
        more in prop_oneof![Just(0), 0..1_000_000_000_u64],
    ) {
        let window = Duration::from_nanos((units * unit + more).clamp(1_000, 366 * 86_400 * SECOND));
        let quota = Quota::new(limit, window).expect("within the ranges");
        prop_assert_eq!(quota.to_string().parse(), Ok(quota));
        prop_assert_eq!(quota.to_string().to_uppercase().parse(), Ok(quota));
    }

    /// A limit in a unit is the limit in bytes, and is written so that it is read back.
    #[test]
    fn a_limit_in_a_unit_is_that_number_of_bytes(
        amount in 1..1_000_u64,
        (unit, bytes) in prop::sample::select(vec![
            ("B", 1), ("kB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000), ("KiB", 1 << 10), ("MiB", 1 << 20),
            ("kbit", 125), ("Mbit", 125_000), ("Gbit", 125_000_000_u64),
        ]),
        window in prop::sample::select(vec!["s", "10s", "min", "h", "1d"]),
    ) {
        let quota: Quota = format!("{amount}{unit}/{window}").parse().expect("a quota");
        prop_assert_eq!(quota, format!("{}/{window}", amount * bytes).parse().expect("a quota"));
        prop_assert_eq!(quota.to_string().parse(), Ok(quota));
    }

    /// No text causes a panic, and every parsed quota is within the ranges.
    #[test]
    fn no_text_makes_a_quota_out_of_range(text in "[0-9_./ a-zA-Zµμ]{0,24}|[0-9.]{1,9} ?[kKMGTi]{0,2}(B|bit)/s|[0-9]{1,30} ?(/|per|in) ?[0-9.]{0,30} ?[a-z]{1,5}|\\PC{0,12}") {
        match text.parse::<Quota>() {
            Ok(quota) => {
                prop_assert!((1..=Quota::MAX_LIMIT).contains(&quota.limit()));
                prop_assert!((SHORTEST..=LONGEST).contains(&quota.window()));
            }
            // A text that an error names is accepted.
            Err(error) => if let Some(near) = error.expected.strip_prefix('"') {
                let near = near.split_once('"').map_or(near, |(near, _)| near);
                prop_assert!(near.parse::<Quota>().is_ok(), "{}", error);
            },
        }
    }
}

/// The errors of each algorithm, with the field, the given value and the expected values.
#[test]
fn an_invalid_configuration_is_an_error_in_words() {
    let quota = |text: &str| text.parse::<Quota>().expect("a quota");
    let ring = |text: &str, cells| CounterRing::builder(quota(text)).cells(cells).build().map(drop);
    for (made, words) in [
        (ring("1/s", 0), "invalid cells: 0 (expected 1 to 4096)"),
        (ring("1/s", 4097), "invalid cells: 4097 (expected 1 to 4096)"),
        (
            ring("1/s", u64::MAX),
            "invalid cells: 18446744073709551615 (expected 1 to 4096)",
        ),
        (
            ring("1/1us", 1001),
            "invalid cells: 1001 cells in 1µs (expected cells of at least 10ns)",
        ),
        (
            CounterRing::builder(quota("10/s"))
                .even()
                .also(quota("100/min"))
                .build()
                .map(drop),
            "invalid windows: 2 (expected one window for an even ring, several for a strict or \
             classic one)",
        ),
        (
            TimestampRing::new(quota("1048577/s")).map(drop),
            "invalid limit: 1048577 (expected 1 to 1048576 permits for a timestamp ring)",
        ),
        (
            TimestampRing::new(quota("1048576/1us")).map(drop),
            "invalid window: 1µs with a limit of 1048576 (expected at least 5ms with such a limit)",
        ),
        (
            Gcra::new(quota("1001/1us")).map(drop),
            "invalid limit: 1001 permits in 1µs (expected at most one permit per nanosecond, here 1000 permits)",
        ),
        (
            Gcra::token_bucket(quota("1/day"), 0).map(drop),
            "invalid burst: 0 (expected 1 to 366 permits, the limit or what 366 days refill)",
        ),
        (
            Gcra::token_bucket(quota("1/day"), 367).map(drop),
            "invalid burst: 367 (expected 1 to 366 permits, the limit or what 366 days refill)",
        ),
    ] {
        let error = made.expect_err(words);
        assert_eq!(error.to_string(), words);
        let ConfigError {
            field,
            given,
            expected,
            ..
        } = error;
        assert_eq!(words, format!("invalid {field}: {given} (expected {expected})"));
    }
}

/// The largest value that an error expects is accepted, and the next one is not.
#[test]
fn the_expected_values_of_an_error_are_accepted() {
    for (limit, window) in [
        (Quota::MAX_LIMIT, Duration::from_secs(1)),
        (1_000_000, Duration::from_millis(5)),
        (1_000_000_000, Duration::from_secs(5)),
        (5_000, Duration::from_micros(1)),
    ] {
        let ring = |limit| CounterRing::new(Quota::new(limit, window).expect("a quota"));
        let error = ring(limit).expect_err("too many permits for such cells");
        assert_eq!(error.field, "limit");
        let most = error
            .expected
            .strip_prefix("at most ")
            .expect("a number of permits");
        let most = most
            .split(' ')
            .next()
            .and_then(|most| most.parse().ok())
            .expect("a number");
        assert!(ring(most).is_ok(), "{error}");
        assert_eq!(ring(most + 1).expect_err("one more").field, "limit");
    }
    // The examples in the documentation: 10^6 needs cells of 0.6 ms, 10^9 of 0.6 s, 10^12 of 10.1 min.
    for (limit, cell) in [
        (1_000_000, Duration::from_micros(600)),
        (1_000_000_000, Duration::from_millis(600)),
        (Quota::MAX_LIMIT, Duration::from_secs(606)),
    ] {
        assert!(
            CounterRing::new(Quota::new(limit, 60 * cell).expect("a quota")).is_ok(),
            "{limit} in {cell:?}"
        );
        assert!(
            CounterRing::new(Quota::new(limit, 12 * cell).expect("a quota")).is_err(),
            "{limit} in {cell:?}"
        );
    }
    // 0.5 µs at a limit of 100 is below every window. It is 5 µs at 1,000, and 5 ms at 10^6.
    for (limit, window) in [
        (1_000, Duration::from_micros(5)),
        (1 << 20, Duration::from_millis(5)),
    ] {
        assert!(TimestampRing::new(Quota::new(limit, window).expect("a quota")).is_ok());
    }
    let short = Quota::new(1 << 20, Duration::from_nanos(4_999_999)).expect("a quota");
    // Rounded up to whole units, this is ten units.
    assert!(TimestampRing::new(short).is_ok());
    let shorter = Quota::new(1 << 20, Duration::from_micros(4_500)).expect("a quota");
    assert!(TimestampRing::new(shorter).is_err());
}

#[cfg(feature = "serde")]
#[test]
fn serde_writes_a_quota_as_text() {
    let quota: Quota = "100/60s".parse().expect("a quota");
    let text = serde_json::to_string(&quota).expect("text");
    assert_eq!(text, "\"100/1min\"");
    assert_eq!(serde_json::from_str::<Quota>(&text).expect("a quota"), quota);
    // A string with an escape cannot be borrowed from the input.
    assert_eq!(
        serde_json::from_str::<Quota>("\"5\\/s\"")
            .expect("a quota")
            .limit(),
        5
    );
    let error = serde_json::from_str::<Quota>("\"0/s\"").expect_err("no permits");
    assert!(
        error.to_string().contains("invalid limit: 0 (expected 1 to"),
        "{error}"
    );
    assert!(serde_json::from_str::<Quota>("5").is_err());
}
