//! Every mistake of a file is reported at once, each on a line of its own, in the order of the file.

use ringgate::rules::{FileFormat, FileProblem, RuleSetBuilder};

use super::extractors;

/// The position, the rule and the field of each mistake, as `line:column rule field`.
fn mistakes(text: &str) -> Vec<String> {
    let error = RuleSetBuilder::from_text(text, FileFormat::Toml, &extractors()).expect_err("mistakes");
    let all = core::iter::once(&error).chain(error.others());
    let all: Vec<_> = all.collect();
    let lines: Vec<String> = error.to_string().lines().map(String::from).collect();
    assert_eq!(lines.len(), all.len(), "{error}");
    for (line, other) in lines.iter().zip(&all).skip(1) {
        assert_eq!(*line, other.to_string());
    }
    let of = |error: &&ringgate::rules::FileError| {
        let field = match error.problem() {
            FileProblem::Value(error) => error.field,
            other => panic!("{other:?}"),
        };
        let (line, column) = (error.line().unwrap_or(0), error.column().unwrap_or(0));
        format!("{line}:{column} {} {field}", error.rule().unwrap_or("-"))
    };
    all.iter().map(of).collect()
}

#[test]
fn a_rule_with_three_mistakes_has_three_errors() {
    let text = "[[rules]]\nname = 'api'\nquota = '10/s'\ncells = 0\nburst = 5\ncapacity = 9\n";
    let error = RuleSetBuilder::from_text(text, FileFormat::Toml, &extractors()).expect_err("mistakes");
    assert_eq!(
        error.to_string(),
        "line 4, column 9: rule \"api\": invalid cells: 0 (expected 1 to 4096)\n\
         line 5, column 9: rule \"api\": invalid burst: 5 (expected no burst, except for a gcra rule)\n\
         line 6, column 12: rule \"api\": invalid capacity: given for a rule without a key (expected a rule with a key)"
    );
    assert_eq!(error.others().len(), 2);
}

