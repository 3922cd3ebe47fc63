//! What broke in decisions, each under its name.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Barrier;
use std::thread;

use ringgate::{RuleAlgorithm, Settled};

use super::*;

/// "Nothing is allocated when a request is admitted", however many states there are.
#[test]
fn sixteen_states_allocate_nothing_when_they_admit() {
    for states in [1, 2, 8, 16] {
        let named =
            |number| Rule::new(format!("rule {number}"), quota("100/s")).algorithm(RuleAlgorithm::Gcra);
        let (rules, _) = by_hand((0..states).map(named));
        assert_eq!(rules.states(), states);
        let request = user(1);
        // What the thread does once.
        assert!(rules.check(&request).is_ok());
        let counted = allocation_counter::measure(|| assert!(rules.check(&request).is_ok()));
        assert_eq!(counted.count_total, 0, "{states} states");
    }
}

/// "A shadow rule is charged what it would have admitted, and nothing for what it would have refused": also when it
/// is its second quota that would refuse. And that is counted.
#[test]
fn a_shadow_rule_of_two_quotas_is_judged_as_two_rules() {
    let both = || rule("shadow", "10/s").also(quota("5/min"));
    for (rule, rest) in [
        (both().shadow(), "all"),
        (both().by(&by_user()).capacity(100).shadow(), "each"),
        (both().algorithm(RuleAlgorithm::Classic).shadow(), "classic"),
    ] {
        let (rules, _) = by_hand([rule]);
        assert!((0..20).all(|_| rules.check(&user(1)).is_ok()));
        let spent: Vec<_> = rules.peek(&user(1)).map(|peek| peek.spent()).collect();
        let counts = counts(&rules, "shadow");
        assert_eq!(
            (spent, counts.admitted, counts.charged, counts.shadow_denied),
            (vec![5, 5], 5, 5, 15),
            "{rest}"
        );
    }
}

/// Several buckets in the shadow cannot be judged in one step.
#[test]
fn a_shadow_rule_has_one_quota_unless_they_are_judged_in_one_step() {
    let buckets = rule("shadow", "10/s").also(quota("5/min"));
    for algorithm in [RuleAlgorithm::Gcra, RuleAlgorithm::Log, RuleAlgorithm::Even] {
        let rule = buckets.clone().algorithm(algorithm).shadow();
        let error = set([rule])
            .build_with(ManualClock::new(), [1; 4])
            .expect_err("two quotas in the shadow");
        assert_eq!(error.error.field, "quotas", "{error}");
    }
}

/// The same where it is the first quota that would refuse.
#[test]
fn a_shadow_rule_is_charged_for_what_its_first_quota_would_refuse() {
    let (rules, _) = by_hand([rule("shadow", "5/s").also(quota("10/min")).shadow()]);
    assert!((0..20).all(|_| rules.check(&user(1)).is_ok()));
    let spent: Vec<_> = rules.peek(&user(1)).map(|peek| peek.spent()).collect();
    assert_eq!(spent, [5, 5]);
}

/// "`burst`: nothing but for a gcra rule", also for one that shares its state with another.
#[test]
fn a_burst_of_a_rule_that_shares_a_state_is_not_looked_at() {
    let rules = [rule("a", "10/10s"), rule("b", "1/s").burst(3)];
    for rules in [rules.to_vec(), rules[1..].to_vec()] {
        let error = set(rules)
            .build_with(ManualClock::new(), [1; 4])
            .expect_err("a burst");
        assert_eq!((error.rule.as_str(), error.error.field), ("b", "burst"));
    }
}

/// Debt of a tier is debt at the tier's rate.
#[test]
fn debt_of_a_slow_tier_is_booked_at_the_rate_of_the_rule() {
    let cost = by_cost();
    let (rules, clock) = by_hand([rule("bucket", "1000/s")
        .algorithm(RuleAlgorithm::Gcra)
        .cost(&cost)
        .tier_of(&by_plan())
        .tier("free", 1)]);
    let free = Request {
        plan: Some("free"),
        ..user(1)
    };
    let reservation = rules.reserve(&free).expect("the first");
    // One permit a second, of which ten are spent: the next is due in ten seconds.
    assert_eq!(rules.settle(reservation, &cost, 10), Settled::Exact);
    for second in 1..10 {
        clock.advance(secs(1));
        assert!(rules.check(&free).is_err(), "after {second} s");
    }
    clock.advance(secs(1));
    assert!(rules.check(&free).is_ok());
}

/// "Every quota that had no room, at least one": also when somebody gives back meanwhile.
#[test]
fn a_refusal_names_no_rule_when_others_give_back() {
    let (rules, _) = by_hand([
        rule("scarce", "1/min").algorithm(RuleAlgorithm::Gcra),
        rule("plenty", "1000000/min").algorithm(RuleAlgorithm::Gcra),
    ]);
    let (together, refused, named) = (Barrier::new(3), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                together.wait();
                for _ in 0..30_000 {
                    match rules.reserve(&user(1)) {
                        Ok(reservation) => drop(rules.refund(reservation)),
                        Err(it) => {
                            refused.fetch_add(1, Ordering::Relaxed);
                            named.fetch_add(u64::from(it.violations().count() > 0), Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(named.into_inner(), refused.into_inner());
}

/// What could not be given back is counted, whichever quota of a rule it was taken of.
#[test]
fn what_a_second_quota_forfeits_is_not_counted() {
    let cost = by_cost();
    // Of `two`, a permit is due every five minutes, so that none is in the time that passes here; and it is scarcer
    // than `other`, which is drained and full again all the time.
    let (rules, clock) = by_hand([
        rule("two", "100000/366d")
            .also(quota("99999/365d"))
            .algorithm(RuleAlgorithm::Gcra)
            .when(&login()),
        rule("other", "1000000/ms")
            .algorithm(RuleAlgorithm::Gcra)
            .cost(&cost),
    ]);
    let request = Request {
        login: true,
        ..user(1)
    };
    let done = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    let _ = rules.check(&request).is_ok();
                }
                done.fetch_add(1, Ordering::Release);
            });
        }
        let everything = Request {
            cost: 1_000_000,
            ..user(2)
        };
        while done.load(Ordering::Acquire) < 3 {
            if clock.now() < Nanos::new(3_700_000_000_000) {
                clock.advance(millis(1));
            }
            let _ = rules.check(&everything).is_ok();
        }
    });
    let counts = counts(&rules, "two");
    let held: Vec<_> = rules.peek(&request).take(2).map(|peek| peek.spent()).collect();
    assert!(
        held.iter()
            .all(|&spent| spent <= counts.charged + counts.forfeited),
        "{held:?} are held, {counts:?}"
    );
}
