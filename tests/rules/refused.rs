//! Rules that are refused: one error names every mistake in all of them.

use super::*;
use ringgate::rules::{AnyRule, Mode};

/// The rule and the field of each mistake.
fn mistakes(error: &RuleError) -> Vec<(&str, &'static str)> {
    assert!(error.others.iter().all(|other| other.others.is_empty()));
    let all = core::iter::once(error).chain(&error.others);
    all.map(|error| (error.rule.as_str(), error.error.field))
        .collect()
}

fn built(
    rules: impl IntoIterator<Item = AnyRule<Request>>,
) -> Result<RuleSet<Request, ManualClock>, RuleError> {
    set(rules).build_with(ManualClock::new(), [1, 2, 3, 4])
}

/// The fields of blocks with each setting in its range and out of it.
fn blocks() -> Vec<(AnyRule<Request>, &'static [&'static str])> {
    let block = |text, seconds| Block::new(quota(text), Duration::from_secs(seconds));
    let escalating = |factor, ceiling, forgive_after| {
        let (ceiling, forgive_after) = (Duration::from_secs(ceiling), Duration::from_secs(forgive_after));
        block("1/s", 10).escalate(factor, ceiling, forgive_after)
    };
    let blocks = [
        (block("65535/s", 1), &[][..]),
        (block("65536/s", 1), &["after"]),
        (block("1/999ms", 1), &["after"]),
        (block("1/s", 0), &["for"]),
        (block("1/s", 367 * 86_400), &["for"]),
        (escalating(2, 10, 0), &[]),
        (escalating(0, 10, 0), &["factor"]),
        (escalating(1, 20, 0), &["factor"]),
        (escalating(2, 9, 0), &["ceiling"]),
        (escalating(2, 10, 367 * 86_400), &["forgive_after"]),
    ];
    let of = |(at, (block, fields)): (usize, (Block, _))| {
        let rule = Rule::new(format!("block {at}"), quota("10/s"));
        (rule.by(&by_user()).block(block).into_any(), fields)
    };
    blocks.into_iter().enumerate().map(of).collect()
}

/// The fields of rules that limit requests in flight.
fn slots_in_flight() -> Vec<(AnyRule<Request>, &'static [&'static str])> {
    let slots = |name: &'static str, limit| Rule::in_flight(name, limit);
    let tiers = |limit| slots("slots 3", 1).tier_of(&by_plan()).tier("big", limit);
    Vec::from([
        (slots("slots 0", 0).into_any(), &["in_flight"][..]),
        (slots("slots 1", 1 << 20).into_any(), &["in_flight"]),
        (slots("slots 2", (1 << 20) - 1).admit_on_full().into_any(), &[]),
        (tiers(1 << 20).into_any(), &["tiers"]),
    ])
}

