//! Panics, stopped runtimes and runtimes without timers do not block other waiters.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::mpsc;
use std::thread;

use ringgate::rules::{Cost, RuleAlgorithm, RuleSetBuilder};
use ringgate::wait::TokioClock;
use ringgate::{Fair, LiveRules, ManualClock, RateLimiter, Rule, TimestampRing};
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use super::{ms, poll, settle};

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

fn log(quota: &str) -> Arc<Fair<RateLimiter<TimestampRing>>> {
    Arc::new(Fair::new(RateLimiter::new(
        TimestampRing::new(quota.parse().unwrap()).unwrap(),
    )))
}

/// Each thread has its own runtime, which is driven only while the thread waits.
#[test]
fn a_stopped_runtime_does_not_block_others() {
    let limiter = log("10/200ms");
    let (done, is_done) = mpsc::channel();
    for thread in 0..8 {
        let (limiter, done) = (Arc::clone(&limiter), done.clone());
        thread::spawn(move || {
            let runtime = current_thread();
            for _ in 0..10 {
                runtime.block_on(limiter.acquire(1)).unwrap();
                thread::sleep(ms(3 + thread));
            }
            done.send(()).unwrap();
            // Longer than the test, so that the runtime is neither driven nor dropped.
            thread::sleep(Duration::from_secs(120));
        });
    }
    for _ in 0..8 {
        is_done
            .recv_timeout(Duration::from_secs(60))
            .expect("never served");
    }
}

/// The waiter that is served does not set the capacity timer of the next waiter in its own runtime, which then stops.
#[test]
fn a_stopped_runtime_keeps_no_capacity_timer_of_others() {
    let limiter = log("2/200ms");
    let stopped = current_thread();
    let other = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    assert!(limiter.check(2).is_ok());
    let mut first = Arc::clone(&limiter).acquire_owned(1);
    let mut second = Arc::clone(&limiter).acquire_owned(1);
    stopped.block_on(async {
        assert!(poll(&mut first).is_pending());
        assert!(poll(&mut second).is_pending());
        // It is charged, and notifies the second.
        assert!(first.await.is_ok());
    });
    // It joins before the second is polled. (If this thread is stopped for longer than the grace period, it may be served
    // before it is seen in the queue.)
    let third = other.spawn(Arc::clone(&limiter).acquire_owned(1));
    while limiter.waiting() < 2 && !third.is_finished() {
        thread::yield_now();
    }
    assert!(stopped.block_on(second).is_ok());
    let third = other.block_on(async { tokio::time::timeout(Duration::from_secs(30), third).await });
    assert!(third.expect("never served").unwrap().is_ok());
}

/// The grace timer of a waiter of another runtime is not set in the runtime that advances the queue, which then stops.
#[test]
fn a_stopped_runtime_keeps_no_grace_timer_of_others() {
    let clock = ManualClock::new();
    let ring = TimestampRing::new("2/200ms".parse().unwrap()).unwrap();
    let limiter = Arc::new(Fair::new(RateLimiter::with_clock(ring, clock.clone())));
    let stopped = current_thread();
    let other = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    assert!(limiter.check(2).is_ok());
    let mut first = Arc::clone(&limiter).acquire_owned(1);
    let mut unpolled = Arc::clone(&limiter).acquire_owned(1);
    stopped.block_on(async {
        assert!(poll(&mut first).is_pending());
        assert!(poll(&mut unpolled).is_pending());
    });
    let third = other.spawn(Arc::clone(&limiter).acquire_owned(1));
    while limiter.waiting() < 3 {
        thread::yield_now();
    }
    // The first notifies itself and the second, and leaves the third waiting for the end of their grace period.
    clock.advance(ms(200));
    assert!(stopped.block_on(first).is_ok());
    // By now the second is overdue.
    clock.advance(ms(20));
    let third = other.block_on(async { tokio::time::timeout(Duration::from_secs(30), third).await });
    assert!(third.expect("never served").unwrap().is_ok());
}

/// A waiter in a runtime without timers panics when it needs one; the others are served.
#[test]
fn a_runtime_without_timers_does_not_block_others() {
    let limiter = log("3/200ms");
    let good = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    let timeless = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    assert!(limiter.check(3).is_ok());
    let mut tasks = Vec::new();
    for (number, runtime) in [&good, &timeless, &good, &good, &good, &good]
        .into_iter()
        .enumerate()
    {
        let own = Arc::clone(&limiter);
        let task = runtime.spawn(async move { own.acquire(1).await.is_ok() });
        tasks.push(task);
        // Until all of them are queued. (If this thread is stopped for a window, some have completed already.)
        let completed = || tasks.iter().filter(|task| task.is_finished()).count();
        while limiter.waiting() + completed() <= number {
            thread::yield_now();
        }
    }
    drop(tasks.remove(1));
    good.block_on(async {
        for task in tasks {
            let served = tokio::time::timeout(Duration::from_secs(60), task).await;
            assert!(served.expect("never served").unwrap());
        }
    });
}

/// A function of the user panics at any of its calls.
#[test]
fn a_panic_does_not_block_others() {
    for fatal in 0..60 {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let left = Arc::new(AtomicU64::new(u64::MAX));
            let counted = Arc::clone(&left);
            let cost = Cost::new("cost", move |user: &u32| {
                if *user == 66 && counted.fetch_sub(1, Ordering::Relaxed) == 0 {
                    panic!("as the test demands");
                }
                1
            });
            let rule = Rule::new("all", "2/1s".parse().unwrap())
                .algorithm(RuleAlgorithm::Log)
                .cost(&cost);
            let rules = RuleSetBuilder::new()
                .rule(rule)
                .build_with(TokioClock::new(), [1, 2, 3, 4]);
            let rules = Arc::new(Fair::new(rules.unwrap()));
            for _ in 0..2 {
                assert!(rules.check(0).is_ok());
            }
            left.store(fatal, Ordering::Relaxed);
            let mut tasks = Vec::new();
            for user in [66_u32, 1, 2, 66, 3, 4] {
                let own = Arc::clone(&rules);
                let task = tokio::spawn(async move { own.acquire(&user).await.is_ok() });
                tokio::time::sleep(ms(1)).await;
                tasks.push((user, task));
            }
            for (user, task) in tasks {
                let served = tokio::time::timeout(Duration::from_secs(100), task)
                    .await
                    .expect("never served");
                assert!(served.unwrap_or(user == 66), "{user}");
            }
            assert_eq!(rules.waiting(), 0, "at call {fatal}");
        });
    }
}

/// Waiters see the larger limit of a reload after `recheck`.
#[test]
fn recheck_applies_a_reload_at_once() {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let rules = |quota: &str| RuleSetBuilder::<str>::new().rule(Rule::new("all", quota.parse().unwrap()));
        let live = LiveRules::new(rules("1/h").build_with(TokioClock::new(), [1, 2, 3, 4]).unwrap());
        let live = Arc::new(Fair::new(live));
        assert!(live.check("request").is_ok());
        let own = Arc::clone(&live);
        let waits = tokio::spawn(async move { own.acquire("request").await.is_ok() });
        settle().await;
        let began = Instant::now();
        live.limiter().store(&rules("100/h")).unwrap();
        live.recheck();
        assert!(waits.await.unwrap());
        assert_eq!(began.elapsed(), Duration::ZERO);
    });
}

/// A wait needs a timer, which is said at once and not by a wait without an end.
#[test]
#[should_panic(expected = "timers are disabled")]
fn a_wait_without_a_timer_panics() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let limiter = log("1/1s");
    assert!(limiter.check(1).is_ok());
    let _ = runtime.block_on(limiter.acquire(1));
}
