//! Errors of a file as a whole, and of its format.

use core::error::Error as _;

use proptest::prelude::*;
use ringgate::rules::FileFormat::{Json, Toml, Yaml};
use ringgate::rules::{Extractors, FileFormat, RuleSetBuilder};
use ringgate::{ConfigError, Key};

use super::{Request, cases, extractors, invalid, marked};

/// Checks the first error of a text, which is at its mark.
#[track_caller]
fn check(format: FileFormat, text: &str, message: &str) {
    let (line, column, text) = marked(text);
    check_at(format, &text, line, column, message);
}

/// Checks the first error of a text.
#[track_caller]
fn check_at(format: FileFormat, text: &str, line: usize, column: usize, message: &str) {
    let beginning: String = text.chars().take(200).collect();
    let (at_line, at_column, messages) = invalid(format, text);
    let found = (at_line, at_column, messages.lines().next());
    assert_eq!(found, (line, column, Some(message)), "{format}: {beginning}");
}

/// Each case: a format, a text with a mark, and the message.
#[test]
fn the_first_error_of_a_file_is_reported_at_its_place() {
    for (text, message) in cases(include_str!("syntax.txt")) {
        let (format, text) = text.split_once(": ").expect(text);
        let format = match format {
            "TOML" => Toml,
            "JSON" => Json,
            _ => Yaml,
        };
        check(format, text, message);
    }
}

#[test]
fn a_file_of_white_space_is_an_error() {
    let no_rules = "missing rules (expected a list of rules)";
    let nothing = "invalid rules: nothing (expected a map with the field rules)";
    check(Toml, "«", no_rules);
    check(Yaml, "\n«{}", no_rules);
    check(Yaml, "«", nothing);
    check(Yaml, "«# only this\n", nothing);
    // The position of a missing value is after the colon that precedes it.
    check(
        Yaml,
        "rules«:\n",
        "invalid rules: null (expected a list of rules)",
    );
}

#[test]
fn columns_are_counted_in_characters_and_carriage_returns_end_lines() {
    let message = "rule \"größe\": invalid quota: 1 (expected text such as \"100/60s\")";
    let toml = "rules = [\r\n  { name = 'größe', quota = «1 },\r\n]";
    check(Toml, toml, message);
    let json = "{\"rules\": [\r\n  {\"name\": \"größe\", \"quota\": «1}]}";
    check(Json, json, message);
    check(Json, &json.replace('1', "x"), "not JSON: expected value");
    check(Yaml, "rules:\r\n  - { name: größe, quota: «1 }", message);
}

#[test]
fn an_empty_list_of_rules_is_read() {
    for (format, text) in [
        (Toml, "rules = []"),
        (Json, "\u{feff}{\"rules\": []}"),
        (Yaml, "rules: []"),
    ] {
        assert!(super::read(format, text).rules().is_empty());
    }
}

#[test]
fn a_repeated_name_is_reported_at_its_second_use() {
    let message = "rule \"user\": invalid name: \"user\" again (expected a different name for each rule)";
    let rule = "[[rules]]\nname = 'user'\nquota = '1/s'\n";
    check_at(Toml, &format!("{rule}{rule}{rule}"), 5, 8, message);
    let rule = r#"{"name": "user", "quota": "1/s"}"#;
    let json = format!("{{\"rules\": [\n{rule},\n{rule}]}}");
    check_at(Json, &json, 3, 10, message);
    let rule = "- quota: 1/s\n  name: user\n";
    check_at(Yaml, &format!("rules:\n{rule}{rule}"), 5, 9, message);
}

#[test]
fn too_many_rules_are_reported_at_the_first_excess_rule() {
    let most = 1000;
    let text = |rules: usize| -> String {
        (0..rules).fold("rules:\n".to_owned(), |text, number| {
            text + &format!("- {{ name: r{number}, quota: 1/s, algorithm: gcra }}\n")
        })
    };
    let message = "rule \"r1000\": invalid rules: 1003 rules (expected at most 1000)";
    check_at(Yaml, &text(most + 3), most + 2, 3, message);
    assert_eq!(super::read(Yaml, &text(most)).rules().len(), most);
}

#[test]
fn an_error_at_the_end_is_reported_on_the_next_line() {
    let message = "not YAML: while parsing a node, did not find expected node content";
    check_at(Yaml, "rules: [", 2, 1, message);
}

#[test]
fn deep_nesting_is_an_error_and_overflows_no_stack() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(50_000), close.repeat(50_000));
    let message = |format| format!("not {format}: values are nested too deep");
    check_at(Json, &deep("[", "]"), 1, 17, &message("JSON"));
    check_at(Yaml, &"[".repeat(100), 1, 17, &message("YAML"));
    let message_of_scanner = "not YAML: recursion limit exceeded";
    check_at(Yaml, &deep("[", "]"), 1, 256, message_of_scanner);
    let toml = format!("a = {}", "[".repeat(20) + &"]".repeat(20));
    check_at(Toml, &toml, 1, 21, &message("TOML"));
    let aliases = (1..20).fold("a0: &a0 [1, 2, 3]\n".to_owned(), |text, number| {
        let before = format!("*a{}", number - 1);
        text + &format!("a{number}: &a{number} [{before}, {before}, {before}]\n")
    });
    check_at(Yaml, &aliases, 10, 15, "not YAML: too many aliases");
}