#[test]
fn one_error_names_every_mistake_of_every_rule() {
    let minute = Duration::from_secs(60);
    let keyed = |name| rule(name, "10/s").by(&by_user());
    let tiers = |rule: Rule<Request>| rule.tier_of(&by_plan()).tier("x", 0).tier("x", 5);
    let nameless = rule("", "10/s").renamed_from("valid").burst(2);
    let (period, pending) = (2 * minute, 0);
    let sync = Mode::Sync { period, pending };
    let block = Block::new(quota("65536/s"), Duration::ZERO);
    let block = block.escalate(0, minute, 367 * 1440 * minute);
    let shadow = |name, algorithm| {
        let rule = Rule::new(name, quota("10/s")).also(quota("5/min"));
        rule.algorithm(algorithm).shadow()
    };
    let rates = [
        (rule("valid", "10/s"), &[][..]),
        (nameless, &["name", "renamed_from", "burst"]),
        (keyed("mode").mode(sync), &["period", "pending"]),
        (
            keyed("block").block(block),
            &["after", "for", "factor", "forgive_after"],
        ),
        (
            rule("key", "10/s")
                .enforce_percent(101.0)
                .capacity(0)
                .allow(1)
                .deny(2)
                .block(Block::new(quota("1/s"), minute)),
            &["enforce", "enforce", "capacity", "block", "allow", "deny"],
        ),
        (
            keyed("nan").capacity(0).enforce_percent(f64::NAN),
            &["enforce", "capacity"],
        ),
        (keyed("percent").enforce_percent(-0.1), &["enforce"]),
        (keyed("tier_of").tier_of(&by_plan()), &["tiers"]),
        (tiers(keyed("tiers")), &["tiers", "limit"]),
        (
            tiers(
                rule("log", "10/s")
                    .also(quota("5/min"))
                    .algorithm(RuleAlgorithm::Log)
                    .cells(5)
                    .burst(1),
            )
            .limit_by(|_| None),
            &["cells", "burst", "tiers", "limit_by", "tiers", "tiers"],
        ),
        (
            rule("gcra", "10/s")
                .algorithm(RuleAlgorithm::Gcra)
                .cells(5)
                .burst(0)
                .tier("x", 1),
            &["cells", "tiers", "burst"],
        ),
        (
            rule("even", "10/s")
                .also(quota("20/s"))
                .algorithm(RuleAlgorithm::Even)
                .cells(0)
                .shadow(),
            &["quotas", "cells"],
        ),
        // Several quotas of a rule that is not enforced for all keys must share a state.
        (shadow("buckets", RuleAlgorithm::Gcra), &["quotas"]),
        (shadow("logs", RuleAlgorithm::Log), &["quotas"]),
        (shadow("shares", RuleAlgorithm::Even), &["quotas"]),
        (shadow("cells", RuleAlgorithm::Counter), &[]),
    ];
    let rates = rates.into_iter().map(|(rule, fields)| (rule.into_any(), fields));
    let rules: Vec<_> = rates.chain(blocks()).chain(slots_in_flight()).collect();
    let mut all = Vec::new();
    for (rule, fields) in &rules {
        // The other rule has the name that a rule is renamed from.
        let named = Rule::new("valid", quota("1/s")).into_any();
        let others = (rule.name() != "valid").then_some(named);
        match built(others.into_iter().chain([rule.clone()])) {
            Ok(_) => assert!(fields.is_empty(), "{}", rule.name()),
            Err(error) => {
                let found: Vec<_> = mistakes(&error).into_iter().map(|(_, field)| field).collect();
                assert_eq!(found, *fields, "{error}");
            }
        }
        all.extend(fields.iter().map(|field| (rule.name(), *field)));
    }
    let rules: Vec<_> = rules.iter().map(|(rule, _)| rule.clone()).collect();
    assert_eq!(mistakes(&super::refused(rules)), all);
}

/// Names that are equal, and more rules than a set may have.
#[test]
fn too_many_rules_and_equal_names_are_mistakes() {
    let twice = super::refused([rule("a", "1/s"), rule("a", "2/s")]);
    assert_eq!(mistakes(&twice), [("a", "name")]);
    let many = (0..=1000).map(|number| Rule::new(format!("{number}"), quota("1/s")));
    assert_eq!(super::refused(many).error.field, "rules");
}

/// A rule set of a reload is refused with every mistake, and so is a rule with a calendar and the default clock.
#[test]
fn a_reload_names_every_mistake() {
    let (live, _) = live([rule("a", "10/10s")]);
    let wrong = set([rule("a", "20/10s").burst(1), rule("b", "1/s").cells(0)]);
    match live.store(&wrong) {
        Err(ringgate::rules::ReloadError::Rules(error)) => {
            assert_eq!(mistakes(&error), [("a", "burst"), ("b", "cells")]);
        }
        other => panic!("{other:?}"),
    }
    // The old rules stay in force.
    assert_eq!(
        (live.load().counts().count(), admissions(&live, &user(1), 100)),
        (1, 10)
    );
}

/// The default clock is one of the mistakes of a rule with a calendar.
#[cfg(all(feature = "calendar", feature = "quanta", not(miri)))]
#[test]
fn the_default_clock_of_a_calendar_is_refused_with_the_other_mistakes() {
    let day = Rule::calendar("day", "5/day".parse().expect("a calendar"));
    let rules = set([day.clone()])
        .rule(rule("b", "1/s").cells(0))
        .rule(day.renamed_from("b"));
    let error = rules.build().expect_err("mistakes");
    assert_eq!(
        mistakes(&error),
        [
            ("day", "clock"),
            ("b", "cells"),
            ("day", "name"),
            ("day", "renamed_from"),
            ("day", "clock")
        ]
    );
}
