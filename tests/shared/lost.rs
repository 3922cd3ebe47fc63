//! Leases that the store has ended meanwhile, and leases that are given to another key while a flush waits for them.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use ringgate::Rule;
use ringgate::rules::RuleAlgorithm;
use ringgate::shared::{DecidedBy, Mode, OnError, SharedRules};
use tokio::time::{Instant, sleep};

use crate::many::Paused;
use crate::slots::Connection;
use crate::{memory, user};

const PERIOD: Duration = Duration::from_millis(20);
const TERM: Duration = Duration::from_secs(1);
const LIMIT: u64 = 1000;

fn node(store: &Arc<Connection>, mode: Mode, on_error: OnError) -> SharedRules<str> {
    let quota = format!("{LIMIT}/h").parse().expect("a quota");
    let rule = Rule::new("user", quota)
        .by(&user())
        .algorithm(RuleAlgorithm::Log)
        .mode(mode);
    SharedRules::builder()
        .rule(rule.on_error(on_error))
        .term(TERM)
        .period(PERIOD)
        .leases(1)
        .term_clock(Paused(Instant::now()))
        .build(store.clone())
        .expect("rules")
}

const fn modes() -> [Mode; 2] {
    [
        Mode::Lease { permits: 50 },
        Mode::Sync {
            period: PERIOD,
            pending: 50,
        },
    ]
}

/// Makes requests until a lease decides, and returns their number.
async fn warm(rules: &SharedRules<str>, key: &str) -> u64 {
    for requests in 1..=LIMIT {
        let admitted = rules.check(key).await.expect("room");
        if admitted.decided_by() == DecidedBy::Local && requests > 10 {
            return requests;
        }
        if requests % 20 == 0 {
            sleep(PERIOD).await;
        }
    }
    panic!("no lease decides: {:?}", rules.lease_stats());
}

/// The connection is cut, the node spends its lease, and the store has ended the lease when it answers again. In the next outage, the
/// limiter of the node admits what its use of this window has left.
#[tokio::test(start_paused = true)]
async fn the_use_of_a_lost_lease_counts_for_the_next_outage() {
    for mode in modes() {
        // The permits that are spent before the first report fails, and after it.
        for (before, after) in [(1, 0), (1, 1), (1, 3), (0, 4), (2, 2), (0, 0)] {
            let context = format!("{mode:?}, {before} and {after}");
            let store = Connection::new(memory());
            let rules = node(&store, mode, OnError::Local);
            let mut admitted = warm(&rules, "alice").await;
            let mut spend = |permits| {
                for _ in 0..permits {
                    let by_lease = rules.check_now("alice").expect("a lease").expect("room");
                    assert_eq!(by_lease.decided_by(), DecidedBy::Local, "{context}");
                }
                admitted += permits;
            };
            store.cut(true);
            spend(before);
            sleep(2 * PERIOD).await;
            spend(after);
            sleep(2 * TERM).await;
            store.cut(false);
            sleep(4 * PERIOD).await;
            store.cut(true);
            // A budget is granted again when its use is charged.
            while let Ok(on_node) = rules.check("alice").await {
                assert_ne!(on_node.decided_by(), DecidedBy::Store, "{context}");
                admitted += 1;
            }
            assert_eq!(admitted, LIMIT, "{context}");
        }
    }
}

/// A flush waits for the leases that it has released, and not for those of other keys that have taken their place.
#[tokio::test(start_paused = true)]
async fn a_flush_does_not_wait_for_the_next_key() {
    for mode in modes() {
        for is_cut in [false, true] {
            for next in [1, 2, 4] {
                let store = Connection::new(memory());
                let rules = node(&store, mode, OnError::Deny);
                // There is room for four leases.
                for key in ["a", "b", "c", "d"] {
                    warm(&rules, key).await;
                }
                let mut flush = pin!(rules.flush());
                let first = poll_fn(|context| Poll::Ready(flush.as_mut().poll(context))).await;
                assert!(first.is_pending());
                sleep(PERIOD).await;
                assert_eq!(rules.lease_stats().held + rules.lease_stats().uncharged, 0);
                let keys = &["e", "f", "g", "h"][..next];
                for key in keys {
                    warm(&rules, key).await;
                }
                store.cut(is_cut);
                for key in keys {
                    assert!(rules.check_now(key).expect("a lease").is_ok());
                }
                sleep(2 * PERIOD).await;
                let flushed = flush.await;
                assert_eq!(flushed, Ok(()), "{mode:?}, cut: {is_cut}, {next} keys");
            }
        }
    }
}

/// A flush also ends the demand of requests that the store has decided. Otherwise the node would get a lease for them while the flush
/// waits for another key, and the store would keep its permits after the process has ended.
#[tokio::test(start_paused = true)]
async fn a_flush_gets_no_lease_for_earlier_requests() {
    let store = Connection::new(memory());
    let rules = node(&store, Mode::Lease { permits: 50 }, OnError::Deny);
    warm(&rules, "leased").await;
    for _ in 0..6 {
        let admitted = rules.check("asked").await.expect("room");
        assert_eq!(admitted.decided_by(), DecidedBy::Store);
    }
    rules.flush().await.expect("the store answers");
    for _ in 0..3 {
        let stats = rules.lease_stats();
        assert_eq!((stats.held, stats.uncharged), (0, 0));
        sleep(PERIOD).await;
    }
}
