//! The histories that the project comes from, under their numbers, and the faults of the originals
//! and of peers, each under its name.
#![cfg(not(ringgate_loom))]

#[expect(
    dead_code,
    reason = "the state and the log are for tests of the algorithms themselves"
)]
mod common;

use core::num::NonZero;
use core::time::Duration;
use std::sync::Barrier;
use std::thread;

use common::{Any, Log, Subject};
use ringgate::{
    Algorithm, CounterRing, Gcra, ManualClock, Nanos, Quota, RateLimiter, Settled, TimestampRing,
};

fn quota(text: &str) -> Quota {
    text.parse().expect("a quota")
}

fn strict(text: &str) -> CounterRing {
    CounterRing::new(quota(text)).expect("a ring")
}

fn stamps(text: &str) -> TimestampRing {
    TimestampRing::new(quota(text)).expect("a ring")
}

/// A limiter at a clock of its own, which stands at one hour.
fn by_hand<A: Algorithm>(algorithm: A) -> (RateLimiter<A, ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    (RateLimiter::with_clock(algorithm, clock.clone()), clock)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Every algorithm with a limit of 10 per second.
fn ten_per_second() -> Vec<Subject> {
    let built = |builder: ringgate::algorithm::CounterRingBuilder| builder.build().expect("a ring");
    let builder = || CounterRing::builder(quota("10/s"));
    vec![
        Subject::new("strict", strict("10/s")),
        Subject::new("unpacked", built(builder().unpacked())),
        Subject::new("many cells", built(builder().cells(100))),
        Subject::new("classic", built(builder().classic())),
        Subject::new(
            "fixed window",
            CounterRing::fixed_window(quota("10/s")).expect("a ring"),
        ),
        Subject::new("several windows", built(builder().also(quota("1000/min")))),
        Subject::new("timestamps", stamps("10/s")),
        Subject::new("bucket", Gcra::new(quota("10/s")).expect("a bucket")),
    ]
}

/// How many of `calls` at once pass.
fn passed<A: Algorithm>(limiter: &RateLimiter<A, ManualClock>, calls: usize) -> usize {
    (0..calls).filter(|_| limiter.check().is_ok()).count()
}

/// How many of `calls` pass that eight threads make together while the clock stands still.
fn passed_together<A: Algorithm + Sync>(limiter: &RateLimiter<A, ManualClock>, calls: usize) -> usize {
    let together = Barrier::new(8);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    together.wait();
                    passed(limiter, calls / 8)
                })
            })
            .collect();
        callers
            .into_iter()
            .map(|caller| caller.join().expect("no panic"))
            .sum()
    })
}

/// The most permits in any one second, of one call in every `step` for `seconds`, by stamps.
fn worst_second(it: Any, bursts: &[(Duration, u64)]) -> u64 {
    let (limiter, clock) = by_hand(it);
    let mut log = Log::default();
    for &(pause, calls) in bursts {
        clock.advance(pause);
        for _ in 0..calls {
            if let Ok(admitted) = limiter.check() {
                log.add(admitted.at(), 1);
            }
        }
    }
    log.worst(Duration::from_secs(1))
}

/// The four classics, each by its name, each with the bound that it states, which an adversary reaches.
#[test]
fn o3_the_four_classics_state_their_bounds_and_reach_them() {
    let around_the_edge = [(millis(999), 50), (millis(1), 50)];
    let after_silence = [(millis(999), 50), (millis(1), 1), (millis(998), 50)];

    let fixed = CounterRing::fixed_window(quota("10/s")).expect("a ring");
    assert_eq!((fixed.max_request(), fixed.bound()), (10, 20));
    assert_eq!(worst_second(fixed.into(), &around_the_edge), 20);

    let sliding_counter = strict("10/s");
    assert_eq!((sliding_counter.max_request(), sliding_counter.bound()), (10, 10));
    assert_eq!(worst_second(sliding_counter.into(), &around_the_edge), 10);

    let sliding_log = stamps("10/s");
    assert_eq!((sliding_log.max_request(), sliding_log.bound()), (10, 10));
    assert_eq!(worst_second(sliding_log.into(), &around_the_edge), 10);

    let token_bucket = Gcra::token_bucket(quota("10/s"), 5).expect("a bucket");
    assert_eq!(
        (
            token_bucket.max_request(),
            token_bucket.burst(),
            token_bucket.bound()
        ),
        (5, 5, 14)
    );
    // A burst of 5, and 10 refilled in a second, of which the last is due when the first burst leaves.
    let mut every_tenth = vec![(millis(0), 50)];
    every_tenth.extend([(millis(100), 1); 12]);
    assert_eq!(worst_second(token_bucket.into(), &every_tenth), 14);

    let leaky_bucket = Gcra::token_bucket(quota("10/s"), 5).expect("a bucket");
    assert_eq!((leaky_bucket.max_request(), leaky_bucket.bound()), (5, 14));
    assert_eq!(worst_second(leaky_bucket.into(), &after_silence), 10);
}

