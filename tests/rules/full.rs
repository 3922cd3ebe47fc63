//! Full tables of keys: a request is still charged to all rules or to none.

use super::*;
use crate::common::Log;
use proptest::prelude::*;

const USERS: u64 = 24;

/// The spent and remaining permits of every user, by every rule.
fn all(rules: &ByHand) -> Vec<(u64, u64)> {
    let users = (0..USERS).map(user);
    users
        .flat_map(|request| {
            let peeks = rules.peek(&request).map(|peek| (peek.spent(), peek.remaining()));
            peeks.collect::<Vec<_>>()
        })
        .collect()
}

fn bound(algorithm: RuleAlgorithm, limit: u64) -> u64 {
    match algorithm {
        RuleAlgorithm::SlidingWindow | RuleAlgorithm::Counter | RuleAlgorithm::Log => limit,
        RuleAlgorithm::Even => limit + limit.div_ceil(5),
        _ => 2 * limit,
    }
}

/// A second rule, which always has room, changes nothing for the keys of a full table.
///
/// If a rule decides alone, a denied request may get an entry, too. So the algorithms here admit the first request of each key, and with
/// `Forget` only fixed windows do.
#[test]
fn a_second_rule_changes_no_decision_of_a_full_table() {
    let algorithms = [
        RuleAlgorithm::SlidingWindow,
        RuleAlgorithm::Counter,
        RuleAlgorithm::Fixed,
        RuleAlgorithm::Log,
    ];
    for algorithm in algorithms {
        let forget = (algorithm == RuleAlgorithm::Fixed).then_some(OnFull::Forget);
        for on_full in [OnFull::Share, OnFull::Deny, OnFull::Admit]
            .into_iter()
            .chain(forget)
        {
            let each = rule("each", "3/h").algorithm(algorithm).by(&by_user());
            let each = || each.clone().capacity(16).on_full(on_full);
            let (one, first) = by_hand([each()]);
            let (two, second) = by_hand([each(), rule("room", "1000000/s")]);
            for minute in 0..70 {
                for number in 0..40 {
                    let request = user(number);
                    let decided = [&one, &two].map(|rules| rules.check(&request).is_ok());
                    assert_eq!(
                        decided[0], decided[1],
                        "{algorithm:?}, {on_full:?}: {number} in minute {minute}"
                    );
                }
                for clock in [&first, &second] {
                    clock.advance(Duration::from_secs(60));
                }
            }
        }
    }
}

