//! `LogLimiter` compared with an exact log, and its counts.
#![cfg(not(ringgate_loom))]

#[path = "common/windows.rs"]
mod windows;

use proptest::prelude::*;
use ringgate::{LogLimiter, Nanos};
use windows::most_in_a_window;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

fn of(window: u64, limit: u16) -> LogLimiter {
    match window {
        SECOND => LogLimiter::per_second(limit),
        MINUTE => LogLimiter::per_minute(limit),
        _ => LogLimiter::per_hour(limit),
    }
}

/// A step of a history in thousandths of the time per call, with a few nanoseconds more or less. Negative: the clock steps back.
fn step() -> impl Strategy<Value = (i64, i64)> {
    let thousandths = prop_oneof![
        6 => Just(0),
        6 => 1..50_i64,
        4 => prop::sample::select(vec![500, 990, 1_000, 1_003, 1_010, 2_000]),
        1 => 1_000..50_000_i64,
        1 => -20_000..0_i64,
    ];
    (thousandths, -2..3_i64)
}

/// A window, a limiter with its time per call, and a history from a time on.
fn history() -> impl Strategy<Value = (u64, LogLimiter, i64, u64, Vec<(i64, i64)>)> {
    let limit = prop_oneof![1..12_u16, 12..500_u16, Just(1_000), Just(u16::MAX)];
    let burst = prop::option::of(prop_oneof![1..12_u16, 12..200_u16]);
    let start = prop_oneof![Just(0), 0..1_u64 << 50];
    (
        prop::sample::select(vec![SECOND, MINUTE, HOUR]),
        limit,
        burst,
        start,
        prop::collection::vec(step(), 1..400),
    )
        .prop_map(|(window, limit, burst, start, steps)| {
            let limiter = of(window, limit);
            let call = i64::try_from(window).expect("an hour") / i64::from(limit);
            let limiter = match burst {
                Some(calls) => limiter.burst(calls),
                None => limiter,
            };
            (window, limiter, call, start, steps)
        })
}

proptest! {
    #[test]
    fn no_window_holds_more_than_the_bound((window, limiter, call, start, steps) in history()) {
        let (mut now, mut log) = (start, Vec::new());
        let (mut calls, mut returned) = (0_u64, 0_u64);
        for (thousandths, extra) in steps {
            now = now.saturating_add_signed(thousandths * call / 1_000 + extra);
            calls += 1;
            if let Some(suppressed) = limiter.check_at(Nanos::new(now)) {
                returned += suppressed;
                log.push((now, 1));
                prop_assert_eq!(limiter.suppressed(), 0);
            }
        }
        prop_assert_eq!(log.len() as u64 + returned + limiter.suppressed(), calls);
        let worst = most_in_a_window(&mut log, window);
        prop_assert!(worst <= limiter.bound(), "{} of {:?}", worst, limiter);
    }
}

/// Calls at the last nanosecond of ticks and at the first one of the next, from which rounded readings are farthest apart.
#[test]
fn no_flood_exceeds_the_bound() {
    for limit in 1..=40 {
        for burst in [1, 2, limit] {
            let limiter = LogLimiter::per_second(limit).burst(burst);
            let mut log = Vec::new();
            for tick in 1 << 30..(1 << 30) + 16_000 {
                let start = tick << 17;
                let readings = [start - 1, start].map(Nanos::new);
                let passed = readings
                    .into_iter()
                    .filter(|&now| limiter.check_at(now).is_some());
                log.extend(passed.map(|now| (now.get(), 1)));
            }
            let worst = most_in_a_window(&mut log, SECOND);
            assert!(worst <= limiter.bound(), "{worst} of {limiter:?}");
        }
    }
}

/// Calls at intervals of `step` for `length` from `start` on. Returns the readings of those that pass.
fn flood(limiter: &LogLimiter, start: u64, length: u64, step: u64) -> Vec<(u64, u64)> {
    let readings = (start..start + length).step_by(usize::try_from(step).expect("a step"));
    readings
        .filter(|&now| limiter.check_at(Nanos::new(now)).is_some())
        .map(|now| (now, 1))
        .collect()
}

#[test]
fn the_bound_is_reached() {
    for limit in 1..=40 {
        for burst in [1, 2, limit, 100] {
            let limiter = LogLimiter::per_second(limit).burst(burst);
            let start = 7 << 40;
            let at_once = (0..burst).filter(|_| limiter.check_at(Nanos::new(start)).is_some());
            assert_eq!(at_once.count(), usize::from(burst));
            let later = flood(&limiter, start, SECOND, 1 << 17).len() as u64;
            assert_eq!(u64::from(burst) + later, limiter.bound(), "{limiter:?}");
        }
    }
}