/// The oldest of 5 in 10 s.
#[test]
fn o5_five_in_ten_seconds_compares_the_oldest() {
    let (limiter, clock) = by_hand(stamps("5/10s"));
    let begin = clock_time(&limiter);
    let at = |tenths: u64| clock.set(begin.saturating_add(millis(tenths * 100)));
    for tenths in [10, 28, 40, 55, 79] {
        at(tenths);
        assert!(limiter.check().is_ok(), "at {tenths} tenths");
    }
    at(80);
    let denied = limiter.check().expect_err("five have passed since 1.0 s");
    assert_eq!(denied.retry_after(), Some(millis(3_000)));
    for call in 0..100 {
        // From 8.01 s to 10.98 s.
        clock.set(begin.saturating_add(millis(8_010 + 30 * call)));
        assert!(limiter.check().is_err());
    }
    at(111);
    assert!(limiter.check().is_ok());
    assert!(limiter.check().is_err());
}

/// Five of many concurrent callers are admitted, with a clock of nanoseconds and not of whole seconds.
#[test]
fn o5_five_of_many_concurrent_callers_pass() {
    let (limiter, clock) = by_hand(stamps("5/10s"));
    assert_eq!(passed_together(&limiter, 400), 5);
    clock.advance(Duration::from_nanos(9_999_999_999));
    assert_eq!(passed_together(&limiter, 400), 0);
    clock.advance(Duration::from_nanos(1));
    assert_eq!(passed_together(&limiter, 400), 5);
}

/// A minute as 60 cells of one second.
#[test]
fn o8_sixty_cells_never_let_more_than_the_limit_through() {
    let ring = CounterRing::builder(quota("100/min"))
        .cells(60)
        .build()
        .expect("a ring");
    assert_eq!((ring.cell(), ring.bound()), (Duration::from_secs(1), 100));
    let (limiter, clock) = by_hand(ring);
    let mut log = Log::default();
    for step in 0..6_000_u64 {
        // A burst every second for five minutes, and uneven ones in between.
        clock.advance(millis(if step % 7 == 0 { 999 } else { 1 + step % 60 }));
        for _ in 0..step % 5 {
            if let Ok(admitted) = limiter.check() {
                log.add(admitted.at(), 1);
            }
        }
    }
    assert_eq!(log.worst(Duration::from_secs(60)), 100);
}

/// The classic ring of 60 cells sums 60 cells, and admits twice the limit around the edge of a window.
#[test]
fn o8_the_classic_form_sums_sixty_cells() {
    let ring = CounterRing::builder(quota("100/min"))
        .classic()
        .cells(60)
        .build()
        .expect("a ring");
    assert_eq!(ring.bound(), 200);
    let (limiter, clock) = by_hand(ring);
    clock.advance(millis(999));
    assert_eq!(passed(&limiter, 300), 100);
    clock.advance(millis(59_000));
    assert_eq!(passed(&limiter, 300), 0);
    // The first cell of 60 leaves the sum when the 61st begins, a nanosecond less than 59.001 s later.
    clock.advance(millis(1));
    assert_eq!(passed(&limiter, 300), 100);
}

