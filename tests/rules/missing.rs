//! Requests without a key, and the retry time of one quota among several.

use super::*;
use proptest::prelude::*;

/// A key that some requests lack: the plan.
fn by_some_plan(missing: OnMissingKey) -> Key<Request> {
    Key::optional("plan", missing, |request: &Request, key| {
        // The hasher gets the value, which is discarded without a plan.
        request.plan.unwrap_or_default().hash(key);
        request.user.hash(key);
        request.plan.is_some()
    })
}

fn with_plan(plan: Option<&'static str>, id: u64) -> Request {
    user(id).plan(plan)
}

#[test]
fn requests_without_a_key_share_one_budget() {
    let (rules, _) = by_hand([rule("plan", "2/s").by(&by_some_plan(OnMissingKey::Share))]);
    let admits = |request: &Request| rules.check(request).is_ok();
    assert!(admits(&with_plan(None, 1)));
    assert!(admits(&with_plan(None, 2)));
    assert!(!admits(&with_plan(None, 3)));
    assert!(admits(&with_plan(Some(""), 3)));
    let none = with_plan(None, 4);
    assert!(rules.peek(&none).all(|peek| !peek.status().lacks_key));
}

#[test]
fn a_rule_can_skip_requests_without_its_key() {
    let (rules, _) = by_hand([
        rule("plan", "1/s").by(&by_some_plan(OnMissingKey::Skip)),
        rule("all", "3/s"),
    ]);
    let none = with_plan(None, 1);
    for _ in 0..3 {
        assert!(rules.check(&none).is_ok());
    }
    assert_eq!(counts(&rules, "plan").admitted, 0);
    let names: Vec<_> = rules.peek(&none).map(|peek| peek.rule()).collect();
    assert_eq!(names, ["all"]);
    assert!(rules.check(&none).is_err());
}

#[test]
fn a_rule_can_deny_requests_without_its_key() {
    let (rules, _) = by_hand([
        rule("all", "3/s"),
        rule("plan", "9/s").by(&by_some_plan(OnMissingKey::Deny)),
    ]);
    let none = with_plan(None, 1);
    for _ in 0..5 {
        let denied = rules.check(&none).unwrap_err();
        assert_eq!(denied.retry_after(), None);
        let violated: Vec<_> = denied.violations().collect();
        assert!(violated.len() == 1 && &*violated[0].rule == "plan" && violated[0].lacks_key);
    }
    assert_eq!(counts(&rules, "plan").denied, 5);
    for _ in 0..3 {
        assert!(rules.check(&with_plan(Some("free"), 1)).is_ok());
    }
    let other = with_plan(Some("free"), 1);
    let denied = rules.check(&other).unwrap_err();
    assert!(denied.violations().all(|violation| !violation.lacks_key));
}

#[test]
fn a_shadow_rule_denies_no_request_without_its_key() {
    let key = by_some_plan(OnMissingKey::Deny);
    let none = with_plan(None, 1);
    let (rules, _) = by_hand([rule("plan", "9/s").by(&key).shadow()]);
    assert!(rules.check(&none).is_ok());
    assert_eq!(counts(&rules, "plan").shadow_denied, 1);
    // All requests without the key are on one side of the percentage.
    for percent in [0.0, 100.0] {
        let (rules, _) = by_hand([rule("plan", "9/s").by(&key).enforce_percent(percent)]);
        assert_eq!(rules.check(&none).is_err(), percent > 0.0);
    }
}

#[test]
fn a_reservation_knows_whether_anything_was_charged() {
    let (rules, _) = by_hand([rule("plan", "9/s").by(&by_some_plan(OnMissingKey::Skip))]);
    let charged = |request| rules.reserve(&request).expect("room").is_limited();
    assert!(charged(with_plan(Some("free"), 1)));
    assert!(!charged(with_plan(None, 1)));
}

