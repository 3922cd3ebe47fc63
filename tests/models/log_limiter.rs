//! Models of a log limiter.

use ringgate::{LogLimiter, Nanos};

#[cfg(not(ringgate_loom))]
use alloc::sync::Arc;
#[cfg(ringgate_loom)]
use loom::{sync::Arc, thread};
#[cfg(not(ringgate_loom))]
use std::thread;

use super::harness::{BOUNDED, FULL};

/// Makes calls at the given times, in milliseconds. Returns how many passed, and the sum of the counts that they returned.
fn calls(limiter: &LogLimiter, times: &[u64]) -> (u64, u64) {
    let answers = times
        .iter()
        .map(|&millis| limiter.check_at(Nanos::new(millis * 1_000_000)));
    answers
        .flatten()
        .fold((0, 0), |(passed, sum), count| (passed + 1, sum + count))
}

/// Makes the calls of each thread, and returns the totals of all threads. No call is lost.
fn race(limiter: LogLimiter, threads: &[&'static [u64]]) -> u64 {
    let limiter = Arc::new(limiter);
    assert_eq!(limiter.suppressed(), 0);
    let (others, own) = threads.split_at(threads.len() - 1);
    let handles: Vec<_> = others
        .iter()
        .map(|&times| {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || calls(&limiter, times))
        })
        .collect();
    let (mut passed, mut returned) = calls(&limiter, own[0]);
    for handle in handles {
        let (more, counts) = handle.join().unwrap();
        passed += more;
        returned += counts;
    }
    let all: usize = threads.iter().map(|times| times.len()).sum();
    assert_eq!(
        passed + returned + limiter.suppressed(),
        all as u64,
        "a count is lost or returned twice"
    );
    passed
}

/// Suppressed calls race with each other and with a call that passes.
#[test]
fn log_limiter_loses_no_count() {
    FULL.explore(|| {
        let passed = race(LogLimiter::per_second(1), &[&[0, 1, 1_100], &[1, 1_100, 1_101]]);
        assert_eq!(passed, 2);
    });
    BOUNDED.explore(|| {
        race(LogLimiter::per_second(1), &[&[0, 1], &[1, 1_100], &[2, 1_100]]);
    });
}

/// The last call of a burst passes once.
#[test]
fn log_limiter_last_call() {
    FULL.explore(|| assert_eq!(race(LogLimiter::per_second(3).burst(2), &[&[0, 0], &[0, 0]]), 2));
    BOUNDED.explore(|| assert_eq!(race(LogLimiter::per_second(1), &[&[0], &[0], &[500]]), 1));
}
