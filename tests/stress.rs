//! Real threads and real clocks: hundreds of windows, and the log of it all checked afterwards, by
//! the readings and by the calls.
//!
//! Run it under ThreadSanitizer as it is: what it takes is set by the clock, not by a number of calls.
#![cfg(not(ringgate_loom))]
// Miri's clock and threads are too slow for windows of milliseconds; `models.rs` is for Miri.
#![cfg(not(miri))]

#[expect(dead_code, reason = "the state is for tests of the algorithms themselves")]
mod common;

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::thread;

use common::{Log, Subject};
use ringgate::algorithm::CounterRingBuilder;
use ringgate::{
    Algorithm, Clock, CounterRing, Gcra, ManualClock, Nanos, Quota, RateLimiter, Settled, TimestampRing,
};

const WINDOW: Duration = Duration::from_millis(2);
const THREADS: u64 = 4;

/// One call: when it began, when it had ended, and what was taken and kept.
#[derive(Clone, Copy, Debug)]
struct Call {
    before: Nanos,
    after: Nanos,
    at: Nanos,
    permits: u64,
}

fn subjects() -> Vec<Subject> {
    let quota = |limit| Quota::new(limit, WINDOW).expect("a quota");
    let longer = Quota::new(200, 10 * WINDOW).expect("a quota");
    let ring = |builder: CounterRingBuilder| builder.build().expect("a ring");
    let builder = |limit| CounterRing::builder(quota(limit)).cells(5);
    vec![
        Subject::new("strict, packed", ring(builder(20).cells(4))),
        Subject::new("strict, unpacked", ring(builder(20).cells(4).unpacked())),
        Subject::new("strict, many cells", ring(builder(100).cells(50))),
        Subject::new("classic", ring(builder(20).classic().cells(4))),
        Subject::new(
            "classic, unpacked",
            ring(builder(20).classic().cells(4).unpacked()),
        ),
        Subject::new("even", ring(builder(30).even().cells(4))),
        Subject::new("even, unpacked", ring(builder(30).even().cells(4).unpacked())),
        Subject::new(
            "fixed window",
            CounterRing::fixed_window(quota(20)).expect("a ring"),
        ),
        Subject::new("two windows", ring(builder(30).cells(4).also(longer))).and(longer.window(), 200),
        Subject::new("timestamps", TimestampRing::new(quota(5)).expect("a ring")),
        Subject::new(
            "timestamps, many",
            TimestampRing::new(quota(100)).expect("a ring"),
        ),
        Subject::new("bucket", Gcra::new(quota(20)).expect("a bucket")),
    ]
}

/// The loop of one thread: takes one to four permits, and gives every fifth charge
/// back, part of it or all.
fn call<A: Algorithm, C: Clock>(limiter: &RateLimiter<A, C>, turn: u64) -> Option<Call> {
    let before = limiter.clock().now();
    let permits = 1 + turn % 7 / 2;
    let admitted = limiter.check_n(permits).ok()?;
    let mut taken = Call {
        before,
        after: before,
        at: admitted.at(),
        permits,
    };
    if turn.is_multiple_of(5) {
        let kept = turn % 2;
        if limiter.settle(admitted, kept) == Settled::Exact {
            taken.permits = kept;
        }
    }
    taken.after = limiter.clock().now();
    Some(taken)
}

fn log_of(calls: &[Call]) -> Log {
    let mut log = Log::default();
    for call in calls {
        log.add(call.at, call.permits);
    }
    log
}

/// The most permits of calls that lie wholly within an interval of this length.
#[cfg(feature = "quanta")]
fn worst_by_calls(calls: &[Call], interval: Duration) -> u64 {
    let mut calls = calls.to_vec();
    calls.sort_unstable_by_key(|call| call.before);
    let mut worst = 0;
    for (index, first) in calls.iter().enumerate() {
        let end = first.before.saturating_add(interval);
        let inside = calls[index..]
            .iter()
            .take_while(|call| call.before <= end)
            .filter(|call| call.after <= end);
        worst = worst.max(inside.map(|call| call.permits).sum());
    }
    worst
}