/// Each decision without an entry is counted once, whichever method made it.
#[test]
fn every_decision_for_want_of_an_entry_is_counted() {
    for (reserve, on_full) in [
        (false, OnFull::Deny),
        (true, OnFull::Deny),
        (false, OnFull::Share),
        (true, OnFull::Share),
        (true, OnFull::Admit),
    ] {
        for rules in 1..=2 {
            let small = rule("small", "2/10s").by(&by_user()).capacity(1).on_full(on_full);
            let large = rule("large", "1000/10s").by(&by_address());
            let (rules, _) = by_hand([small, large].into_iter().take(rules));
            let requests = 500;
            for id in 0..requests {
                let request = user(id);
                if reserve {
                    let _ = rules.reserve(&request);
                } else {
                    let _ = rules.check(&request);
                }
            }
            // The smallest table has twelve entries.
            assert_eq!(
                counts(&rules, "small").overflowed,
                requests - 12,
                "{reserve}, {on_full:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 80,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn one_of_several_rules_has_a_full_table(
        algorithm in select(vec![RuleAlgorithm::SlidingWindow, RuleAlgorithm::Counter, RuleAlgorithm::Classic, RuleAlgorithm::Even,
            RuleAlgorithm::Fixed, RuleAlgorithm::Log, RuleAlgorithm::Gcra]),
        on_full in select(vec![OnFull::Share, OnFull::Deny, OnFull::Admit, OnFull::Forget]),
        others in 0..3_usize,
        ops in prop::collection::vec((0..USERS, 1..3_u64, select(vec![0, 0, 1, 333, 2_000, 12_000])), 1..200),
    ) {
        let (key, cost) = (by_user(), by_cost());
        let each = rule("each", "6/10s").by(&key).cost(&cost).algorithm(algorithm).capacity(1).on_full(on_full);
        let others = [
            rule("all", "60/10s").cost(&cost).algorithm(RuleAlgorithm::Log),
            rule("other", "5/1s").by(&key).algorithm(RuleAlgorithm::Gcra).capacity(300),
        ]
        .into_iter()
        .take(others);
        let (rules, clock) = by_hand([each].into_iter().chain(others));
        let mut logs: HashMap<u64, Log> = HashMap::new();
        let mut asked = Vec::new();
        for (id, permits, wait) in ops {
            clock.advance(millis(wait));
            // The key gets an entry before an even rule denies it for more permits than the share of a cell.
            let permits = if algorithm == RuleAlgorithm::Even { 1 } else { permits };
            let request = user(id).cost(permits);
            let (before, counted) = (all(&rules), rules.counts().map(|it| it.1).collect::<Vec<_>>());
            let room: Vec<_> = rules
                .peek(&request)
                .filter(|peek| peek.remaining() < peek.status().permits)
                .map(|peek| (peek.rule().to_string(), peek.status().limit, peek.remaining()))
                .collect();
            match rules.check(&request) {
                Ok(_) => {
                    // A key that evicts another may find another share or another cell than the peek did.
                    prop_assert!(room.is_empty() || on_full == OnFull::Forget, "{:?}", room);
                    logs.entry(id).or_default().add(clock.now(), permits);
                    asked.push(true);
                }
                Err(denied) => {
                    let named: Vec<_> = denied
                        .violations()
                        .map(|peek| (peek.rule.to_string(), peek.limit, peek.remaining))
                        .collect();
                    prop_assert!(!named.is_empty());
                    if on_full != OnFull::Forget {
                        prop_assert_eq!(&named, &room);
                        prop_assert_eq!(&before, &all(&rules));
                        let retry = denied.retry_after();
                        prop_assert!(retry.is_some_and(|after| !after.is_zero()), "{:?}", retry);
                        let ready = clock.now().saturating_add(retry.expect("just seen"));
                        // At the retry time every rule has enough capacity.
                        let now = clock.now();
                        clock.set(ready);
                        let room = rules.peek(&request).all(|peek| peek.remaining() >= peek.status().permits);
                        clock.set(now);
                        prop_assert!(room, "denied after {:?}", retry);
                    }
                    asked.push(false);
                }
            }
            let forfeited: u64 = rules.counts().map(|it| it.1.forfeited).sum();
            prop_assert!(forfeited == 0 || on_full == OnFull::Forget);
            for ((_, now), then) in rules.counts().zip(counted) {
                prop_assert!(now.admitted + now.denied <= then.admitted + then.denied + 1);
            }
        }
        let admitted = asked.iter().filter(|&&admitted| admitted).count() as u64;
        for (name, counts) in rules.counts() {
            prop_assert_eq!(counts.admitted, admitted, "{}", name);
            prop_assert!(counts.denied <= asked.len() as u64 - admitted);
        }
        if matches!(on_full, OnFull::Share | OnFull::Deny) {
            for (id, log) in &logs {
                let worst = log.worst(secs(10));
                prop_assert!(worst <= bound(algorithm, 6), "user {}: {}", id, worst);
            }
        }
    }
}

/// A key that is not limited has what each quota leaves a fresh key, not the least of all quotas.
#[test]
fn each_quota_of_a_key_that_is_not_limited_is_fresh() {
    let two = rule("two", "10/s").also(quota("100/min")).by(&by_user());
    let (rules, _) = by_hand([two.capacity(1).on_full(OnFull::Admit)]);
    for number in 0..100 {
        assert!(rules.check(&user(number)).is_ok());
    }
    let fresh = user(1_000);
    let seen: Vec<_> = rules
        .peek(&fresh)
        .map(|peek| (peek.remaining(), peek.status().reset_after))
        .collect();
    assert_eq!(seen, [(10, None), (100, None)]);
}
