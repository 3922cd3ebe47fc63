//! Each method of a rule set, and the things that it does not do.

use super::*;

#[test]
fn nothing_is_allocated_for_an_admission_or_a_denial_by_eight_quotas() {
    let (user, address) = (by_user(), by_address());
    for algorithm in algorithms() {
        // Eight quotas in eight states, or fewer for counters.
        let (rules, clock) = by_hand((0..4).map(|number| {
            let limit = Quota::new(5, secs(number + 1)).expect("a quota");
            let more = Quota::new(20, secs(100 * (number + 1))).expect("a quota");
            let rule = Rule::new(format!("rule {number}"), limit)
                .also(more)
                .algorithm(algorithm);
            match number {
                0 => rule,
                1 => rule.by(&user).allow(7_u64),
                2 => rule.by(&address).deny(8_u64).capacity(100),
                _ => rule.by(&user).when(&login()).cost(&by_cost()),
            }
        }));
        let requests: Vec<_> = (0..10)
            .map(|id| Request {
                user: id,
                address: id,
                cost: id % 4,
                login: id % 2 == 0,
                plan: None,
                limit: None,
            })
            .collect();
        // The first call of a thread creates its shard.
        let _ = rules.check(&requests[0]).is_ok();
        let (mut admitted, mut denied) = (0, 0);
        let counted = allocation_counter::measure(|| {
            for step in 0..500_usize {
                match rules.check(&requests[step % 10]) {
                    Ok(_) => admitted += 1,
                    Err(it) => {
                        denied += 1;
                        assert!(it.violations().count() <= 8);
                        core::hint::black_box(it.retry_after());
                    }
                }
                if step % 10 == 0 {
                    clock.advance(millis(700));
                }
            }
        });
        assert!(admitted > 0 && denied > 0);
        assert_eq!(counted.count_total, 0, "{algorithm:?}");
    }
}

/// Ten thousand tiers, in no order of their names. Each has a different limit.
#[cfg(not(miri))] // Miri would need minutes for as many algorithms.
#[test]
fn each_of_many_tiers_is_found_by_its_name() {
    let name = |tier: u64| format!("{}", tier * 7_919 % 10_007);
    let key = Key::new("user", |request: &(u64, String), key: &mut _| request.0.hash(key));
    let mut tiered = Rule::new("each", "20000/min".parse::<Quota>().expect("a quota"))
        .by(&key)
        .cost(&Cost::new("cost", |request: &(u64, String)| request.0))
        .tier_of(&TierOf::new("plan", |request: &(u64, String)| {
            Some(request.1.as_str())
        }));
    for tier in 1..=10_000 {
        tiered = tiered.tier(name(tier), tier);
    }
    let rules = super::RuleSetBuilder::new()
        .rule(tiered)
        .build_with(ManualClock::new(), [1, 2, 3, 4]);
    let rules = rules.expect("tiers with names of their own");
    for tier in 1..=10_000 {
        // The key is the cost, so that each request finds a fresh state.
        assert!(rules.check(&(tier + 1, name(tier))).is_err(), "tier {tier}");
        assert!(rules.check(&(tier, name(tier))).is_ok(), "tier {tier}");
    }
    for (cost, unknown) in [(20_000, ""), (19_999, "10007"), (19_998, "1x")] {
        assert!(rules.check(&(cost, unknown.into())).is_ok());
    }
}

fn enforced_keys(percent: f64, seeds: [u64; 4]) -> Vec<u64> {
    let rules = set([rule("each", "1/min").by(&by_user()).enforce_percent(percent)]);
    let rules = rules.build_with(ManualClock::new(), seeds).expect("rules");
    let enforced = |id: &u64| {
        let enforced = rules
            .peek(&user(*id))
            .next()
            .expect("a rule")
            .status()
            .is_enforced;
        // The limit decides, and not the tier.
        let _ = rules.check(&user(*id));
        assert_eq!(rules.check(&user(*id)).is_err(), enforced);
        enforced
    };
    (0..2_000).filter(enforced).collect()
}

