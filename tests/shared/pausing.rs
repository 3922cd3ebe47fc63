//! A store whose calls yield to the scheduler before and after they take effect, for tests that drop futures at every
//! await.

use core::time::Duration;

use ringgate::shared::{CounterStore, LeaseFuture, LeaseRequest, LeaseStore, MemoryStore};

#[derive(Debug, Default)]
pub(crate) struct Pausing {
    store: MemoryStore,
    /// The duration of a call without its pauses.
    time: Duration,
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
            time: Duration::ZERO,
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
        Box::pin(self.between(self.store.renew(requests)))
    }
}
