//! Requests that need several states.

use alloc::sync::Arc;
use core::time::Duration;

use ringgate::rules::{Condition, RuleAlgorithm, RuleSetBuilder};
use ringgate::wait::TokioClock;
use ringgate::{Fair, Rule, RuleSet};

use super::{ms, settle};
use crate::random::Random;

struct Sided {
    x: bool,
    y: bool,
    z: bool,
}

fn sided(quotas: [&str; 3]) -> Arc<Fair<RuleSet<Sided, TokioClock>>> {
    let conditions = [
        Condition::new("x", |request: &Sided| request.x),
        Condition::new("y", |request: &Sided| request.y),
        Condition::new("z", |request: &Sided| request.z),
    ];
    let mut rules = RuleSetBuilder::new();
    for (quota, condition) in quotas.iter().zip(&conditions) {
        let rule = Rule::new(condition.name(), quota.parse().unwrap());
        rules = rules.rule(rule.algorithm(RuleAlgorithm::Log).when(condition));
    }
    Arc::new(Fair::new(
        rules.build_with(TokioClock::new(), [1, 2, 3, 4]).unwrap(),
    ))
}

/// One request waits for one state and then for the other, and another request the other way round.
#[tokio::test(start_paused = true)]
async fn two_requests_for_the_same_two_states_do_not_deadlock() {
    let rules = sided(["1/10s", "1/15s", "1/1s"]);
    let only = |x, y| Sided { x, y, z: false };
    assert!(rules.check(&only(false, true)).is_ok());
    tokio::time::sleep(ms(10_000)).await;
    assert!(rules.check(&only(true, false)).is_ok());
    let begin = |x, y| {
        let own = Arc::clone(&rules);
        tokio::spawn(async move { own.acquire(&only(x, y)).await.is_ok() })
    };
    let first = begin(true, true);
    settle().await;
    let one = begin(true, true);
    settle().await;
    let dropped = begin(false, true);
    settle().await;
    let other = begin(true, true);
    settle().await;
    dropped.abort();
    assert!(first.await.unwrap());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(one.is_finished() && other.is_finished());
    assert_eq!(rules.waiting(), 0);
}

/// Many requests need some of three states, and some of them are dropped. All others are served within one window each.
#[test]
fn no_waiter_is_forgotten_between_states() {
    for seed in 0..400_u64 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut random = Random::new(seed);
            let mut next = |end| random.below(end);
            let quotas: Vec<_> = (0..3)
                .map(|_| format!("{}/{}s", 1 + next(3), 1 + next(4)))
                .collect();
            let rules = sided([&quotas[0], &quotas[1], &quotas[2]]);
            let mut tasks = Vec::new();
            for _ in 0..24 {
                let sides = 1 + next(7);
                let request = Sided {
                    x: sides & 1 > 0,
                    y: sides & 2 > 0,
                    z: sides & 4 > 0,
                };
                let own = Arc::clone(&rules);
                tasks.push(tokio::spawn(async move { own.acquire(&request).await.is_ok() }));
                tokio::time::sleep(ms(next(700))).await;
                if next(4) == 0 {
                    let place = usize::try_from(next(tasks.len() as u64)).unwrap();
                    tasks.swap_remove(place).abort();
                }
            }
            for task in tasks {
                let served = tokio::time::timeout(Duration::from_secs(24 * 5), task).await;
                assert!(served.expect("never served").unwrap(), "seed {seed}");
            }
            // The task that was aborted last may not have been dropped yet.
            settle().await;
            assert_eq!(rules.waiting(), 0);
        });
    }
}
