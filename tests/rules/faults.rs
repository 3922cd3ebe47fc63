//! Regressions of decisions, each named after the fault.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Barrier;
use std::thread;

use ringgate::Settled;
use ringgate::rules::RuleAlgorithm;

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
        // The first call of a thread creates its shard.
        assert!(rules.check(&request).is_ok());
        let counted = allocation_counter::measure(|| assert!(rules.check(&request).is_ok()));
        assert_eq!(counted.count_total, 0, "{states} states");
    }
}

/// A shadow rule is not charged for a request that it would have denied, even if only its second quota would have
/// denied it. The denial is counted.
#[test]
fn a_shadow_rule_with_two_quotas_is_charged_like_two_rules() {
    let both = || rule("shadow", "10/s").also(quota("5/min"));
    for (rule, rest) in [
        (both().shadow(), "all"),
        (both().by(&by_user()).capacity(100).shadow(), "each"),
        (both().algorithm(RuleAlgorithm::Classic).shadow(), "classic"),
        // Its first quota would deny.
        (rule("shadow", "5/s").also(quota("10/min")).shadow(), "the first"),
    ] {
        let (rules, _) = by_hand([rule]);
        assert!((0..20).all(|_| rules.check(&user(1)).is_ok()));
        let spent = spent(&rules, &user(1));
        let counts = counts(&rules, "shadow");
        assert_eq!(
            (spent, counts.admitted, counts.charged, counts.shadow_denied),
            (vec![5, 5], 5, 5, 15),
            "{rest}"
        );
    }
}

/// Several buckets of a shadow rule cannot share a state.
#[test]
fn a_shadow_rule_has_one_quota_unless_they_share_a_state() {
    let buckets = rule("shadow", "10/s").also(quota("5/min"));
    for algorithm in [RuleAlgorithm::Gcra, RuleAlgorithm::Log, RuleAlgorithm::Even] {
        let rule = buckets.clone().algorithm(algorithm).shadow();
        let error = refused([rule]);
        assert_eq!(error.error.field, "quotas", "{error}");
    }
}

/// A burst is an error for every rule but gcra, even if the rule could share the state of a bucket.
#[test]
fn a_burst_of_a_rule_that_shares_a_state_is_ignored() {
    let rules = [rule("a", "10/10s"), rule("b", "1/s").burst(3)];
    for rules in [rules.to_vec(), rules[1..].to_vec()] {
        let error = refused(rules);
        assert_eq!((error.rule.as_str(), error.error.field), ("b", "burst"));
    }
}

/// The debt of a tier is refilled at the rate of the tier.
#[test]
fn debt_of_a_slow_tier_is_charged_at_the_rate_of_the_rule() {
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
    // At one permit a second, with ten spent, the next request is admitted in ten seconds.
    assert_eq!(rules.settle(reservation, &cost, 10), Settled::Exact);
    for second in 1..10 {
        clock.advance(secs(1));
        assert!(rules.check(&free).is_err(), "after {second} s");
    }
    clock.advance(secs(1));
    assert!(rules.check(&free).is_ok());
}

/// A denial names at least one quota, even if another thread refunds meanwhile.
#[test]
fn a_denial_names_no_rule_when_another_thread_refunds() {
    let (rules, _) = by_hand([
        rule("scarce", "1/min").algorithm(RuleAlgorithm::Gcra),
        rule("plenty", "1000000/min").algorithm(RuleAlgorithm::Gcra),
    ]);
    let (together, denied, named) = (Barrier::new(3), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                together.wait();
                for _ in 0..30_000 {
                    match rules.reserve(&user(1)) {
                        Ok(reservation) => drop(rules.refund(reservation)),
                        Err(it) => {
                            denied.fetch_add(1, Ordering::Relaxed);
                            named.fetch_add(u64::from(it.violations().count() > 0), Ordering::Relaxed);
                        }
                    }
                }
            });
        }
    });
    assert_eq!(named.into_inner(), denied.into_inner());
}

/// Forfeited permits are counted, whichever quota of the rule was charged.
#[test]
fn permits_that_a_second_quota_forfeits_are_not_counted() {
    let cost = by_cost();
    // `two` refills a permit every five minutes, which is longer than this test. It has less capacity than `other`,
    // which is used up and refilled all the time, so `two` is charged first.
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

/// Two quotas of a denied request that share a state have each its own retry time, also in the status of a peek.
#[test]
fn each_quota_of_a_denial_has_its_own_retry_time() {
    let (rules, clock) = by_hand([rule("both", "2/s").also(quota("4/min"))]);
    let request = user(1);
    for seconds in [0, 5] {
        clock.advance(Duration::from_secs(seconds));
        assert!(rules.check(&request).is_ok() && rules.check(&request).is_ok());
    }
    let denied = rules.check(&request).expect_err("four in a minute");
    let told: Vec<_> = denied.violations().map(|status| status.retry_after()).collect();
    let peeked: Vec<_> = rules
        .peek(&request)
        .map(|peek| peek.status().retry_after())
        .collect();
    let each: Vec<_> = rules
        .peek(&request)
        .map(|peek| peek.quota_retry_after(1))
        .collect();
    assert_eq!((&told, &peeked), (&each, &each));
    assert!(each[0] < each[1], "a second and most of a minute: {each:?}");
}

/// A denial borrows the request, so it can be cloned although the request cannot.
#[test]
fn a_denial_of_any_request_can_be_cloned() {
    struct Unique;
    let rules = ringgate::rules::RuleSetBuilder::<Unique>::new()
        .rule(Rule::new("none", Quota::per_second(1).expect("a quota")));
    let rules = rules.build_with(ManualClock::new(), [1, 2, 3, 4]).expect("rules");
    assert!(rules.check(&Unique).is_ok());
    let denied = rules.check(&Unique).expect_err("one a second");
    assert_eq!(denied.clone().to_string(), denied.to_string());
}
