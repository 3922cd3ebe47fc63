//! The clocks that come with the crate, and the numbers that they give.
#![cfg(not(ringgate_loom))]

use core::time::Duration;
use std::sync::Barrier;
use std::thread;

use ringgate::{Clock, CounterRing, ManualClock, Nanos, Quota, RateLimiter};

#[test]
fn a_manual_clock_moves_only_when_it_is_set_or_advanced() {
    let clock = ManualClock::new();
    assert_eq!((clock.now(), clock.now()), (Nanos::ZERO, Nanos::ZERO));
    clock.advance(Duration::from_nanos(7));
    assert_eq!((clock.now(), clock.now()), (Nanos::new(7), Nanos::new(7)));
    clock.advance(Duration::ZERO);
    assert_eq!(clock.now(), Nanos::new(7));
    clock.set(Nanos::new(3));
    assert_eq!(clock.now(), Nanos::new(3));
    // Decades at once, and no further than the end.
    clock.advance(Duration::from_secs(50 * 366 * 86_400));
    assert_eq!(clock.now(), Nanos::new(3 + 50 * 366 * 86_400 * 1_000_000_000));
    clock.advance(Duration::MAX);
    assert_eq!(clock.now(), Nanos::MAX);
    clock.advance(Duration::from_nanos(1));
    assert_eq!(clock.now(), Nanos::MAX);
    assert_eq!(clock.error(Duration::ZERO), Duration::ZERO);
}

#[test]
fn clones_of_a_manual_clock_show_the_same_time() {
    let clock = ManualClock::default();
    let other = clock.clone();
    clock.advance(Duration::from_nanos(5));
    assert_eq!(other.now(), Nanos::new(5));
    other.set(Nanos::new(2));
    assert_eq!(clock.now(), Nanos::new(2));
    assert_eq!(ManualClock::new().now(), Nanos::ZERO);
}

/// Concurrent advances move the clock by their sum.
#[test]
fn advances_of_several_threads_add_up() {
    // Miri: a thread step takes microseconds.
    let steps = if cfg!(miri) { 50 } else { 200_000 };
    let clock = ManualClock::new();
    let together = Barrier::new(4);
    thread::scope(|scope| {
        for thread in 1..=4 {
            let (clock, together) = (&clock, &together);
            scope.spawn(move || {
                together.wait();
                (0..steps).for_each(|_| clock.advance(Duration::from_nanos(thread)));
            });
        }
    });
    assert_eq!(clock.now(), Nanos::new(10 * steps));
}

#[test]
fn a_borrowed_clock_is_a_clock() {
    fn two(clock: impl Clock) -> (Nanos, Duration) {
        (clock.now(), clock.error(Duration::ZERO))
    }
    struct Late;
    impl Clock for Late {
        fn now(&self) -> Nanos {
            Nanos::new(9)
        }
        fn error(&self, over: Duration) -> Duration {
            Duration::from_nanos(4) + over / 1_000
        }
    }
    assert_eq!(two(&Late), (Nanos::new(9), Duration::from_nanos(4)));
    let dynamic: &dyn Clock = &Late;
    assert_eq!(two(dynamic), (Nanos::new(9), Duration::from_nanos(4)));
    // The promise in true time is shorter by the error.
    let quota = Quota::per_second(5).expect("a quota");
    let limiter = RateLimiter::with_clock(CounterRing::new(quota).expect("a ring"), &Late);
    let promise = limiter.promise();
    assert_eq!(
        (promise.permits, promise.interval),
        (5, Duration::from_nanos(998_999_996))
    );
    // Of a window that is no longer than the error, nothing is left.
    struct Coarse;
    impl Clock for Coarse {
        fn now(&self) -> Nanos {
            Nanos::ZERO
        }
        fn error(&self, _over: Duration) -> Duration {
            Duration::from_secs(1)
        }
    }
    let limiter = RateLimiter::with_clock(CounterRing::new(quota).expect("a ring"), Coarse);
    assert_eq!(limiter.promise().interval, Duration::ZERO);
}

