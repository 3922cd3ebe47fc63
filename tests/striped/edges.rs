//! The ends of the ranges of time and limits, and impossible configurations.

use alloc::sync::Arc;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::panic::catch_unwind;

use ringgate::striped::StripedBuilder;
use ringgate::{Clock, ManualClock, Nanos, Quota, StripedLimiter};

use super::common::Log;
use super::{AsWorker, WINDOW, builder, passed};

/// A cell begins at the last representable time. A permit that was used just before counts in it, and a denial has no
/// retry time after the end of time.
#[test]
fn nothing_is_forgotten_because_time_ends() {
    let window = 7 * 127 * 337;
    assert!(Nanos::MAX.get().is_multiple_of(window));
    for limit in [30, 100_000] {
        let clock = ManualClock::new();
        let limiter =
            StripedLimiter::builder(Quota::new(limit, Duration::from_nanos(window)).expect("a quota"))
                .cells(1)
                .stripes(2)
                .batch(10)
                .build_with(clock.clone())
                .expect("a limiter");
        let mut log = Log::default();
        let mut drain = |before_the_end| {
            clock.set(Nanos::new(Nanos::MAX.get() - before_the_end));
            for permits in [limiter.max_request(), 1] {
                while limiter.as_worker(0).check_n(permits).is_ok() {
                    log.add(clock.now(), permits);
                }
            }
            assert_eq!(limiter.remaining(), 0);
            let denied = limiter.as_worker(0).check().expect_err("all is used");
            assert_eq!(denied.retry_after(), None, "{before_the_end} before the end");
        };
        drain(2 * window / 3);
        drain(0);
        assert!(log.worst(Duration::from_nanos(window)) <= limit);
    }
}

/// The ticks of this ring end long before time does. When the ring cannot publish a newer tick, used permits remain
/// used.
#[test]
fn nothing_is_forgotten_where_the_ring_stands_still() {
    let years = |years: u64| Duration::from_secs(years * 366 * 24 * 3_600);
    let quota = |limit| Quota::new(limit, Duration::from_micros(300)).expect("a quota");
    let build = |limit| {
        StripedLimiter::builder(quota(limit))
            .cells(1)
            .stripes(2)
            .batch(10)
            .build_with(ManualClock::new())
    };
    let limits = (4..40).rev().map(|bits| 1_u64 << bits);
    // The largest limit with ticks for twenty years. Twice this limit would leave half of the ticks.
    let limiter = limits
        .filter_map(|limit| build(limit).ok())
        .next()
        .expect("a limiter");
    let clock = limiter.clock();
    clock.advance(years(100));
    assert!(limiter.check_n(limiter.max_request()).is_ok());
    assert_eq!(passed(|| limiter.check().is_ok()), 20);
    for _ in 0..3 {
        clock.advance(years(1));
        assert_eq!(limiter.remaining(), 0);
        let denied = limiter.check().expect_err("all is used");
        assert_eq!(denied.retry_after(), None);
    }
}

/// If not even a batch of one permit fits, an error that names a maximum of 0 would not help.
#[test]
fn an_impossible_batch_is_an_error_with_the_accepted_values() {
    let error = |builder: StripedBuilder| {
        builder
            .build_with(ManualClock::new())
            .expect_err("wrong")
            .to_string()
    };
    for (limit, stripes) in [(1, 1), (2, 2), (64, 64)] {
        assert_eq!(
            error(builder(limit).stripes(stripes).batch(1)),
            format!(
                "invalid batch: 1 permits for each of {stripes} stripes (expected a batch only with a limit of at least {} \
                 permits, and this is {limit})",
                stripes + 1
            )
        );
        assert!(
            builder(stripes + 1)
                .stripes(stripes)
                .batch(1)
                .build_with(ManualClock::new())
                .is_ok()
        );
    }
}

/// A clock of the user that panics on demand.
#[derive(Clone)]
struct Failing(ManualClock, Arc<AtomicBool>);

impl Clock for Failing {
    fn now(&self) -> Nanos {
        assert!(!self.1.load(Ordering::Relaxed), "the clock has failed");
        self.0.now()
    }
}

/// The thread that was to charge a stripe panics. The next thread charges the count, at its own time, and the stripe serves others.
#[test]
fn a_panic_of_the_clock_ends_the_claim_of_a_stripe() {
    let clock = Failing(ManualClock::new(), Arc::default());
    let limiter = builder(10_000).stripes(1).batch(50).build_with(clock.clone());
    let limiter = limiter.expect("a limiter");
    for _ in 0..49 {
        assert!(limiter.check().is_ok());
    }
    clock.1.store(true, Ordering::Relaxed);
    // Takes the last permit of the stripe, which is to be charged then.
    assert!(catch_unwind(AssertUnwindSafe(|| limiter.check().is_ok())).is_err());
    clock.1.store(false, Ordering::Relaxed);
    for admitted in [9_950, 10_000] {
        clock.0.advance(3 * WINDOW);
        assert_eq!(passed(|| limiter.check().is_ok()), admitted);
    }
}
