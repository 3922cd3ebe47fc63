//! Each field: a rule from a file decides as a rule that is built in code, and not as a rule without the field.

use core::time::Duration;

use ringgate::keyed::OnFull;
use ringgate::rules::kind::AnyKind;
use ringgate::rules::{Condition, Cost, FileFormat, RuleAlgorithm, RuleSetBuilder, TierOf};
use ringgate::{Key, LiveRules, ManualClock, Quota, Rule};

use super::{Request, json_of, read, yaml_of};
use crate::random::Random;

const USERS: [&str; 8] = ["ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal"];

/// All observable results of a long history of requests, with fixed seeds.
fn transcript(rules: &RuleSetBuilder<Request>) -> Vec<String> {
    let rules = rules
        .build_with(ManualClock::new(), [1, 2, 3, 4])
        .expect("a rule set");
    let mut seen = vec![format!("{} states", rules.states())];
    let mut random = Random::new(1);
    for _ in 0..3_000 {
        rules.clock().advance(Duration::from_millis(random.below(60)));
        let request = Request {
            user: random.one_of(&USERS),
            number: random.below(300),
            bytes: 1 + random.below(3),
            upload: random.one_in(3),
            plan: random.one_of(&[None, Some("free"), Some("paid"), Some("else")]),
        };
        let decided = match rules.check(&request) {
            Ok(_) => "admitted".to_owned(),
            Err(denied) => {
                let by = denied
                    .violations()
                    .map(|by| format!("{} {} {}", by.rule, by.quota, by.limit));
                format!("{:?} {:?}", denied.retry_after(), by.collect::<Vec<_>>())
            }
        };
        let peeks = rules.peek(&request).map(|peek| {
            format!(
                "{} {} {} {}",
                peek.rule(),
                peek.status().permits,
                peek.remaining(),
                peek.status().is_enforced
            )
        });
        seen.push(format!("{decided} {:?}", peeks.collect::<Vec<_>>()));
    }
    seen.push(format!("{:?}", rules.counts().collect::<Vec<_>>()));
    seen
}

fn user() -> Key<Request> {
    Key::text("user", |request: &Request| Some(request.user))
}

fn number() -> Key<Request> {
    Key::value("number", |request: &Request| Some(request.number))
}

fn quota(text: &str) -> Quota {
    text.parse().expect("a quota")
}

fn rule(quotas: &str) -> Rule<Request> {
    Rule::new("it", quota(quotas))
}

fn only<K: Into<AnyKind>>(rule: Rule<Request, K>) -> RuleSetBuilder<Request> {
    RuleSetBuilder::new().rule(rule)
}

/// Reads the rule in every format, as the TOML states it.
#[track_caller]
fn means<K: Into<AnyKind>>(toml: &str, built: Rule<Request, K>, without: Rule<Request, K>) {
    means_each(toml, &json_of(toml), &yaml_of(toml), built, without);
}

/// Reads the rule in every format. The JSON text is also read as YAML.
#[track_caller]
fn means_each<K: Into<AnyKind>>(
    toml: &str,
    json: &str,
    yaml: &str,
    built: Rule<Request, K>,
    without: Rule<Request, K>,
) {
    let expected = transcript(&only(built));
    assert!(
        expected != transcript(&only(without)),
        "{toml:?} makes no difference"
    );
    let json = format!("{{\"rules\": [{{\"name\": \"it\", {json}}}]}}");
    for (format, text) in [
        (FileFormat::Toml, format!("[[rules]]\nname = 'it'\n{toml}")),
        (FileFormat::Json, json.clone()),
        (FileFormat::Yaml, json),
        (FileFormat::Yaml, format!("rules:\n- name: it\n  {yaml}")),
    ] {
        let found = transcript(&read(format, &text));
        assert!(
            found == expected,
            "{format} decides otherwise than the code:\n{text}"
        );
    }
}

#[test]
fn quotas_are_read() {
    means("quota = '5/s'", rule("5/s"), rule("5/2s"));
    let two = rule("5/s").also(quota("9/4s"));
    means("quotas = ['5/s', '9/4s']", two, rule("5/s"));
}

#[test]
fn limits_in_flight_are_read() {
    let in_flight = |limit| Rule::in_flight("it", limit);
    means("in_flight = 5", in_flight(5), in_flight(6));
    let rate = || rule("5/s").by(&user()).into_any();
    for (word, slots) in [
        ("admit", in_flight(5).by(&user()).admit_on_full()),
        ("deny", in_flight(5).by(&user())),
    ] {
        let toml = format!("in_flight = 5\nkey = 'user'\non_full = '{word}'");
        means(&toml, slots.into_any(), rate());
    }
}

