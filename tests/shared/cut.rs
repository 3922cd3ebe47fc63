//! Calls of a limiter that are dropped at an await, in every mode.

use alloc::sync::Arc;
use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use ringgate::shared::{CounterStore, DecidedBy, Mode, OnError, SharedLimiter};

/// The time after which a call counts as hanging.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const LIMIT: u64 = 1000;
const PERIOD: Duration = Duration::from_millis(20);

/// The point at which a future is dropped: after this number of polls, at once or when it is woken again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) polls: usize,
    pub(crate) when_woken: bool,
}

impl Cut {
    /// Polls the future and drops it at this point. `Some` if it was ready before.
    pub(crate) async fn off<F: Future>(self, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut polls = 0;
        poll_fn(|context| {
            if polls == self.polls {
                return Poll::Ready(None);
            }
            polls += 1;
            match future.as_mut().poll(context) {
                Poll::Ready(output) => Poll::Ready(Some(output)),
                Poll::Pending if polls == self.polls && !self.when_woken => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

/// The calls that are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Check,
    CheckMany,
    Flush,
    Peek,
    Refund,
    Reset,
}

pub(crate) const CALLS: [Call; 6] = [
    Call::Check,
    Call::CheckMany,
    Call::Flush,
    Call::Peek,
    Call::Refund,
    Call::Reset,
];

pub(crate) const MODES: [Mode; 4] = [
    Mode::Strict,
    Mode::Lease { permits: 100 },
    Mode::Sync {
        period: Duration::from_secs(10),
        pending: 100,
    },
    // The reserve is the whole limit, so only a budget can admit, and not the store.
    Mode::Sync {
        period: Duration::from_secs(10),
        pending: LIMIT,
    },
];

pub(crate) fn limiter(store: Arc<dyn CounterStore>, mode: Mode) -> SharedLimiter {
    SharedLimiter::builder("dropped", "1000/h".parse().expect("a quota"))
        .mode(mode)
        .term(Duration::from_secs(40))
        .period(PERIOD)
        .on_error(OnError::Deny)
        .build(store)
        .expect("a limiter")
}

/// Makes requests until a lease decides, and returns their number. Every request must be admitted.
pub(crate) async fn warm(limiter: &SharedLimiter, mode: Mode) -> u64 {
    let wanted = match mode {
        Mode::Lease { .. } | Mode::Sync { .. } => DecidedBy::Local,
        _ => DecidedBy::Store,
    };
    for asked in 1..=200 {
        let checked = tokio::time::timeout(PATIENCE, limiter.check("key")).await;
        let passed = checked.expect("no call hangs").unwrap_or_else(|denied| {
            panic!("{mode:?}: {denied}, {:?}", limiter.rules().lease_stats());
        });
        if passed.decided_by() == wanted {
            return asked;
        }
        // A node leases only if it has several requests in a period.
        if asked % 20 == 0 {
            tokio::time::sleep(PERIOD).await;
        }
    }
    panic!(
        "{mode:?}: {wanted:?} never decides: {:?}",
        limiter.rules().lease_stats()
    );
}

/// Drops one call. Returns whether it was ready before, and the least and the most permits that may be charged then.
pub(crate) async fn drop_one(limiter: &SharedLimiter, mode: Mode, call: Call, cut: Cut) -> (bool, u64, u64) {
    let mut admitted = warm(limiter, mode).await;
    for _ in 0..10 {
        admitted += u64::from(limiter.check("key").await.is_ok());
    }
    // Permits that may be charged although no call returned an admission, and permits that need not be charged.
    let (mut beyond, mut less) = (0, 0);
    let ready = match call {
        Call::Check | Call::CheckMany => {
            let permits = if call == Call::Check { 1 } else { 150 };
            let passed = cut.off(limiter.check_n("key", permits)).await;
            match &passed {
                Some(Ok(_)) => admitted += permits,
                Some(Err(denied)) => panic!("{denied}"),
                None => beyond = permits,
            }
            passed.is_some()
        }
        Call::Flush => cut.off(limiter.rules().flush()).await.is_some(),
        Call::Peek => cut.off(limiter.peek("key")).await.is_some(),
        Call::Refund => {
            let passed = limiter.check_n("key", 5).await.expect("room");
            admitted += 5;
            less = 5;
            cut.off(limiter.rules().refund(passed)).await.is_some()
        }
        Call::Reset => {
            less = admitted;
            cut.off(limiter.reset("key")).await.is_some()
        }
    };
    admitted += warm(limiter, mode).await;
    let flushed = tokio::time::timeout(PATIENCE, limiter.rules().flush()).await;
    flushed.expect("no flush hangs").expect("the store answers");
    let stats = limiter.rules().lease_stats();
    assert_eq!((stats.uncharged, stats.held), (0, 0), "{mode:?} {call:?} {cut:?}");
    // The limiter still works afterwards.
    admitted += warm(limiter, mode).await;
    let flushed = tokio::time::timeout(PATIENCE, limiter.rules().flush()).await;
    flushed.expect("no flush hangs").expect("the store answers");
    (ready, admitted - less, admitted + beyond)
}
