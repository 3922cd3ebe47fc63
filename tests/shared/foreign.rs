//! Stores and runtimes that fail. A panic of a store fails only its own call, and no call waits for a runtime that has ended. A
//! store that answers every renewal with an error is asked once in a period, and no request waits for it.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, OnceLock};
use std::thread;

use ringgate::shared::{
    CounterStore, DecidedBy, LeaseFuture, LeaseRequest, LeaseStore, MemoryStore, Mode, OnError,
    SharedLimiter, SharedRules, StoreError, StoreErrorKind,
};
use ringgate::{Clock, ManualClock, Nanos, Rule};
use tokio::task;
use tokio::time::{Instant, sleep, timeout};

use crate::cut::PATIENCE;
use crate::many::Paused;
use crate::pausing::Pausing;
use crate::{runtime, user};

/// A store that panics while a flag is set, in the call of a lease or in its future.
#[derive(Debug, Default)]
struct Panicking {
    store: MemoryStore,
    in_call: AtomicBool,
    in_future: AtomicBool,
}

impl CounterStore for Panicking {
    forward!(store: decide peek charge refund reset);
    forward!(keeps leases);
}

impl LeaseStore for Panicking {
    fn renew<'a>(&'a self, requests: &'a [LeaseRequest]) -> LeaseFuture<'a> {
        assert!(
            !self.in_call.load(Ordering::Relaxed),
            "the store panics in the call"
        );
        Box::pin(async move {
            let grants = self.store.renew(requests).await;
            // The charge is made, and its answer is lost.
            assert!(
                !self.in_future.load(Ordering::Relaxed),
                "the store panics in the future"
            );
            grants
        })
    }
}

fn limiter(store: Arc<dyn CounterStore>) -> SharedLimiter {
    SharedLimiter::builder("all", "1000/h".parse().expect("a quota"))
        .sync(Duration::from_millis(5), 100)
        .build(store)
        .expect("a limiter")
}

/// While the store panics, requests are decided by their fallback, and calls end. Afterwards leases continue, and
/// each permit is charged once. More calls have panicked than may be pending at the same time.
#[tokio::test]
async fn a_panic_of_a_store_fails_only_its_own_call() {
    for in_call in [true, false] {
        let store = Arc::new(Panicking::default());
        let limiter = limiter(store.clone());
        let mut admitted = 0;
        for _ in 0..50 {
            assert!(limiter.check("key").await.is_ok());
            admitted += 1;
        }
        let fault = if in_call { &store.in_call } else { &store.in_future };
        fault.store(true, Ordering::Relaxed);
        for _ in 0..20 {
            let flushed = timeout(PATIENCE, limiter.rules().flush()).await.expect("it ends");
            let error = flushed.expect_err("the store panics");
            assert_eq!(error.kind(), StoreErrorKind::UnexpectedReply);
            let checked = timeout(PATIENCE, limiter.check("key")).await.expect("it ends");
            admitted += u64::from(checked.is_ok_and(|admitted| admitted.error().is_none()));
        }
        fault.store(false, Ordering::Relaxed);
        timeout(PATIENCE, limiter.rules().flush())
            .await
            .expect("it ends")
            .expect("the store answers");
        let left = limiter.peek("key").await.expect("an answer")[0].remaining;
        assert_eq!(1000 - left, admitted, "{in_call}");
        let checked = timeout(PATIENCE, limiter.check("key")).await.expect("it ends");
        assert!(checked.expect("room").error().is_none());
    }
}

/// The task that renews leases has ended with its runtime. Calls from another runtime fail instead of waiting for it.
#[test]
fn no_call_waits_for_a_runtime_that_has_ended() {
    let [first, second] = [(); 2].map(|()| {
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        builder.enable_time().build().expect("a runtime")
    });
    let limiter = first.block_on(async {
        let limiter = limiter(Arc::new(MemoryStore::new()));
        for _ in 0..10 {
            assert!(limiter.check("key").await.is_ok());
        }
        limiter
    });
    let limiter = Arc::new(limiter);
    // One flush waits when the runtime ends, and one starts after it.
    let waiting = Arc::clone(&limiter);
    let waiting = std::thread::spawn(move || {
        second.block_on(async move {
            let flushed = timeout(PATIENCE, waiting.rules().flush()).await;
            (flushed, second_flush(&waiting).await)
        })
    });
    std::thread::sleep(Duration::from_millis(50));
    drop(first);
    let (flushed, again) = waiting.join().expect("no panic");
    for flushed in [flushed.expect("it ends"), again] {
        assert_eq!(flushed.expect_err("no task").kind(), StoreErrorKind::Down);
    }
}

/// The runtime ends before it has polled the task once.
#[test]
fn no_call_waits_for_a_task_that_never_ran() {
    let [first, second] = [(); 2].map(|()| runtime());
    let limiter = first.block_on(async { limiter(Arc::new(MemoryStore::new())) });
    drop(first);
    second.block_on(async {
        for _ in 0..2 {
            let admitted = limiter
                .check("key")
                .await
                .expect("the limiter of this node decides");
            assert_eq!(admitted.error().map(StoreError::kind), Some(StoreErrorKind::Down));
        }
    });
}

async fn second_flush(limiter: &SharedLimiter) -> Result<(), StoreError> {
    let flushed = timeout(PATIENCE, limiter.rules().flush()).await.expect("it ends");
    sleep(Duration::from_millis(1)).await;
    // A budget is spent until its term ends. Then the limiter of the node decides.
    for _ in 0..200 {
        assert!(
            timeout(PATIENCE, limiter.check("key"))
                .await
                .expect("it ends")
                .is_ok()
        );
    }
    flushed
}