#[test]
fn an_instant_stays_within_its_range() {
    let year = Duration::from_secs(365 * 86_400);
    assert_eq!(Nanos::MAX.get(), (1 << 63) - 1);
    assert_eq!(Nanos::new(u64::MAX), Nanos::MAX);
    assert_eq!(Nanos::new(1 << 63), Nanos::MAX);
    assert_eq!(
        Nanos::from_duration(292 * year).get(),
        292 * 365 * 86_400 * 1_000_000_000
    );
    assert_eq!(Nanos::from_duration(300 * year), Nanos::MAX);
    assert_eq!(Nanos::MAX.saturating_add(Duration::MAX), Nanos::MAX);
    assert_eq!(
        Nanos::new(5).saturating_add(Duration::from_nanos(6)),
        Nanos::new(11)
    );
    assert_eq!(
        Nanos::new(11).saturating_since(Nanos::new(5)),
        Duration::from_nanos(6)
    );
    assert_eq!(Nanos::new(5).saturating_since(Nanos::new(11)), Duration::ZERO);
    assert_eq!(Nanos::default(), Nanos::ZERO);
}

#[cfg(all(feature = "quanta", not(miri)))] // Miri has no time stamp counter, and no time to calibrate one.
mod real {
    use std::io::ErrorKind;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::Instant;

    use super::*;
    use ringgate::QuantaClock;
    use ringgate::clock::CoarseClock;

    /// A lock for tests of the coarse clock, because a process has one upkeep thread.
    fn turn() -> MutexGuard<'static, ()> {
        static TURN: Mutex<()> = Mutex::new(());
        TURN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Within a thread, a reading is never earlier than the one before by more than the stated error. Each reading lies between
    /// two readings of the system's clock, within the stated error.
    #[test]
    fn the_default_clock_follows_time() {
        let outside = Instant::now();
        let clock = QuantaClock::default();
        let inside = Instant::now();
        let mut newest = Nanos::ZERO;
        while inside.elapsed() < Duration::from_millis(50) {
            let lower = inside.elapsed();
            let now = clock.now();
            let upper = outside.elapsed();
            assert!(now.saturating_add(clock.error(Duration::ZERO)) >= newest);
            newest = newest.max(now);
            let error = clock.error(upper);
            let between = lower.saturating_sub(error)..=upper + error;
            let reading = Duration::from_nanos(now.get());
            assert!(between.contains(&reading), "{reading:?} is not in {between:?}");
        }
    }

    #[test]
    fn a_default_clock_and_its_clone_have_one_origin() {
        let clock = QuantaClock::new();
        let clone = clock.clone();
        let (before, between, after) = (clock.now(), clone.now(), clock.now());
        assert!(before <= between.saturating_add(clock.error(Duration::ZERO)));
        assert!(between <= after.saturating_add(clock.error(Duration::ZERO)));
        assert_eq!(clock.error(Duration::ZERO), Duration::from_micros(1));
        assert_eq!(clock.error(Duration::from_secs(1)), Duration::from_micros(51));
    }

    #[test]
    fn a_process_has_one_upkeep_thread() {
        let _turn = turn();
        let interval = Duration::from_millis(1);
        let first = CoarseClock::start(interval).expect("the first");
        let refused = CoarseClock::start(interval).expect_err("a second");
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert_eq!(
            refused.to_string(),
            "this process has an upkeep thread already; clone the clock that started it"
        );
        // The thread goes on for as long as any clone lives, and ends with the last.
        let clone = first.clone();
        drop(first);
        assert!(CoarseClock::start(interval).is_err());
        drop(clone);
        let again = CoarseClock::start(interval).expect("the first has ended");
        // Once for the upkeep, once for the patience; and what the precise clock is wrong by.
        assert_eq!(
            again.error(Duration::ZERO),
            2 * interval + Duration::from_micros(1)
        );
        drop(again);
    }