#[test]
fn a_larger_percentage_of_keys_contains_every_smaller_one() {
    let mut before = Vec::new();
    for percent in [0.0, 0.01, 1.0, 10.0, 20.0, 50.0, 99.9, 100.0] {
        let enforced = enforced_keys(percent, [1, 2, 3, 4]);
        // Other seeds, as in another process, select the same keys.
        assert_eq!(enforced, enforced_keys(percent, [5, 6, 7, 8]));
        assert!(before.iter().all(|key| enforced.binary_search(key).is_ok()));
        // Five standard deviations of two thousand trials. The keys are the same in each run.
        let (share, expected) = (percent / 100.0, percent * 20.0);
        let deviation = 5.0 * (2_000.0 * share * (1.0 - share)).sqrt();
        assert!(
            (enforced.len() as f64 - expected).abs() <= deviation,
            "{percent} %: {}",
            enforced.len()
        );
        before = enforced;
    }
}

#[test]
fn a_reservation_can_be_refunded_or_settled() {
    let cost = by_cost();
    for algorithm in algorithms() {
        let (rules, _) = by_hand([
            rule("calls", "50/min").algorithm(algorithm),
            rule("bytes", "500/min").algorithm(algorithm).cost(&cost),
        ]);
        let request = user(1).cost(60);
        let spent = || rules.peek(&request).map(|peek| peek.spent()).collect::<Vec<_>>();
        let reservation = rules.reserve(&request).expect("there is room");
        assert_eq!((spent(), reservation.at()), (vec![1, 60], rules.clock().now()));
        if algorithm == RuleAlgorithm::Log {
            // A log refunds nothing.
            assert_eq!(rules.refund(reservation), Settled::Forfeited(60));
            assert_eq!(spent(), [1, 60]);
            continue;
        }
        assert_eq!(rules.refund(reservation), Settled::Exact);
        assert_eq!(spent(), [0, 0], "{algorithm:?}");
        for (actual, booked) in [(60, 60), (40, 100), (90, 190), (0, 190), (400, 590)] {
            let calls = spent()[0];
            let reservation = rules.reserve(&request).expect("there is room");
            let found = rules.settle(reservation, &cost, actual);
            assert_eq!(found, Settled::Exact, "{algorithm:?}");
            // Rules with another cost keep their charge.
            assert_eq!(spent(), [calls + 1, booked], "{algorithm:?}");
            if algorithm == RuleAlgorithm::Even {
                // The share of a cell is a hundred.
                break;
            }
        }
        assert!(algorithm == RuleAlgorithm::Even || rules.check(&request).is_err());
        // A cost that no rule has settles nothing.
        let before = spent();
        let reservation = rules.reserve(&request.clone().cost(0)).expect("it is free");
        assert_eq!(rules.settle(reservation, &by_cost(), 1_000), Settled::Exact);
        assert_eq!(spent(), [before[0] + 1, before[1]]);
    }
}

/// A reset forgets the charges to the keys of a request, and no others.
#[test]
fn a_reset_forgets_the_keys_of_the_request() {
    for algorithm in algorithms() {
        let (by_user, by_address) = (by_user(), by_address());
        let many = |name| rule(name, "600/min").algorithm(algorithm);
        let (rules, _) = by_hand([
            many("user").by(&by_user),
            many("address").by(&by_address),
            many("login").by(&by_user).when(&login()),
            many("all"),
        ]);
        let request = |id, address| user(id).address(address);
        let [one, two, seven] = [request(1, 10), request(2, 20), request(7, 70)].map(Request::login);
        for it in [one.clone(), two.clone(), request(1, 20)] {
            assert!(rules.check(&it).is_ok(), "{algorithm:?}");
        }
        assert_eq!(spent(&rules, &one), [2, 1, 1, 3], "{algorithm:?}");
        // The rule of logins does not apply to this request.
        assert_eq!(rules.reset(&request(1, 10)), 2, "{algorithm:?}");
        assert_eq!(spent(&rules, &one), [0, 0, 1, 3], "{algorithm:?}");
        assert_eq!(spent(&rules, &two), [1, 2, 1, 3], "{algorithm:?}");
        // A key without an entry is not counted, and gets no entry.
        assert_eq!(rules.reset(&seven), 0, "{algorithm:?}");
        // A charge from before the reset is not refunded after it.
        let reserved = rules.reserve(&request(2, 20)).expect("room");
        assert_eq!(rules.reset(&request(2, 20)), 2, "{algorithm:?}");
        assert!(rules.check(&request(2, 20)).is_ok());
        let _ = rules.refund(reserved);
        assert_eq!(spent(&rules, &request(2, 20))[..2], [1, 1], "{algorithm:?}");
    }
}
