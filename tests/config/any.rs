//! Rules from a deserializer.

use ringgate::rules::RuleSetBuilder;
use serde_json::{Value, json};

use super::{Request, extractors};

fn read(value: &Value) -> Result<RuleSetBuilder<Request>, serde_json::Error> {
    RuleSetBuilder::from_deserializer(value, &extractors())
}

#[test]
fn a_part_of_another_configuration_is_read() {
    let rules = read(&json!({"rules": [{
        "name": "user",
        "quota": "5/s",
        "key": "user",
        "capacity": 100,
        "shadow": true,
        "tiers": {"by": "plan", "limits": {"free": 1}},
        "allow": ["ann"],
    }]}))
    .expect("rules");
    let text = r#"{"rules": [{"name": "user", "quota": "5/s", "key": "user", "capacity": 100, "shadow": true,
        "tiers": {"by": "plan", "limits": {"free": 1}}, "allow": ["ann"]}]}"#;
    assert_eq!(
        format!("{rules:?}"),
        format!("{:?}", super::read(ringgate::rules::FileFormat::Json, text))
    );
}

#[test]
fn an_error_names_its_rule() {
    let rule = |field: &str, value: Value| {
        let mut rule = json!({"name": "user", "quota": "5/s"});
        rule[field] = value;
        read(&json!({"rules": [rule]})).expect_err(field).to_string()
    };
    let number = "(expected a whole number, not negative)";
    for (field, value, words) in [
        ("cells", json!(-5), format!("invalid cells: -5 {number}")),
        ("cells", json!(2.5), format!("invalid cells: 2.5 {number}")),
        ("cells", json!(null), format!("invalid cells: null {number}")),
        ("cells", json!(true), format!("invalid cells: true {number}")),
        (
            "cells",
            json!(0),
            "invalid cells: 0 (expected 1 to 4096)".to_owned(),
        ),
        (
            "key",
            json!("usr"),
            "invalid key: \"usr\" (expected \"user\" or \"number\")".to_owned(),
        ),
    ] {
        assert_eq!(rule(field, value), format!("rule \"user\": {words}"));
    }
    let error = read(&json!([])).expect_err("no map");
    assert_eq!(
        error.to_string(),
        "invalid rules: a list (expected a map with the field rules)"
    );
}

#[test]
fn deep_nesting_and_repeated_fields_are_errors() {
    let deep = (0..30).fold(json!([]), |deep, _| json!([deep]));
    let found = read(&deep).expect_err("deep").to_string();
    assert_eq!(found, "values are nested too deep");
    let twice = r#"{"rules": [], "rules": []}"#;
    let mut deserializer = serde_json::Deserializer::from_str(twice);
    let error = RuleSetBuilder::from_deserializer(&mut deserializer, &extractors()).expect_err("twice");
    assert!(
        error
            .to_string()
            .starts_with("invalid field: \"rules\" again (expected each field once)"),
        "{error}"
    );
}
