//! Rules that a store does not serve: one error names everything in all of them.

use alloc::sync::Arc;
use core::hash::Hash;
use core::time::Duration;

use ringgate::rules::kind::AnyKind;
use ringgate::rules::{Block, RuleAlgorithm, TierOf};
use ringgate::shared::{CounterStore, MemoryStore, Mode, SharedLimiter, SharedRules, SharedRulesBuilder};
use ringgate::{Key, Quota, Rule};

use crate::plain::Plain;
use crate::user;

fn rule(name: &'static str) -> Rule<str> {
    Rule::new(name, "10/min".parse().expect("a quota"))
}

/// The rule and the field of each part of the error.
fn parts<K: Into<AnyKind>>(
    store: Arc<dyn CounterStore>,
    rules: impl IntoIterator<Item = Rule<str, K>>,
) -> Vec<(String, &'static str)> {
    let rules = rules
        .into_iter()
        .fold(SharedRules::builder(), |builder, rule| builder.rule(rule));
    parts_of(rules, store)
}

fn parts_of(rules: SharedRulesBuilder<str>, store: Arc<dyn CounterStore>) -> Vec<(String, &'static str)> {
    let Err(error) = rules.build(store) else {
        return Vec::new();
    };
    let text = error.to_string();
    for other in &error.others {
        assert!(
            other.others.is_empty() && text.contains(&format!("; {other}")),
            "{text}"
        );
    }
    let first = (error.rule.clone(), error.error.field);
    let others = error
        .others
        .iter()
        .map(|other| (other.rule.clone(), other.error.field));
    core::iter::once(first).chain(others).collect()
}

fn unuser() -> Key<str> {
    Key::new("user", |user: &str, key| user.hash(key))
}

#[tokio::test]
async fn one_error_names_every_rule_that_no_store_serves() {
    let (period, lease) = (Duration::from_millis(100), Mode::Lease { permits: 5 });
    let quota = |text: &str| -> Quota { text.parse().expect("a quota") };
    let rates = [
        (rule("served"), &[][..]),
        (rule("key").by(&unuser()), &["key"]),
        (rule("classic").algorithm(RuleAlgorithm::Classic), &["algorithm"]),
        (
            rule("even").algorithm(RuleAlgorithm::Even).by(&unuser()),
            &["key", "algorithm"],
        ),
        (rule("cells").cells(1001), &["cells"]),
        (rule("short").also(quota("10/999us")), &["window"]),
        (
            rule("log").also(quota("100001/h")).algorithm(RuleAlgorithm::Log),
            &["limit"],
        ),
        (
            rule("log-cells").algorithm(RuleAlgorithm::Log).cells(2),
            &["cells"],
        ),
        (rule("limit-by").limit_by(|_| Some(3)), &["limit_by"]),
        (
            rule("both").limit_by(|_| Some(3)).by(&unuser()).cells(1001),
            &["limit_by", "key", "cells"],
        ),
        (
            rule("block")
                .by(&user())
                .mode(lease)
                .block(Block::new(quota("3/min"), Duration::from_secs(60))),
            &["mode"],
        ),
        (
            rule("local")
                .by(&unuser())
                .mode(Mode::Local)
                .algorithm(RuleAlgorithm::Even),
            &[],
        ),
        (
            rule("last").by(&user()).mode(Mode::Sync { period, pending: 5 }),
            &[],
        ),
    ];
    let slots = Rule::in_flight("slots", 5).by(&user()).mode(lease);
    let rates = rates.map(|(rule, fields)| (rule.into_any(), fields));
    let rules = rates.into_iter().chain([(slots.into_any(), &["mode"][..])]);
    let rules: Vec<_> = rules.collect();
    let store = || Arc::new(MemoryStore::new());
    let mut all = Vec::new();
    for (rule, fields) in &rules {
        let expected: Vec<_> = fields
            .iter()
            .map(|field| (rule.name().to_owned(), *field))
            .collect();
        assert_eq!(parts(store(), [rule.clone()]), expected, "{}", rule.name());
        all.extend(expected);
    }
    let rules: Vec<_> = rules.into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(parts(store(), rules.clone()), all);
    // The order of the rules is the order of the errors.
    let backwards = parts(store(), rules.into_iter().rev());
    assert_eq!((backwards.len(), &*backwards[0].0), (all.len(), "slots"));
}