/// The limit may be reached in the first milliseconds of a window: the even form is offered against it.
#[test]
fn o8_the_even_form_cannot_be_used_up_at_once() {
    let ring = CounterRing::builder(quota("100/min"))
        .even()
        .cells(60)
        .build()
        .expect("a ring");
    let (limiter, clock) = by_hand(ring);
    let mut admitted = 0;
    for _ in 0..60 {
        let now = passed(&limiter, 300);
        assert!((1..=2).contains(&now));
        admitted += now;
        clock.advance(Duration::from_secs(1));
    }
    assert_eq!(admitted, 100);
}

/// One second as 10 cells of 1.
#[test]
fn o9_each_of_ten_cells_has_its_own_share() {
    let ring = CounterRing::builder(quota("10/s"))
        .even()
        .cells(10)
        .build()
        .expect("a ring");
    assert_eq!(ring.cell(), millis(100));
    let (limiter, clock) = by_hand(ring);
    for _ in 0..20 {
        assert_eq!(passed(&limiter, 1), 1);
        assert_eq!(passed(&limiter, 5), 0);
        clock.advance(millis(100));
    }
    // However long there was no request, the next cell admits no more than its share.
    clock.advance(Duration::from_secs(5));
    assert_eq!(passed(&limiter, 5), 1);
}

/// 1 s / 10 cells was 0 in whole seconds; here no cell is without width, however odd the division.
#[test]
fn fault_cells_of_no_width() {
    for (text, cells) in [
        ("10/s", 10),
        ("10/s", 7),
        ("3/1us", 100),
        ("3/1001ns", 99),
        ("10/s", 4096),
    ] {
        let ring = CounterRing::builder(quota(text))
            .cells(cells)
            .build()
            .expect("a ring");
        let cell = ring.cell();
        assert!(cell >= Duration::from_nanos(10));
        assert!(
            cell * u32::try_from(cells).expect("few") >= quota(text).window(),
            "{text} in {cells}"
        );
    }
    // A quota that cannot be divided is an error, and is not rounded to zero.
    let refused = CounterRing::builder(quota("10/1us"))
        .cells(4096)
        .build()
        .expect_err("a quarter nanosecond");
    assert_eq!(refused.field, "cells");
}

/// The ring moved on by one cell however many had passed, so that stale counts stayed.
#[test]
fn fault_ring_moves_on_by_one_cell_however_many_have_passed() {
    for unpacked in [false, true] {
        let builder = CounterRing::builder(quota("10/s")).cells(5);
        let builder = if unpacked { builder.unpacked() } else { builder };
        for cells in 0..20 {
            let (limiter, clock) = by_hand(builder.clone().build().expect("a ring"));
            assert_eq!(passed(&limiter, 20), 10);
            clock.advance(millis(200) * cells);
            // The cell and the five after it count; from the sixth on nothing is left of it.
            assert_eq!(
                passed(&limiter, 20),
                if cells <= 5 { 0 } else { 10 },
                "{cells} cells later"
            );
        }
    }
}

/// Check and add as separate steps, so that concurrent callers passed together (25 for a cap of 10
/// at 16 threads).
#[test]
fn fault_check_and_add_are_separate() {
    let rounds = if cfg!(miri) { 2 } else { 40 };
    let calls = if cfg!(miri) { 24 } else { 400 };
    for subject in ten_per_second() {
        let (limiter, clock) = by_hand(subject.algorithm);
        for round in 0..rounds {
            assert_eq!(
                passed_together(&limiter, calls),
                10,
                "{} in round {round}",
                subject.name
            );
            clock.advance(Duration::from_secs(3));
        }
    }
}

/// Two calls in one instant counted as one.
#[test]
fn fault_two_calls_in_one_instant_count_as_one() {
    for subject in ten_per_second() {
        let (limiter, _clock) = by_hand(subject.algorithm);
        assert_eq!(passed(&limiter, 1000), 10, "{}", subject.name);
    }
}

/// Weight ignored on admission.
#[test]
fn fault_weight_is_ignored() {
    for subject in ten_per_second() {
        let (limiter, _clock) = by_hand(subject.algorithm);
        assert!(limiter.check_n(7).is_ok());
        assert_eq!(limiter.peek().remaining(), 3, "{}", subject.name);
        assert!(limiter.check_n(4).is_err());
        assert!(limiter.check_n(3).is_ok());
        assert_eq!(passed(&limiter, 10), 0, "{}", subject.name);
    }
}

