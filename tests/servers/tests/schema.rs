//! The JSON Schema of rules files accepts the examples, and rejects files that the reader rejects.

use std::fs;
use std::path::Path;

use jsonschema::Validator;
use serde_json::Value;

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    fs::read_to_string(path).expect(file)
}

fn validator() -> Validator {
    let schema = serde_json::from_str(&read("schema/rules.schema.json")).expect("JSON");
    jsonschema::validator_for(&schema).expect("a schema")
}

#[test]
fn the_examples_are_valid_and_equal() {
    let schema = validator();
    let mut trees: [Value; 3] = [
        toml::from_str(&read("examples/rules.toml")).expect("TOML"),
        serde_json::from_str(&read("examples/rules.json")).expect("JSON"),
        serde_yaml_ng::from_str(&read("examples/rules.yaml")).expect("YAML"),
    ];
    for tree in &mut trees {
        schema
            .validate(tree)
            .unwrap_or_else(|error| panic!("{error}: {tree}"));
        tree.as_object_mut().expect("a map").remove("$schema");
    }
    assert_eq!(trees[0], trees[1]);
    assert_eq!(trees[1], trees[2]);
}

#[test]
fn the_schema_accepts_and_rejects_as_the_reader_does() {
    let schema = validator();
    let is_valid = |rule: &str| {
        let text = format!("rules: [{{ {rule} }}]");
        let tree = serde_yaml_ng::from_str(&text).expect("YAML");
        schema.is_valid(&tree)
    };
    for case in read("tests/servers/tests/cases/schema.tsv").lines() {
        let (rule, expected) = case.split_once('\t').expect("two columns");
        assert_eq!(is_valid(rule), expected == "accepted", "{rule}");
    }
}
