use alloc::format;
use alloc::string::String;

use crate::keyed::OnFull;
use crate::rules::{Mode, OnError, RuleAlgorithm};

/// The fields of a file.
pub(super) const FILE: &[&str] = &["rules", "$schema"];

/// The fields of a rule.
pub(super) const RULE: &[&str] = &[
    "name",
    "was",
    "quota",
    "quotas",
    "algorithm",
    "cells",
    "burst",
    "key",
    "cost",
    "when",
    "tiers",
    "capacity",
    "on_full",
    "on_error",
    "mode",
    "shadow",
    "enforce",
    "allow",
    "deny",
];

/// The fields of two modes.
pub(super) const LEASE: &[&str] = &["permits"];
pub(super) const SYNC: &[&str] = &["period", "pending"];

/// The fields of a rule's tiers.
pub(super) const TIERS: &[&str] = &["by", "limits"];

pub(super) const ALGORITHMS: &[(&str, RuleAlgorithm)] = &[
    ("counter", RuleAlgorithm::Counter),
    ("classic", RuleAlgorithm::Classic),
    ("even", RuleAlgorithm::Even),
    ("fixed", RuleAlgorithm::Fixed),
    ("log", RuleAlgorithm::Log),
    ("gcra", RuleAlgorithm::Gcra),
];

pub(super) const ON_FULL: &[(&str, OnFull)] = &[
    ("share", OnFull::Share),
    ("deny", OnFull::Deny),
    ("admit", OnFull::Admit),
    ("forget", OnFull::Forget),
];

pub(super) const ON_ERROR: &[(&str, OnError)] = &[
    ("local", OnError::Local),
    ("share", OnError::Share),
    ("deny", OnError::Deny),
    ("admit", OnError::Admit),
];

pub(super) const MODES: &[(&str, Mode)] = &[("strict", Mode::Strict), ("local", Mode::Local)];

pub(super) const A_MODE: &str = "\"strict\", \"local\", or a map of lease or sync to what it needs";
pub(super) const A_PERIOD: &str = "text such as \"100ms\", of 1ms to 60s";
pub(super) const A_QUOTA: &str = "text such as \"100/60s\"";
pub(super) const A_WHOLE_NUMBER: &str = "a whole number that is not negative";
pub(super) const A_SHARE: &str = "text from \"0%\" to \"100%\"";

/// `a, b or c`.
pub(super) fn one_of(names: &[impl AsRef<str>]) -> String {
    let mut text = String::new();
    for (place, name) in names.iter().enumerate() {
        let before = match place {
            0 => "",
            _ if place + 1 == names.len() => " or ",
            _ => ", ",
        };
        text = format!("{text}{before}{}", name.as_ref());
    }
    text
}

/// What a share such as `12.5%` is in a hundred. The range is the rule set's to check.
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
fn shares_are_read_as_percent() {
    for (text, share) in [
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
        assert_eq!(percent(text), share, "{text:?}");
    }
}