/// After all of that nothing is stuck: a window and a cell later (for a bucket and for several
/// windows, some more) the limiter gives all it has, in one of the next cells.
fn is_as_good_as_new<A: Algorithm, C: Clock>(limiter: &RateLimiter<A, C>, now: Nanos) -> bool {
    let later = now.saturating_add(25 * WINDOW);
    let most = limiter.algorithm().max_request();
    (0..16).any(|cell| {
        limiter
            .check_at(later.saturating_add(WINDOW / 4 * cell), most)
            .is_ok()
    })
}

/// By the readings: exact, for the bound is promised of the stamps.
///
/// By the calls: a decision's reading is taken between the two of its call by the same thread, or
/// is a newer one that another thread had published by then. Readings of two moments differ from
/// the true time between them by at most the clock's error e, so the stamp lies between `before` −
/// e and `after` + e; and the stamps of calls wholly within an interval of W − 2e − 1 ns lie within
/// a half-open one of W.
#[cfg(feature = "quanta")]
#[test]
fn no_window_of_a_real_clock_holds_more_than_the_bound() {
    for subject in subjects() {
        let limiter = RateLimiter::new(subject.algorithm.clone());
        let end = limiter.clock().now().saturating_add(150 * WINDOW);
        let calls: Vec<Call> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let limiter = &limiter;
                    scope.spawn(move || {
                        let turns = (thread..).take_while(|_| limiter.clock().now() < end);
                        turns.filter_map(|turn| call(limiter, turn)).collect::<Vec<_>>()
                    })
                })
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        let log = log_of(&calls);
        assert!(!log.is_empty());
        assert_eq!(subject.broken(&log), None, "{}, by the readings", subject.name);
        let error = 2 * limiter.clock().error(Duration::ZERO) + Duration::from_nanos(1);
        for &(window, bound) in &subject.bounds {
            let worst = worst_by_calls(&calls, window - error);
            assert!(
                worst <= bound,
                "{}, by the calls: {worst} in {window:?}",
                subject.name
            );
        }
        assert!(
            is_as_good_as_new(&limiter, limiter.clock().now()),
            "{}",
            subject.name
        );
    }
}

/// Threads that step one clock while they use it, mostly forward, and one that now and then sets it back; by
/// the readings only (nothing orders a thread's own look at the clock after a reading that it has adopted).
#[test]
fn no_window_of_a_clock_that_threads_step_holds_more_than_the_bound() {
    let window = u64::try_from(WINDOW.as_nanos()).expect("two milliseconds");
    for subject in subjects() {
        let clock = ManualClock::new();
        let limiter = RateLimiter::with_clock(subject.algorithm.clone(), clock.clone());
        let newest = AtomicU64::new(0);
        let calls: Vec<Call> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (limiter, clock, newest) = (&limiter, &clock, &newest);
                    scope.spawn(move || {
                        let mut calls = Vec::new();
                        for turn in thread..30_000 + thread {
                            if let Some(call) = call(limiter, turn) {
                                calls.push(call);
                            }
                            let step = window / 64 * (turn % 3) + turn % 11;
                            match turn % 997 {
                                996 if thread == 0 => {
                                    clock.set(Nanos::new(clock.now().get().saturating_sub(window)))
                                }
                                _ if turn % 8 == 0 => clock.advance(Duration::from_nanos(step)),
                                _ => {}
                            }
                            newest.fetch_max(clock.now().get(), Ordering::Relaxed);
                        }
                        calls
                    })
                })
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        let log = log_of(&calls);
        assert!(!log.is_empty());
        assert_eq!(subject.broken(&log), None, "{}", subject.name);
        let newest = Nanos::new(newest.into_inner());
        assert!(
            newest >= Nanos::ZERO.saturating_add(100 * WINDOW),
            "hundreds of windows passed"
        );
        assert!(is_as_good_as_new(&limiter, newest), "{}", subject.name);
    }
}

