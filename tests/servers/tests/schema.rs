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
fn the_schema_rejects_files_that_the_reader_rejects() {
    let schema = validator();
    let is_valid = |rule: &str| {
        let text = format!("rules: [{{ {rule} }}]");
        let tree = serde_yaml_ng::from_str(&text).expect("YAML");
        schema.is_valid(&tree)
    };
    for rule in [
        "name: a, quota: 1/s",
        "name: a, quota: ' 1_000  per  0.5 H '",
        "name: a, quotas: [1/s, 10 in 500ms]",
        "name: a, quotas: [50MiB/s, 10 GB per min, 2.5Gbit/s, 1_000 bytes/s, 7B/s]",
        "name: a, quota: 1/s, enforce: 12.5 %, shadow: false",
        "name: a, quota: 1/s, tiers: { by: plan, limits: { free: 1 } }",
        "name: a, quota: 1/s, mode: local",
        "name: a, in_flight: 20",
        "name: a, in_flight: 1048575, key: user, on_full: admit, capacity: 100",
        "name: a, calendar: 1000/day",
        "name: a, quota: 1/s, key: client, prefix: { ipv4: 24 }, allow: [10.0.0.0/8]",
        "name: a, quota: 1/s, key: client, prefix: { ipv4: 1, ipv6: 128 }",
        "name: a, calendar: ' 50_000 per  Month  from the 5th ', time_zone: Europe/Berlin, key: user, on_full: forget",
        "name: a, calendar: 5000/week from sunday, tiers: { by: plan, limits: { free: 1 } }, cost: bytes",
        "name: a, calendar: 50GB/year",
        "name: a, quota: 1/s, mode: { lease: { permits: 100 } }",
        "name: a, quota: 1/s, mode: { sync: { period: 100ms, pending: 50 } }",
    ] {
        assert!(is_valid(rule), "{rule}");
    }
    for rule in [
        "quota: 1/s",
        "name: a, in_flight: 0",
        "name: a, in_flight: 1048576",
        "name: a, in_flight: '5'",
        "name: a, in_flight: 5, quota: 1/s",
        "name: a, in_flight: 5, quotas: [1/s]",
        "name: a, in_flight: 5, algorithm: counter",
        "name: a, in_flight: 5, cells: 5",
        "name: a, in_flight: 5, burst: 5",
        "name: a, in_flight: 5, cost: bytes",
        "name: a, in_flight: 5, on_full: share",
        "name: a, calendar: 5",
        "name: a, calendar: 5/h",
        "name: a, calendar: 5/2 days",
        "name: a, calendar: 5/day from 5",
        "name: a, calendar: 5/day, quota: 1/s",
        "name: a, calendar: 5/day, quotas: [1/s]",
        "name: a, calendar: 5/day, in_flight: 5",
        "name: a, calendar: 5/day, algorithm: counter",
        "name: a, calendar: 5/day, cells: 5",
        "name: a, calendar: 5/day, burst: 5",
        "name: a, calendar: 5/day, time_zone: 1",
        "name: a, quota: 1/s, time_zone: UTC",
        "name: '', quota: 1/s",
        "name: a",
        "name: a, quota: 1/s, quotas: [1/s]",
        "name: a, quotas: []",
        "name: a, quota: 5",
        "name: a, quota: 5 a second",
        "name: a, quota: 5Mb/s",
        "name: a, quota: 5Ki/s",
        "name: a, quota: 5.5/s",
        "name: a, quota: 1/s, qouta: 1/s",
        "name: a, quota: 1/s, renamed_from: null",
        "name: a, quota: 1/s, algorithm: null",
        "name: a, quota: 1/s, algorithm: Counter",
        "name: a, quota: 1/s, cells: 0",
        "name: a, quota: 1/s, cells: 2.5",
        "name: a, quota: 1/s, enforce: '10'",
        "name: a, quota: 1/s, enforce: 101%",
        "name: a, quota: 1/s, enforce: 100.5%",
        "name: a, quota: 1/s, enforce: 10%, shadow: true",
        "name: a, quota: 1/s, tiers: { by: plan }",
        "name: a, quota: 1/s, tiers: { by: plan, limits: { free: 0 } }",
        "name: a, quota: 1/s, allow: bob",
        "name: a, quota: 1/s, prefix: { ipv4: 24 }",
        "name: a, quota: 1/s, key: client, prefix: 24",
        "name: a, quota: 1/s, key: client, prefix: {}",
        "name: a, quota: 1/s, key: client, prefix: { ipv4: 33 }",
        "name: a, quota: 1/s, key: client, prefix: { ipv6: 0 }",
        "name: a, quota: 1/s, key: client, prefix: { v4: 24 }",
        "name: a, quota: 1/s, mode: lease",
        "name: a, quota: 1/s, mode: { lease: { permits: 0 } }",
        "name: a, quota: 1/s, mode: { lease: { permits: 1 }, sync: { period: 1s, pending: 1 } }",
        "name: a, quota: 1/s, mode: { sync: { period: 100, pending: 50 } }",
        "name: a, quota: 1/s, mode: { sync: { pending: 50 } }",
    ] {
        assert!(!is_valid(rule), "{rule}");
    }
}
