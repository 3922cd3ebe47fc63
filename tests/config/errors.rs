//! Each error in each format: the position of the value, and the same message. Of fields, of lists, and of the rule set as a
//! whole.

use ringgate::rules::FileFormat;

use super::{cases, invalid, json_of, marked, yaml_of};

/// Returns the fields of a rule in each format, in a rule that follows another rule, so that no position is that of the first rule by
/// chance.
fn in_rule(toml: &str, json: &str, yaml: &str) -> [(FileFormat, String); 3] {
    let toml = format!(
        "# a comment\n[[rules]]\nname = 'other'\nquota = '1/s'\n\n«[[rules]]\nname = 'user'\n{toml}\n"
    );
    let json = format!(
        "{{\n  \"rules\": [\n    {{\"name\": \"other\", \"quota\": \"1/s\"}},\n    «{{\n      \"name\": \"user\",\n      {json}\n    }}\n  ]\n}}"
    );
    let yaml = format!("# a comment\nrules:\n- name: other\n  quota: 1/s\n-\n  «name: user\n  {yaml}\n");
    [
        (FileFormat::Toml, toml),
        (FileFormat::Json, json),
        (FileFormat::Yaml, yaml),
    ]
}

/// Each case: the fields beside `name` in TOML, JSON and YAML, with a mark at the position of the error, and the message.
fn check_each(cases: &[(&str, &str, &str, &str)]) {
    let mut wrong = String::new();
    for (toml, json, yaml, message) in cases {
        for (format, text) in in_rule(toml, json, yaml) {
            // The last mark is the position of the error. The first is the rule, for errors of the rule as a whole.
            let (line, column, text) = marked(&text);
            let found = invalid(format, &text);
            if found != (line, column, format!("rule \"user\": {message}")) {
                wrong += &format!("{format} {line}:{column} {message}\n  found {found:?}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The fields of each case in TOML, which are also written as JSON and YAML, and the message.
#[test]
fn an_error_is_reported_at_its_value() {
    for (toml, message) in cases(include_str!("errors.txt")) {
        check_each(&[(toml, &json_of(toml), &yaml_of(toml), message)]);
    }
}

/// Cases whose JSON or YAML is no translation of the TOML.
#[test]
fn an_error_is_reported_at_its_value_in_other_notations() {
    check_each(&[
        (
            "",
            r#""key": "user""#,
            "key: user",
            "missing quota (expected text such as \"100/60s\", a list of such in quotas, text such as \"50_000/month\" in calendar, or a number in in_flight)",
        ),
        (
            "quotas = [\n  '2/s',\n  «true,\n]",
            "\"quotas\": [\n  \"2/s\",\n  «true\n]",
            "quotas:\n  - 2/s\n  - «true",
            "invalid quotas: true (expected text such as \"100/60s\")",
        ),
        (
            "quotas = [\n  '2/s',\n  «'2/0s',\n]",
            "\"quotas\": [\n  \"2/s\",\n  «\"2/0s\"\n]",
            "quotas:\n  - 2/s\n  - «2/0s",
            "invalid window: 0ns (expected 1µs to 366 days)",
        ),
        (
            "quota = '2/s'\ntiers = «{ limits = { free = 1 } }",
            r#""quota": "2/s", "tiers": «{"limits": {"free": 1}}"#,
            "quota: 2/s\n  tiers:\n    «limits: { free: 1 }",
            "missing by (expected the name of a tier function)",
        ),
        (
            "quota = '2/s'\n[rules.tiers]\nby = 'plan'\n[rules.tiers.limits]\nfree = 1\npaid = «0",
            "\"quota\": \"2/s\", \"tiers\": {\"by\": \"plan\", \"limits\": {\"free\": 1,\n \"paid\": «0}}",
            "quota: 2/s\n  tiers:\n    by: plan\n    limits:\n      free: 1\n      paid: «0",
            "invalid limit: 0 (expected 1 to 1000000000000 permits)",
        ),
        (
            "quota = '2/s'\nkey = 'number'\ndeny = [«'']",
            r#""quota": "2/s", "key": "number", "deny": [«""]"#,
            "quota: 2/s\n  key: number\n  deny:\n  - «''",
            "invalid deny: \"\" (expected a value of the key \"number\": cannot parse integer from empty string)",
        ),
        (
            "key = 'user'\nquotas = [\n'2/s',\n«'1000000000/1ms']",
            "\"key\": \"user\", \"quotas\": [\"2/s\",\n«\"1000000000/1ms\"]",
            "key: user\n  quotas:\n  - 2/s\n  - «1000000000/1ms",
            "invalid limit: 1000000000 permits with cells of 16.667µs (expected at most 16383 permits with such cells, or \
                    fewer and wider cells, or a rule with a cost)",
        ),
    ]);
}
