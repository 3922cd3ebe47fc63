//! The nearest accepted text to a text that is not a quota, for errors.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use super::{Quota, UNITS, parse_decimal};

/// The units of windows that only calendars have, with their days. A suggestion names both readings.
const PERIODS: [(&str, u64, &[&str]); 3] = [
    ("week", 7, &["w", "wk", "wks", "week", "weeks"]),
    ("month", 30, &["mo", "mon", "month", "months"]),
    ("year", 365, &["y", "yr", "yrs", "year", "years"]),
];

/// Nouns that may follow a limit, and have no place in a quota.
const NOUNS: [&str; 24] = [
    "", "r", "req", "reqs", "request", "requests", "c", "call", "calls", "hit", "hits", "q", "query",
    "queries", "t", "token", "tokens", "permit", "permits", "msg", "message", "messages", "event", "events",
];

/// Limits with their window in one word, such as `rps`, without the first letter.
const RATES: [(&str, &str); 4] = [("ps", "s"), ("pm", "min"), ("ph", "h"), ("pd", "d")];

const SEPARATORS: [&str; 8] = ["/", " per ", " in ", " every ", " each ", " an ", " a ", "per "];

const DAY: u64 = 86_400_000_000_000;

/// A number of `digits` / 10^`scale`.
struct Decimal {
    digits: u64,
    scale: u32,
}

impl Quota {
    /// The texts to accept in place of `text`, if its meaning is clear: the same rate in the documented form.
    pub(super) fn nearest(text: &str) -> Option<String> {
        let lower = text.trim().to_lowercase();
        let (limit, window) = separate(&lower)?;
        let (limit, factor) = number_of_permits(limit)?;
        let (window, period) = window_of(window)?;
        // A limit that is no whole number, such as 0.5 a second, is a whole number in a longer window.
        let numerator = u128::from(limit.digits) * u128::from(factor);
        let denominator = 10_u128.checked_pow(limit.scale)?;
        let common = greatest_common_divisor(numerator, denominator);
        let limit = u64::try_from(numerator / common).ok()?;
        let window = u64::try_from(denominator / common).ok()?.checked_mul(window)?;
        let quota = Self::new(limit, Duration::from_nanos(window)).ok()?;
        let near = quota.short();
        Some(match period {
            Some(period) if denominator == common => {
                format!("{near:?}, or the calendar {:?}", format!("{limit}/{period}"))
            }
            _ => format!("{near:?}"),
        })
    }

    /// The text of a quota, without a 1 before the unit.
    fn short(self) -> String {
        let text = format!("{self}");
        match text.split_once("/1") {
            Some((limit, unit)) if unit.starts_with(|c: char| !c.is_ascii_digit()) => {
                format!("{limit}/{unit}")
            }
            _ => text,
        }
    }
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// Splits a text at its separator, or in a word such as `rps`.
fn separate(text: &str) -> Option<(&str, &str)> {
    let separated = SEPARATORS.iter().find_map(|separator| text.split_once(separator));
    separated.or_else(|| {
        RATES.iter().find_map(|&(word, window)| {
            let limit = text.strip_suffix(word)?.strip_suffix(['r', 'q', 't'])?;
            Some((limit, window))
        })
    })
}

/// Splits a text after its digits and the signs between them.
fn split_number(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text
        .char_indices()
        .take_while(|(_, c)| c.is_ascii_digit() || matches!(c, '.' | ',' | '_' | '\'' | ' '))
        .last()
        .map(|(at, c)| at + c.len_utf8())?;
    Some((text[..end].trim(), text[end..].trim()))
}

/// Reads a limit: a number, a factor such as `k`, and a noun.
fn number_of_permits(text: &str) -> Option<(Decimal, u64)> {
    let (number, rest) = split_number(text)?;
    let number = decimal_or_groups(number)?;
    if NOUNS.contains(&rest) {
        return Some((number, 1));
    }
    let exponent = rest
        .strip_prefix('e')
        .and_then(|digits| digits.parse::<u32>().ok());
    if let Some(exponent) = exponent {
        return Some((number, 10_u64.checked_pow(exponent)?));
    }
    let factor = match rest.as_bytes().first()? {
        b'k' => 1_000,
        b'm' => 1_000_000,
        b'g' => 1_000_000_000,
        _ => return None,
    };
    NOUNS.contains(&rest[1..].trim()).then_some((number, factor))
}

/// Reads a decimal number, or a whole one with signs between groups of three digits. Returns `None` if it could be both.
fn decimal_or_groups(text: &str) -> Option<Decimal> {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    for sign in [',', '_', '\'', ' '] {
        let mut groups = text.split(sign);
        let first = groups.next()?;
        if text.contains(sign)
            && digits(first)
            && first.len() <= 3
            && groups.all(|group| group.len() == 3 && digits(group))
        {
            let digits = text.replace(sign, "").parse().ok()?;
            return Some(Decimal { digits, scale: 0 });
        }
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = digits(whole) && (!text.contains('.') || digits(fraction));
    let may_be_groups = fraction.len() == 3 && whole != "0";
    if !is_number || may_be_groups {
        return None;
    }
    let digits = format!("{whole}{fraction}").parse().ok()?;
    let scale = u32::try_from(fraction.len()).ok()?;
    Some(Decimal { digits, scale })
}

/// Reads a window as the sum of its parts, such as `1h30m`: its nanoseconds, and the name of its calendar period.
fn window_of(text: &str) -> Option<(u64, Option<&'static str>)> {
    let mut rest = text.trim().trim_end_matches('.');
    let (mut sum, mut parts, mut period) = (0_u64, 0, None);
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| c.is_alphabetic())?;
        let amount = rest[..unit_at].trim();
        let unit_end = rest[unit_at..]
            .find(|c: char| !c.is_alphabetic())
            .map_or(rest.len(), |length| unit_at + length);
        let unit = &rest[unit_at..unit_end];
        // Only the first part may leave out its number.
        let amount = match amount {
            "" if parts == 0 => "1",
            amount => amount,
        };
        let nanos = match UNITS.iter().find(|(_, names)| names.contains(&unit)) {
            Some(&(nanos, _)) => nanos,
            None => {
                let &(name, days, _) = PERIODS.iter().find(|(.., names)| names.contains(&unit))?;
                period = (amount == "1").then_some(name);
                days * DAY
            }
        };
        // The decimal sign may be a comma, and may have digits on one side only.
        let amount = match amount.split_once(['.', ',']) {
            Some((whole, fraction)) => format!("0{whole}.{fraction}0"),
            None => String::from(amount),
        };
        sum = sum.checked_add(parse_decimal(&amount, nanos)??)?;
        parts += 1;
        rest = rest[unit_end..].trim().trim_start_matches(',').trim();
        rest = rest.strip_prefix("and ").unwrap_or(rest);
    }
    (parts > 0).then_some((sum, period.filter(|_| parts == 1)))
}
