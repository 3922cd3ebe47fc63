//! Real threads and real clocks, for hundreds of windows. Afterwards, the log is checked by the readings and by the
//! calls.
//!
//! The test can run under ThreadSanitizer unchanged, because its duration depends on the clock and not on a number of
//! calls.
#![cfg(not(ringgate_loom))]
// Miri's clock and threads are too slow for windows of milliseconds. `models.rs` runs under Miri.
#![cfg(not(miri))]

#[expect(dead_code, reason = "the state is for tests of the algorithms themselves")]
mod common;
#[path = "common/random.rs"]
mod random;

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::thread;

use common::{Log, Subject};
use random::Random;
use ringgate::algorithm::CounterRingBuilder;
use ringgate::{
    Algorithm, Clock, CounterRing, Gcra, ManualClock, Nanos, Quota, RateLimiter, Settled, TimestampRing,
    UnitRing,
};

const WINDOW: Duration = Duration::from_millis(2);
const THREADS: u64 = 4;

/// One call: the times of its begin and end, and the permits that were charged and not refunded.
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
        Subject::new("units", UnitRing::new(quota(100)).expect("a ring")),
        Subject::new("timestamps", TimestampRing::new(quota(5)).expect("a ring")),
        Subject::new(
            "timestamps, many",
            TimestampRing::new(quota(100)).expect("a ring"),
        ),
        Subject::new("bucket", Gcra::new(quota(20)).expect("a bucket")),
    ]
}

/// The loop of one thread. It requests one to four permits, and refunds every fifth charge in part or in full.
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

/// The most permits of calls that begin and end within an interval of this length.
///
/// Of the calls that end in time, those that began before the interval do not count. A call that takes longer than the interval is
/// not among the calls that end in time, although it began before, so it is not subtracted.
#[cfg(feature = "quanta")]
fn worst_by_calls(calls: &[Call], interval: Duration) -> u64 {
    let end_of = |call: &Call| call.before.saturating_add(interval);
    let mut by_begin = calls.to_vec();
    by_begin.sort_unstable_by_key(|call| call.before);
    let mut by_end = calls.to_vec();
    by_end.sort_unstable_by_key(|call| call.after);
    let long: Vec<Call> = calls
        .iter()
        .filter(|call| call.after > end_of(call))
        .cloned()
        .collect();
    let mut by_end = by_end.iter().peekable();
    let (mut ended, mut began, mut worst) = (0, 0, 0);
    for first in &by_begin {
        let end = end_of(first);
        while let Some(call) = by_end.next_if(|call| call.after <= end) {
            ended += call.permits;
        }
        let outlast = long
            .iter()
            .filter(|call| call.before < first.before && call.after > end);
        let outlast: u64 = outlast.map(|call| call.permits).sum();
        worst = worst.max((ended + outlast).saturating_sub(began));
        began += first.permits;
    }
    worst
}

/// Compares it with its definition.
#[cfg(feature = "quanta")]
#[test]
fn the_worst_interval_is_found() {
    let mut random = Random::new(1);
    let mut below = |end| random.below(end);
    for _ in 0..2_000 {
        let calls: Vec<Call> = (0..below(12))
            .map(|_| {
                let (before, length, permits) = (below(40), below(25), 1 + below(3));
                let [before, after] = [before, before + length].map(Nanos::new);
                Call {
                    before,
                    after,
                    at: after,
                    permits,
                }
            })
            .collect();
        let interval = Duration::from_nanos(below(15));
        let inside = |first: &Call| {
            let end = first.before.saturating_add(interval);
            let inside = calls
                .iter()
                .filter(move |call| call.before >= first.before && call.after <= end);
            inside.map(|call| call.permits).sum::<u64>()
        };
        let worst = calls.iter().map(inside).max().unwrap_or(0);
        assert_eq!(worst_by_calls(&calls, interval), worst, "{interval:?}");
    }
}