    #[test]
    fn an_interval_of_zero_is_an_error() {
        let refused = CoarseClock::start(Duration::ZERO).expect_err("no interval");
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert_eq!(
            refused.to_string(),
            "invalid interval: 0s (expected more than 0s)"
        );
    }

    /// A coarse clock is never ahead of the precise clock, and reaches each time that has passed. It may step back
    /// slightly after it has read the precise clock.
    #[test]
    fn a_coarse_clock_follows_time() {
        let _turn = turn();
        let begun = Instant::now();
        let clock = CoarseClock::start(Duration::from_millis(1)).expect("no other runs");
        let mut now = Nanos::ZERO;
        while now < Nanos::from_duration(Duration::from_millis(20)) {
            now = clock.now();
            let elapsed = begun.elapsed();
            // Quanta's calibration is better than one in a thousand.
            assert!(now <= Nanos::from_duration(elapsed + elapsed / 1000 + Duration::from_micros(1)));
        }
    }

    /// The upkeep thread sleeps for a long interval. The test sets the coarse time back, as if the thread had
    /// stalled. If the thread wakes up meanwhile, the round does not count.
    #[test]
    fn readers_detect_a_coarse_clock_that_stands_still() {
        let _turn = turn();
        let interval = Duration::from_millis(40);
        let clock = CoarseClock::start(interval).expect("no other runs");
        let precise = quanta::Clock::new();
        let begin = precise.now();
        while precise.now() - begin < 3 * interval {
            thread::yield_now();
        }
        loop {
            quanta::set_recent(begin);
            let frozen = clock.now();
            let readings: Vec<Nanos> = (0..200).map(|_| clock.now()).collect();
            if precise.recent() != begin {
                continue;
            }
            let noticed = readings.iter().position(|&now| now > frozen);
            // Patience is 64 readings; after that every reading is the precise one until the coarse
            // time moves.
            assert!(noticed.is_some_and(|first| first <= 64), "{noticed:?}");
            let since = &readings[noticed.unwrap_or(0)..];
            assert!(
                since
                    .iter()
                    .all(|now| now.saturating_since(frozen) > 2 * interval)
            );
            break;
        }
    }

    /// No method panics after construction, even with the longest interval.
    #[test]
    fn an_interval_of_half_the_range_of_time_does_not_panic() {
        let _turn = turn();
        // Forgotten, since the upkeep thread is joined with the last clone, and sleeps for the
        // whole interval. The tests that take turns would find it running, so this one has a
        // process of its own.
        if std::env::var_os("RINGGATE_TEST_ALONE").is_none() {
            let status = std::process::Command::new(std::env::current_exe().expect("this test"))
                .args([
                    "--exact",
                    "real::an_interval_of_half_the_range_of_time_does_not_panic",
                ])
                .env("RINGGATE_TEST_ALONE", "1")
                .status()
                .expect("a process");
            assert!(status.success());
            return;
        }
        let clock = core::mem::ManuallyDrop::new(CoarseClock::start(Duration::MAX).expect("no other runs"));
        for _ in 0..200 {
            clock.now();
        }
    }
}

/// The clock of the standard library begins at zero, advances, and is shared by its clones.
#[cfg(feature = "std")]
#[test]
fn an_instant_clock_counts_from_its_construction() {
    use ringgate::clock::InstantClock;

    let before = std::time::Instant::now();
    let clock = InstantClock::new();
    let other = clock;
    let readings: Vec<Nanos> = (0..1_000).map(|_| clock.now()).collect();
    assert!(readings.is_sorted());
    assert!(other.now() >= readings[999]);
    assert!(other.now() <= Nanos::from_duration(before.elapsed()));
    let ring = CounterRing::new(Quota::per_hour(2).expect("a quota")).expect("a ring");
    let limiter = RateLimiter::with_clock(ring, InstantClock::default());
    assert!(limiter.check_n(2).is_ok() && limiter.check().is_err());
}