/// A cost over the limit deleted the key's state, and the next call had a fresh budget.
#[test]
fn fault_cost_over_the_limit_resets_the_state() {
    for subject in ten_per_second() {
        let (limiter, clock) = by_hand(subject.algorithm);
        assert_eq!(passed(&limiter, 8), 8);
        for cost in [11, 12, 1_000, u64::MAX >> 1, u64::MAX] {
            let denied = limiter.check_n(cost).expect_err("more than the limit");
            assert_eq!(denied.retry_after(), None, "{}: never", subject.name);
        }
        assert_eq!(passed(&limiter, 20), 2, "{}", subject.name);
        clock.advance(Duration::from_secs(3));
        assert!(limiter.check_n(11).is_err());
        assert_eq!(passed(&limiter, 20), 10, "{}", subject.name);
    }
}

/// A thread with an older clock rolled the window back (220 for 10), or a subtraction wrapped
/// (millions for 6000).
#[test]
fn fault_older_clock_rolls_the_window_back() {
    for subject in ten_per_second() {
        let (limiter, clock) = by_hand(subject.algorithm);
        let now = clock_time(&limiter);
        assert_eq!(passed(&limiter, 20), 10);
        for late in [
            1,
            1_000,
            200_000_000,
            999_999_999,
            1_000_000_000,
            2_000_000_000,
            3_600_000_000_000,
        ] {
            clock.set(Nanos::new(now.get() - late));
            assert_eq!(passed(&limiter, 20), 0, "{}, {late} ns late", subject.name);
            clock.set(now);
            assert_eq!(passed(&limiter, 20), 0, "{}, after {late} ns late", subject.name);
        }
    }
}

/// After an idle time longer than the window the capacity was not checked.
#[test]
fn fault_idle_longer_than_the_window_skips_the_check() {
    for subject in ten_per_second() {
        let (limiter, clock) = by_hand(subject.algorithm);
        for idle in [1, 2, 3, 10, 1_000, 1_000_000] {
            clock.advance(Duration::from_millis(2_500) * idle);
            assert_eq!(passed(&limiter, 100), 10, "{} after {idle}", subject.name);
            assert!(limiter.check_n(10).is_err());
        }
    }
}

/// Refill rounding lost tokens at slow rates, or gave 1.67 times the rate at high ones: over a long
/// run a bucket admits its rate, within one part in 2·W/L, and never more.
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
        // Miri: a hundredth, since only the arithmetic is of interest.
        let steps = if cfg!(miri) { steps / 100 } else { steps };
        let quota = quota(text);
        let (limiter, clock) = by_hand(Gcra::token_bucket(quota, burst).expect("a bucket"));
        let mut admitted = u128::from(passed(&limiter, 100) as u64);
        assert_eq!(admitted, u128::from(burst));
        for _ in 0..steps {
            clock.advance(step);
            // Twice, so that a step of more than one permit is used up.
            admitted += passed(&limiter, 2) as u128;
        }
        let elapsed = step.as_nanos() * u128::from(steps);
        let (limit, window) = (u128::from(quota.limit()), quota.window().as_nanos());
        let due = limit * elapsed / window;
        // A demand below the rate is met whole.
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

/// `per_second(n)` was not n per second.
#[test]
fn fault_per_second_is_not_per_second() {
    for limit in [1, 2, 3, 7, 100] {
        let (limiter, clock) =
            by_hand(TimestampRing::new(Quota::per_second(limit).expect("a quota")).expect("a ring"));
        let mut admitted = 0;
        // Asked for far more often than the limit, for ten seconds.
        for _ in 0..10_000 {
            admitted += passed(&limiter, 1) as u64;
            clock.advance(millis(1));
        }
        assert_eq!(admitted, 10 * limit);
    }
}

