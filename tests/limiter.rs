//! `RateLimiter` by its public methods: checks, peeks, refunds, settling, saving and restoring.
#![cfg(not(ringgate_loom))]

#[expect(dead_code, reason = "the state is for tests of the algorithms themselves")]
mod common;
#[path = "common/random.rs"]
mod random;

#[path = "limiter/custom.rs"]
mod custom;
#[path = "limiter/inline.rs"]
mod inline;
#[path = "limiter/verbs.rs"]
mod verbs;
#[path = "limiter/refunds.rs"]
mod refunds;
#[path = "limiter/units.rs"]
mod units;
#[path = "limiter/saved.rs"]
mod saved;
#[path = "limiter/sliding_window.rs"]
mod sliding_window;

extern crate alloc;

use core::time::Duration;
use std::collections::HashSet;

use common::{Any, Subject};
use ringgate::algorithm::CounterRingBuilder;
use ringgate::limiter::SavedState;
use ringgate::{
    Admitted, Algorithm, CounterRing, Denied, Gcra, ManualClock, Nanos, OwnedDenied, Quota, RateLimiter,
    Receipt, Settled, TimestampRing, UnitRing,
};

type ByHand = RateLimiter<Any, ManualClock>;

fn quota(text: &str) -> Quota {
    text.parse().expect("a quota")
}

fn built(builder: CounterRingBuilder) -> CounterRing {
    builder.build().expect("a ring")
}

/// Every algorithm, with the limit and window of `quota`.
fn subjects(quota: Quota) -> Vec<Subject> {
    let builder = || CounterRing::builder(quota).cells(5);
    vec![
        Subject::new("strict", built(builder())),
        Subject::new("units", UnitRing::new(quota).expect("a ring")),
        Subject::new("unpacked", built(builder().unpacked())),
        Subject::new("classic", built(builder().classic())),
        Subject::new("fixed window", CounterRing::fixed_window(quota).expect("a ring")),
        Subject::new("timestamps", TimestampRing::new(quota).expect("a ring")),
        Subject::new("bucket", Gcra::new(quota).expect("a bucket")),
    ]
}

fn by_hand(it: impl Into<Any>) -> (ByHand, ManualClock) {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    (RateLimiter::with_clock(it.into(), clock.clone()), clock)
}

#[test]
fn a_check_charges_its_permits() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm);
        let now = clock_time(&limiter);
        let one = limiter.check().expect("fresh");
        assert_eq!((one.at(), one.permits(), one.remaining()), (now, 1, 9), "{name}");
        let three = limiter.check_n(3).expect("nine are left");
        assert_eq!((three.permits(), three.remaining()), (3, 6), "{name}");
        // The details of an answer are computed on request, so they include later charges.
        assert_eq!(one.remaining(), 6, "{name}");
        clock.advance(Duration::from_millis(1));
        let at = clock_time(&limiter);
        assert_eq!(limiter.check_at(at, 0).expect("nothing").permits(), 0);
        assert_eq!(limiter.check_at(at, 6).expect("six are left").at(), at, "{name}");
        let denied = limiter.check_at(at, 2).expect_err("none is left");
        assert_eq!(
            (denied.at(), denied.permits(), denied.remaining()),
            (at, 2, 0),
            "{name}"
        );
        let retry = denied.retry_after().expect("at most the limit");
        clock.advance(retry - Duration::from_nanos(1));
        assert!(limiter.check_n(2).is_err(), "{name}");
        clock.advance(Duration::from_nanos(1));
        assert!(limiter.check_n(2).is_ok(), "{name}");
    }
}

/// A request admitted at a time ahead of the clock counts until one window after that time.
#[test]
fn a_reading_ahead_of_the_clock_is_used() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm);
        let ahead = clock_time(&limiter).saturating_add(Duration::from_secs(60));
        assert_eq!(limiter.check_at(ahead, 10).expect("fresh").at(), ahead, "{name}");
        for _ in 0..2 {
            // Denied now, and when the clock reaches that time.
            assert!(limiter.check().is_err(), "{name}");
            clock.set(ahead);
        }
        clock.advance(Duration::from_millis(1_200));
        assert!(limiter.check_n(10).is_ok(), "{name}");
        // After a request at the last possible time, no request is admitted.
        let _ = limiter.check_at(Nanos::MAX, 10);
        clock.advance(Duration::from_secs(86_400));
        let denied = limiter.check().expect_err("all is used up");
        let text = denied.to_string();
        assert_eq!(denied.retry_after(), None, "{name}");
        assert_eq!(text, "rate limit reached until the limiter's time ends", "{name}");
    }
}

