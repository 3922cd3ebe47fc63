//! The counts of shared rules: the permits that leases, the store and the limiters of a node take back.

use alloc::sync::Arc;
use core::time::Duration;

use ringgate::rules::{Cost, RuleAlgorithm, RuleCounts};
use ringgate::shared::{MemoryStore, Mode, OnError, SharedRules};
use ringgate::{ManualClock, Rule, Settled};

use crate::modes;

fn store() -> (Arc<MemoryStore>, ManualClock) {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(36_000));
    (Arc::new(MemoryStore::with_clock(clock.clone())), clock)
}

fn build(store: &Arc<MemoryStore>, rules: impl IntoIterator<Item = Rule<str>>) -> SharedRules<str> {
    let builder = rules
        .into_iter()
        .fold(SharedRules::builder(), |builder, rule| builder.rule(rule));
    builder.build(store.clone()).expect("rules")
}

fn rule(name: &str, quota: &str, cost: &Cost<str>) -> Rule<str> {
    let rule = Rule::new(name.to_owned(), quota.parse().expect("a quota"));
    rule.cost(cost).on_error(OnError::Local)
}

fn counts(rules: &SharedRules<str>) -> Vec<RuleCounts> {
    rules.counts().map(|(_, counts)| counts).collect()
}

const fn lost(settled: Settled) -> u64 {
    match settled {
        Settled::Forfeited(lost) => lost,
        _ => 0,
    }
}

/// Each permit that is given back is counted as refunded, or as forfeited if the caller is told so.
#[tokio::test]
async fn permits_that_are_given_back_are_counted() {
    let cost = Cost::new("cost", |_: &str| 4);
    for mode in modes(20) {
        let of_all_modes = [RuleAlgorithm::Counter, RuleAlgorithm::Log, RuleAlgorithm::Gcra];
        let of_strict = (mode == Mode::Strict).then_some(RuleAlgorithm::Fixed);
        for algorithm in of_all_modes.into_iter().chain(of_strict) {
            let (store, _) = store();
            let rule = rule("all", "1000/h", &cost).mode(mode).algorithm(algorithm);
            let rules = build(&store, [rule.burst_if(algorithm)]);
            let (mut refunded, mut forfeited) = (0, 0);
            for round in 0..20 {
                let mut admitted = Vec::new();
                for _ in 0..3 {
                    admitted.push(rules.check("request").await.expect("room"));
                }
                let mut admitted = admitted.into_iter();
                let mut next = || admitted.next().expect("three");
                let of_refund = rules.refund(next()).await.expect("an answer");
                let of_less = rules.settle(next(), "request", &cost, 1).await;
                let of_more = rules.settle(next(), "request", &cost, 6).await;
                let told = [
                    of_refund,
                    of_less.expect("an answer"),
                    of_more.expect("an answer"),
                ];
                forfeited += told.into_iter().map(lost).sum::<u64>();
                refunded += 7;
                let counts = counts(&rules)[0];
                assert_eq!(
                    (counts.admitted, counts.charged, counts.refunded, counts.forfeited),
                    (3 * (round + 1), 12 * (round + 1), refunded - forfeited, forfeited),
                    "{mode:?} {algorithm:?}"
                );
            }
        }
    }
}

trait BurstIf {
    fn burst_if(self, algorithm: RuleAlgorithm) -> Self;
}

impl BurstIf for Rule<str> {
    /// With the burst that a bucket needs for these requests.
    fn burst_if(self, algorithm: RuleAlgorithm) -> Self {
        match algorithm {
            RuleAlgorithm::Gcra => self.burst(900),
            _ => self,
        }
    }
}

/// A store that takes permits back too late gives none, and of several rules some.
#[tokio::test]
async fn permits_that_come_back_too_late_are_forfeited() {
    let cost = Cost::new("cost", |_: &str| 4);
    for (after, expected) in [
        (0, [(4, 0), (4, 0)]),
        (130, [(0, 4), (4, 0)]),
        (8000, [(0, 4), (0, 4)]),
    ] {
        let (store, clock) = store();
        let rules = [rule("short", "100/min", &cost), rule("long", "100/h", &cost)];
        let rules = build(&store, rules);
        let admitted = rules.check("request").await.expect("room");
        clock.advance(Duration::from_secs(after));
        let told = lost(rules.refund(admitted).await.expect("an answer"));
        assert_eq!(
            told,
            expected.iter().map(|(_, lost)| lost).sum::<u64>(),
            "{after}"
        );
        let counted = counts(&rules);
        let counted: Vec<_> = counted.iter().map(|it| (it.refunded, it.forfeited)).collect();
        assert_eq!(counted, expected, "{after}");
    }
}

/// A charge of this node is undone when the store denies the request. That is no refund of an admitted request.
#[tokio::test]
async fn a_charge_that_is_undone_is_no_refund() {
    let cost = Cost::new("cost", |_: &str| 1);
    for mode in [Mode::Local, Mode::Lease { permits: 20 }] {
        let (store, _) = store();
        let rules = [
            rule("node", "100/h", &cost).mode(mode),
            rule("store", "2/h", &cost),
        ];
        let rules = build(&store, rules);
        for number in 0..6 {
            assert_eq!(rules.check("request").await.is_ok(), number < 2, "{mode:?}");
        }
        let counted = counts(&rules);
        let counted: Vec<_> = counted
            .iter()
            .map(|it| (it.admitted, it.charged, it.denied, it.refunded))
            .collect();
        assert_eq!(counted, [(2, 2, 0, 0), (2, 2, 4, 0)], "{mode:?}");
    }
}

/// A rule with two quotas charges each of them, and counts a request once.
#[tokio::test]
async fn permits_of_each_quota_are_counted_once() {
    let cost = Cost::new("cost", |_: &str| 4);
    for mode in modes(20) {
        let (store, _) = store();
        let two = rule("two", "1000/h", &cost).also("5000/d".parse().expect("a quota"));
        let rules = build(&store, [two.mode(mode)]);
        let admitted = rules.check("request").await.expect("room");
        rules.refund(admitted).await.expect("an answer");
        let counted = counts(&rules)[0];
        assert_eq!((counted.charged, counted.refunded), (4, 4), "{mode:?}");
    }
}

/// Debt is charged up to the largest of one counter, and the rest is forgiven: of a log the limit, of a bucket the larger of its limit and
/// its burst.
#[tokio::test]
async fn debt_beyond_a_counter_is_forgiven() {
    let cost = Cost::new("cost", |_: &str| 1);
    for (algorithm, burst, most) in [
        (RuleAlgorithm::Counter, None, 1_000),
        (RuleAlgorithm::Log, None, 10),
        (RuleAlgorithm::Gcra, Some(4), 10),
        (RuleAlgorithm::Gcra, Some(25), 25),
    ] {
        let rule = rule("all", "10/h", &cost).algorithm(algorithm);
        let rule = match burst {
            Some(burst) => rule.burst(burst),
            None => rule,
        };
        let rules = build(&store().0, [rule]);
        let admitted = rules.check("request").await.expect("room");
        let settled = rules.settle(admitted, "request", &cost, 1 + 1_000).await;
        let expected = match 1_000 - most {
            0 => Settled::Exact,
            forgiven => Settled::Forgiven(forgiven),
        };
        assert_eq!(settled, Ok(expected), "{algorithm:?} {burst:?}");
    }
}
