//! A store whose calls return to the scheduler before and after they take effect, for tests that have to know every await.

use ringgate::shared::{
    CheckResult, CounterRequest, CounterStore, LeaseFuture, LeaseRequest, LeaseStore, MemoryStore,
    StoreFuture,
};

#[derive(Debug, Default)]
pub(crate) struct Pausing(MemoryStore);

async fn pause() {
    tokio::task::yield_now().await;
    tokio::task::yield_now().await;
}

async fn between<T>(call: impl Future<Output = T>) -> T {
    pause().await;
    let output = call.await;
    pause().await;
    output
}

impl CounterStore for Pausing {
    fn decide<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        Box::pin(between(self.0.decide(requests)))
    }

    fn peek<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        Box::pin(between(self.0.peek(requests)))
    }

    fn charge<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        Box::pin(between(self.0.charge(requests)))
    }

    fn refund<'a>(
        &'a self,
        requests: &'a [CounterRequest],
        charged: &'a CheckResult,
    ) -> StoreFuture<'a, u64> {
        Box::pin(between(self.0.refund(requests, charged)))
    }

    fn reset<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        Box::pin(between(self.0.reset(requests)))
    }

    fn leases(&self) -> Option<&dyn LeaseStore> {
        Some(self)
    }
}

impl LeaseStore for Pausing {
    fn renew<'a>(&'a self, requests: &'a [LeaseRequest]) -> LeaseFuture<'a> {
        Box::pin(between(self.0.renew(requests)))
    }
}