/// A rejected request stayed charged: in other windows of the same rule, or against the next caller.
#[test]
fn fault_rejected_request_stays_charged() {
    let ring = CounterRing::builder(quota("2/s"))
        .also(quota("10/min"))
        .build()
        .expect("a ring");
    let (limiter, clock) = by_hand(ring);
    let mut admitted = 0;
    for _ in 0..5 {
        let now = passed(&limiter, 500);
        assert_eq!(now, 2);
        admitted += now;
        clock.advance(millis(1_500));
    }
    assert_eq!(
        admitted, 10,
        "498 rejected in each round have cost the minute nothing"
    );
    assert_eq!(passed(&limiter, 500), 0);

    for subject in ten_per_second() {
        let (limiter, clock) = by_hand(subject.algorithm);
        assert_eq!(passed(&limiter, 20), 10);
        let ready = limiter.check().expect_err("ten have passed").retry_after();
        for _ in 0..1_000 {
            clock.advance(Duration::from_nanos(13));
            assert!(limiter.check_n(3).is_err());
        }
        let later = limiter.check().expect_err("too early").retry_after();
        assert_eq!(
            later,
            ready.map(|ready| ready - Duration::from_nanos(13_000)),
            "{}",
            subject.name
        );
    }
}

/// Retry-After rounded down to 0.
#[test]
fn fault_retry_after_is_rounded_down_to_zero() {
    for subject in ten_per_second() {
        let (limiter, clock) = by_hand(subject.algorithm);
        assert_eq!(passed(&limiter, 20), 10);
        let mut waited = Duration::ZERO;
        loop {
            let retry = limiter.check().map(drop).map_err(|denied| denied.retry_after());
            let Err(retry) = retry else { break };
            let retry = retry.expect("one permit is at most the limit");
            assert!(retry > Duration::ZERO, "{}", subject.name);
            // One nanosecond is enough to see that it is not a whole second's rounding.
            clock.advance(retry - Duration::from_nanos(1));
            assert!(limiter.check().is_err(), "{}", subject.name);
            clock.advance(Duration::from_nanos(1));
            waited += retry;
        }
        assert!(
            waited > Duration::ZERO && waited <= millis(1_200),
            "{}: {waited:?}",
            subject.name
        );
    }
}

/// 32-bit clocks wrapped after 71 minutes or 49.7 days.
#[test]
fn fault_the_clock_wraps() {
    for subject in ten_per_second() {
        let (limiter, clock) = by_hand(subject.algorithm);
        for bits in 30..59 {
            for offset in [0, 1, 500_000_000] {
                clock.set(Nanos::new((1 << bits) - 1 + offset));
                let first = passed(&limiter, 20);
                assert!(first <= 10, "{}", subject.name);
                clock.advance(Duration::from_nanos(1));
                assert_eq!(passed(&limiter, 20), 0, "{} around 2^{bits}", subject.name);
            }
        }
    }
}

/// A peer wedged for ever under two threads: whatever was going on, after a silence all is free again.
#[test]
fn fault_a_limiter_wedges() {
    let threads = thread::available_parallelism()
        .map_or(2, NonZero::get)
        .clamp(2, 4);
    let calls = if cfg!(miri) { 10 } else { 3_000 };
    for subject in ten_per_second() {
        let (limiter, clock) = by_hand(subject.algorithm);
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
        assert_eq!(limiter.peek().remaining(), 10, "{}", subject.name);
        assert_eq!(passed(&limiter, 20), 10, "{}", subject.name);
    }
}

fn clock_time<A: Algorithm>(limiter: &RateLimiter<A, ManualClock>) -> Nanos {
    limiter.peek().at()
}

/// Rounding the time per permit up must not make the longest window refuse its own limit as burst.
#[test]
fn fault_a_limit_is_no_burst_in_the_longest_window() {
    for limit in 1..200 {
        let quota = Quota::new(limit, Quota::MAX_WINDOW).expect("a quota");
        let bucket = Gcra::new(quota).expect("the limit is a burst");
        assert_eq!(bucket.burst(), limit);
    }
}

/// O5 with one queue per name: names have limits of their own, by any algorithm.
mod keyed {
    use core::time::Duration;

    use ringgate::algorithm::Reclaim;
    use ringgate::keyed::{AnyKey, KeyedBuilder, OnFull};
    use ringgate::{Gcra, KeyedRateLimiter, ManualClock, Nanos};

    use super::{millis, quota, stamps, strict};

