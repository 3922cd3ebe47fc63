//! Panics, runtimes that are not driven, and those without a timer: whoever is not to blame is served.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::mpsc;
use std::thread;

use ringgate::{
    Cost, Fair, LiveRules, RateLimiter, Rule, RuleAlgorithm, RuleSetBuilder, TimestampRing, TokioClock,
};
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

/// Every thread has a runtime of its own, which goes on only as long as it waits itself.
#[test]
fn a_runtime_that_rests_keeps_nobody_waiting() {
    let limiter = log("10/200ms");
    let (done, is_done) = mpsc::channel();
    for thread in 0..8 {
        let (limiter, done) = (Arc::clone(&limiter), done.clone());
        thread::spawn(move || {
            let runtime = current_thread();
            for _ in 0..10 {
                runtime.block_on(limiter.until_ready()).unwrap();
                thread::sleep(ms(3 + thread));
            }
            done.send(()).unwrap();
            // Longer than the test, so that the runtime neither goes on nor ends.
            thread::sleep(Duration::from_secs(120));
        });
    }
    for _ in 0..8 {
        is_done.recv_timeout(Duration::from_secs(60)).expect("forgotten");
    }
}

/// The one that is served sets no alarm for the next, who waits in another runtime, by the timer of its own, which rests from then on.
#[test]
fn a_runtime_that_rests_keeps_no_alarm() {
    let limiter = log("2/200ms");
    let resting = current_thread();
    let other = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    assert!(limiter.check_n(2).is_ok());
    let mut first = Arc::clone(&limiter).acquire_owned(1);
    let mut second = Arc::clone(&limiter).acquire_owned(1);
    resting.block_on(async {
        assert!(poll(&mut first).is_pending());
        assert!(poll(&mut second).is_pending());
        // It takes its own, and tells the second.
        assert!(first.await.is_ok());
    });
    // It comes before the second has taken what it was told of. (Where this thread was stopped for longer than those who
    // were told are waited for, it may be served and gone before anybody sees it in line.)
    let third = other.spawn(Arc::clone(&limiter).acquire_owned(1));
    while limiter.waiting() < 2 && !third.is_finished() {
        thread::yield_now();
    }
    assert!(resting.block_on(second).is_ok());
    let third = other.block_on(async { tokio::time::timeout(Duration::from_secs(30), third).await });
    assert!(third.expect("forgotten").unwrap().is_ok());
}

/// Whoever waits where no timer is panics when it would need one, and only then; the others go on.
#[test]
fn a_runtime_without_a_timer_keeps_nobody_waiting() {
    let limiter = log("3/200ms");
    let good = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .unwrap();
    let timeless = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    assert!(limiter.check_n(3).is_ok());
    let mut tasks = Vec::new();
    for (number, runtime) in [&good, &timeless, &good, &good, &good, &good]
        .into_iter()
        .enumerate()
    {
        let own = Arc::clone(&limiter);
        let task = runtime.spawn(async move { own.until_ready().await.is_ok() });
        tasks.push(task);
        // Until all of them stand in line; where this thread was stopped for a window, some are through already.
        let through = || tasks.iter().filter(|task| task.is_finished()).count();
        while limiter.waiting() + through() <= number {
            thread::yield_now();
        }
    }
    drop(tasks.remove(1));
    good.block_on(async {
        for task in tasks {
            let served = tokio::time::timeout(Duration::from_secs(60), task).await;
            assert!(served.expect("forgotten").unwrap());
        }
    });
}

/// A function of the user's that panics, at any of its calls.
#[test]
fn a_panic_keeps_nobody_waiting() {
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
                    panic!("at last");
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
                assert!(rules.check(&0).is_ok());
            }
            left.store(fatal, Ordering::Relaxed);
            let mut tasks = Vec::new();
            for user in [66_u32, 1, 2, 66, 3, 4] {
                let own = Arc::clone(&rules);
                let task = tokio::spawn(async move { own.until_ready(&user).await.is_ok() });
                tokio::time::sleep(ms(1)).await;
                tasks.push((user, task));
            }
            for (user, task) in tasks {
                let served = tokio::time::timeout(Duration::from_secs(100), task)
                    .await
                    .expect("forgotten");
                assert!(served.unwrap_or(user == 66), "{user}");
            }
            assert_eq!(rules.waiting(), 0, "at call {fatal}");
        });
    }
}

/// Rules with more room, told to those who wait.
#[test]
fn a_reload_is_seen_by_those_who_look_again() {
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
        let waits = tokio::spawn(async move { own.until_ready("request").await.is_ok() });
        settle().await;
        let began = Instant::now();
        live.limiter().store(&rules("100/h")).unwrap();
        live.look_again();
        assert!(waits.await.unwrap());
        assert_eq!(began.elapsed(), Duration::ZERO);
    });
}