#[test]
fn check_mut_decides_as_check_does() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (shared, clock) = by_hand(algorithm.clone());
        let mut owned = RateLimiter::with_clock(algorithm, clock.clone());
        // One step takes 10 ms under Miri.
        for step in 0..if cfg!(miri) { 50 } else { 3_000_u64 } {
            clock.advance(Duration::from_millis(step % 83));
            let now = clock_time(&shared);
            let (one, other) = match step % 3 {
                0 => (plain(shared.check()), plain(owned.check_mut())),
                1 => (
                    plain(shared.check_n(step % 5)),
                    plain(owned.check_n_mut(step % 5)),
                ),
                _ => (plain(shared.check_at(now, 2)), plain(owned.check_at_mut(now, 2))),
            };
            assert_eq!(one, other, "{name} at step {step}");
        }
    }
}

/// An answer without the borrow of the limiter: time, permits, remaining permits and retry time.
type Plain = (Nanos, u64, u64, Option<Duration>);

fn plain(answer: Result<Admitted<'_, Any>, Denied<'_, Any>>) -> Result<Plain, Plain> {
    match answer {
        Ok(it) => Ok((it.at(), it.permits(), it.remaining(), None)),
        Err(it) => Err((it.at(), it.permits(), it.remaining(), it.retry_after())),
    }
}

#[test]
fn a_peek_changes_nothing() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm);
        let peek = limiter.peek();
        assert_eq!(
            (peek.at(), peek.remaining(), peek.spent()),
            (clock_time(&limiter), 10, 0),
            "{name}"
        );
        assert_eq!(peek.retry_after(10), Some(Duration::ZERO), "{name}");
        assert_eq!(peek.retry_after(11), None, "{name}");
        assert!(limiter.check_n(4).is_ok());
        // The same peek shows later charges.
        assert_eq!((peek.remaining(), peek.spent()), (6, 4), "{name}");
        assert_eq!(peek.retry_after(6), Some(Duration::ZERO), "{name}");
        let wait = peek.retry_after(7).expect("at most the limit");
        assert!(wait > Duration::ZERO, "{name}");
        // One peek takes milliseconds under Miri.
        for _ in 0..if cfg!(miri) { 3 } else { 1_000 } {
            assert_eq!(
                (limiter.peek().remaining(), limiter.peek().retry_after(7)),
                (6, Some(wait)),
                "{name}"
            );
        }
        clock.advance(wait);
        assert_eq!(limiter.peek().retry_after(7), Some(Duration::ZERO), "{name}");
        assert!(limiter.check_n(7).is_ok(), "{name}");
    }
}

#[test]
fn a_request_above_the_maximum_is_denied_without_a_retry_time() {
    let even = built(CounterRing::builder(quota("10/s")).even().cells(4));
    let bucket = Gcra::token_bucket(quota("10/s"), 3).expect("a bucket");
    for (it, most) in [(Any::from(even), 3), (bucket.into(), 3)]
        .into_iter()
        .chain(subjects(quota("10/s")).into_iter().map(|it| (it.algorithm, 10)))
    {
        let (limiter, clock) = by_hand(it);
        for _ in 0..20 {
            for permits in [most + 1, u64::MAX] {
                let denied = limiter.check_n(permits).expect_err("too many");
                assert_eq!(denied.retry_after(), None);
                assert_eq!(
                    denied.to_string(),
                    format!("{permits} permits at once are never admitted; at most {most} are")
                );
                assert_eq!(limiter.peek().retry_after(permits), None);
            }
            assert!(limiter.peek().retry_after(most).is_some());
            clock.advance(Duration::from_millis(250));
        }
    }
}

#[test]
fn a_denial_is_an_error_with_a_retry_time() {
    let (limiter, _clock) = by_hand(TimestampRing::new(quota("1/1500ms")).expect("a ring"));
    assert!(limiter.check().is_ok());
    let denied = limiter.check().expect_err("one has passed");
    let error: &dyn core::error::Error = &denied;
    assert_eq!(error.to_string(), "rate limit reached; try again in 1.5s");
    assert!(error.source().is_none());
}