#[test]
fn every_mistake_is_reported_at_its_value() {
    for (text, expected) in [
        // Values that cannot be read, and values that no rule set accepts.
        (
            "name = 'a'\nquota = '5/s'\nalgorithm = 'rink'\non_full = 'panic'\nenforce = '200%'\ncpas = 1\n",
            &[
                "4:13 a algorithm",
                "5:11 a on_full",
                "6:11 a enforce",
                "6:11 a enforce",
                "7:1 a field",
            ][..],
        ),
        // A block and a mode, with several mistakes each.
        (
            "name = 'a'\nquota = '5/s'\nkey = 'user'\n\
             block = { after = '70000/min', for = '1ms', factor = 0, ceiling = 7, forgive_after = '1h' }\n\
             mode = { sync = { period = '1h', pending = 0 } }\n",
            &[
                "5:54 a factor",
                "5:67 a ceiling",
                "6:28 a period",
                "6:44 a pending",
            ],
        ),
        (
            "name = 'a'\nquota = '5/s'\nkey = 'user'\nblock = { after = '70000/min', for = '1ms' }\n\
             mode = { lease = { permits = 0 } }\n",
            &["5:19 a after", "5:38 a for", "6:30 a permits"],
        ),
        // Quotas, tiers and entries of lists.
        (
            "name = 'a'\nquotas = ['5/s', '6/0s', 7]\nkey = 'number'\nallow = ['1', 'x', 2]\ndeny = ['y', '2', 'z']\n",
            &[
                "3:18 a window",
                "3:26 a quotas",
                "5:20 a allow",
                "6:9 a deny",
                "6:19 a deny",
            ],
        ),
        (
            "name = 'a'\nquota = '5/s'\ntiers = { by = 'plan', limits = { x = 0, y = 3, z = 0 } }\n",
            &["4:39 a limit", "4:53 a limit"],
        ),
        (
            "name = 'a'\nin_flight = 0\ncells = 3\ncost = 'bytes'\non_full = 'forget'\n\
             tiers = { by = 'plan', limits = { x = 0 } }\n",
            &[
                "3:13 a in_flight",
                "4:9 a cells",
                "5:8 a cost",
                "6:11 a on_full",
                "7:39 a tiers",
            ],
        ),
        (
            "name = 'a'\nin_flight = 5\nquota = '5/s'\nquotas = []\nalgorithm = 'log'\n",
            &["4:9 a quota", "5:10 a quotas", "6:13 a algorithm"],
        ),
        // Fields of other kinds, whatever their values, and fields of each kind.
        (
            "name = 'a'\nin_flight = 'x'\ncells = 'x'\nburst = 0\ncost = 'x'\ntime_zone = 1\non_full = 'forget'\ncapacity = 5\n",
            &[
                "3:13 a in_flight",
                "4:9 a cells",
                "5:9 a burst",
                "6:8 a cost",
                "7:13 a time_zone",
                "8:11 a on_full",
                "9:12 a capacity",
            ],
        ),
        (
            "name = 'a'\ncalendar = '5/hour'\ntime_zone = 'Nowhere'\nalgorithm = 'x'\nin_flight = 5\n\
             tiers = { by = 'plan', limits = { x = 0 } }\ncost = 'rows'\n",
            &[
                "3:12 a calendar",
                "4:13 a time_zone",
                "5:13 a algorithm",
                "6:13 a in_flight",
                "8:8 a cost",
            ],
        ),
        (
            "name = 'a'\nquotas = ['5/s']\ntime_zone = 'UTC'\ncells = 0\n",
            &["4:13 a time_zone", "5:9 a cells"],
        ),
        ("name = 'a'\ntime_zone = 'UTC'\n", &["1:1 a quota"]),
        // An error that follows from another one is not reported.
        (
            "name = 'a'\nquota = '5/s'\nkey = 'usr'\nprefix = { ipv4 = 24 }\nallow = ['x']\ndeny = []\ncapacity = 5\ncells = 0\n",
            &["4:7 a key", "9:9 a cells"],
        ),
        ("name = 'a'\nqouta = '5/s'\nburst = 5\n", &["3:1 a field"]),
        ("quota = '5/s'\ncells = 0\n", &["1:1 - name", "3:9 - cells"]),
        (
            "name = 'a'\nquota = '5/s'\nalgorithm = 'bucket'\nburst = 5\ncapacity = 0\n",
            &["4:13 a algorithm", "6:12 a capacity"],
        ),
        // Other rules.
        (
            "name = 'a'\nquota = '5/s'\ncells = 0\n[[rules]]\nname = 'a'\nquota = '0/s'\n\
             [[rules]]\nname = 'b'\nrenamed_from = 'a'\nquota = '5/s'\nshadow = 1\n",
            &[
                "4:9 a cells",
                "6:8 a name",
                "7:9 a limit",
                "10:16 b renamed_from",
                "12:10 b shadow",
            ],
        ),
    ] {
        assert_eq!(mistakes(&format!("[[rules]]\n{text}")), expected, "{text}");
    }
}

/// A list of rules with an element that is no rule, and with fields beside the rules.
#[test]
fn mistakes_beside_rules_are_reported_with_them() {
    let text = "rulez = 1\nrules = [5, { name = 'a', quota = '5/s', cells = 0 }, 'x']\n";
    assert_eq!(
        mistakes(text),
        ["1:1 - field", "2:10 - rules", "2:50 a cells", "2:55 - rules"]
    );
}

/// Rules from a deserializer have no positions, and one error names every mistake.
#[test]
fn a_deserializer_has_all_mistakes() {
    let value = serde_json::json!({ "rules": [{ "name": "a", "quota": "5/s", "cells": 0, "burst": 5 }] });
    let error = RuleSetBuilder::from_deserializer(&value, &extractors()).expect_err("mistakes");
    assert_eq!(
        error.to_string(),
        "rule \"a\": invalid burst: 5 (expected no burst, except for a gcra rule)\n\
         rule \"a\": invalid cells: 0 (expected 1 to 4096)"
    );
}