    fn table<A: Reclaim>(
        algorithm: A,
        capacity: u64,
        on_full: OnFull,
    ) -> (KeyedRateLimiter<A, ManualClock>, ManualClock) {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(3600));
        let limiter = KeyedBuilder::new(algorithm)
            .capacity(capacity)
            .on_full(on_full)
            .build_with(clock.clone(), AnyKey::with_seeds([1, 2, 3, 4]))
            .expect("a table");
        (limiter, clock)
    }

    #[test]
    fn o5_one_queue_per_name() {
        let (limiter, clock) = table(stamps("5/10s"), 100, OnFull::Share);
        let start = clock.clone();
        let at = |time: u64| start.set(Nanos::new((3_600_000 + time) * 1_000_000));
        for time in [1_000, 2_800, 4_000, 5_000, 7_900] {
            at(time);
            assert!(limiter.check("login").is_ok());
        }
        at(8_000);
        assert!(limiter.check("login").is_err());
        // Another name has a queue of its own.
        assert!(limiter.check("search").is_ok());
        at(10_900);
        assert!((0..100).all(|_| limiter.check("login").is_err()));
        at(11_100);
        assert!(limiter.check("login").is_ok());
    }

    /// Faults of O5 and of peers: a map that only grows, keys unbounded under address spraying.
    #[test]
    fn fault_a_map_that_only_grows() {
        let (limiter, clock) = table(strict("5/min"), 1_000, OnFull::Share);
        let bytes = limiter.bytes();
        for name in 0..50_000_u64 {
            clock.advance(millis(1));
            let _ = limiter.check(&name);
        }
        assert_eq!(limiter.bytes(), bytes);
        assert!(limiter.len() <= limiter.capacity() as u64);
    }

    /// A fault of other limiters: eviction gives a key a fresh budget, so that an attacker can flush its own history.
    #[test]
    fn fault_eviction_hands_out_a_fresh_budget() {
        for on_full in [OnFull::Share, OnFull::Deny] {
            let (limiter, clock) = table(strict("5/min"), 100, on_full);
            assert!((0..5).all(|_| limiter.check("victim").is_ok()));
            for name in 0..10_000_u64 {
                clock.advance(millis(1));
                let _ = limiter.check(&name);
                assert!(limiter.check("victim").is_err(), "{on_full:?}, after {name}");
            }
        }
    }

    /// Fault of a peer: a cost over the limit deletes the key's state, and the next budget is fresh.
    #[test]
    fn fault_a_cost_over_the_limit_clears_the_key() {
        let (limiter, _) = table(Gcra::new(quota("5/min")).expect("a bucket"), 100, OnFull::Share);
        assert!((0..5).all(|_| limiter.check("one").is_ok()));
        let denied = limiter.check_n("one", 6).expect_err("over the limit");
        assert_eq!(denied.retry_after(), None);
        assert!(limiter.check("one").is_err());
    }

    /// Fault of peers: idle for longer than the window, and then a check is skipped or a budget doubled.
    #[test]
    fn fault_idle_for_longer_than_the_window() {
        let (limiter, clock) = table(strict("5/min"), 1, OnFull::Deny);
        assert!(limiter.check("one").is_ok());
        clock.advance(Duration::from_secs(100_000));
        // The entry is another's meanwhile, and comes back.
        for name in 0..limiter.capacity() {
            assert!(limiter.check(&name).is_ok());
        }
        assert!(limiter.check("one").is_err(), "every entry is in use");
        clock.advance(Duration::from_secs(100_000));
        assert_eq!((0..10).filter(|_| limiter.check("one").is_ok()).count(), 5);
    }
}

#[cfg(feature = "rules")]
mod rules {
    use core::hash::Hash;

    use ringgate::rules::{RuleAlgorithm, RuleSetBuilder};
    use ringgate::{Key, Rule, RuleSet};

    use super::*;

    struct Request {
        user: &'static str,
        address: [u8; 4],
    }

    fn by_user() -> Key<Request> {
        Key::new("user", |request: &Request, key| request.user.hash(key))
    }

    fn by_address() -> Key<Request> {
        Key::new("address", |request: &Request, key| request.address.hash(key))
    }