/// A feature that one store has and another lacks is a part of the same error.
#[tokio::test]
async fn one_error_names_every_rule_that_this_store_does_not_serve() {
    let (period, lease) = (Duration::from_millis(100), Mode::Lease { permits: 5 });
    let block = Block::new("3/min".parse().expect("a quota"), Duration::from_secs(60));
    let rules = [
        rule("plain").by(&user()).into_any(),
        rule("leased").by(&user()).mode(lease).into_any(),
        Rule::in_flight("slots", 5).by(&user()).into_any(),
        rule("block").by(&user()).block(block).into_any(),
        rule("synced")
            .by(&unuser())
            .mode(Mode::Sync { period, pending: 5 })
            .into_any(),
        Rule::in_flight("own slots", 5)
            .by(&user())
            .mode(Mode::Local)
            .into_any(),
        rule("own").mode(Mode::Local).into_any(),
    ];
    let name = |(rule, field): &(&str, &'static str)| ((*rule).to_owned(), *field);
    let expected = [
        ("leased", "mode"),
        ("slots", "mode"),
        ("block", "block"),
        ("synced", "key"),
        ("synced", "mode"),
    ];
    let expected: Vec<_> = expected.iter().map(name).collect();
    assert_eq!(parts(Arc::new(Plain::default()), rules.clone()), expected);
    assert_eq!(
        parts(Arc::new(MemoryStore::new()), rules),
        [name(&("synced", "key"))]
    );
}

/// A mistake of a rule and what its store does not serve are parts of one error, and each field is named once.
#[tokio::test]
async fn one_error_names_mistakes_and_what_no_store_serves() {
    let block = Block::new("3/min".parse().expect("a quota"), Duration::from_millis(1));
    let rules = [
        (rule("cells").cells(5000), &["cells"][..]),
        (rule("burst").burst(3).by(&unuser()), &["burst", "key"]),
        (rule("block").block(block), &["for", "block"]),
        (
            rule("fixed").algorithm(RuleAlgorithm::Fixed).cells(3).capacity(5),
            &["cells", "capacity"],
        ),
        (
            rule("classic")
                .algorithm(RuleAlgorithm::Classic)
                .burst(1)
                .limit_by(|_| None),
            &["burst", "limit_by", "algorithm"],
        ),
        (
            rule("lease")
                .mode(Mode::Lease { permits: 0 })
                .algorithm(RuleAlgorithm::Fixed),
            &["permits", "mode"],
        ),
        (rule("no cells").cells(0), &["cells"]),
        (rule("no key").allow("backup"), &["allow"]),
        (rule("percent").by(&user()).enforce_percent(101.0), &["enforce"]),
        // A share of zero is zero, as it is of a rule of one process.
        (
            rule("zero burst").algorithm(RuleAlgorithm::Gcra).burst(0),
            &["burst"],
        ),
        (
            rule("zero tier")
                .tier_of(&TierOf::new("plan", |_| None))
                .tier("x", 0),
            &["limit"],
        ),
        // The longest log that a store keeps.
        (
            Rule::new("long", "100000/min".parse().expect("a quota")).algorithm(RuleAlgorithm::Log),
            &[],
        ),
        // A store keeps a log with tiers, and this node does not decide by it.
        (
            rule("log")
                .algorithm(RuleAlgorithm::Log)
                .tier_of(&TierOf::new("plan", |_| None))
                .tier("x", 5),
            &[],
        ),
    ];
    let expected: Vec<_> = rules
        .iter()
        .flat_map(|(rule, fields)| fields.iter().map(|field| (rule.name().to_owned(), *field)))
        .collect();
    let rules = rules.map(|(rule, _)| rule);
    assert_eq!(parts(Arc::new(MemoryStore::new()), rules), expected);
    let slots = |limit| Rule::in_flight("slots", limit).by(&user());
    let of_plan = TierOf::new("plan", |_: &str| None);
    for (slots, field) in [
        (slots(0), "in_flight"),
        (slots(0).mode(Mode::Local), "in_flight"),
        (slots(1).tier_of(&of_plan).tier("x", 0), "tiers"),
    ] {
        assert_eq!(
            parts(Arc::new(MemoryStore::new()), [slots]),
            [("slots".to_owned(), field)]
        );
    }
    let twice = parts(Arc::new(MemoryStore::new()), [rule("a"), rule("a")]);
    assert_eq!(twice, [("a".to_owned(), "name")]);
}

/// The text of an error says what is accepted instead.
#[tokio::test]
async fn an_error_says_what_is_accepted() {
    let (period, lease) = (Duration::from_millis(100), Mode::Lease { permits: 5 });
    let sync = Mode::Sync { period, pending: 5 };
    let slots = |mode| Rule::in_flight("x", 1).by(&user()).mode(mode).into_any();
    let calendar = |mode| Rule::calendar("x", "5/month".parse().expect("a quota")).mode(mode);
    let calendar = |mode| calendar(mode).into_any();
    let block = Block::new("3/min".parse().expect("a quota"), Duration::from_secs(600));
    let blocked = |mode| rule("x").block(block.clone()).by(&user()).mode(mode).into_any();
    let algorithm = |algorithm| rule("x").algorithm(algorithm).into_any();
    let memory: Arc<dyn CounterStore> = Arc::new(MemoryStore::new());
    let plain: Arc<dyn CounterStore> = Arc::new(Plain::default());
    let of_slots = "Strict or Local for a rule of requests in flight";
    let of_blocks = "Strict for a rule with a block";
    let of_periods = "Strict for fixed windows and calendars in a store";
    let kept = "SlidingWindow, Counter, Fixed, Log or Gcra in a store";
    for (rule, store, given, expected) in [
        (slots(lease), &memory, "mode: Lease { permits: 5 }", of_slots),
        (
            slots(Mode::Strict),
            &plain,
            "mode: Strict",
            "Local over a store that keeps no slots in flight",
        ),
        (blocked(Mode::Local), &memory, "mode: Local", of_blocks),
        (blocked(lease), &memory, "mode: Lease { permits: 5 }", of_blocks),
        (
            blocked(sync),
            &memory,
            "mode: Sync { period: 100ms, pending: 5 }",
            of_blocks,
        ),
        (
            rule("x").block(block.clone()).into_any(),
            &memory,
            "block: given for a rule without a key",
            "a rule with a key",
        ),
        (
            blocked(Mode::Strict),
            &plain,
            "block: given for a store without blocks",
            "a store that keeps blocks, or no block",
        ),
        (
            calendar(Mode::Local),
            &memory,
            "calendar: \"5/month, UTC\"",
            "the mode Strict, or a rule of a `RuleSet` or `LiveRules` of each process",
        ),
        (calendar(lease), &memory, "mode: Lease { permits: 5 }", of_periods),
        (
            calendar(sync),
            &memory,
            "mode: Sync { period: 100ms, pending: 5 }",
            of_periods,
        ),
        (
            algorithm(RuleAlgorithm::Classic),
            &memory,
            "algorithm: Classic",
            kept,
        ),
        (algorithm(RuleAlgorithm::Even), &memory, "algorithm: Even", kept),
    ] {
        let built = SharedRules::builder().rule(rule).build(Arc::clone(store));
        let error = built.expect_err(given).to_string();
        assert_eq!(
            error,
            format!("rule \"x\": invalid {given} (expected {expected})")
        );
    }
}

/// The mistakes in the settings come first, and name the first rule that needs leases.
#[tokio::test]
async fn one_error_names_mistakes_in_settings_and_in_rules() {
    let lease = Mode::Lease { permits: 0 };
    let builder = || {
        let builder = SharedRules::<str>::builder();
        let builder = builder.term(Duration::from_millis(9)).leases(0);
        builder.period(Duration::from_micros(999))
    };
    let owned = |(rule, field): (&str, &'static str)| (rule.to_owned(), field);
    let wrong = |rule| ["term", "period", "leases"].map(|field| (rule, field));
    let store = || Arc::new(MemoryStore::new());
    let rules = builder()
        .rule(rule("cells").cells(5000))
        .rule(rule("lease").by(&unuser()).mode(lease));
    let of_rules = [("cells", "cells"), ("lease", "permits"), ("lease", "key")];
    let expected: Vec<_> = wrong("lease").into_iter().chain(of_rules).map(owned).collect();
    assert_eq!(parts_of(rules, store()), expected);
    // No rule needs leases.
    let expected = wrong("").map(owned);
    assert_eq!(parts_of(builder().rule(rule("strict")), store()), expected);
    // No period is right with this term. One that is right with the least term is no mistake.
    let builder = SharedRules::<str>::builder().term(Duration::ZERO);
    let builder = builder.period(Duration::from_millis(1));
    let expected = [owned(("", "term"))];
    assert_eq!(parts_of(builder.rule(rule("strict")), store()), expected);
}

#[tokio::test]
async fn the_numbers_of_leases_have_ranges() {
    let (millis, second) = (Duration::from_millis, Duration::from_secs(1));
    let limiter = || {
        let builder = SharedLimiter::builder("x", "1/s".parse().expect("a quota"));
        builder.term(millis(400)).period(millis(20))
    };
    for (limiter, field) in [
        (limiter().lease(0), "permits"),
        (limiter().lease(1_000_001), "permits"),
        (limiter().sync(Duration::ZERO, 5), "period"),
        (limiter().sync(61 * second, 5), "period"),
        (limiter().sync(second, 0), "pending"),
        (limiter().lease(5).term(millis(9)), "term"),
        // More than a quarter of the term.
        (limiter().lease(5).period(millis(101)), "period"),
        (limiter().lease(5).leases(0), "leases"),
    ] {
        let error = limiter.build(Arc::new(MemoryStore::new())).expect_err(field);
        assert_eq!((&*error.rule, error.error.field), ("x", field));
    }
}
