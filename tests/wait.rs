//! Wait queues serve requests in order of arrival.
#![cfg(all(
    feature = "quanta",
    feature = "wait",
    feature = "rules",
    not(any(miri, ringgate_loom))
))]

extern crate alloc;

// First, because its macro is in scope below it only.
#[cfg(feature = "shared")]
#[macro_use]
#[path = "common/forward.rs"]
mod forward;

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
use alloc::task::Wake;
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::Mutex;

use futures_core::Stream;
use futures_sink::Sink;
use random::Random;
use ringgate::rules::{Condition, Cost, RuleAlgorithm, RuleSetBuilder};
use ringgate::wait::{CheckError, PacedSink, PacedStream, TokioClock, WaitError};
use ringgate::{CounterRing, Fair, Gcra, Key, LiveRules, Quota, RateLimiter, Rule, RuleSet, TimestampRing};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::Instant;

type Log = Arc<Fair<RateLimiter<TimestampRing, TokioClock>>>;

/// A sliding log with wait queues, in tokio's time.
fn log(quota: &str) -> Log {
    Arc::new(Fair::new(bare_log(quota)))
}

fn bare_log(quota: &str) -> RateLimiter<TimestampRing, TokioClock> {
    let ring = TimestampRing::new(quota.parse().unwrap()).unwrap();
    RateLimiter::with_clock(ring, TokioClock::new())
}

/// Any algorithm with wait queues, in tokio's time.
fn fair<A: ringgate::Algorithm>(algorithm: A) -> Arc<Fair<RateLimiter<A, TokioClock>>> {
    Arc::new(Fair::new(RateLimiter::with_clock(algorithm, TokioClock::new())))
}

/// Rules with wait queues, in tokio's time.
fn fair_rules<R: ?Sized>(rules: RuleSetBuilder<R>) -> Arc<Fair<RuleSet<R, TokioClock>>> {
    Arc::new(Fair::new(
        rules.build_with(TokioClock::new(), [1, 2, 3, 4]).unwrap(),
    ))
}

/// The error of a wait that ends now.
fn too_late(needed: Duration, allowed: Duration) -> WaitError {
    WaitError::TooLate { needed, allowed }
}

/// A runtime of one thread whose time is paused.
fn paused() -> Runtime {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    runtime.unwrap()
}

/// A runtime with a thread of its own.
fn threaded() -> Runtime {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build();
    runtime.unwrap()
}

/// The output of a task that ends within a minute.
async fn ended<T>(task: JoinHandle<T>) -> T {
    let output = tokio::time::timeout(ms(60_000), task).await;
    output.expect("a waiter is forgotten").unwrap()
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
