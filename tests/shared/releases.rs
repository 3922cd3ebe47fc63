//! Releases of slots in flight by the thousand, and releases whose futures are dropped.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use ringgate::Rule;
use ringgate::rules::Mode;
use ringgate::rules::kind::InFlight;
use ringgate::shared::{CheckResult, CounterRequest, CounterStore, MemoryStore, SharedRules, StoreFuture};
use tokio::time::{Instant, sleep};

use crate::cut::Cut;
use crate::many::Paused;
use crate::pausing::Pausing;
use crate::{memory, user};

const TERM: Duration = Duration::from_secs(2);
/// A moment in which the task of a node releases slots.
const MOMENT: Duration = Duration::from_millis(1);

/// A store whose renewals and releases of slots take some time. The first releases panic.
#[derive(Debug)]
struct Slow {
    store: Arc<MemoryStore>,
    time: Duration,
    panics: u32,
    releases: AtomicU32,
}

impl Slow {
    async fn slowly<T>(&self, call: impl Future<Output = T>) -> T {
        sleep(self.time).await;
        call.await
    }
}

impl CounterStore for Slow {
    forward!(store: decide peek reset);
    forward!(store by slowly: charge);

    fn refund<'a>(
        &'a self,
        requests: &'a [CounterRequest],
        charged: &'a CheckResult,
    ) -> StoreFuture<'a, u64> {
        let before = self.releases.fetch_add(1, Ordering::Relaxed);
        assert!(before >= self.panics, "the store panics");
        Box::pin(self.slowly(self.store.refund(requests, charged)))
    }

    forward!(keeps slots);
}

fn slots(limit: u64) -> Rule<str, InFlight> {
    Rule::in_flight("slots", limit).by(&user())
}

fn node(store: Arc<dyn CounterStore>, limit: u64) -> SharedRules<str> {
    let rules = SharedRules::builder().term(TERM).rule(slots(limit));
    rules.build(store).expect("rules")
}

fn slow(time: Duration, panics: u32) -> Arc<Slow> {
    Arc::new(Slow {
        store: memory(),
        time,
        panics,
        releases: AtomicU32::new(0),
    })
}

/// The slots that the store counts.
async fn taken(node: &SharedRules<str>, limit: u64) -> u64 {
    limit - node.peek("alice").await.expect("an answer")[0].remaining
}

#[tokio::test(start_paused = true)]
async fn slots_are_renewed_in_time_beside_any_number_of_releases() {
    const LIMIT: u64 = 100_000;
    // The slots that are held, those that are released, and the time of a call in milliseconds.
    for (held, released, time) in [
        (32, 32, 10),
        (4_000, 0, 20),
        (1, 3_000, 100),
        (33, 9_000, 60),
        (300, 10_000, 10),
        (2_000, 2_000, 40),
        (256, 257, 200),
    ] {
        let case = format!("{held} held, {released} released, {time} ms");
        let one = node(slow(Duration::from_millis(time), 0), LIMIT);
        let mut admitted = Vec::new();
        for _ in 0..held + released {
            admitted.push(one.check("alice").await.expect("a slot"));
        }
        admitted.truncate(held);
        for _ in 0..64 {
            sleep(TERM / 16).await;
            let taken = taken(&one, LIMIT).await;
            assert!(taken >= held as u64, "{case}: {taken}");
        }
        assert_eq!(taken(&one, LIMIT).await, held as u64, "{case}");
        drop(admitted);
        one.flush().await.expect("an answer");
        assert_eq!(taken(&one, LIMIT).await, 0, "{case}");
    }
}

/// A store that panics is not called in a loop, and the next releases reach it.
#[tokio::test(start_paused = true)]
async fn a_panic_of_the_store_ends_one_release() {
    let store = slow(Duration::ZERO, 2);
    let one = node(store.clone(), 3);
    for released in 1..=3 {
        drop(one.check("alice").await.expect("a slot"));
        sleep(MOMENT).await;
        assert_eq!(store.releases.load(Ordering::Relaxed), released);
    }
    // The first two slots end after their term.
    assert_eq!(taken(&one, 3).await, 2);
    sleep(TERM).await;
    assert_eq!(taken(&one, 3).await, 0);
}

/// The slots and the leases are given back, wherever the future of a flush is dropped after its first poll.
#[tokio::test(start_paused = true)]
async fn a_flush_that_is_dropped_releases_everything() {
    let period = Duration::from_secs(10);
    // One call, and several parts of several calls.
    for held in [1, 2, 33, 300] {
        for when_woken in [false, true] {
            for polls in 1.. {
                let store = MemoryStore::with_clock(Paused(Instant::now()));
                let budget = Rule::new("budget", "9999/h".parse().expect("a quota")).by(&user());
                let one = SharedRules::builder()
                    .term(4 * period)
                    .rule(slots(1_000))
                    .rule(budget.mode(Mode::Sync { period, pending: 100 }))
                    .build(Arc::new(Pausing::over(store)))
                    .expect("rules");
                let mut admitted = Vec::new();
                for _ in 0..held {
                    admitted.push(one.check("alice").await.expect("a slot"));
                }
                drop(admitted);
                let flushed = Cut { polls, when_woken }.off(one.flush()).await;
                sleep(MOMENT).await;
                let context = format!("{held} slots, {polls} polls, {when_woken}");
                let stats = one.lease_stats();
                assert_eq!((stats.uncharged, stats.held), (0, 0), "{context}");
                assert_eq!(taken(&one, 1_000).await, 0, "{context}");
                if let Some(flushed) = flushed {
                    flushed.expect("the store answers");
                    break;
                }
            }
        }
    }
}