#[test]
fn algorithms_are_read() {
    use RuleAlgorithm::{Classic, Counter, Even, Fixed, Gcra, Log};
    let by_user = || rule("30/s").by(&user());
    for (name, algorithm) in [
        ("classic", Classic),
        ("even", Even),
        ("fixed", Fixed),
        ("log", Log),
        ("gcra", Gcra),
    ] {
        let toml = format!("quota = '12/s'\nalgorithm = '{name}'");
        means(&toml, rule("12/s").algorithm(algorithm), rule("12/s"));
    }
    let counter = || by_user().algorithm(Counter);
    let [counts, slides] = [
        "quota = '12/s'\nalgorithm = 'counter'",
        "quota = '30/s'\nkey = 'user'\nalgorithm = 'sliding-window'",
    ];
    let of_12 = |algorithm| rule("12/s").algorithm(algorithm);
    for (toml, built, without) in [
        (counts, of_12(Counter), of_12(Classic)),
        (slides, by_user(), counter()),
        // A sliding window with cells is a counter.
        (&format!("{slides}\ncells = 60"), counter(), by_user()),
        ("quota = '12/s'\ncells = 2", rule("12/s").cells(2), rule("12/s")),
    ] {
        means(toml, built, without);
    }
    let bucket = || rule("12/s").algorithm(Gcra);
    means_each(
        "quota = '12/s'\nalgorithm = 'gcra'\nburst = 0x3",
        r#""quota": "12/s", "algorithm": "gcra", "burst": 3"#,
        "quota: 12/s\n  algorithm: gcra\n  burst: 0x3",
        bucket().burst(3),
        bucket(),
    );
}

#[test]
fn names_refer_to_the_extractors_of_the_program() {
    let bytes = Cost::new("bytes", |request: &Request| request.bytes);
    let upload = Condition::new("upload", |request: &Request| request.upload);
    for (toml, built) in [
        ("key = 'user'", rule("20/s").by(&user())),
        ("cost = 'bytes'", rule("20/s").cost(&bytes)),
        ("when = 'upload'", rule("20/s").when(&upload)),
    ] {
        means(&format!("quota = '20/s'\n{toml}"), built, rule("20/s"));
    }
    means_each(
        "quota = '9/s'\n[rules.tiers]\nby = 'plan'\nlimits = { free = 3, paid = 30 }",
        r#""quota": "9/s", "tiers": {"by": "plan", "limits": {"free": 3, "paid": 30}}"#,
        "quota: 9/s\n  tiers:\n    by: plan\n    limits:\n      free: 3\n      paid: 30",
        rule("9/s")
            .tier_of(&TierOf::new("plan", |request: &Request| request.plan))
            .tier("free", 3)
            .tier("paid", 30),
        rule("9/s"),
    );
}

#[test]
fn capacity_and_overflow_policy_are_read() {
    use OnFull::{Admit, Deny, Forget, Share};
    let small = || rule("2/5s").by(&number()).capacity(64);
    let toml = "quota = '2/5s'\nkey = 'number'\ncapacity = 64";
    means(toml, small(), rule("2/5s").by(&number()));
    for (word, on_full, other) in [
        ("deny", Deny, Share),
        ("admit", Admit, Share),
        ("forget", Forget, Share),
        ("share", Share, Deny),
    ] {
        let toml = format!("{toml}\non_full = '{word}'");
        means(&toml, small().on_full(on_full), small().on_full(other));
    }
}

#[test]
fn enforcement_is_read() {
    let by_number = || rule("1/s").by(&number());
    means("quota = '5/s'\nshadow = true", rule("5/s").shadow(), rule("5/s"));
    means("quota = '5/s'\nshadow = false", rule("5/s"), rule("5/s").shadow());
    means_each(
        "quota = '1/s'\nkey = 'number'\nenforce = '12.5 %'",
        r#""quota": "1/s", "key": "number", "enforce": "12.5%""#,
        "quota: 1/s\n  key: number\n  shadow: false\n  enforce: 12.5%",
        by_number().enforce_percent(12.5),
        by_number(),
    );
}

#[test]
fn lists_of_keys_are_read() {
    let by_user = || rule("1/s").by(&user());
    means(
        "quota = '1/s'\nkey = 'user'\nallow = ['ann', 'bob']\ndeny = ['cat']",
        by_user().allow("ann").allow("bob").deny("cat"),
        by_user(),
    );
    // The key parses these values as numbers.
    let by_number = || rule("1/s").by(&number());
    means_each(
        "quota = '1/s'\nkey = 'number'\ndeny = ['7', '0042']",
        r#""quota": "1/s", "key": "number", "deny": ["7", "0042"]"#,
        "quota: 1/s\n  key: number\n  deny: ['7', \"0042\"]",
        by_number().deny(7_u64).deny(42_u64),
        by_number(),
    );
}

