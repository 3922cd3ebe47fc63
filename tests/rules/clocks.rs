//! Readings that step back, jump, or are near the end of time. A rule decides as its algorithm does over separate
//! words.

use super::*;
use crate::common::State;
use proptest::prelude::*;
use ringgate::{Algorithm, Gcra, TimestampRing};

#[derive(Clone, Debug)]
struct Alone {
    algorithm: RuleAlgorithm,
    quota: Quota,
    costs: bool,
}

impl Alone {
    /// Rules with different numbers of cells do not share a state.
    fn rule(&self, number: u64, cost: &Cost<Request>) -> Rule<Request> {
        let mut rule = Rule::new(format!("rule {number}"), self.quota).algorithm(self.algorithm);
        if matches!(
            self.algorithm,
            RuleAlgorithm::Counter | RuleAlgorithm::Classic | RuleAlgorithm::Even
        ) {
            rule = rule.cells(number + 1);
        }
        if self.costs { rule.cost(cost) } else { rule }
    }

    fn algorithm(&self, number: u64) -> AnyAlgorithm {
        let ring = || CounterRing::builder(self.quota).cells(number + 1);
        match self.algorithm {
            RuleAlgorithm::Classic => ring().classic().build().expect("a ring").into(),
            RuleAlgorithm::Even => ring().even().build().expect("a ring").into(),
            RuleAlgorithm::Fixed => CounterRing::fixed_window(self.quota).expect("a ring").into(),
            RuleAlgorithm::Log => TimestampRing::new(self.quota).expect("a ring").into(),
            RuleAlgorithm::Gcra => Gcra::new(self.quota).expect("a bucket").into(),
            _ => ring().build().expect("a ring").into(),
        }
    }
}

fn alone() -> impl Strategy<Value = Alone> {
    use RuleAlgorithm::{Classic, Counter, Even, Gcra, Log};
    let quotas = vec!["3/1s", "7/2s", "20/10s", "40/1min", "300/1s", "5/366d"];
    (
        // Fixed windows with one cost would share a state.
        select(vec![Counter, Classic, Even, Log, Gcra]),
        select(quotas),
        any::<bool>(),
    )
        .prop_map(|(algorithm, text, costs)| Alone {
            algorithm,
            quota: quota(text),
            costs,
        })
}

fn reading() -> impl Strategy<Value = u64> {
    const HOUR: u64 = 3_600_000_000_000;
    // The time of a token bucket ends after 15 years. The retry time of a denial is up to two windows later.
    const YEARS: u64 = 12 * 366 * 24 * HOUR;
    prop_oneof![
        8 => HOUR..HOUR + 5_000_000_000,
        4 => HOUR..HOUR + 100_000_000_000,
        1 => Just(0),
        1 => YEARS..YEARS + 3_000_000_000,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn all_rules_are_peeked_before_any_is_charged(
        alone in prop::collection::vec(alone(), 1..5),
        ops in prop::collection::vec((reading(), select(vec![0, 1, 1, 1, 2, 5, 300, u64::MAX]), 1..5_usize), 1..60),
    ) {
        let cost = by_cost();
        let (rules, clock) = by_hand((0..).zip(&alone).map(|(number, it)| it.rule(number, &cost)));
        let states: Vec<_> = (0..)
            .zip(&alone)
            .map(|(number, it)| {
                let algorithm = it.algorithm(number);
                let state = State::fresh(&algorithm);
                (algorithm, state)
            })
            .collect();
        for (now, cost, times) in ops {
            let (now, request) = (Nanos::new(now), user(1).cost(cost));
            for _ in 0..times {
                let permits = |number: usize| if alone[number].costs { cost } else { 1 };
                let full: Vec<_> = (0..states.len())
                    .filter(|&number| {
                        let (algorithm, state) = &states[number];
                        algorithm.remaining(state.shared(), now) < permits(number)
                    })
                    .map(|number| format!("rule {number}"))
                    .collect();
                if full.is_empty() || states.len() == 1 {
                    // A single state decides without a peek.
                    for (number, (algorithm, state)) in states.iter().enumerate() {
                        let decided = algorithm.decide(state.shared(), now, permits(number));
                        prop_assert_eq!(decided.is_some(), full.is_empty());
                    }
                }
                match rules.check_at(&request, now) {
                    Ok(admitted) => prop_assert!(full.is_empty() && admitted.at() == now, "{:?}", full),
                    Err(denied) => {
                        let named: Vec<_> = denied.violations().map(|it| it.rule.to_string()).collect();
                        prop_assert_eq!(&named, &full);
                        let never = (0..states.len()).any(|number| permits(number) > states[number].0.max_request());
                        let retry = denied.retry_after();
                        prop_assert_eq!(never, retry.is_none());
                        prop_assert!(retry != Some(Duration::ZERO));
                    }
                }
                clock.set(now);
                for (peek, (algorithm, state)) in rules.peek(&request).zip(&states) {
                    prop_assert_eq!(peek.remaining(), algorithm.remaining(state.shared(), now));
                    prop_assert_eq!(peek.spent(), algorithm.spent(state.shared(), now));
                }
            }
        }
    }
}

/// At the end of time every call returns, and nothing panics.
#[test]
fn nothing_panics_at_the_end_of_time() {
    use RuleAlgorithm::{Classic, Counter, Even, Fixed, Gcra, Log};
    const YEARS: u64 = 366 * 24 * 3_600_000_000_000;
    let (cost, key) = (by_cost(), by_user());
    for algorithm in [Counter, Classic, Even, Fixed, Log, Gcra] {
        for on_full in [OnFull::Share, OnFull::Deny, OnFull::Admit, OnFull::Forget] {
            for start in [u64::MAX, Nanos::MAX.get() - 1_000_000_000, 30 * YEARS, 20 * YEARS] {
                let each = |text| {
                    let rule = rule("each", text).algorithm(algorithm).by(&key).cost(&cost);
                    rule.capacity(1).on_full(on_full)
                };
                let all = || rule("all", "70/s").cost(&cost).algorithm(algorithm);
                let (live, clock) = live([each("5/s"), all()]);
                clock.set(Nanos::new(start));
                for id in 0..40 {
                    for cost_of_it in [1, 3, 0, u64::MAX] {
                        let request = user(id).cost(cost_of_it);
                        match live.load().reserve(&request) {
                            Ok(taken) => drop(live.load().settle(taken, &cost, id % 9)),
                            Err(denied) => {
                                let _ = denied.retry_after();
                                assert!(denied.violations().count() > 0);
                            }
                        };
                    }
                    clock.advance(millis(if id % 7 == 0 { 333 } else { 0 }));
                    if id == 20 {
                        live.store(&set([each("6/2s"), all()])).expect("rules");
                    }
                }
            }
        }
    }
}
