//! Known faults of other limiters, one named test each. These faults are steps of the histories in `tests/oracle`, and of those of
//! tables in `tests/keyed`, so they have no test here:
//!
//! - `every_algorithm_equals_its_definition`: `per_second(n)` was not n per second; two calls at the same time counted as one; the cost of a request was ignored on
//!   admission; a request with a cost above the limit deleted the state; a thread with an older clock reading moved the window
//!   back; after an idle time longer than the window, the capacity was not checked; the ring advanced by one cell even if
//!   several cells had passed.
//! - `a_retry_is_admitted_at_the_retry_time_and_no_earlier`: `Retry-After` was rounded down to 0.
//! - `a_denied_request_changes_nothing`: a denied request stayed charged, to other windows of the same rule or to the next
//!   caller.
//! - `every_history_equals_the_reference`: a key that was idle for longer than the window was not checked, or had two budgets.
//! - `a_flood_gives_no_tracked_key_a_fresh_budget_under_share` and `…_under_deny`: eviction gave a key a fresh budget, and a map of
//!   keys only grew.

use super::*;

/// A cell of 1 s / 10 was 0 whole seconds wide. Here every cell has a width, whatever the division.
#[test]
fn fault_cells_of_no_width() {
    let ring = |text, cells| CounterRing::builder(quota(text)).cells(cells).build();
    for (text, cells) in [
        ("10/s", 10),
        ("10/s", 7),
        ("3/1us", 100),
        ("3/1001ns", 99),
        ("10/s", 4096),
    ] {
        let cell = ring(text, cells).expect("a ring").cell();
        let all = cell * u32::try_from(cells).expect("few");
        assert!(
            cell >= Duration::from_nanos(10) && all >= quota(text).window(),
            "{text} in {cells}"
        );
    }
    // A quota that cannot be divided is an error, and is not rounded to zero.
    let refused = ring("10/1us", 4096).expect_err("a quarter nanosecond");
    assert_eq!(refused.field, "cells");
}

/// Check and add were separate steps, so concurrent callers were admitted together: 25 instead of 10, with 16
/// threads.
#[test]
fn fault_check_and_add_are_separate() {
    let rounds = if cfg!(miri) { 2 } else { 40 };
    let calls = if cfg!(miri) { 24 } else { 400 };
    for Subject { name, algorithm, .. } in ten_per_second() {
        let (limiter, clock) = by_hand(algorithm);
        for round in 0..rounds {
            assert_eq!(passed_together(&limiter, calls), 10, "{name} in round {round}");
            clock.advance(Duration::from_secs(3));
        }
    }
}

/// Rounding the refill lost tokens at low rates, or gave 1.67 times the rate at high rates. Here, over a long run, a
/// bucket admits its rate within one part in 2·W/L, and never more.
#[test]
fn fault_refill_is_rounded() {
    let cases = [
        ("7/s", 3, millis(10), 200_000_u64),
        ("1/day", 1, Duration::from_secs(600), 50_000),
        ("3/7s", 2, millis(100), 200_000),
        ("1000000/s", 10, Duration::from_nanos(300), 300_000),
        ("333333/s", 5, Duration::from_nanos(1_100), 300_000),
        ("1000000000/s", 8, Duration::from_nanos(1), 100_000),
        ("60/min", 2, Duration::from_nanos(999_999_937), 20_000),
    ];
    for (text, burst, step, steps) in cases {
        // Under Miri a hundredth suffices, because only the arithmetic matters.
        let steps = if cfg!(miri) { steps / 100 } else { steps };
        let quota = quota(text);
        let (limiter, clock) = by_hand(Gcra::token_bucket(quota, burst).expect("a bucket"));
        let mut admitted = u128::from(passed(&limiter, 100) as u64);
        assert_eq!(admitted, u128::from(burst));
        for _ in 0..steps {
            clock.advance(step);
            // Two requests per step, so that a step of more than one permit is used up.
            admitted += passed(&limiter, 2) as u128;
        }
        let elapsed = step.as_nanos() * u128::from(steps);
        let (limit, window) = (u128::from(quota.limit()), quota.window().as_nanos());
        let due = limit * elapsed / window;
        // A demand below the rate is admitted in full.
        let due = due.min(2 * u128::from(steps));
        let most = due + u128::from(burst);
        // T is rounded up by less than half a nanosecond.
        let lost = due * limit / (2 * window) + 1;
        assert!(admitted <= most, "{text}: {admitted} of at most {most}");
        assert!(
            admitted + lost >= most,
            "{text}: {admitted} of {most}, {lost} may be lost"
        );
    }
}

/// 32-bit clocks wrapped after 71 minutes or 49.7 days.
#[test]
fn fault_the_clock_wraps() {
    for Subject { name, algorithm, .. } in ten_per_second() {
        let (limiter, clock) = by_hand(algorithm);
        for bits in 30..59 {
            for offset in [0, 1, 500_000_000] {
                clock.set(Nanos::new((1 << bits) - 1 + offset));
                let first = passed(&limiter, 20);
                assert!(first <= 10, "{name}");
                clock.advance(Duration::from_nanos(1));
                assert_eq!(passed(&limiter, 20), 0, "{name} around 2^{bits}");
            }
        }
    }
}

/// A limiter blocked forever under two threads. Here, after a silence the whole limit is free, whatever happened
/// before.
#[test]
fn fault_a_limiter_wedges() {
    let threads = thread::available_parallelism()
        .map_or(2, NonZero::get)
        .clamp(2, 4);
    let calls = if cfg!(miri) { 10 } else { 3_000 };
    for Subject { name, algorithm, .. } in ten_per_second() {
        let (limiter, clock) = by_hand(algorithm);
        thread::scope(|scope| {
            for thread in 0..threads {
                let (limiter, clock) = (&limiter, clock.clone());
                scope.spawn(move || {
                    for call in 0..calls {
                        clock.advance(Duration::from_micros(call % 977));
                        if let Ok(admitted) = limiter.check_n(1 + call % 3)
                            && call % 2 == thread as u64 % 2
                        {
                            let _: Settled = limiter.refund(admitted);
                        }
                    }
                });
            }
        });
        clock.advance(Duration::from_secs(61));
        assert_eq!(limiter.peek().remaining(), 10, "{name}");
        assert_eq!(passed(&limiter, 20), 10, "{name}");
    }
}

/// The time per permit was rounded up, so the longest window denied its own limit as a burst.
#[test]
fn fault_a_limit_is_no_burst_in_the_longest_window() {
    for limit in 1..200 {
        let quota = Quota::new(limit, Duration::from_secs(366 * 24 * 3600)).expect("a quota");
        let bucket = Gcra::new(quota).expect("the limit is a burst");
        assert_eq!(bucket.max_request(), limit);
    }
}