/// A pair of keys is treated as it was told when a part is missing, whatever the part's own treatment is.
#[test]
fn a_pair_of_keys_can_replace_the_treatments_of_its_parts() {
    use OnMissingKey::{Deny, Fail, Share, Skip};
    let plan = |missing| Key::text("plan", |request: &Request| request.plan).on_missing(missing);
    let admitted = |key: &Key<Request>| {
        let (rules, _) = by_hand([rule("pair", "2/s").by(key)]);
        // Requests of one address share a budget, or are denied, or not limited.
        [1, 1, 1, 2, 2, 2].map(|address| rules.check(&with_plan(None, 1).address(address)).is_ok())
    };
    for own in [Share, Deny, Skip, Fail] {
        let expected = |treatment| match treatment {
            Deny | Fail => [false; 6],
            Skip => [true; 6],
            _ => [true, true, false, true, true, false],
        };
        for pair in [plan(own).and(&by_address()), by_address().and(&plan(own))] {
            assert_eq!(admitted(&pair), expected(own), "{own:?}");
            for replaced in [Share, Deny, Skip, Fail] {
                let replaced_key = pair.clone().on_missing(replaced);
                assert_eq!(
                    admitted(&replaced_key),
                    expected(replaced),
                    "{own:?}, {replaced:?}"
                );
            }
            // The request does not have the pair, so it is counted by the second key.
            let or_user = pair.or(&by_user());
            assert_eq!(
                admitted(&or_user),
                [true, true, false, false, false, false],
                "{own:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 300 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A quota has more capacity at its own retry time, and not before, whichever quotas share its state.
    #[test]
    fn a_quota_has_a_retry_time_of_its_own(
        algorithm in select(vec![
            RuleAlgorithm::Counter, RuleAlgorithm::Classic, RuleAlgorithm::Fixed, RuleAlgorithm::Log, RuleAlgorithm::Gcra,
        ]),
        quotas in prop::collection::vec(select(vec!["2/1s", "5/700ms", "9/10s", "20/1min", "3/7ms"]), 1..4),
        steps in prop::collection::vec(0..3_000_u64, 1..12),
        more in 1..3_u64,
    ) {
        let first = rule("rule", quotas[0]).algorithm(algorithm).cost(&by_cost());
        let rules = quotas[1..].iter().fold(first, |rule, text| rule.also(quota(text)));
        let (rules, clock) = by_hand([rules]);
        for step in steps {
            clock.advance(millis(step));
            let _ = rules.check(&user(1));
        }
        let now = clock.now();
        for index in 0..rules.peek(&user(1)).count() {
            let of = |cost| rules.peek(&user(1).cost(cost)).nth(index).expect("a quota").status();
            let (limit, remaining) = (of(1).limit, of(1).remaining);
            let wanted = remaining + more;
            prop_assert_eq!(of(remaining).retry_after, Some(Duration::ZERO));
            let Some(wait) = of(wanted).retry_after else {
                prop_assert!(wanted > limit);
                continue;
            };
            prop_assert!(wanted <= limit && !wait.is_zero());
            clock.set(now.saturating_add(wait - Duration::from_nanos(1)));
            prop_assert!(of(1).remaining < wanted);
            clock.set(now.saturating_add(wait));
            prop_assert!(of(1).remaining >= wanted);
            clock.set(now);
        }
    }
}

/// Clones of one key can treat requests without it differently, in rules that are equal in all else.
#[test]
fn rules_with_clones_of_a_key_keep_their_treatments() {
    type Named = Option<&'static str>;
    let user = Key::text("user", |name: &Named| *name);
    let skip = || Rule::new("a", quota("10/s")).by(&user.clone().on_missing(OnMissingKey::Skip));
    for (treatment, admitted) in [
        (OnMissingKey::Deny, 0),
        (OnMissingKey::Share, 1),
        (OnMissingKey::Skip, 5),
    ] {
        let other = || Rule::new("b", quota("1/h")).by(&user.clone().on_missing(treatment));
        for rules in [[skip(), other()], [other(), skip()]] {
            let rules = rules
                .into_iter()
                .fold(RuleSetBuilder::new(), RuleSetBuilder::rule);
            let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4]).expect("rules");
            let without = (0..5).filter(|_| rules.check(&None).is_ok()).count();
            assert_eq!(without, admitted, "{treatment:?}");
            let with = (0..5).filter(|_| rules.check(&Some("alice")).is_ok()).count();
            assert_eq!(with, 1, "{treatment:?}");
        }
    }
}

/// A clone with another name is another key of a reload, so the rules that remain keep their counts.
#[test]
fn a_rule_with_a_renamed_clone_of_a_key_continues_alone() {
    let user = by_user();
    let first = || rule("first", "1/h").by(&user);
    let second = || rule("second", "1/h").by(&user.clone().named("second user"));
    for rules in [[first(), second()], [second(), first()]] {
        for left in [first(), second()] {
            let (live, _) = live(rules.clone());
            assert_eq!(admissions(&live, &super::user(1), 5), 1);
            reload(&live, [left]);
            assert_eq!(admissions(&live, &super::user(1), 5), 0);
        }
    }
}
