//! The forms in which servers write `Retry-After`.

use core::time::Duration;
use std::time::SystemTime;

use super::list::number;

/// Reads a line of `Retry-After`: numbers of seconds, or dates, of which the longest time counts. Returns `None` if it states no time in
/// a known form. `sent` is the time from which a date counts.
pub(super) fn read(line: &[u8], sent: SystemTime) -> Option<Duration> {
    let mut rest = core::str::from_utf8(line).ok()?.trim_end();
    let mut longest = None;
    loop {
        // A date has a comma, so it is tried before the line is split.
        if let Some(date) = date(rest.trim_start()) {
            return longest.max(Some(date.duration_since(sent).unwrap_or_default()));
        }
        let (element, others) = rest.split_once(',').unwrap_or((rest, ""));
        longest = longest.max(seconds(element));
        if others.is_empty() {
            return longest;
        }
        rest = others;
    }
}

/// The length of the longest date (RFC 9110, section 5.6.7): `Wednesday, 09-Nov-94 08:49:37 GMT`.
const MAX_DATE: usize = 33;

/// Reads a date without spaces around it. A text that is too long for a date is not read, so that a line takes time in proportion to
/// its length.
pub(super) fn date(text: &str) -> Option<SystemTime> {
    let can_be_one = text.len() <= MAX_DATE;
    can_be_one.then(|| httpdate::parse_http_date(text).ok()).flatten()
}

/// Reads a time such as `7`, `1.5`, `"7"`, `3s`, `500 ms` or `1m30s`, and rounds it up to whole seconds. A number without a unit is a
/// number of seconds.
fn seconds(text: &str) -> Option<Duration> {
    let text = text.trim();
    let text = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
        .unwrap_or(text);
    let mut rest = text.strip_prefix('+').unwrap_or(text).trim_start();
    let mut nanos = 0_u128;
    loop {
        let digits = |c: char| !c.is_ascii_digit() && c != '.';
        let (amount, others) = rest.split_at(rest.find(digits).unwrap_or(rest.len()));
        let others = others.trim_start();
        let letters = |c: char| !c.is_ascii_alphabetic();
        let (unit, others) = others.split_at(others.find(letters).unwrap_or(others.len()));
        nanos = nanos.saturating_add(nanos_of(amount)?.saturating_mul(millis_of(unit)?) / 1000);
        rest = others.trim_start();
        if rest.is_empty() {
            break;
        }
        // Only a number with a unit may be followed by another one.
        if unit.is_empty() {
            return None;
        }
    }
    let seconds = u64::try_from(nanos.div_ceil(1_000_000_000)).unwrap_or(u64::MAX);
    Some(Duration::from_secs(seconds))
}

/// The nanoseconds of a decimal number of seconds, rounded up.
fn nanos_of(amount: &str) -> Option<u128> {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !is_digits(fraction) {
        return None;
    }
    let whole = match whole {
        "" => 0,
        whole => number(whole.as_bytes())?,
    };
    let digit = |index: usize| {
        fraction
            .as_bytes()
            .get(index)
            .map_or(0, |digit| u128::from(digit - b'0'))
    };
    let nanos = (0..9).fold(0, |nanos, index| nanos * 10 + digit(index));
    let rest = fraction.bytes().skip(9).any(|digit| digit != b'0');
    Some(u128::from(whole) * 1_000_000_000 + nanos + u128::from(rest))
}

/// The milliseconds of a unit.
fn millis_of(unit: &str) -> Option<u128> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => 1,
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * 1000,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600 * 1000,
        "d" | "day" | "days" => 24 * 3600 * 1000,
        _ => return None,
    })
}
