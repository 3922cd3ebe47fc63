//! Stores and runtimes that fail. A panic of a store fails only its own call, and no call waits for a runtime that
//! has ended.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use ringgate::shared::{
    CounterStore, LeaseFuture, LeaseRequest, LeaseStore, MemoryStore, SharedLimiter, StoreError,
    StoreErrorKind,
};
use tokio::time::{sleep, timeout};

use crate::cut::PATIENCE;

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
            let flushed = timeout(PATIENCE, limiter.flush()).await.expect("it ends");
            let error = flushed.expect_err("the store panics");
            assert_eq!(error.kind(), StoreErrorKind::UnexpectedReply);
            let checked = timeout(PATIENCE, limiter.check("key")).await.expect("it ends");
            admitted += u64::from(checked.is_ok_and(|admitted| admitted.error().is_none()));
        }
        fault.store(false, Ordering::Relaxed);
        timeout(PATIENCE, limiter.flush())
            .await
            .expect("it ends")
            .expect("the store answers");
        let left = limiter.peek("key").await.expect("an answer")[0].remaining();
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
            let flushed = timeout(PATIENCE, waiting.flush()).await;
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
    let [first, second] = [(); 2].map(|()| {
        let builder = &mut tokio::runtime::Builder::new_current_thread();
        builder
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime")
    });
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
    let flushed = timeout(PATIENCE, limiter.flush()).await.expect("it ends");
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