/// A clock that the task which renews leases cannot read while a gate is closed. That task is the first one that reads it.
struct Gated {
    clock: ManualClock,
    renewer: OnceLock<task::Id>,
    is_closed: Mutex<bool>,
    opened: Condvar,
    waits: Sender<()>,
}

impl Gated {
    fn new() -> (Arc<Self>, Receiver<()>) {
        let (waits, waiting) = channel();
        let gated = Self {
            clock: ManualClock::new(),
            renewer: OnceLock::new(),
            is_closed: Mutex::new(false),
            opened: Condvar::new(),
            waits,
        };
        (Arc::new(gated), waiting)
    }

    fn close(&self, is_closed: bool) {
        *self.is_closed.lock().expect("no panic") = is_closed;
        self.opened.notify_all();
    }
}

impl Clock for Gated {
    fn now(&self) -> Nanos {
        if let Some(task) = task::try_id()
            && *self.renewer.get_or_init(|| task) == task
        {
            let mut is_closed = self.is_closed.lock().expect("no panic");
            if *is_closed {
                self.waits.send(()).expect("the test waits for it");
            }
            while *is_closed {
                is_closed = self.opened.wait(is_closed).expect("no panic");
            }
        }
        self.clock.now()
    }
}

/// Sends a message when it is dropped.
struct SaysDropped(Sender<()>);

impl Drop for SaysDropped {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// The runtime ends while the task that renews leases makes requests, so it drops the calls of these requests at once.
#[test]
fn a_runtime_that_ends_during_a_renewal_locks_nothing() {
    let period = Duration::from_millis(1);
    for mode in [
        Mode::Sync { period, pending: 100 },
        Mode::Sync { period, pending: 1 },
        Mode::Lease { permits: 100 },
    ] {
        // One call, several calls, and more requests than there is room for.
        for keys in [1, 2, 33, 300] {
            let case = format!("{mode:?}, {keys} keys");
            let (clock, waiting) = Gated::new();
            let builder = &mut tokio::runtime::Builder::new_multi_thread();
            let ends = builder
                .worker_threads(2)
                .enable_time()
                .build()
                .expect("a runtime");
            let rule = Rule::new("user", "1000000/h".parse().expect("a quota")).by(&user());
            let (ended, has_ended) = channel();
            let rules = ends.block_on(async {
                let rules = SharedRules::<str>::builder()
                    .rule(rule.mode(mode).on_error(OnError::Deny))
                    .period(period)
                    .term_clock(Arc::clone(&clock))
                    .build(Arc::new(MemoryStore::new()))
                    .expect("rules");
                let says_dropped = SaysDropped(ended);
                tokio::spawn(async move {
                    let _says_dropped = says_dropped;
                    core::future::pending::<()>().await;
                });
                for key in 0..keys {
                    let key = format!("{key}");
                    // Without a free lease, the store decides.
                    for _ in 0..1_000 {
                        if rules.check(&*key).await.expect("room").decided_by() == DecidedBy::Local {
                            break;
                        }
                        clock.clock.advance(period / 10);
                    }
                }
                rules
            });
            clock.close(true);
            // All leases are due.
            clock.clock.advance(2 * period);
            waiting.recv_timeout(PATIENCE).expect("the task renews leases");
            ends.shutdown_background();
            has_ended.recv_timeout(PATIENCE).expect("the runtime ends");
            clock.close(false);
            let (send, stats) = channel();
            thread::spawn(move || send.send(rules.lease_stats()));
            let stats = stats.recv_timeout(PATIENCE);
            assert!(stats.is_ok_and(|stats| stats.leases > 0), "{case}");
        }
    }
}

const ROUND_TRIP: Duration = Duration::from_millis(2);
const PERIOD: Duration = Duration::from_millis(20);
const FOR: Duration = Duration::from_millis(1500);

/// The time is that of tokio, which stands still while any task can run.
#[tokio::test(start_paused = true)]
async fn renewals_that_fail_are_not_repeated_without_a_pause() {
    let store = Arc::new(Pausing::slow(ROUND_TRIP));
    store.refuses.store(true, Ordering::Relaxed);
    let mode = Mode::Sync {
        period: PERIOD,
        pending: 100,
    };
    let rule = Rule::new("refusing", "1000000/s".parse().expect("a quota"));
    let limiter = SharedRules::<()>::builder()
        .rule(rule.mode(mode).on_error(OnError::Admit))
        .term_clock(Paused(Instant::now()))
        .build(store.clone())
        .expect("rules");
    let limiter = Arc::new(limiter);
    let began = Instant::now();
    let callers: Vec<_> = (0..16)
        .map(|_| {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move {
                while began.elapsed() < FOR {
                    let asked = Instant::now();
                    let admitted = limiter.check(&()).await.expect("OnError::Admit");
                    let error = admitted.error().expect("no renewal succeeds");
                    assert_eq!(error.kind(), StoreErrorKind::UnexpectedReply);
                    let waited = asked.elapsed();
                    // Timers of tokio have a resolution of a millisecond.
                    assert!(waited <= 2 * ROUND_TRIP, "a request has waited for {waited:?}");
                    sleep(Duration::from_millis(1)).await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.expect("no panic");
    }
    // A period is at least half as long, by its jitter.
    let most = u32::try_from(FOR.as_millis() / (PERIOD / 2).as_millis()).expect("a few") + 2;
    let renewals = store.renewals.load(Ordering::Relaxed);
    assert!(
        (2..=most).contains(&renewals),
        "{renewals} renewals, at most {most} expected"
    );

    // Once the store answers, the budget is granted in a period.
    store.refuses.store(false, Ordering::Relaxed);
    sleep(2 * PERIOD).await;
    let admitted = limiter.check(&()).await.expect("there is room");
    assert!(admitted.error().is_none(), "{admitted:?}");
}
