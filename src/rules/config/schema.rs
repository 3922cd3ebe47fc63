//! The JSON Schema of a rules file, generated from the types below, which say what the reader takes.
//!
//! It is in `schema/rules.schema.json`. To write it anew:
//!
//! ```text
//! RINGGATE_WRITE_SCHEMA=1 cargo test --features config --lib schema
//! ```

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use std::fs;
use std::path::{Path, PathBuf};

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Value as Json, json};

use super::format::Format;
use super::node::{Node, Value};
use super::words::{ALGORITHMS, FILE, LEASE, MODES, ON_ERROR, ON_FULL, RULE, SYNC, TIERS, percent};

/// Rules for rate limiting, of which a rule set is built.
#[derive(JsonSchema)]
#[schemars(title = "Rules", deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape matters")]
struct FileShape {
    /// The rules, at most 1000: a request is admitted when all that are about it admit it.
    #[schemars(length(max = 1000))]
    rules: Vec<RuleShape>,
    /// Where this schema is.
    #[schemars(rename = "$schema")]
    schema: Option<String>,
}

/// How much of what is allowed, and to whom.
#[derive(JsonSchema)]
#[schemars(rename = "Rule", deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["quota"]}, {"required": ["quotas"]}]))]
#[schemars(extend("not" = {"required": ["enforce", "shadow"], "properties": {"shadow": {"const": true}}}))]
#[expect(dead_code, reason = "only its shape matters")]
struct RuleShape {
    /// The rule's name, its own.
    #[schemars(length(min = 1))]
    name: String,
    /// The name that the rule had before a reload, so that it keeps its counts.
    was: Option<String>,
    /// How much is allowed, and in which time.
    quota: Option<Quota>,
    /// Several quotas, all of which must have room.
    #[schemars(length(min = 1))]
    quotas: Option<Vec<Quota>>,
    /// How the rule counts; "counter" when nothing is said.
    algorithm: Option<Algorithm>,
    /// Cells per window of a counter, classic or even rule.
    #[schemars(range(min = 1, max = 4096))]
    cells: Option<u64>,
    /// The burst of a gcra rule, in permits; the limit when nothing is said.
    #[schemars(range(min = 1))]
    burst: Option<u64>,
    /// What the quota is for each of, by the name that the program gives it; for all requests together when
    /// nothing is said.
    key: Option<String>,
    /// What a request costs, by the name that the program gives it; one permit when nothing is said.
    cost: Option<String>,
    /// Which requests the rule is about, by the name that the program gives it; all when nothing is said.
    when: Option<String>,
    /// Other limits for some requests, in the rule's window.
    tiers: Option<Tiers>,
    /// How many keys there is room for at once.
    #[schemars(range(min = 1, max = 4_294_967_296_u64))]
    capacity: Option<u64>,
    /// What becomes of a key that finds no room; "share" when nothing is said.
    on_full: Option<OnFull>,
    /// What decides when the store of rules that many machines share does not answer; "share" when nothing is said.
    on_error: Option<OnError>,
    /// How far a node may decide by itself, of rules that many machines share; "strict" when nothing is said.
    mode: Option<Mode>,
    /// Whether the rule judges and counts, and never refuses.
    shadow: Option<bool>,
    /// For which part of its keys the rule is enforced.
    enforce: Option<Share>,
    /// Keys that this rule never limits.
    allow: Option<Vec<String>>,
    /// Keys that this rule always refuses, where it is enforced.
    deny: Option<Vec<String>>,
}

/// A limit, "/" or "per" or "in", and a window of 1µs to 366 days.
#[derive(JsonSchema)]
#[schemars(extend("examples" = ["100/60s", "5/min", "10 per second", "2 in 500ms"]))]
#[expect(dead_code, reason = "only its shape matters")]
struct Quota(
    #[schemars(regex(pattern = r"^\s*[0-9_]+\s*(/|[pP][eE][rR]\s|[iI][nN]\s)\s*[0-9.]*\s*[a-zA-Zµμ]+\s*$"))]
    String,
);

