//! Wait queues serve requests in order of arrival.
#![cfg(all(
    feature = "quanta",
    feature = "wait",
    feature = "rules",
    not(any(miri, ringgate_loom))
))]

extern crate alloc;

#[path = "wait/adapters.rs"]
mod adapters;
#[cfg(feature = "shared")]
#[path = "wait/asks.rs"]
mod asks;
#[path = "wait/cancel.rs"]
mod cancel;
#[path = "wait/dropped.rs"]
mod dropped;
#[path = "wait/faults.rs"]
mod faults;
#[path = "wait/keys.rs"]
mod keys;
#[path = "wait/limits.rs"]
mod limits;
#[path = "wait/many.rs"]
mod many;
#[path = "wait/order.rs"]
mod order;
#[cfg(feature = "shared")]
#[path = "wait/outages.rs"]
mod outages;
#[path = "wait/pause.rs"]
mod pause;
#[path = "common/random.rs"]
mod random;
#[path = "wait/replaced.rs"]
mod replaced;
#[path = "wait/rules.rs"]
mod rules;
#[cfg(feature = "shared")]
#[path = "wait/shared.rs"]
mod shared;
#[cfg(feature = "shared")]
#[path = "wait/shared_store.rs"]
mod shared_store;
#[cfg(feature = "shared")]
#[path = "wait/slots.rs"]
mod slots;

use alloc::sync::Arc;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use ringgate::wait::TokioClock;
use ringgate::{Fair, RateLimiter, TimestampRing};

type Log = Arc<Fair<RateLimiter<TimestampRing, TokioClock>>>;

/// A sliding log with wait queues, in tokio's time.
fn log(quota: &str) -> Log {
    Arc::new(Fair::new(bare_log(quota)))
}

fn bare_log(quota: &str) -> RateLimiter<TimestampRing, TokioClock> {
    let ring = TimestampRing::new(quota.parse().unwrap()).unwrap();
    RateLimiter::with_clock(ring, TokioClock::new())
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Runs every other task until it waits.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Polls a future once, without a task to wake.
fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}
