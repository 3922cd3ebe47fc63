//! Regressions of decisions, each named after the fault.

use std::sync::Barrier;

use super::*;

/// "Nothing is allocated when a request is decided", however many states there are, and for a denial by up to eight quotas.
#[test]
fn sixteen_states_allocate_nothing() {
    for states in [1, 2, 8, 16] {
        let named = |window| {
            let quota = Quota::new(2, secs(window)).expect("a quota");
            Rule::new(format!("rule {window}"), quota).algorithm(RuleAlgorithm::Gcra)
        };
        let (rules, _) = by_hand((1..=states).map(named));
        assert_eq!(rules.states(), states as usize);
        let request = user(1);
        // The first call of a thread creates its shard.
        assert!(rules.check(&request).is_ok());
        let admitted = allocation_counter::measure(|| assert!(rules.check(&request).is_ok()));
        let denied = allocation_counter::measure(|| {
            let denied = rules.check(&request).expect_err("all are empty");
            assert_eq!(denied.violations().count() as u64, states);
            assert!(denied.retry_after() > Some(Duration::ZERO));
        });
        assert_eq!(admitted.count_total, 0, "{states} states");
        assert!(denied.count_total == 0 || states > 8, "{states} states");
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

/// Debt is refilled at the rate of its own tier, and not at that of the rule or of a slower tier.
#[test]
fn debt_of_a_tier_is_refilled_at_the_rate_of_another() {
    let cost = by_cost();
    // Ten permits at one a second, and 2,000 at a thousand a second, of which the burst is a thousand.
    for (plan, debt, seconds, admitted) in [(Some("free"), 10, 10, 1), (None, 2_000, 2, 1_000)] {
        let bucket = rule("bucket", "1000/s")
            .algorithm(RuleAlgorithm::Gcra)
            .cost(&cost);
        let (rules, clock) = by_hand([bucket.tier_of(&by_plan()).tier("free", 1)]);
        let request = |cost| user(1).plan(plan).cost(cost);
        let reservation = rules.reserve(&request(1)).expect("the first");
        assert_eq!(rules.settle(reservation, &cost, debt), Settled::Exact);
        clock.advance(secs(seconds) - Duration::from_nanos(1));
        assert!(rules.check(&request(admitted)).is_err(), "{plan:?}");
        clock.advance(Duration::from_nanos(1));
        assert!(rules.check(&request(admitted)).is_ok(), "{plan:?}");
    }
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
    let request = user(1).login();
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
        let everything = user(2).cost(1_000_000);
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
    let told: Vec<_> = denied.violations().map(|status| status.retry_after).collect();
    let peeked: Vec<_> = rules
        .peek(&request)
        .map(|peek| peek.status().retry_after)
        .collect();
    assert_eq!(told, peeked);
    assert!(told[0] < told[1], "a second and most of a minute: {told:?}");
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