#[test]
fn rules_with_one_key_share_a_state() {
    let states = |key: &str| {
        let text = format!(
            "rules:\n- {{ name: a, quota: 5/s, key: user }}\n- {{ name: b, quota: 50/min, key: {key} }}\n"
        );
        read(FileFormat::Yaml, &text)
            .build_with(ManualClock::new(), [1, 2, 3, 4])
            .expect("a rule set")
            .states()
    };
    assert_eq!((states("user"), states("number")), (1, 2));
}

#[test]
fn the_documentation_of_a_file_names_each_algorithm() {
    let docs = include_str!("../../src/rules/config/mod.rs");
    let row = docs.lines().find(|line| line.contains("/// algorithm = "));
    for (name, _) in RuleAlgorithm::NAMES {
        assert!(
            row.is_some_and(|row| row.contains(&format!("\"{name}\""))),
            "{name}"
        );
    }
}

#[test]
fn a_renamed_rule_keeps_its_counts() {
    let old = read(FileFormat::Toml, "[[rules]]\nname = 'old'\nquota = '3/s'");
    let old = old.build_with(ManualClock::new(), [1, 2, 3, 4]).expect("rules");
    let live = LiveRules::new(old);
    let admits = || live.load().check(&Request::default()).is_ok();
    let admitted = || (0..9).filter(|_| admits()).count();
    assert_eq!(admitted(), 3);
    let toml = "[[rules]]\nname = 'new'\nrenamed_from = 'old'\nquota = '3/s'";
    let json = r#"{"rules": [{"name": "newer", "renamed_from": "new", "quota": "3/s"}]}"#;
    let yaml = "rules: [{ name: newest, renamed_from: newer, quota: 3/s }]";
    let other = "rules: [{ name: other, quota: 3/s }]";
    for (format, text, more) in [
        (FileFormat::Toml, toml, 0),
        (FileFormat::Json, json, 0),
        (FileFormat::Yaml, yaml, 0),
        (FileFormat::Yaml, other, 3),
    ] {
        live.store(&read(format, text)).expect("rules");
        assert_eq!(admitted(), more, "{text}");
    }
}

#[test]
fn other_notations_of_yaml_are_read() {
    let same = transcript(&only(rule("5/s").by(&user()).deny("cat").deny("7")));
    for text in [
        "rules:\n- name: &name it\n  quota: \"5/s\"\n  key: 'user'\n  deny:\n  - cat\n  - !!str 7\n",
        "---\nrules:\n- quota: >-\n    5/s\n  name: it\n  key: user\n  deny: [cat, '7']\n...\n",
        "%YAML 1.2\n---\nrules: [{ name: it, quota: 5/s, key: user, \"deny\": [cat, \"\\x37\"] }]\n",
    ] {
        assert!(transcript(&read(FileFormat::Yaml, text)) == same, "{text}");
    }
    // Aliases repeat a value.
    let rules = read(
        FileFormat::Yaml,
        "rules:\n- { name: a, quota: &much 5/s, key: user, allow: &users [ann] }\n- { name: b, quota: *much, key: number, \
         deny: ['1'] }\n- { name: c, quota: *much, key: user, allow: *users }\n",
    );
    assert_eq!(rules.rules().len(), 3);
}

/// The block of a rule has the settings of the file, in each format.
#[test]
fn blocks_are_read() {
    let text = "[[rules]]\nname = 'a'\nquota = '1/h'\nkey = 'user'\n\
                [rules.block]\nafter = '2/min'\nfor = '10s'\nfactor = 3\nceiling = '1min'\nforgive_after = '1h'\nextend = true\n";
    let read = |text: &str| RuleSetBuilder::from_text(text, FileFormat::Toml, &super::extractors());
    let rules = read(text).expect("rules");
    let expected = ringgate::rules::Block::new(Quota::per_minute(2).unwrap(), Duration::from_secs(10))
        .escalate(3, Duration::from_secs(60), Duration::from_secs(3600))
        .extend_on_retry();
    assert_eq!(rules.rules()[0].view().block, Some(&expected));
    for (given, field) in [
        ("factor = 3\n", ""),
        ("ceiling = '1min'", "ceiling = '1s'"),
        ("ceiling = '1min'\n", ""),
        ("extend = true", "extend = 1"),
        ("extend = true", "extends = true"),
    ] {
        let invalid = text.replace(given, field);
        assert!(read(&invalid).is_err(), "{invalid}");
    }
}