#[test]
fn aliases_of_a_long_text_cannot_exhaust_the_memory() {
    for long in ["- &a 'X'\n", "- &a {'X': 1}\n"] {
        let text = long.replace('X', &"x".repeat(1 << 20)) + &"- *a\n".repeat(100);
        check_at(Yaml, &text, 8, 3, "not YAML: too many aliases");
    }
    // Many aliases of a short text are read.
    let text = "rules: []\n$schema: &a x\nown: [".to_owned() + &"*a, ".repeat(90_000) + "]\n";
    let message = "invalid field: \"own\" (expected rules or $schema)";
    check_at(Yaml, &text, 3, 1, message);
}

#[test]
fn an_unknown_name_is_reported_when_the_program_has_none() {
    let text = "rules: [{ name: user, quota: 1/s, key: user }]";
    let error = RuleSetBuilder::from_text(text, Yaml, &Extractors::<str>::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1, column 40: rule \"user\": invalid key: \"user\" (expected none: the program has no keys)"
    );
}

#[test]
fn extractors_of_one_kind_have_different_names() {
    let again = || Key::new("user", |_: &Request, _| ());
    let error = extractors().key(again()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid key: \"user\" again (expected a different name for each)"
    );
    let name = |made: Result<Extractors<Request>, ConfigError>| made.unwrap_err().field;
    let found = name(extractors().cost(ringgate::rules::Cost::new("bytes", |_| 1)));
    assert_eq!(found, "cost");
    assert_eq!(
        name(extractors().condition(ringgate::rules::Condition::new("upload", |_| true))),
        "when"
    );
    assert_eq!(
        name(extractors().tier_of(ringgate::rules::TierOf::new("plan", |_| None))),
        "by"
    );
    // Names of different kinds may be equal.
    assert!(
        extractors()
            .cost(ringgate::rules::Cost::new("user", |_: &Request| 1))
            .is_ok()
    );
    assert_eq!(
        format!("{:?}", extractors()),
        "Extractors { keys: [Key(\"user\"), Key(\"number\")], costs: [Cost(\"bytes\")], conditions: [Condition(\"upload\")], \
         tiers: [TierOf(\"plan\")] }"
    );
}

#[test]
fn an_error_has_its_source() {
    let error = |text| RuleSetBuilder::from_text(text, Yaml, &extractors()).unwrap_err();
    let value = error("rules: 1");
    let source = value
        .source()
        .and_then(|source| source.downcast_ref::<ConfigError>());
    assert_eq!(source.map(|error| error.field), Some("rules"));
    assert_eq!(value.rule(), None);
    assert!(error("[").source().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A valid file with random edits is read, or gives an error with a position inside of it.
    #[test]
    fn no_text_panics(
        example in prop::sample::select(EXAMPLES.to_vec()),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize, "[-\\[\\]{}\"':,#&*!|>%@=.\\\\ \t\r\n0a2s/%<é\u{feff}\u{0}]{0,3}"), 1..6),
    ) {
        let (format, text) = example;
        let mut text: Vec<char> = text.chars().collect();
        for (at, removed, added) in edits {
            let at = at.index(text.len() + 1);
            let end = text.len().min(at + removed);
            text.splice(at..end, added.chars());
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = RuleSetBuilder::from_text(&text, format, &extractors()) {
            let (line, column) = error.position().expect("a position");
            // A lone carriage return ends a line of YAML. A missing value may be reported at the end of the text, in the
            // line after the last.
            let lines = text.matches(['\n', '\r']).count() + 1;
            prop_assert!((1..=lines + 1).contains(&line), "{} in {:?}", error, text);
            prop_assert!(column >= 1);
            let lines = error.to_string().lines().count();
            prop_assert_eq!(lines, 1 + error.others().len(), "{:?} of {:?}", error.to_string(), text);
        }
    }
}

const EXAMPLES: [(FileFormat, &str); 4] = [
    (
        Toml,
        "[[rules]]\nname = 'a'\nquotas = ['1/s', \"5/min\"]\nkey = 'user'\nallow = ['ann']\n[rules.tiers]\nby = 'plan'\nlimits \
         = { free = 1 }\n",
    ),
    (
        Json,
        "{\"rules\": [{\"name\": \"a\", \"quota\": \"1/s\", \"key\": \"user\", \"allow\": [\"\\u00e4\"], \"cells\": 5}]}",
    ),
    (
        Yaml,
        "rules:\n- name: a\n  quota: &q 1/s # a comment\n  tiers: { by: plan, limits: { free: 1 } }\n- name: 'b'\n  quota: *q\n",
    ),
    (
        Yaml,
        "--- !!map\nrules:\n  - ? name\n    : |\n      a\n    quota: \"1/s\"\n    deny: [ann,\n      bob]\n    key: user\n...\n",
    ),
];
