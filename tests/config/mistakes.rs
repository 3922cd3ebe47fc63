//! Every mistake of a file is reported at once, each on a line of its own, in the order of the file.

use core::error::Error;

use ringgate::ConfigError;
use ringgate::rules::{FileFormat, RuleSetBuilder};

use super::{cases, extractors};

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
        let source = error
            .source()
            .and_then(|source| source.downcast_ref::<ConfigError>());
        let field = source.expect("an invalid value").field;
        let (line, column) = error.position().unwrap_or((0, 0));
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
    for (text, expected) in cases(include_str!("mistakes.txt")) {
        let found = mistakes(&format!("[[rules]]\n{text}\n"));
        assert_eq!(found.join(", "), expected, "{text}");
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
