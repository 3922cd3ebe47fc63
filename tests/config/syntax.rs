//! Errors of a file as a whole, and of its format.

use core::error::Error as _;

use proptest::prelude::*;
use ringgate::rules::FileFormat::{Json, Toml, Yaml};
use ringgate::rules::{Extractors, FileFormat, FileProblem, RuleSetBuilder};
use ringgate::{ConfigError, Key};

use super::{Request, extractors, invalid, marked};

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
    assert_eq!(
        (at_line, at_column, messages.lines().next()),
        (line, column, Some(message)),
        "{format}: {beginning}"
    );
}

const NO_RULES: &str = "missing rules (expected a list of rules)";

#[test]
fn a_file_without_rules_is_an_error() {
    check(Toml, "«", NO_RULES);
    check(Json, " «{}", NO_RULES);
    check(Yaml, "\n«{}", NO_RULES);
    let no_map = |given| format!("invalid rules: {given} (expected a map with the field rules)");
    check(Json, "«[]", &no_map("a list"));
    check(Json, "«null", &no_map("null"));
    check(Yaml, "«- name: user", &no_map("a list"));
    check(Yaml, "«", &no_map("nothing"));
    check(Yaml, "«# only this\n", &no_map("nothing"));
    let no_list = |given| format!("invalid rules: {given} (expected a list of rules)");
    check(Toml, "rules = «5", &no_list("5"));
    check(Toml, "«[rules]\nname = 'a'", &no_list("a map"));
    check(Json, r#"{"rules": «{}}"#, &no_list("a map"));
    // The position of a missing value is after the colon that precedes it.
    check(Yaml, "rules«:\n", &no_list("null"));
    let no_rule = "invalid rules: \"user\" (expected a map for each rule)";
    check(Toml, "rules = [«'user']", no_rule);
    check(Json, r#"{"rules": [«"user"]}"#, no_rule);
    check(Yaml, "rules:\n - «user", no_rule);
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
fn an_unknown_field_is_an_error() {
    let message = "invalid field: \"rule\" (expected rules or $schema)";
    check(Toml, "[[«rule]]\nname = 'user'", message);
    check(Json, "{\n  «\"rule\": []}", message);
    check(Yaml, "«rule: []", message);
    let message = "invalid $schema: 1 (expected text: the location of the schema)";
    check(Json, r#"{"$schema": «1, "rules": []}"#, message);
}

#[test]
fn a_rule_without_a_name_is_an_error() {
    let message = "missing name (expected a name for each rule)";
    check(Toml, "\n«[[rules]]\nquota = '1/s'", message);
    check(Json, r#"{"rules": [«{"quota": "1/s"}]}"#, message);
    check(Yaml, "rules:\n- «quota: 1/s", message);
    let message = "invalid name: empty (expected a name)";
    check(Toml, "[[rules]]\nname = «''\nquota = '1/s'", message);
    check(Json, r#"{"rules": [{"name": «"", "quota": "1/s"}]}"#, message);
    check(Yaml, "rules:\n- name: «''\n  quota: 1/s", message);
    let message = "invalid name: true (expected text)";
    check(Toml, "[[rules]]\nname = «true\nquota = '1/s'", message);
    check(Json, r#"{"rules": [{"name": «true, "quota": "1/s"}]}"#, message);
    check(Yaml, "rules:\n- name: «true\n  quota: 1/s", message);
}

#[test]
fn a_repeated_name_is_reported_at_its_second_use() {
    let message = "rule \"user\": invalid name: \"user\" again (expected a different name for each rule)";
    let rule = "[[rules]]\nname = 'user'\nquota = '1/s'\n";
    check_at(Toml, &format!("{rule}{rule}{rule}"), 5, 8, message);
    let rule = r#"{"name": "user", "quota": "1/s"}"#;
    check_at(
        Json,
        &format!("{{\"rules\": [\n{rule},\n{rule}]}}"),
        3,
        10,
        message,
    );
    let rule = "- quota: 1/s\n  name: user\n";
    check_at(Yaml, &format!("rules:\n{rule}{rule}"), 5, 9, message);
}

#[test]
fn a_repeated_field_is_reported_at_its_second_use() {
    let message = "invalid field: \"quota\" again (expected each field once)";
    check(
        Json,
        "{\"rules\": [{\"name\": \"user\", \"quota\": \"1/s\",\n«\"quota\": \"1/s\"}]}",
        message,
    );
    check(Yaml, "rules:\n- name: user\n  quota: 1/s\n  «quota: 1/s", message);
    // TOML itself forbids it.
    check(
        Toml,
        "[[rules]]\nname = 'user'\nquota = '1/s'\n«quota = '1/s'",
        "not TOML: duplicate key",
    );
}

#[test]
fn of_two_errors_the_first_in_the_file_comes_first() {
    let message = "rule \"user\": invalid field: \"zzz\" (expected name, renamed_from, quota, quotas, calendar, time_zone, in_flight, algorithm, cells, burst, key, prefix, cost, \
                 when, tiers, block, capacity, on_full, on_error, mode, shadow, enforce, allow or deny)";
    check(Toml, "[[rules]]\nname = 'user'\n«zzz = 1\naaa = 1", message);
    check(
        Json,
        "{\"rules\": [{\"name\": \"user\",\n«\"zzz\": 1, \"aaa\": 1}]}",
        message,
    );
    check(Yaml, "rules:\n- name: user\n  «zzz: 1\n  aaa: 1", message);
}

#[test]
fn too_many_rules_are_reported_at_the_first_excess_rule() {
    let most = RuleSetBuilder::<str>::MAX_RULES;
    let text = |rules: usize| -> String {
        (0..rules).fold("rules:\n".to_owned(), |text, number| {
            text + &format!("- {{ name: r{number}, quota: 1/s, algorithm: gcra }}\n")
        })
    };
    check_at(
        Yaml,
        &text(most + 3),
        most + 2,
        3,
        "rule \"r1000\": invalid rules: 1003 rules (expected at most 1000)",
    );
    assert_eq!(super::read(Yaml, &text(most)).rules().len(), most);
}

#[test]
fn a_text_of_another_format_is_an_error() {
    check(
        Toml,
        "[[rules]]\nname = 'user«\n",
        "not TOML: invalid literal string, expected `'`",
    );
    check(Json, "{\n  \"rules\": [«}\n", "not JSON: expected value");
    check(Json, "{\"rules\": [«]", "not JSON: EOF while parsing an object");
    check(
        Json,
        "{\"rules\": [\n {\"name\": «\"\\ud800\"}]}",
        "not JSON: unexpected end of hex escape",
    );
    check_at(
        Yaml,
        "rules: [",
        2,
        1,
        "not YAML: while parsing a node, did not find expected node content",
    );
    check(
        Yaml,
        "rules: []\n«---\nrules: []",
        "not YAML: more than one document",
    );
    check(Yaml, "«[a]: 1", "not YAML: a field whose name is not text");
    check(
        Yaml,
        "rules: «*all",
        "not YAML: while parsing node, found unknown anchor",
    );
    check(
        Yaml,
        "rules: &all [«*all]",
        "not YAML: an alias of the value that contains it",
    );
}

#[test]
fn deep_nesting_is_an_error_and_overflows_no_stack() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(50_000), close.repeat(50_000));
    let message = |format| format!("not {format}: values are nested too deep");
    check_at(Json, &deep("[", "]"), 1, 17, &message("JSON"));
    check_at(Yaml, &"[".repeat(100), 1, 17, &message("YAML"));
    check_at(
        Yaml,
        &deep("[", "]"),
        1,
        256,
        "not YAML: recursion limit exceeded",
    );
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
fn columns_are_counted_in_characters_and_carriage_returns_end_lines() {
    let message = "rule \"größe\": invalid quota: 1 (expected text such as \"100/60s\")";
    check(
        Toml,
        "rules = [\r\n  { name = 'größe', quota = «1 },\r\n]",
        message,
    );
    check(
        Json,
        "{\"rules\": [\r\n  {\"name\": \"größe\", \"quota\": «1}]}",
        message,
    );
    check(Yaml, "rules:\r\n  - { name: größe, quota: «1 }", message);
    check(
        Json,
        "{\"rules\": [\r\n  {\"name\": \"größe\", \"quota\": «x}]}",
        "not JSON: expected value",
    );
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
    assert_eq!(
        name(extractors().cost(ringgate::rules::Cost::new("bytes", |_| 1))),
        "cost"
    );
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
    assert!(matches!(value.problem(), FileProblem::Value(error) if error.field == "rules"));
    assert!(value.source().is_some());
    assert_eq!((value.file(), value.rule()), (None, None));
    let syntax = error("[");
    assert!(
        matches!(syntax.problem(), FileProblem::Syntax { format: Yaml, .. }),
        "{syntax:?}"
    );
    assert!(syntax.source().is_none());
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
            let line = error.line().expect("a line");
            // A lone carriage return ends a line of YAML. A missing value may be reported at the end of the text, in the
            // line after the last.
            let lines = text.matches(['\n', '\r']).count() + 1;
            prop_assert!((1..=lines + 1).contains(&line), "{} in {:?}", error, text);
            prop_assert!(error.column().expect("a column") >= 1);
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
