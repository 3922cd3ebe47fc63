//! A rule set.

use super::*;
use proptest::prelude::*;
use ringgate::rules::RuleAlgorithm;

/// Every algorithm of rules.
fn algorithms() -> impl Iterator<Item = RuleAlgorithm> {
    RuleAlgorithm::NAMES.iter().map(|&(_, algorithm)| algorithm)
}

/// The most permits in a window, by the table of guarantees.
fn bound(algorithm: RuleAlgorithm, limit: u64, cells: u64) -> u64 {
    match algorithm {
        RuleAlgorithm::Classic | RuleAlgorithm::Fixed => 2 * limit,
        RuleAlgorithm::Even => limit + limit.div_ceil(cells),
        RuleAlgorithm::Gcra => 2 * limit - 1,
        RuleAlgorithm::SlidingWindow | RuleAlgorithm::Counter | RuleAlgorithm::Log => limit,
        other => unreachable!("no bound for {other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// No window of a rule with one state, or of a key of a rule, holds more than the bound of the algorithm.
    #[test]
    fn no_window_of_a_rule_exceeds_the_bound(
        which in prop::sample::select(algorithms().collect::<Vec<_>>()),
        limit in 1..12_u64,
        cells in 1..6_u64,
        capacity in 1..30_u64,
        is_keyed in any::<bool>(),
        acts in prop_oneof![history(1), history(24)],
    ) {
        let quota = Quota::new(limit, Duration::from_nanos(WINDOW)).expect("a quota");
        let rules = |_: &Line| {
            let mut rule = Rule::new("rule", quota).algorithm(which);
            if matches!(which, RuleAlgorithm::Counter | RuleAlgorithm::Classic | RuleAlgorithm::Even) {
                rule = rule.cells(cells);
            }
            if is_keyed {
                let key = Key::new("key", |key: &u64, hash| key.hash(hash));
                rule = rule.by(&key).capacity(capacity);
            }
            RuleSetBuilder::<u64>::new().rule(rule)
        };
        let mut line = line();
        // A request is for one permit, so a history needs more requests in a window.
        line.pace = |time| time / 3;
        let mut admitted = follow_rules(line, &acts, rules).read;
        if !is_keyed {
            admitted.iter_mut().for_each(|admission| admission.key = 0);
        }
        let bound = bound(which, limit, cells);
        for (key, log) in by_key(&admitted) {
            let worst = log.worst(Duration::from_nanos(WINDOW));
            prop_assert!(worst <= bound, "{which:?}: {worst} of {bound} of key {key}");
        }
    }
}
