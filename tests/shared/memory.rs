//! The store in memory.

use alloc::sync::Arc;
use core::time::Duration;

use ringgate::ManualClock;
use ringgate::shared::{
    CheckResult, CounterRequest, CounterStore, Counting, LeaseFuture, LeaseRequest, LeaseStore, MemoryStore,
    SharedLimiter, StoreFuture, conformance,
};

#[tokio::test]
async fn keeps_every_promise() {
    let clock = Arc::new(ManualClock::new());
    let store = MemoryStore::with_clock(Arc::clone(&clock));
    let checked = conformance::check(&store, async |time| clock.advance(time)).await;
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

/// A fault of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    ChargesOnPeek,
    ForgetsOnRefund,
    IgnoresReset,
    ChargesEachByItself,
    IgnoresLeases,
    ChargesCopies,
    KnowsEveryLease,
    RegistersBudgets,
    KeepsLeasesForLong,
    ForgetsCarriedUse,
    DeniesDebt,
}

#[derive(Debug)]
struct Faulty(MemoryStore, Fault);

impl CounterStore for Faulty {
    fn decide<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        Box::pin(async move {
            if self.1 == Fault::ChargesEachByItself && requests.len() > 1 {
                self.0.decide(&requests[..1]).await?;
            }
            self.0.decide(requests).await
        })
    }

    fn peek<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        match self.1 {
            Fault::ChargesOnPeek => self.0.decide(requests),
            _ => self.0.peek(requests),
        }
    }

    fn charge<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        match self.1 {
            Fault::DeniesDebt => Box::pin(async { self.0.decide(requests).await.map(|_| ()) }),
            _ => self.0.charge(requests),
        }
    }

    fn refund<'a>(
        &'a self,
        requests: &'a [CounterRequest],
        charged: &'a CheckResult,
    ) -> StoreFuture<'a, u64> {
        match self.1 {
            Fault::ForgetsOnRefund => Box::pin(async { Ok(0) }),
            _ => self.0.refund(requests, charged),
        }
    }

    fn reset<'a>(&'a self, requests: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        match self.1 {
            Fault::IgnoresReset => Box::pin(async { Ok(()) }),
            _ => self.0.reset(requests),
        }
    }

    forward!(keeps leases);
}

impl LeaseStore for Faulty {
    fn renew<'a>(&'a self, requests: &'a [LeaseRequest]) -> LeaseFuture<'a> {
        Box::pin(async move {
            let mut request = requests[0].clone();
            let counter = request.counter.clone();
            match self.1 {
                Fault::IgnoresLeases => {
                    request.is_registered = false;
                    self.0.renew(&[request]).await
                }
                Fault::ChargesCopies if request.charge > 0 => {
                    let charge = counter.with_permits(request.charge);
                    let answer = self.0.renew(&[request]).await;
                    let _ = self.0.decide(&[charge]).await;
                    answer
                }
                Fault::KnowsEveryLease => {
                    let first = LeaseRequest::first(counter, request.lease_id, 4, request.term);
                    let answer = self.0.renew(&[request]).await;
                    match answer[0].as_ref().is_ok_and(|grant| grant.permits.is_none()) {
                        true => self.0.renew(&[first]).await,
                        false => answer,
                    }
                }
                Fault::RegistersBudgets if !request.is_registered => {
                    let first = LeaseRequest::first(counter, request.lease_id, 4, request.term);
                    self.0.renew(&[first]).await
                }
                Fault::KeepsLeasesForLong if request.is_new => {
                    let (id, term) = (request.lease_id, 10 * request.term);
                    let mut first = LeaseRequest::first(counter, id, request.wanted, term);
                    first.is_registered = request.is_registered;
                    self.0.renew(&[first]).await
                }
                Fault::ForgetsCarriedUse if request.is_new => {
                    (request.charge, request.cap) = (0, 0);
                    self.0.renew(&[request]).await
                }
                _ => self.0.renew(&[request]).await,
            }
        })
    }
}

/// The conformance tests find each of these faults.
#[tokio::test]
async fn every_fault_is_found() {
    for fault in [
        Fault::ChargesOnPeek,
        Fault::ForgetsOnRefund,
        Fault::IgnoresReset,
        Fault::ChargesEachByItself,
        Fault::IgnoresLeases,
        Fault::ChargesCopies,
        Fault::KnowsEveryLease,
        Fault::RegistersBudgets,
        Fault::KeepsLeasesForLong,
        Fault::ForgetsCarriedUse,
        Fault::DeniesDebt,
    ] {
        let clock = Arc::new(ManualClock::new());
        let store = Faulty(MemoryStore::with_clock(Arc::clone(&clock)), fault);
        let checked = conformance::check(&store, async |time| clock.advance(time)).await;
        let broken = checked.expect_err("a broken promise");
        println!("{fault:?}: {broken}");
    }
}

/// The store removes a counter when none of its charges counts, so the store does not grow with expired keys.
#[tokio::test]
async fn expired_keys_take_no_memory() {
    let clock = Arc::new(ManualClock::new());
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    let limiter = SharedLimiter::builder("keys", "1/s".parse().expect("a quota"))
        .build(store.clone())
        .expect("a limiter");
    for key in 0..100_000_u32 {
        assert!(limiter.check(key.to_le_bytes()).await.is_ok());
        clock.advance(Duration::from_millis(10));
    }
    // The charges of a window and a cell count. The store has at most twice as many counters.
    let shown = format!("{store:?}");
    let count = shown
        .split(|c: char| !c.is_ascii_digit())
        .find_map(|word| word.parse().ok());
    let count: usize = count.expect("a number of counters");
    assert!(count < 500, "{shown}");
}

/// The bytes of a lease are the difference between two limiters, divided by the difference of their leases.
#[tokio::test]
async fn a_lease_is_as_large_as_documented() {
    let bytes = |leases| {
        let mut limiter = None;
        let counted = allocation_counter::measure(|| {
            let builder = SharedLimiter::builder("leases", "100/s".parse().expect("a quota"));
            let builder = builder.lease(10).leases(leases);
            limiter = Some(
                builder
                    .build(Arc::new(MemoryStore::default()))
                    .expect("a limiter"),
            );
        });
        counted.bytes_current
    };
    let each = (bytes(20_000) - bytes(10_000)) / 10_000;
    assert!((470..=490).contains(&each), "{each} bytes");
}

/// A clock that goes back makes limits stricter, and never looser.
#[tokio::test]
async fn a_clock_that_goes_back_is_stricter() {
    for counting in [Counting::Log, Counting::Cells(5)] {
        let clock = Arc::new(ManualClock::new());
        let store = MemoryStore::with_clock(Arc::clone(&clock));
        let one = [CounterRequest::new(
            "back",
            1,
            counting,
            1,
            Duration::from_secs(1),
        )];
        clock.advance(Duration::from_secs(10));
        assert!(store.decide(&one).await.expect("an answer").is_admitted);
        clock.set(ringgate::Nanos::ZERO);
        assert!(!store.decide(&one).await.expect("an answer").is_admitted);
        clock.advance(Duration::from_secs(12));
        assert!(store.decide(&one).await.expect("an answer").is_admitted);
    }
}
