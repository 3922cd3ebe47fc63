//! A store answers every renewal with an error. Each lease is renewed once in a period, and no request waits for it.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;

use ringgate::Rule;
use ringgate::shared::{
    CounterStore, LeaseFuture, LeaseRequest, LeaseStore, MemoryStore, Mode, OnError, SharedRules, StoreError,
    StoreErrorKind,
};
use tokio::time::{Instant, sleep};

use crate::many::Paused;

#[derive(Debug, Default)]
struct Refusing {
    store: MemoryStore,
    refuses: AtomicBool,
    renewals: AtomicU32,
}

impl CounterStore for Refusing {
    forward!(store: decide peek charge refund reset);
    forward!(keeps leases);
}

impl LeaseStore for Refusing {
    fn renew<'a>(&'a self, requests: &'a [LeaseRequest]) -> LeaseFuture<'a> {
        Box::pin(async move {
            self.renewals.fetch_add(1, Ordering::Relaxed);
            sleep(ROUND_TRIP).await;
            if self.refuses.load(Ordering::Relaxed) {
                let error = || Err(StoreError::new(StoreErrorKind::UnexpectedReply, "NOPERM"));
                return requests.iter().map(|_| error()).collect();
            }
            self.store.renew(requests).await
        })
    }
}

const ROUND_TRIP: Duration = Duration::from_millis(2);
const PERIOD: Duration = Duration::from_millis(20);
const FOR: Duration = Duration::from_millis(1500);

/// The time is that of tokio, which stands still while any task can run.
#[tokio::test(start_paused = true)]
async fn renewals_that_fail_are_not_repeated_without_a_pause() {
    let store = Arc::new(Refusing::default());
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
