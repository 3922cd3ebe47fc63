//! Denials by a lease that the store has closed: their retry times, their count, and the demand of requests that no lease covers.

use alloc::sync::Arc;
use core::time::Duration;

use ringgate::Rule;
use ringgate::rules::{Cost, DecidedBy, Denied, RuleAlgorithm};
use ringgate::shared::{Mode, SharedRules};
use tokio::time::{advance, sleep};

use crate::memory;

const LIMIT: u64 = 100;
const PERIOD: Duration = Duration::from_millis(20);

/// The modes in which a lease decides.
const MODES: [Mode; 2] = [
    Mode::Lease { permits: 50 },
    Mode::Sync {
        period: PERIOD,
        pending: 50,
    },
];

/// A rule whose requests are their costs.
fn rules(mode: Mode, store: Arc<ringgate::shared::MemoryStore>) -> SharedRules<u64> {
    let rule = Rule::new("cost", "100/60s".parse().expect("a quota"))
        .cost(&Cost::new("cost", |cost: &u64| *cost))
        .algorithm(RuleAlgorithm::Log)
        .mode(mode);
    let clock = crate::many::Paused(tokio::time::Instant::now());
    let builder = SharedRules::builder().rule(rule).period(PERIOD).term_clock(clock);
    builder.build(store).expect("rules")
}

async fn denied(rules: &SharedRules<u64>, cost: u64) -> Denied<'static> {
    rules.check(&cost).await.expect_err("no room")
}

/// Each retry time is that of the request's own cost, whatever was denied before, and a request above the limit has none.
#[tokio::test(start_paused = true)]
async fn a_closed_lease_gives_each_cost_its_own_retry_time() {
    for mode in MODES {
        let rules = rules(mode, memory());
        // A permit each 10 ms, so that the log has room for n permits 10 ms times n later than it has for none.
        for _ in 0..LIMIT {
            rules.check(&1).await.expect("room");
            sleep(Duration::from_millis(10)).await;
        }
        // A peek asks the store, which knows only what nodes have reported.
        rules.flush().await.expect("an answer");
        let mut by_lease = 0;
        for order in [
            [1, 60, 100, 101, 5000],
            [5000, 1, 100, 60, 1],
            [60, 1, 5000, 100, 1],
        ] {
            // In the second round the lease has denied the same costs before.
            for cost in order.into_iter().chain(order) {
                let denied = denied(&rules, cost).await;
                by_lease += u32::from(denied.decided_by() == DecidedBy::Local);
                let room = rules.peek(&cost).await.expect("an answer")[0].retry_after;
                let case = format!("{mode:?}: {cost} by {:?}", denied.decided_by());
                match (denied.retry_after(), cost > LIMIT) {
                    (None, true) => {}
                    (Some(after), false) => {
                        assert!(Some(after) >= room, "{case}: {after:?}, {room:?}");
                        if cost == 1 || cost == LIMIT {
                            let later = after.saturating_sub(room.unwrap_or_default());
                            assert!(later <= 2 * PERIOD, "{case}: {after:?}, {room:?}");
                        }
                    }
                    (after, _) => panic!("{case}: {after:?}"),
                }
            }
            advance(PERIOD).await;
        }
        assert!(by_lease > 0, "{mode:?}");
    }
}

/// Requests of more permits than a lease may have get no permits for the node, which would be kept from other nodes and from the
/// requests themselves. The store grants a lease at most half of the limit.
#[tokio::test(start_paused = true)]
async fn requests_that_no_lease_covers_are_no_demand() {
    for (permits, cost) in [(50, 60), (50, LIMIT + 1), (50, 5000), (LIMIT, 51), (LIMIT, LIMIT)] {
        let rules = rules(Mode::Lease { permits }, memory());
        for _ in 0..100 {
            let _ = rules.check(&cost).await;
            let _ = rules.check_now(&cost);
            let stats = rules.lease_stats();
            assert_eq!(stats.held, 0, "{cost}: {stats:?}");
            sleep(PERIOD / 4).await;
        }
    }
}

/// A request that leases deny is counted once, also if it has waited for an answer, and if two of its leases deny it.
#[tokio::test(start_paused = true)]
async fn each_denial_by_leases_is_counted_once() {
    for mode in MODES {
        let store = memory();
        for node in ["first", "second"] {
            let quota = |text: &str| text.parse().expect("a quota");
            let rule = Rule::new("two quotas", quota("20/60s"))
                .also(quota("20/120s"))
                .mode(mode);
            let clock = crate::many::Paused(tokio::time::Instant::now());
            let builder = SharedRules::<()>::builder()
                .rule(rule)
                .period(PERIOD)
                .term_clock(clock);
            let rules = builder.build(store.clone()).expect("rules");
            let mut by_lease = 0;
            for _ in 0..100 {
                if let Err(denied) = rules.check(&()).await {
                    by_lease += u64::from(denied.decided_by() == DecidedBy::Local);
                }
                sleep(PERIOD / 4).await;
            }
            let stats = rules.lease_stats();
            assert!(by_lease > 0, "{mode:?}, {node} node: {stats:?}");
            assert_eq!(stats.denied, by_lease, "{mode:?}, {node} node: {stats:?}");
            rules.flush().await.expect("an answer");
        }
    }
}