/// Afterwards, no permit is stuck. A window and a cell later, in one of the next cells, the limiter admits its whole
/// limit. A bucket and a ring of several windows need more time.
fn is_as_good_as_new<A: Algorithm, C: Clock>(limiter: &RateLimiter<A, C>, now: Nanos) -> bool {
    let later = now.saturating_add(25 * WINDOW);
    let most = limiter.algorithm().max_request();
    (0..16).any(|cell| {
        limiter
            .check_at(later.saturating_add(WINDOW / 4 * cell), most)
            .is_ok()
    })
}

/// By the readings, the check is exact, because the bound is promised for the times of the decisions.
///
/// By the calls: a decision uses a reading that its thread takes during the call, or a newer reading that another
/// thread had published by then. The difference of two readings is wrong by at most the error e of the clock, so the
/// reading lies between `before` − e and `after` + e. So the readings of calls within an interval of W − 2e − 1 ns
/// lie within a half-open interval of W.
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

/// Threads step one clock while they use it, mostly forward. One thread sometimes sets it back. This is checked by
/// the readings only, because nothing orders a thread's own reading after a reading that its decision has adopted.
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

/// Readings decades ahead and long ago, from all threads.
#[test]
fn no_reading_from_any_thread_exceeds_the_bound() {
    for subject in subjects() {
        let limiter = RateLimiter::with_clock(subject.algorithm.clone(), ManualClock::new());
        let calls: Vec<Call> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let limiter = &limiter;
                    scope.spawn(move || {
                        let mut random = Random::new(thread);
                        let mut calls = Vec::new();
                        for turn in 0..20_000_u64 {
                            // Threads are up to a window apart and drift on. Sometimes one is years ahead.
                            let jitter = random.below(1 << 21);
                            let years = if turn == 15_000 && thread == 0 { 1 << 58 } else { 0 };
                            let now = Nanos::new(turn * 20_000 + jitter + years);
                            if let Ok(admitted) = limiter.check_at(now, 1 + random.below(3)) {
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

/// A real clock that can be stopped.
#[cfg(all(feature = "quanta", feature = "striped"))]
struct Stoppable {
    clock: ringgate::QuantaClock,
    /// The time at which the clock stands, or 0.
    stands_at: AtomicU64,
}

#[cfg(all(feature = "quanta", feature = "striped"))]
impl Clock for Stoppable {
    fn now(&self) -> Nanos {
        match self.stands_at.load(Ordering::Relaxed) {
            0 => self.clock.now(),
            at => Nanos::new(at),
        }
    }

    fn error(&self, over: Duration) -> Duration {
        self.clock.error(over)
    }
}

/// A striped limiter is checked by the calls only, because an admission has no reading. The argument above holds for
/// its charges, whose readings are taken after the use and before the end of a later call.
#[cfg(all(feature = "quanta", feature = "striped"))]
#[test]
fn no_window_of_a_real_clock_holds_more_than_the_limit_of_a_striped_limiter() {
    // Limits that are reached, with packed and wide rings, and batches of one to many permits.
    for (limit, stripes, batch) in [
        (20, 4, 1),
        (100, 2, 10),
        (100, 4, 20),
        (2_000, 4, 60),
        (5_000, 8, 4),
    ] {
        let quota = Quota::new(limit, WINDOW).expect("a quota");
        let builder = ringgate::StripedLimiter::builder(quota)
            .stripes(stripes)
            .batch(batch);
        let clock = Stoppable {
            clock: ringgate::QuantaClock::new(),
            stands_at: AtomicU64::new(0),
        };
        let limiter = builder.build_with(clock).expect("a limiter");
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
                            // Slow machines run for longer, so that the limit is always reached.
                            if before >= end && admitted.load(Ordering::Relaxed) > 20 * limit {
                                break;
                            }
                            // Mostly one permit.
                            let permits = if turn % 7 == 0 { 1 + turn % 5 } else { 1 };
                            if limiter.check_n(permits).is_ok() {
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
        // After a silence, the whole limit is available again, except for permits that are charged late.
        let later = limiter.clock().now().saturating_add(25 * WINDOW);
        limiter.clock().stands_at.store(later.get(), Ordering::Relaxed);
        let passed = (0..).take_while(|_| limiter.check().is_ok()).count() as u64;
        assert!(
            (limit - stripes * batch..=limit).contains(&passed),
            "{passed} of {limit}"
        );
    }
}