    fn by_hand(rules: RuleSetBuilder<Request>) -> (RuleSet<Request, ManualClock>, ManualClock) {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(3600));
        let rules = rules.build_with(clock.clone(), [1, 2, 3, 4]).expect("rules");
        (rules, clock)
    }

    const ALGORITHMS: [RuleAlgorithm; 5] = [
        RuleAlgorithm::Counter,
        RuleAlgorithm::Classic,
        RuleAlgorithm::Fixed,
        RuleAlgorithm::Log,
        RuleAlgorithm::Gcra,
    ];

    /// A user limited to 2 per second on an endpoint limited to 50 per 10 s and 100 per 60 s: the third call in a
    /// second is refused, and charges no rule. (Fault of O4: a rule that admits adds its record even though a later
    /// rule refuses.)
    #[test]
    fn o4_several_rules_on_one_endpoint() {
        for algorithm in ALGORITHMS {
            let endpoint = || Rule::new("endpoint", quota("50/10s")).also(quota("100/60s"));
            let user = || Rule::new("user", quota("2/s")).by(&by_user());
            for order in [[endpoint(), user()], [user(), endpoint()]] {
                let rules = order.into_iter().map(|rule| rule.algorithm(algorithm));
                let (rules, _) = by_hand(rules.fold(RuleSetBuilder::new(), RuleSetBuilder::rule));
                let alice = Request {
                    user: "alice",
                    address: [10, 0, 0, 1],
                };
                assert!(rules.check(&alice).is_ok() && rules.check(&alice).is_ok());
                for _ in 0..100 {
                    let refused = rules.check(&alice).expect_err("the third in a second");
                    let violated: Vec<_> = refused.violations().map(|it| it.rule()).collect();
                    assert_eq!(violated, ["user"]);
                    assert!(refused.retry_after().is_some_and(|after| !after.is_zero()));
                    assert!(
                        refused
                            .to_string()
                            .starts_with("rate limit reached: user (0 of 2 per 1s left)")
                    );
                }
                let left: Vec<_> = rules
                    .peek(&alice)
                    .filter(|peek| peek.rule() == "endpoint")
                    .map(|peek| (peek.quota().limit(), peek.spent(), peek.remaining()))
                    .collect();
                // Two, not three.
                assert_eq!(left, [(50, 2, 48), (100, 2, 98)], "{algorithm:?}");
                // Another user is not concerned.
                let bob = Request { user: "bob", ..alice };
                assert!(rules.check(&bob).is_ok());
            }
        }
    }

    /// Address: 100 per 50 s and 10 per 20 s; all callers: 1000 per 60 s.
    #[test]
    fn o4_by_address_and_by_everybody() {
        for algorithm in ALGORITHMS {
            let (rules, clock) = by_hand(
                RuleSetBuilder::new()
                    .rule(
                        Rule::new("address", quota("100/50s"))
                            .also(quota("10/20s"))
                            .by(&by_address())
                            .algorithm(algorithm),
                    )
                    .rule(Rule::new("all", quota("1000/60s")).algorithm(algorithm)),
            );
            let from = |last| Request {
                user: "alice",
                address: [10, 0, 0, last],
            };
            // A hundred and one addresses at once, eleven calls each: ten pass, until a thousand have.
            for last in 0..101 {
                let passed = (0..11).filter(|_| rules.check(&from(last)).is_ok()).count();
                assert_eq!(passed, if last < 100 { 10 } else { 0 }, "{algorithm:?}");
            }
            let violated = |last| -> Vec<_> {
                let request = from(last);
                let refused = rules.check(&request).expect_err("all callers are denied");
                refused
                    .violations()
                    .map(|it| (it.rule().to_string(), it.limit()))
                    .collect()
            };
            assert_eq!(violated(200), [("all".to_string(), 1000)]);
            assert_eq!(
                violated(0),
                [("address".to_string(), 10), ("all".to_string(), 1000)]
            );
            // A denied request has charged nothing: neither its address, which has capacity, nor the rule of all callers.
            for peek in rules.peek(&from(200)) {
                let spent = if peek.rule() == "all" { 1000 } else { 0 };
                assert_eq!(peek.spent(), spent);
            }
            clock.advance(Duration::from_secs(3600));
            assert!(rules.check(&from(0)).is_ok());
        }
    }
}
