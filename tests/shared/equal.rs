//! The store in memory decides as a limiter of one process does, at equal times.

use alloc::sync::Arc;
use core::time::Duration;

use ringgate::rules::Mode;
use ringgate::shared::{
    CounterRequest, CounterStore, Counting, LeaseRequest, MemoryStore, SharedLimiter, SharedRules,
};
use ringgate::{ManualClock, Nanos, Rule};

use crate::histories::{CASES, Step, follow};

/// 20,000 steps of each counter, or as many as `RINGGATE_STEPS` says: 10 million take minutes with `--release`.
#[test]
fn memory_decides_as_one_process_does() {
    let steps = std::env::var("RINGGATE_STEPS").ok();
    let steps = steps.map_or(20_000, |steps| steps.parse().expect("RINGGATE_STEPS is a number"));
    for (seed, &case) in (1..).zip(CASES) {
        follow(case, seed, steps, |_, step| {
            let (Step::Take(permits) | Step::Refund(permits)) = step;
            assert!(permits > 0);
            None
        });
    }
}

/// GCRA over a store has its burst, its rate and its stated bound. Leases take their permits from it.
#[tokio::test]
async fn buckets_are_shared() {
    let clock = Arc::new(ManualClock::new());
    clock.set(Nanos::new(1_000_000_000));
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    let quota = "10/10s".parse().expect("a quota");
    let limiter = SharedLimiter::builder("bucket", quota)
        .gcra(4)
        .build(store.clone());
    let limiter = limiter.expect("a limiter");
    let beyond = limiter.rules().max_overshoot(3).map(|(_, most)| most);
    assert_eq!(beyond.collect::<Vec<_>>(), [Some(3)], "b + L - 1");
    for _ in 0..4 {
        assert!(limiter.check("key").await.is_ok());
    }
    let denied = limiter.check("key").await.expect_err("the burst is spent");
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(1)));
    assert!(
        limiter
            .check_n("key", 5)
            .await
            .expect_err("above the burst")
            .retry_after()
            .is_none()
    );
    clock.advance(Duration::from_secs(1));
    assert!(limiter.check("key").await.is_ok());
    assert!(limiter.check("key").await.is_err());

    clock.advance(Duration::from_secs(100));
    let counter = CounterRequest::new("lease", 1, Counting::Gcra(4), 10, Duration::from_secs(10));
    let first = LeaseRequest::first(counter.clone(), 1, 4, Duration::from_secs(2));
    let leases = store.leases().expect("leases");
    let grants = leases.renew(&[first]).await;
    assert_eq!(
        grants[0].as_ref().expect("an answer").permits,
        Some(2),
        "half of the burst"
    );
    let three = [counter.clone().with_permits(3)];
    assert!(!store.decide(&three).await.expect("an answer").is_admitted);
    assert!(
        store
            .decide(&[counter.with_permits(2)])
            .await
            .expect("an answer")
            .is_admitted
    );
}

/// The store counts by the limits that all nodes know. A rule that each node decides alone may have any.
#[tokio::test]
async fn a_limit_by_request_is_refused_unless_the_node_decides() {
    let limited = |mode| {
        let rule = Rule::<str>::new("rule", "10/s".parse().expect("a quota")).mode(mode);
        let rule = rule.limit_by(|request: &str| request.parse().ok());
        SharedRules::builder()
            .rule(rule)
            .build(Arc::new(MemoryStore::new()))
    };
    let error = limited(Mode::Strict).expect_err("a function").to_string();
    assert_eq!(
        error,
        r#"rule "rule": invalid limit_by: given for a rule in a store (expected no function: tiers, or the mode `Local`)"#
    );
    let rules = limited(Mode::Local).expect("a local rule");
    assert!(rules.check("2").await.is_ok());
    assert!(rules.check("2").await.is_ok());
    let denied = rules.check("2").await.expect_err("two");
    assert_eq!(denied.violations().next().map(|status| status.limit), Some(2));
    assert!(rules.check("3").await.is_ok());
}
