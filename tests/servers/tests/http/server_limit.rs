//! Limits that a response states: a table of headers, random ones, and those of the layer.

use super::cases::rows;
use super::*;
use proptest::prelude::*;

const DAY: u64 = 24 * 3600;
const AT: &str = "Fri, 06 Nov 2026 08:00:00 GMT";

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(*name, HeaderValue::from_str(value).expect("a value"));
    }
    headers
}

/// The limit of these headers at 08:00 by the wall clock.
fn read(lines: &[(&'static str, &str)]) -> ServerLimit {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_793_952_000);
    ServerLimit::from_headers(&headers(lines), now)
}

fn secs(secs: u64) -> Option<Duration> {
    Some(Duration::from_secs(secs))
}

/// Without a bound of the text that can be a date, this would take hours.
#[test]
fn a_long_retry_after_is_read_in_proportion_to_its_length() {
    for end in ["", "7", " Fri, 06 Nov 2026 08:00:07 GMT"] {
        for element in [",", "x,", " ,", "x\t "] {
            let line = element.repeat(4 << 20) + end;
            let expected = match (end, element.ends_with(',')) {
                ("", _) | (_, false) => Duration::from_secs(60),
                _ => Duration::from_secs(7),
            };
            let read = read(&[("retry-after", line.as_str())]);
            assert_eq!(read.retry_after, Some(expected), "{element:?} {end:?}");
        }
    }
}

/// Decimals are rounded up, the longest of several counts, and other forms are a time of 60 seconds.
#[test]
fn retry_after_is_a_number_of_seconds_or_a_date() {
    for (text, expected) in rows("retry-after-forms.tsv") {
        let limit = read(&[("retry-after", &text)]);
        let expected = expected.parse().ok().map(Duration::from_secs);
        assert_eq!(limit.retry_after, expected, "{text:?}");
        assert_eq!(limit.wait(StatusCode::TOO_MANY_REQUESTS), expected, "{text:?}");
    }
}

#[test]
fn a_date_counts_from_the_date_of_the_response() {
    let later = ("retry-after", "Fri, 06 Nov 2026 08:00:30 GMT");
    let of = |date| read(&[later, ("date", date)]).retry_after;
    assert_eq!(of("Fri, 06 Nov 2026 07:59:50 GMT"), secs(40));
    // The clock of the server is an hour ahead of this one.
    assert_eq!(of("Fri, 06 Nov 2026 09:00:00 GMT"), secs(0));
    assert_eq!(of("yesterday"), secs(30));
    assert_eq!(read(&[later]).retry_after, secs(30));
    // A number does not depend on the date.
    let limit = read(&[("retry-after", "5"), ("date", AT)]);
    assert_eq!(limit.retry_after, secs(5));
}

#[test]
fn the_longest_of_several_times_counts() {
    let lines = ["5", "later", "Fri, 06 Nov 2026 08:00:09 GMT", "7"].map(|value| ("retry-after", value));
    assert_eq!(read(&lines).retry_after, secs(9));
}

#[test]
fn only_a_rejection_waits_for_retry_after() {
    let spent = ("ratelimit", "\"all\";r=0;t=9");
    let both = read(&[("retry-after", "5"), spent]);
    let retry_after = read(&[("retry-after", "5"), ("ratelimit", "\"all\";r=1;t=9")]);
    for status in [200, 204, 301, 404, 413, 500] {
        let status = StatusCode::from_u16(status).expect("a status");
        assert_eq!(both.wait(status), secs(9), "{status}");
        assert_eq!(retry_after.wait(status), None, "{status}");
    }
    for status in [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE] {
        assert_eq!(both.wait(status), secs(5), "{status}");
        assert_eq!(retry_after.wait(status), secs(5), "{status}");
        assert_eq!(read(&[spent]).wait(status), secs(9), "{status}");
        assert_eq!(read(&[]).wait(status), None, "{status}");
    }
}

/// `remaining` and `reset_after` of a value of `RateLimit`.
fn state(text: &str) -> (Option<u64>, Option<u64>) {
    let limit = read(&[("ratelimit", text)]);
    (limit.remaining, limit.reset_after.map(|after| after.as_secs()))
}

/// The item that delays most is chosen of lists, as in `lists_are_read_as_by_another_parser`. These are no lists, or have numbers that
/// the other parser does not read.
#[test]
fn other_texts_state_nothing() {
    let most = "\"a\";r=18446744073709551615;t=18446744073709551616";
    assert_eq!(state(most), (Some(u64::MAX), Some(DAY)));
    assert_eq!(state("\"a\";r=-0;t=-000"), (Some(0), Some(0)));
    assert_eq!(state("\"a\";r=0;t=1."), (Some(0), None));
    for text in [
        "limit=100, remaining=0, reset=5",
        "\"a\";r=0;t=5,",
        ",\"a\";r=0;t=5",
        "\"a\";r=0;t=5 \"b\"",
        "\"a\";r=0;t=5;",
        "\"a\";r=0;t=",
        "\"a\";=0",
        "\"a\";1=0;r=0",
        "\"a;r=0;t=5",
        "\"a\\n\";r=0;t=5",
        "\"a\\",
        "(\"a\";r=0);t=5",
        "\"a\";r=0 ;t=5",
        "\"a\" = 1",
        "\"a\";R=0",
    ] {
        assert_eq!(state(text), (None, None), "{text}");
    }
}

#[test]
fn the_policy_of_the_chosen_item_has_the_limit_and_the_window() {
    let policies = "\"b\\\"\";q=9;w=1, \"a\";q=100;w=60;qu=\"requests\"";
    let of = |state| {
        let limit = read(&[("ratelimit-policy", policies), ("ratelimit", state)]);
        (limit.limit, limit.window)
    };
    assert_eq!(of("\"a\";r=1, \"b\\\"\";r=2"), (Some(100), secs(60)));
    assert_eq!(of("\"a\";r=3, \"b\\\"\";r=2"), (Some(9), secs(1)));
    assert_eq!(of("\"other\";r=1"), (None, None));
    assert_eq!(of("malformed;"), (Some(9), secs(1)));
    let huge = read(&[(
        "ratelimit-policy",
        "\"a\";q=9999999999999999999999;w=9999999999999999999999",
    )]);
    assert_eq!((huge.limit, huge.window), (Some(u64::MAX), secs(u64::MAX)));
}

/// A malformed line does not hide the lines of another server.
#[test]
fn several_lines_are_one_list() {
    let lines = ["\"a\";r=4;t=1", "malformed;", "\"b\";r=0;t=8", ""].map(|value| ("ratelimit", value));
    let limit = read(&lines);
    assert_eq!((limit.remaining, limit.reset_after), (Some(0), secs(8)));
    // Five items do not fit into the memory of a few.
    let lines = [1, 2, 3, 4, 5].map(|t| format!("\"a\";r=0;t={t}"));
    let lines: Vec<_> = lines.iter().map(|value| ("ratelimit", &**value)).collect();
    assert_eq!(read(&lines).reset_after, secs(5));
}

#[test]
fn a_header_that_is_no_text_states_nothing_that_is_known() {
    let mut headers = HeaderMap::new();
    for name in ["retry-after", "date", "ratelimit", "ratelimit-policy"] {
        headers.append(
            name,
            HeaderValue::from_bytes(b"\"\xff\";r=0;t=1;q=1").expect("a value"),
        );
    }
    let limit = ServerLimit::from_headers(&headers, SystemTime::now());
    assert_eq!(limit.retry_after, Some(Duration::from_secs(60)));
    assert_eq!((limit.limit, limit.window), (None, None));
    assert_eq!((limit.remaining, limit.reset_after), (None, None));
}

/// A rejection that states a time in any form is obeyed.
#[test]
fn a_rejection_waits_for_what_it_states() {
    for (name, value, expected) in [
        ("ratelimit", "\"all\";r=0;t=1.5", secs(2)),
        ("ratelimit", "\"all\";t=1.5", secs(2)),
        ("ratelimit", "\"all\";r=3;t=9", secs(9)),
        ("ratelimit", "\"all\";r=0", None),
        ("ratelimit", "limit=100, remaining=0, reset=5", secs(60)),
        ("ratelimit", "\"all\";r=0;t=5,", secs(60)),
        ("ratelimit-reset", "5", secs(60)),
        ("x-ratelimit-reset", "1793952030", secs(60)),
        ("x-rate-limit-reset", "5", secs(60)),
        ("retry-after-ms", "1500", secs(60)),
        ("x-ratelimit-limit", "5", None),
    ] {
        let limit = read(&[(name, value)]);
        for status in [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE] {
            assert_eq!(limit.wait(status), expected, "{name}: {value}");
        }
        let both = read(&[(name, value), ("retry-after", "7")]);
        let found = both.wait(StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(found, secs(7), "{name}: {value}");
    }
    assert_eq!(read(&[("x-ratelimit-reset", "5")]).wait(StatusCode::OK), None);
    assert_eq!(read(&[("ratelimit", "\"all\";t=5")]).wait(StatusCode::OK), None);
}

/// The headers of the server's layer, with names that need escapes and encoding.
#[test]
fn the_headers_of_the_layer_are_read() {
    let rules = [
        rule("all \"é\" \\", "2/h"),
        rule("many", "9/min").also(quota("90/h")),
    ];
    let mut service = layer(rules).layer(Hello);
    let read = |response: &Response<Body>| ServerLimit::from_headers(response.headers(), SystemTime::now());
    let first = read(&send(&mut service, Request::new(())));
    assert_eq!((first.limit, first.remaining), (Some(2), Some(1)));
    assert_eq!((first.window, first.retry_after), (secs(3600), None));
    assert_eq!(first.wait(StatusCode::OK), None);
    let second = read(&send(&mut service, Request::new(())));
    // One cell longer than the window.
    assert_eq!(second.wait(StatusCode::OK), secs(3660));
    let rejected = send(&mut service, Request::new(()));
    assert_eq!(read(&rejected).wait(rejected.status()), secs(3660));
}

/// The remaining permits and the time of the item that is chosen from a list, by another parser.
fn by_sfv(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    let list: sfv::List = Parser::new(text).parse().ok()?;
    let mut states = Vec::new();
    for entry in list {
        let ListEntry::Item(item) = entry else { return None };
        // Thousandths. A number has at most 15 digits.
        let parameter = |key: &str| match item.params.get(key) {
            Some(BareItem::Integer(number)) => Some(i128::from(i64::from(*number)) * 1000),
            Some(BareItem::Decimal(number)) => {
                let text = number.to_string();
                let (whole, fraction) = text.split_once('.')?;
                let digits = format!("{whole}{fraction:0<3}");
                digits.parse().ok()
            }
            _ => None,
        };
        let remaining = parameter("r").map(|r| u64::try_from(r / 1000).unwrap_or(0));
        let reset = parameter("t").filter(|t| *t >= 0);
        let reset = reset.map(|t| u64::try_from(t).expect("a time").div_ceil(1000));
        let is_named = matches!(item.bare_item, BareItem::String(_));
        if is_named && (remaining.is_some() || reset.is_some()) {
            states.push((remaining, reset));
        }
    }
    let delay = |(remaining, reset): &(Option<u64>, Option<u64>)| {
        (remaining.is_none(), *remaining, core::cmp::Reverse(*reset))
    };
    let (remaining, reset) = states.into_iter().min_by_key(delay).unwrap_or_default();
    Some((remaining, reset.map(|reset| reset.min(DAY))))
}

/// Texts that are often lists.
fn list() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        4 => "[0-9]{1,4}",
        1 => "-?[0-9]{1,15}",
        1 => "[0-9]{1,3}\\.[0-9]{1,3}",
        1 => "\"([ -~&&[^\"\\\\]]|\\\\\\\\|\\\\\"){0,6}\"",
        1 => "[a-z*][a-z:/]{0,3}",
        1 => ":[A-Za-z0-9]{4}:",
        1 => "\\?[01]",
        1 => "%\"([ -~&&[^\"%]]|%c3%bc){0,4}\"",
        1 => "[ -~]{0,3}",
    ];
    let parameter = ("; {0,2}", "[rt]|[rt]|[a-z*][a-z0-9_.*-]{0,2}", value.clone())
        .prop_map(|(before, key, value)| format!("{before}{key}={value}"));
    let name = prop_oneof![4 => "\"[a-c]\"".boxed(), 1 => value.boxed()];
    let item = (name, proptest::collection::vec(parameter, 0..5))
        .prop_map(|(name, parameters)| name + &parameters.concat());
    let separator = prop_oneof![9 => "[ \t]{0,2},[ \t]{0,2}", 1 => "[ ,;]{0,2}"];
    proptest::collection::vec((item, separator), 0..5).prop_map(|items| {
        let mut text = String::new();
        for (index, (item, separator)) in items.into_iter().enumerate() {
            if index > 0 {
                text += &separator;
            }
            text += &item;
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every list of RFC 9651 is read as another parser reads it. Values that neither uses are not validated here.
    #[test]
    fn lists_are_read_as_by_another_parser(text in list()) {
        if let Some(expected) = by_sfv(text.trim_matches(' ')) {
            prop_assert_eq!(state(&text), expected);
        }
    }

    #[test]
    fn random_bytes_are_read_without_a_panic(
        values in proptest::collection::vec((0..4_usize, proptest::collection::vec(any::<u8>(), 0..60)), 1..6),
    ) {
        no_panic(values.iter().map(|(name, value)| (*name, value)))?;
    }

    /// Mutations of valid values reach more of the parsers than random bytes do.
    #[test]
    fn changed_headers_are_read_without_a_panic(
        name in 0..4_usize,
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        end in 0..60_usize,
    ) {
        let valid = ["Sunday, 06-Nov-94 08:49:37 GMT", AT, "\"a\\\"\";r=0;t=5, \"b\";r=1", "\"a\";q=1;w=%\"%c3\""];
        for other in valid {
            let mut value = other.as_bytes().to_vec();
            for (at, byte) in &changes {
                let at = at % value.len();
                value[at] = *byte;
            }
            value.truncate(end);
            no_panic([(name, value)].into_iter())?;
        }
    }
}

/// Reads headers of these values, and checks the ranges of the result.
fn no_panic(values: impl Iterator<Item = (usize, impl AsRef<[u8]>)>) -> Result<(), TestCaseError> {
    let mut headers = HeaderMap::new();
    for (name, value) in values {
        let name = ["retry-after", "date", "ratelimit", "ratelimit-policy"][name];
        if let Ok(value) = HeaderValue::from_bytes(value.as_ref()) {
            headers.append(name, value);
        }
    }
    let limit = ServerLimit::from_headers(&headers, SystemTime::now());
    for wait in [
        limit.retry_after,
        limit.reset_after,
        limit.wait(StatusCode::TOO_MANY_REQUESTS),
    ] {
        prop_assert!(wait <= Some(Duration::from_secs(24 * 3600)));
    }
    Ok(())
}
