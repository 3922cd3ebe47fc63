use alloc::format;
use alloc::string::String;

use crate::keyed::OnFull;
use crate::rules::rule::mode::Mode;
use crate::rules::rule::on_error::OnError;

/// The fields of a file.
pub(super) const FILE: &[&str] = &["rules", "$schema"];

/// The fields of a rule.
pub(super) const RULE: &[&str] = &[
    "name",
    "renamed_from",
    "quota",
    "quotas",
    "calendar",
    "time_zone",
    "in_flight",
    "algorithm",
    "cells",
    "burst",
    "key",
    "prefix",
    "cost",
    "when",
    "tiers",
    "block",
    "capacity",
    "on_full",
    "on_error",
    "mode",
    "shadow",
    "enforce",
    "allow",
    "deny",
];

/// The fields of the mode `lease`.
pub(super) const LEASE: &[&str] = &["permits"];

/// The fields of the mode `sync`.
pub(super) const SYNC: &[&str] = &["period", "pending"];

/// The fields of a rule's prefix.
pub(super) const PREFIX: &[&str] = &["ipv4", "ipv6"];

/// The fields of a rule's block.
pub(super) const BLOCK: &[&str] = &["after", "for", "factor", "ceiling", "forgive_after", "extend"];

/// The fields of a rule's tiers.
pub(super) const TIERS: &[&str] = &["by", "limits"];

pub(super) const ON_FULL: &[(&str, OnFull)] = &[
    ("share", OnFull::Share),
    ("deny", OnFull::Deny),
    ("admit", OnFull::Admit),
    ("forget", OnFull::Forget),
];

/// The words of [`ON_FULL`] for a rule of requests in flight.
pub(super) const ON_FULL_OF_SLOTS: &[(&str, OnFull)] = &[("deny", OnFull::Deny), ("admit", OnFull::Admit)];

pub(super) const ON_ERROR: &[(&str, OnError)] = &[
    ("local", OnError::Local),
    ("share", OnError::Share),
    ("deny", OnError::Deny),
    ("admit", OnError::Admit),
];

pub(super) const MODES: &[(&str, Mode)] = &[("strict", Mode::Strict), ("local", Mode::Local)];

pub(super) const A_MODE: &str = "\"strict\", \"local\", or a map with lease or sync";
pub(super) const A_PERIOD: &str = "text such as \"100ms\", of 1ms to 60s";
pub(super) const A_DURATION: &str = "text such as \"10min\", of 1s to 366d";
pub(super) const A_QUOTA: &str = "text such as \"100/60s\"";
pub(super) const A_CALENDAR: &str = "text such as \"50_000/month\"";
pub(super) const A_WHOLE_NUMBER: &str = "a whole number, not negative";
pub(super) const A_PERCENTAGE: &str = "text from \"0%\" to \"100%\"";

/// Joins names to `a, b or c`.
pub(super) fn one_of(names: &[impl AsRef<str>]) -> String {
    let mut text = String::new();
    for (at, name) in names.iter().enumerate() {
        let before = match at {
            0 => "",
            _ if at + 1 == names.len() => " or ",
            _ => ", ",
        };
        text = format!("{text}{before}{}", name.as_ref());
    }
    text
}

/// Reads a percentage such as `12.5%`. The rule set checks its range.
pub(super) fn percent(text: &str) -> Option<f64> {
    let number = text.strip_suffix('%')?.trim_end();
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    (digits(whole) && digits(fraction))
        .then(|| number.parse().ok())
        .flatten()
}

#[cfg(test)]
#[test]
fn percentages_are_read() {
    for (text, percentage) in [
        ("0%", Some(0.0)),
        ("12.5%", Some(12.5)),
        ("100 %", Some(100.0)),
        ("", None),
        ("%", None),
        ("10", None),
        ("-1%", None),
        ("1e1%", None),
        (".5%", None),
        ("5.%", None),
        ("inf%", None),
        ("NaN%", None),
    ] {
        assert_eq!(percent(text), percentage, "{text:?}");
    }
}