#[test]
fn a_flood_passes_at_the_limit() {
    for (window, limit) in [
        (SECOND, 1),
        (SECOND, 3),
        (SECOND, 5),
        (SECOND, 100),
        (SECOND, 1_000),
        (MINUTE, 1),
        (MINUTE, 60),
        (HOUR, 1),
        (HOUR, 7),
    ] {
        let limiter = of(window, limit);
        let step = window / u64::from(limit) / 64;
        let mut passed = flood(&limiter, 0, 20 * window, step);
        let least = u64::from(limit) * 20 * 98 / 100;
        assert!(passed.len() as u64 >= least, "{} of {limiter:?}", passed.len());
        assert!(most_in_a_window(&mut passed, window) <= limiter.bound());
    }
    // One line in any minute.
    let limiter = LogLimiter::per_minute(1);
    assert_eq!(
        most_in_a_window(&mut flood(&limiter, 0, 50 * MINUTE, 9_999_991), MINUTE),
        1
    );
}

#[test]
fn a_pass_returns_the_calls_that_were_suppressed_since_the_last_one() {
    let limiter = LogLimiter::per_second(2);
    let at = |millis: u64| limiter.check_at(Nanos::new(millis * 1_000_000));
    assert_eq!([at(0), at(0), at(0), at(1)], [Some(0), Some(0), None, None]);
    assert_eq!(limiter.suppressed(), 2);
    assert_eq!([at(505), at(505), at(2_000)], [Some(2), None, Some(1)]);
    // An older reading is suppressed while the limit is used up at the newer one.
    assert_eq!([at(2_000), at(1_000), at(2_510)], [Some(0), None, Some(1)]);
}

/// A full count stays, and changes no decision.
#[test]
fn a_full_count_stays() {
    let limiter = LogLimiter::per_second(u16::MAX).burst(1);
    assert_eq!(limiter.check_at(Nanos::ZERO), Some(0));
    for calls in 1..3_000 {
        assert_eq!(limiter.check_at(Nanos::ZERO), None);
        assert_eq!(limiter.suppressed(), calls.min(1_023));
    }
    assert_eq!(
        limiter.check_at(Nanos::new(15_200)),
        None,
        "one call takes 15.3 µs"
    );
    assert_eq!(limiter.check_at(Nanos::new(15_400)), Some(1_023));
    assert_eq!(limiter.suppressed(), 0);
}

#[test]
fn the_end_of_time_suppresses_every_call() {
    for limiter in [
        LogLimiter::per_second(5),
        LogLimiter::per_second(u16::MAX),
        LogLimiter::per_hour(1),
    ] {
        for time in [Nanos::MAX, Nanos::new(1 << 60), Nanos::MAX] {
            assert_eq!(limiter.check_at(time), None);
        }
        assert_eq!(limiter.suppressed(), 3);
        // A long pause before the end ends as a short one does.
        assert_eq!(limiter.check_at(Nanos::new(1 << 59)), Some(3));
    }
}

#[test]
#[should_panic(expected = "invalid limit: 0 (expected 1 to 65535 calls)")]
fn a_limit_of_zero_panics() {
    let _ = LogLimiter::per_hour(core::hint::black_box(0));
}

#[test]
#[should_panic(expected = "invalid burst: 0 (expected 1 to 65535 calls)")]
fn a_burst_of_zero_panics() {
    let _ = LogLimiter::per_hour(1).burst(core::hint::black_box(0));
}

#[test]
fn it_takes_16_bytes() {
    assert_eq!(size_of::<LogLimiter>(), 16);
}

/// Threads that race by the clock of the process: each call passes or is counted.
#[cfg(feature = "quanta")]
#[test]
fn threads_lose_no_count() {
    static LIMIT: LogLimiter = LogLimiter::per_second(1_000);
    const CALLS: u64 = if cfg!(miri) { 50 } else { 50_000 };
    let thread = || {
        (0..CALLS)
            .filter_map(|_| LIMIT.check())
            .fold((0, 0), |(passed, sum), n| (passed + 1, sum + n))
    };
    let totals: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(thread)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    });
    let passed: u64 = totals.iter().map(|&(passed, _)| passed).sum();
    let returned: u64 = totals.iter().map(|&(_, returned)| returned).sum();
    assert_eq!(passed + returned + LIMIT.suppressed(), 3 * CALLS);
    assert!(passed >= 1);
}