/// Readings of decades to come and of long ago, from every thread at once.
#[test]
fn no_reading_from_any_thread_lets_a_window_hold_more() {
    for subject in subjects() {
        let limiter = RateLimiter::with_clock(subject.algorithm.clone(), ManualClock::new());
        let calls: Vec<Call> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let limiter = &limiter;
                    scope.spawn(move || {
                        let mut noise = thread + 1;
                        let mut calls = Vec::new();
                        for turn in 0..20_000_u64 {
                            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            // Threads are up to a window apart, drift on, and once in a while one
                            // is years ahead.
                            let jitter = noise >> 43;
                            let years = if turn == 15_000 && thread == 0 { 1 << 58 } else { 0 };
                            let now = Nanos::new(turn * 20_000 + jitter + years);
                            if let Ok(admitted) = limiter.check_at(now, 1 + noise % 3) {
                                calls.push(Call {
                                    before: now,
                                    after: now,
                                    at: admitted.at(),
                                    permits: admitted.permits(),
                                });
                            }
                        }
                        calls
                    })
                })
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        // A decision uses the caller's reading or a newer one.
        assert!(calls.iter().all(|call| call.at >= call.before));
        assert_eq!(subject.broken(&log_of(&calls)), None, "{}", subject.name);
    }
}

/// Striped, by the calls only: an admission has no reading of its own. The remark above about stamps
/// holds of charges, which are read after the use and before the end of a later call.
#[cfg(all(feature = "quanta", feature = "striped"))]
#[test]
fn no_window_of_a_real_clock_holds_more_than_the_limit_of_a_striped_limiter() {
    // Limits that are reached, in the packed and the wide representation; batches of one to many permits.
    for (limit, stripes, batch) in [
        (20, 4, 1),
        (100, 2, 10),
        (100, 4, 20),
        (2_000, 4, 60),
        (5_000, 8, 4),
    ] {
        let quota = Quota::new(limit, WINDOW).expect("a quota");
        let builder = ringgate::striped::StripedBuilder::new(quota)
            .stripes(stripes)
            .batch(batch);
        let limiter = builder.build().expect("a limiter");
        let end = limiter.clock().now().saturating_add(150 * WINDOW);
        let admitted = AtomicU64::new(0);
        let calls: Vec<Call> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (limiter, admitted) = (&limiter, &admitted);
                    scope.spawn(move || {
                        let mut calls = Vec::new();
                        for turn in thread.. {
                            let before = limiter.clock().now();
                            // For longer on a slow machine, so that the limit is reached everywhere.
                            if before >= end && admitted.load(Ordering::Relaxed) > 20 * limit {
                                break;
                            }
                            // Mostly one permit; now and then the reading is the caller's own.
                            let permits = if turn % 7 == 0 { 1 + turn % 5 } else { 1 };
                            let decision = if turn % 3 == 0 {
                                limiter.check_at(before, permits)
                            } else {
                                limiter.check_n(permits)
                            };
                            if decision.is_ok() {
                                let after = limiter.clock().now();
                                admitted.fetch_add(permits, Ordering::Relaxed);
                                calls.push(Call {
                                    before,
                                    after,
                                    at: after,
                                    permits,
                                });
                            }
                        }
                        calls
                    })
                })
                .collect();
            threads
                .into_iter()
                .flat_map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        assert_eq!(limiter.bound(), limit);
        let error = 2 * limiter.clock().error(Duration::ZERO) + Duration::from_nanos(1);
        let worst = worst_by_calls(&calls, WINDOW - error);
        assert!(worst <= limit, "{limit}, {stripes}, {batch}: {worst}");
        // After a silence the whole limit is available again, except for permits that are charged late.
        let later = limiter.clock().now().saturating_add(25 * WINDOW);
        let passed = (0..).take_while(|_| limiter.check_at(later, 1).is_ok()).count() as u64;
        assert!(
            (limit - stripes * batch..=limit).contains(&passed),
            "{passed} of {limit}"
        );
    }
}
