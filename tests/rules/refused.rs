//! Rules that are refused: one error names every mistake in all of them.

use super::*;
use ringgate::rules::Mode;

/// The rule and the field of each mistake.
fn mistakes(error: &RuleError) -> Vec<(&str, &'static str)> {
    assert!(error.others.iter().all(|other| other.others.is_empty()));
    let all = core::iter::once(error).chain(&error.others);
    all.map(|error| (error.rule.as_str(), error.error.field))
        .collect()
}

fn built(rules: impl IntoIterator<Item = Rule<Request>>) -> Result<RuleSet<Request, ManualClock>, RuleError> {
    set(rules).build_with(ManualClock::new(), [1, 2, 3, 4])
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
    let rules = [
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
    ];
    let mut all = Vec::new();
    for (rule, fields) in &rules {
        // The other rule has the name that a rule is renamed from.
        let named = Rule::new("valid", quota("1/s"));
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
