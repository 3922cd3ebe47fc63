//! A store whose calls yield to the scheduler before and after they take effect, for tests that drop futures at every
//! await. It can be slow, and refuse renewals.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::time::Duration;

use ringgate::shared::{
    CounterStore, LeaseFuture, LeaseRequest, LeaseStore, MemoryStore, StoreError, StoreErrorKind,
};

#[derive(Debug, Default)]
pub(crate) struct Pausing {
    store: MemoryStore,
    /// The duration of a call without its pauses.
    time: Duration,
    /// Whether each lease of a renewal is answered with an error.
    pub(crate) refuses: AtomicBool,
    /// The calls that renew leases.
    pub(crate) renewals: AtomicU32,
}

impl Pausing {
    pub(crate) fn slow(time: Duration) -> Self {
        Self {
            time,
            ..Self::default()
        }
    }

    pub(crate) fn over(store: MemoryStore) -> Self {
        Self {
            store,
            ..Self::default()
        }
    }

    async fn between<T>(&self, call: impl Future<Output = T>) -> T {
        pause().await;
        if !self.time.is_zero() {
            tokio::time::sleep(self.time).await;
        }
        let output = call.await;
        pause().await;
        output
    }
}

async fn pause() {
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
}

impl CounterStore for Pausing {
    forward!(store by between: decide peek charge refund reset);

    forward!(keeps slots leases);
}

impl LeaseStore for Pausing {
    fn renew<'a>(&'a self, requests: &'a [LeaseRequest]) -> LeaseFuture<'a> {
        self.renewals.fetch_add(1, Ordering::Relaxed);
        Box::pin(self.between(async move {
            if self.refuses.load(Ordering::Relaxed) {
                let error = StoreError::new(StoreErrorKind::UnexpectedReply, "NOPERM");
                return vec![Err(error); requests.len()];
            }
            self.store.renew(requests).await
        }))
    }
}