#[test]
fn a_limiter_reports_its_bound_and_its_promise() {
    let (limiter, _clock) = by_hand(built(CounterRing::builder(quota("10/s")).classic()));
    assert_eq!(limiter.bound(), 20);
    let promise = limiter.promise();
    assert_eq!((promise.permits, promise.interval), (20, Duration::from_secs(1)));
    assert_eq!(limiter.algorithm().max_request(), 10);
    let debug = format!("{limiter:?}");
    assert!(
        debug.starts_with("RateLimiter") && debug.contains("ManualClock"),
        "{debug}"
    );
}

#[cfg(all(feature = "quanta", not(miri)))] // Miri has no processor counter to calibrate.
#[test]
fn the_default_limiter_has_the_default_clock() {
    let limiter: RateLimiter = RateLimiter::per_minute(2).expect("a limit");
    assert!(limiter.check().is_ok() && limiter.check().is_ok());
    assert!(limiter.check().is_err());
    // The error of the clock, 1 µs plus 50 ppm of a minute, is subtracted from the window.
    assert_eq!(
        limiter.promise().interval,
        Duration::from_secs(60) - Duration::from_micros(3_001)
    );
}

#[test]
fn all_types_are_send_and_sync() {
    fn crosses<T: Send + Sync>() {}
    crosses::<RateLimiter<CounterRing, ManualClock>>();
    crosses::<RateLimiter<TimestampRing, ManualClock>>();
    crosses::<RateLimiter<Gcra, ManualClock>>();
    crosses::<Admitted<'_, CounterRing>>();
    crosses::<Denied<'_, CounterRing>>();
    crosses::<(Receipt, Settled, SavedState, Quota, Nanos, ringgate::ConfigError)>();
    #[cfg(feature = "quanta")]
    crosses::<(RateLimiter, ringgate::clock::CoarseClock)>();
    let set: HashSet<Quota> = [quota("1/s"), quota("1/1000ms")].into_iter().collect();
    assert_eq!(set.len(), 1);
}

#[test]
fn debug_output_of_decisions_has_all_fields() {
    let (limiter, _clock) = by_hand(TimestampRing::new(quota("1/s")).expect("a ring"));
    let admitted = limiter.check().expect("fresh");
    let shown = format!("{admitted:?}");
    assert!(
        shown.contains("3600000000000") && shown.contains("permits: 1"),
        "{shown}"
    );
    let shown = format!("{:?}", limiter.check_n(1).expect_err("one has passed"));
    assert!(
        shown.contains("3600000000000") && shown.contains("permits: 1"),
        "{shown}"
    );
    assert!(format!("{:?}", limiter.peek()).contains("3600000000000"));
    let receipt = Receipt::new(Nanos::new(5), 2, 7);
    assert_eq!(
        (receipt.at(), receipt.permits(), receipt.mark()),
        (Nanos::new(5), 2, 7)
    );
}

fn clock_time(limiter: &ByHand) -> Nanos {
    limiter.peek().at()
}

#[test]
fn a_counter_ring_refuses_cells_out_of_range() {
    let (short, long) = (quota("1/1us"), quota("1/s"));
    let ring = |cells| CounterRing::builder(long).cells(cells);
    let narrow = "cells: 101 cells in 1µs (expected cells of at least 10ns)";
    for (builder, error) in [
        (ring(1), None),
        (ring(4096), None),
        (ring(0), Some("cells: 0 (expected 1 to 4096)")),
        (ring(4097), Some("cells: 4097 (expected 1 to 4096)")),
        // 10 ns a cell, and 9.9. The shortest of several windows counts.
        (CounterRing::builder(short).cells(100), None),
        (CounterRing::builder(short).cells(101), Some(narrow)),
        (ring(101).also(short), Some(narrow)),
        (
            ring(100).also(short).even(),
            Some("windows: 2 (expected one window for an even ring, several for a strict or classic one)"),
        ),
    ] {
        let found = builder.build().err().map(|error| error.to_string());
        assert_eq!(found, error.map(|error| format!("invalid {error}")));
    }
}
