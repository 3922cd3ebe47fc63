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
        let builder = || {
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
        let mut line = Line::new(7 * WINDOW + 123);
        let mut current: RuleSet<u64, ManualClock> =
            builder().build_with(line.clock.clone(), [1, 2, 3, 4]).expect("a rule");
        let mut logs = BTreeMap::<u64, Log>::new();
        for &act in &acts {
            match act {
                Act::Take { key, .. } => {
                    if current.check(&key).is_ok() {
                        let key = if is_keyed { key } else { 0 };
                        logs.entry(key).or_default().add(line.now(), 1);
                    }
                }
                Act::Wait(time) => line.wait(time / 3),
                Act::Back(time) => line.back(time),
                Act::Restart { gap, known, phase } => {
                    let mut file = Vec::new();
                    current.save(&mut file).expect("memory");
                    line.restart(gap / 3, phase);
                    let elapsed = Duration::from_nanos(gap / 3 * known / 1_000);
                    current = builder()
                        .restore_with(line.clock.clone(), &*file, elapsed)
                        .expect("the same rules");
                }
            }
        }
        let bound = bound(which, limit, cells);
        for (key, log) in logs {
            let worst = log.worst(Duration::from_nanos(WINDOW));
            prop_assert!(worst <= bound, "{which:?}: {worst} of {bound} of key {key}");
        }
    }
}
