//! Files by their names, the examples of the package, and reloads.

use core::error::Error;
use core::hash::Hash;
use core::time::Duration;
use std::path::{Path, PathBuf};
use std::{fs, io};

use ringgate::rules::{Extractors, ReloadError, Reloaded, RuleSetBuilder};
use ringgate::{Key, LiveRules, ManualClock, RuleSet};

use super::{Request, extractors};

fn package(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

#[test]
fn an_error_names_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let limit = "rule \"user\": invalid limit: 0 (expected 1 to 1000000000000 permits)";
    let toml = "[[rules]]\nname = 'user'\n\n\n\n\nquota = '0/s'\n";
    let json = "{\"rules\": [{\"name\": \"user\", \"quota\": \"0/s\"}]}";
    let yaml = "rules:\n- name: user\n  quota: 0/s\n";
    let formats = "(expected toml, json, yaml or yml)";
    for (name, text, words) in [
        ("rules.toml", toml, &*format!(":7:9: {limit}")),
        ("rules.JSON", json, &*format!(":1:38: {limit}")),
        ("rules.yaml", yaml, &*format!(":3:10: {limit}")),
        (
            "rules.yml",
            "rules:",
            ":1:6: invalid rules: null (expected a list of rules)",
        ),
        (
            "rules.ini",
            "",
            &*format!(": invalid format: file extension \"ini\" {formats}"),
        ),
        (
            "rules",
            "",
            &*format!(": invalid format: no file extension {formats}"),
        ),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        let error = RuleSetBuilder::from_file(&path, &extractors()).expect_err(words);
        assert_eq!(error.to_string(), format!("{}{words}", path.display()));
    }
    let path = folder.path().join("missing.toml");
    let error = RuleSetBuilder::from_file(&path, &extractors()).expect_err("no file");
    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>());
    assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::NotFound));
    assert_eq!(error.position(), None);
    let beginning = format!("{}: cannot be read: ", path.display());
    assert!(error.to_string().starts_with(&beginning), "{error}");
    let path = folder.path().join("latin.toml");
    fs::write(&path, b"# gr\xf6\xdfe").expect("a file");
    let error = RuleSetBuilder::from_file(&path, &extractors()).expect_err("not UTF-8");
    let expected = "cannot be read: stream did not contain valid UTF-8";
    assert_eq!(error.to_string(), format!("{}: {expected}", path.display()));
}

/// A request of the examples.
struct Call {
    user: u32,
    endpoint: &'static str,
}

fn example(file: &str) -> RuleSet<Call, ManualClock> {
    let extractors = Extractors::new()
        .key(Key::new("user", |call: &Call, key| call.user.hash(key)))
        .and_then(|them| {
            them.key(Key::new("endpoint", |call: &Call, key| {
                call.endpoint.hash(key);
            }))
        })
        .expect("names of their own");
    RuleSetBuilder::from_file(package(file), &extractors)
        .expect(file)
        .build_with(ManualClock::new(), [1, 2, 3, 4])
        .expect(file)
}

/// The examples: two a second for a user, 50 in ten seconds and 100 in a minute for an endpoint, in every format.
#[test]
fn the_examples_have_the_same_rules_in_every_format() {
    for file in [
        "examples/rules.toml",
        "examples/rules.json",
        "examples/rules.yaml",
    ] {
        let rules = example(file);
        let refused_by = |user, endpoint| match rules.check(&Call { user, endpoint }) {
            Ok(_) => Vec::new(),
            Err(denied) => denied
                .violations()
                .map(|violation| format!("{} {}", violation.rule, violation.quota))
                .collect(),
        };
        for _ in 0..2 {
            assert!(refused_by(1, "/a").is_empty(), "{file}");
        }
        assert_eq!(refused_by(1, "/a"), ["user 2/1s"], "{file}");
        // Denied requests were charged to no rule: 48 permits are left for other users.
        for user in 2..50 {
            assert!(refused_by(user, "/a").is_empty(), "{file}: user {user}");
        }
        assert_eq!(refused_by(51, "/a"), ["endpoint 50/10s"], "{file}");
        assert!(refused_by(51, "/b").is_empty(), "{file}");
        rules.clock().advance(Duration::from_secs(12));
        for user in 100..150 {
            assert!(refused_by(user, "/a").is_empty(), "{file}: user {user}");
        }
        rules.clock().advance(Duration::from_secs(12));
        assert_eq!(refused_by(200, "/a"), ["endpoint 100/1min"], "{file}");
        let found = rules.counts().map(|(rule, _)| rule).collect::<Vec<_>>();
        assert_eq!(found, ["user", "endpoint"]);
    }
}

#[test]
fn a_reload_keeps_the_counts_and_an_error_keeps_the_rules() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rules.toml");
    let write = |quota: &str| {
        fs::write(&path, format!("[[rules]]\nname = 'all'\nquota = '{quota}'\n")).expect("a file");
    };
    write("3/s");
    let rules = RuleSetBuilder::from_file(&path, &extractors()).expect("rules");
    let live = LiveRules::new(
        rules
            .build_with(ManualClock::new(), [1, 2, 3, 4])
            .expect("a rule set"),
    );
    let admitted = || {
        (0..10)
            .filter(|_| live.load().check(&Request::default()).is_ok())
            .count()
    };
    assert_eq!(admitted(), 3);
    write("5/s");
    assert_eq!(live.reload(&path, &extractors()).expect("rules"), Reloaded::Done);
    assert_eq!(admitted(), 2);
    write("5/fortnight");
    let error = live.reload(&path, &extractors()).expect_err("no quota");
    assert!(
        matches!(&error, ReloadError::File(error) if error.position() == Some((3, 9))),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .starts_with(&format!("{}:3:9: rule \"all\": invalid quota", path.display()))
    );
    live.load().clock().advance(Duration::from_secs(2));
    assert_eq!(admitted(), 5);
}

#[test]
fn the_extension_gives_the_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let read = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        RuleSetBuilder::from_file(&path, &extractors())
    };
    for (name, text) in [
        ("a/rules.toml", "rules = []"),
        ("rules.d/a.b.Json", "{\"rules\": []}"),
        ("x.YAML", "rules: []"),
        ("x.yml", "rules: []"),
    ] {
        assert!(read(name, text).is_ok(), "{name}");
    }
    for name in ["toml", ".toml", "rules.toml.bak", "rules.toml~", "json/rules"] {
        let error = read(name, "rules = []").expect_err(name).to_string();
        assert!(error.contains(": invalid format: "), "{error}");
    }
}
