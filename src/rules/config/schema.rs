//! The JSON Schema of a rules file has the fields and words that the reader accepts.
//!
//! `tests/servers` holds the schema against whole files.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use std::fs;

use serde_json::Value as Json;

use super::keywords::{BLOCK, FILE, LEASE, MODES, ON_ERROR, ON_FULL, PREFIX, RULE, SYNC, TIERS};
use crate::rules::rule::algorithm::RuleAlgorithm;

#[test]
fn the_schema_has_the_fields_and_words_that_the_reader_takes() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/rules.schema.json");
    let text = fs::read_to_string(file).expect("a schema");
    let schema: Json = serde_json::from_str(&text).expect("JSON");
    let sorted = |names: &mut dyn Iterator<Item = &str>| {
        let mut names: Vec<String> = names.map(ToOwned::to_owned).collect();
        names.sort_unstable();
        names
    };
    for (at, fields) in [
        ("", FILE),
        ("/$defs/Rule", RULE),
        ("/$defs/Tiers", TIERS),
        ("/$defs/Block", BLOCK),
        ("/$defs/Prefix", PREFIX),
        ("/$defs/Lease", LEASE),
        ("/$defs/Sync", SYNC),
    ] {
        let properties = schema
            .pointer(&format!("{at}/properties"))
            .and_then(Json::as_object);
        let names = properties.expect("properties").keys().map(String::as_str);
        assert_eq!(sorted(&mut { names }), sorted(&mut fields.iter().copied()));
    }
    let words = |at: &str| -> Vec<&str> {
        let choices = schema.pointer(at).and_then(Json::as_array).expect(at);
        choices
            .iter()
            .filter_map(|choice| choice["const"].as_str())
            .collect()
    };
    let known: Vec<&str> = RuleAlgorithm::NAMES.iter().map(|&(word, _)| word).collect();
    assert_eq!(words("/$defs/Algorithm/oneOf"), known);
    let known: Vec<&str> = ON_FULL.iter().map(|&(word, _)| word).collect();
    assert_eq!(words("/$defs/OnFull/oneOf"), known);
    let known: Vec<&str> = ON_ERROR.iter().map(|&(word, _)| word).collect();
    assert_eq!(words("/$defs/OnError/oneOf"), known);
    let known: Vec<&str> = MODES.iter().map(|&(word, _)| word).collect();
    assert_eq!(words("/$defs/Mode/oneOf"), known);
}