/// A part of the keys, such as "10%".
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its shape matters")]
struct Share(#[schemars(regex(pattern = r"^(0*[0-9]{1,2}(\.[0-9]+)?|0*100(\.0+)?)\s*%$"))] String);

/// Which tier a request is in, and what each allows.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape matters")]
struct Tiers {
    /// What says the tier of a request, by the name that the program gives it.
    by: String,
    /// The limit of each tier, by its name.
    #[schemars(extend("minProperties" = 1))]
    limits: BTreeMap<String, Limit>,
}

/// Permits per window.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its shape matters")]
struct Limit(#[schemars(range(min = 1, max = 1_000_000_000_000_u64))] u64);

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its shape matters")]
enum Algorithm {
    /// The sliding window counter, strict.
    Counter,
    /// The sliding window counter over whole cells.
    Classic,
    /// The sliding window counter with a share for each cell.
    Even,
    /// The fixed window.
    Fixed,
    /// The sliding log.
    Log,
    /// The token bucket.
    Gcra,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its shape matters")]
enum OnFull {
    /// Such keys share one limiter of the same quota.
    Share,
    /// Such keys are refused.
    Deny,
    /// Such keys are admitted without being counted.
    Admit,
    /// The key that has spent least loses its place to them.
    Forget,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its shape matters")]
enum OnError {
    /// A limiter of the node's own with the whole quota.
    Local,
    /// A limiter of the node's own with its part of the quota.
    Share,
    /// Nobody is admitted.
    Deny,
    /// Everybody is admitted.
    Admit,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
#[expect(dead_code, reason = "only its shape matters")]
enum Mode {
    /// Every decision is the store's.
    Strict,
    /// Each node counts for itself, with the whole quota.
    Local,
    /// A node spends a hold that the store has registered, and charges in arrears.
    Lease(Lease),
    /// A node spends a budget of its own, and pushes what it has spent in the background.
    Sync(Sync),
}

/// What a lease needs.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape matters")]
struct Lease {
    /// The most permits of one key that a node may hold.
    #[schemars(range(min = 1, max = 1_000_000))]
    permits: u64,
}

/// What pushing needs.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape matters")]
struct Sync {
    /// The time between two pushes of one key, 1 ms to 60 s.
    #[schemars(regex(pattern = r"^\s*[0-9.]*\s*[a-zA-Zµμ]+\s*$"))]
    period: String,
    /// The most permits of one key that a node may have spent and not pushed.
    #[schemars(range(min = 1, max = 1_000_000))]
    pending: u64,
}

/// What may be left out may not be null.
fn not_null(schema: &mut Schema) {
    if let Some(Json::Array(types)) = schema.get_mut("type") {
        types.retain(|one| one != "null");
        if let [one] = &types[..] {
            let one = one.clone();
            schema.insert("type".to_owned(), one);
        }
    }
    if let Some(Json::Array(choices)) = schema.get_mut("anyOf") {
        choices.retain(|choice| *choice != json!({"type": "null"}));
        if let [Json::Object(one)] = &choices[..] {
            let one = one.clone();
            schema.remove("anyOf");
            for (name, value) in one {
                schema.insert(name, value);
            }
        }
    }
}

fn schema() -> Json {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<FileShape>();
    RecursiveTransform(not_null).transform(&mut schema);
    schema.into()
}

fn package(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

fn tree(file: &str) -> Json {
    let text = fs::read_to_string(package(file)).expect(file);
    json_of(Format::of(file).expect(file), &text)
}

fn json_of(format: Format, text: &str) -> Json {
    let root = match format {
        Format::Toml => super::toml::parse(text),
        Format::Json => super::json::parse(text),
        Format::Yaml => super::yaml::parse(text),
    };
    value(&root.expect(text))
}

fn value(node: &Node) -> Json {
    match &node.value {
        Value::Bool(value) => json!(value),
        Value::Whole(value) => json!(value),
        Value::Text(value) => json!(value),
        Value::List(nodes) => nodes.iter().map(value).collect(),
        Value::Map(entries) => Json::Object(
            entries
                .iter()
                .map(|entry| (entry.name.clone(), value(&entry.node)))
                .collect(),
        ),
        Value::Other(_) => Json::Null,
    }
}

#[test]
fn the_schema_of_the_package_is_the_one_that_is_generated() {
    let mut text = serde_json::to_string_pretty(&schema()).expect("text");
    text.push('\n');
    let file = package("schema/rules.schema.json");
    if std::env::var_os("RINGGATE_WRITE_SCHEMA").is_some() {
        fs::write(&file, &text).expect("written");
    }
    assert_eq!(
        fs::read_to_string(&file).expect("a schema"),
        text,
        "see schema.rs for how to write it anew"
    );
}

#[test]
fn the_schema_has_the_fields_and_words_that_the_reader_takes() {
    let schema = schema();
    let sorted = |names: &mut dyn Iterator<Item = &str>| {
        let mut names: Vec<String> = names.map(ToOwned::to_owned).collect();
        names.sort_unstable();
        names
    };
    for (at, fields) in [
        ("", FILE),
        ("/$defs/Rule", RULE),
        ("/$defs/Tiers", TIERS),
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
    let known: Vec<&str> = ALGORITHMS.iter().map(|&(word, _)| word).collect();
    assert_eq!(words("/$defs/Algorithm/oneOf"), known);
    let known: Vec<&str> = ON_FULL.iter().map(|&(word, _)| word).collect();
    assert_eq!(words("/$defs/OnFull/oneOf"), known);
    let known: Vec<&str> = ON_ERROR.iter().map(|&(word, _)| word).collect();
    assert_eq!(words("/$defs/OnError/oneOf"), known);
    let known: Vec<&str> = MODES.iter().map(|&(word, _)| word).collect();
    assert_eq!(words("/$defs/Mode/oneOf"), known);
}

#[test]
fn the_examples_are_valid_and_mean_the_same() {
    let schema = jsonschema::validator_for(&schema()).expect("a schema");
    let mut trees = [
        "examples/rules.toml",
        "examples/rules.json",
        "examples/rules.yaml",
    ]
    .map(tree);
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
fn what_the_reader_refuses_is_not_valid() {
    let schema = jsonschema::validator_for(&schema()).expect("a schema");
    let is_valid = |rule: &str| schema.is_valid(&json_of(Format::Yaml, &format!("rules: [{{ {rule} }}]")));
    for rule in [
        "name: a, quota: 1/s",
        "name: a, quota: ' 1_000  per  0.5 H '",
        "name: a, quotas: [1/s, 10 in 500ms]",
        "name: a, quota: 1/s, enforce: 12.5 %, shadow: false",
        "name: a, quota: 1/s, tiers: { by: plan, limits: { free: 1 } }",
        "name: a, quota: 1/s, mode: local",
        "name: a, quota: 1/s, mode: { lease: { permits: 100 } }",
        "name: a, quota: 1/s, mode: { sync: { period: 100ms, pending: 50 } }",
    ] {
        assert!(is_valid(rule), "{rule}");
    }
    for rule in [
        "quota: 1/s",
        "name: '', quota: 1/s",
        "name: a",
        "name: a, quota: 1/s, quotas: [1/s]",
        "name: a, quotas: []",
        "name: a, quota: 5",
        "name: a, quota: 5 a second",
        "name: a, quota: 1/s, qouta: 1/s",
        "name: a, quota: 1/s, was: null",
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
        "name: a, quota: 1/s, mode: lease",
        "name: a, quota: 1/s, mode: { lease: { permits: 0 } }",
        "name: a, quota: 1/s, mode: { lease: { permits: 1 }, sync: { period: 1s, pending: 1 } }",
        "name: a, quota: 1/s, mode: { sync: { period: 100, pending: 50 } }",
        "name: a, quota: 1/s, mode: { sync: { pending: 50 } }",
    ] {
        assert!(!is_valid(rule), "{rule}");
    }
}

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
