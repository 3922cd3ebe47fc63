//! `StripedLimiter` with one caller, compared with a single ring and with an exact log of the calls. `models.rs` and
//! `stress.rs` test threads.
#![cfg(all(feature = "striped", not(ringgate_loom)))]

extern crate alloc;

#[expect(dead_code, reason = "the algorithms' own words are not looked at here")]
mod common;

#[path = "striped/closed.rs"]
mod closed;
#[path = "striped/edges.rs"]
mod edges;
#[path = "striped/histories.rs"]
mod histories;
#[path = "striped/idle.rs"]
mod idle;
#[path = "striped/own.rs"]
mod own;
#[path = "striped/sleepers.rs"]
mod sleepers;

use core::time::Duration;
use std::thread;

use common::Log;
use proptest::prelude::*;
use ringgate::striped::{StripedBuilder, set_thread_index};
use ringgate::{Clock, CounterRing, ManualClock, Nanos, Quota, RateLimiter, StripedLimiter};

const WINDOW: Duration = Duration::from_millis(10);
const CELLS: u32 = 5;
const CELL: Duration = Duration::from_millis(2);

/// Makes requests as the worker with this number, which has the stripe of that number.
trait AsWorker {
    fn as_worker(&self, worker: usize) -> &Self;
}

impl<C> AsWorker for StripedLimiter<C> {
    fn as_worker(&self, worker: usize) -> &Self {
        set_thread_index(worker);
        self
    }
}

fn builder(limit: u64) -> StripedBuilder {
    StripedLimiter::builder(Quota::new(limit, WINDOW).expect("a quota")).cells(CELLS.into())
}

fn striped(limit: u64, stripes: u64, batch: u64) -> (StripedLimiter<ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    let limiter = builder(limit)
        .stripes(stripes)
        .batch(batch)
        .build_with(clock.clone());
    (limiter.expect("a limiter"), clock)
}

fn plain(limit: u64) -> (RateLimiter<CounterRing, ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    let ring = CounterRing::builder(Quota::new(limit, WINDOW).expect("a quota")).cells(CELLS.into());
    (
        RateLimiter::with_clock(ring.build().expect("a ring"), clock.clone()),
        clock,
    )
}

/// A limit, with stripes and a batch that fit into it.
fn shapes() -> impl Strategy<Value = (u64, u64, u64)> {
    (0..=6_u32, 1..=20_u64, 0..=400_u64).prop_map(|(stripes, batch, behind)| {
        let stripes = 1 << stripes;
        (behind + (stripes + 1) * batch, stripes, batch)
    })
}

/// Whether a denial is published to later callers.
fn closed(limiter: &StripedLimiter<ManualClock>) -> bool {
    let debug = format!("{limiter:?}");
    assert_eq!(debug.matches(", firm: ").count(), 1, "{debug}");
    debug.contains("firm: true")
}

/// The counts of a limiter, without the published denial.
fn counts(limiter: &StripedLimiter<ManualClock>) -> String {
    let debug = format!("{limiter:?}");
    let (counts, _) = debug
        .split_once(", published_denial: ")
        .expect("the word that denies");
    counts.into()
}

/// The number of admissions before the first denial.
fn passed(mut check: impl FnMut() -> bool) -> u64 {
    (0..).take_while(|_| check()).count() as u64
}

/// At the end of time no permit becomes free, so a denial has no retry time. Its request is not reported as too
/// large.
#[test]
fn a_denial_at_the_end_of_time_has_no_retry_time() {
    let (limiter, clock) = striped(100, 2, 10);
    clock.set(Nanos::MAX);
    assert_eq!(passed(|| limiter.check().is_ok()), 100);
    let denied = limiter.check().expect_err("all is used up");
    assert_eq!(denied.retry_after(), None);
    assert_eq!(
        denied.to_string(),
        "rate limit reached until the limiter's time ends"
    );
}

/// A stripe keeps its count because the ring is full. The count is current for a whole window after its use.
#[test]
fn a_kept_count_is_current_for_a_window() {
    let (limiter, clock) = striped(100, 2, 10);
    // Late in a period of 1.25 ms, early in a cell of 2 ms.
    clock.advance(Duration::from_micros(1_200));
    assert_eq!(passed(|| limiter.as_worker(0).check().is_ok()), 100);
    clock.advance(Duration::from_micros(9_500));
    assert_eq!(passed(|| limiter.as_worker(0).check().is_ok()), 0);
    // One window after the end of the period, at the beginning of a cell, the count has expired.
    clock.advance(Duration::from_micros(1_300));
    assert_eq!(clock.now().get(), 12_000_000);
    assert_eq!(passed(|| limiter.as_worker(0).check().is_ok()), 100);
}

/// A kept count that has expired is free at the next request, although the ring is full and has not seen the time.
/// For a wide and for a packed ring.
#[test]
fn an_expired_count_is_free_while_the_ring_is_full() {
    for (limit, stripes, batch, form) in [(100, 2, 10, "Wide"), (5, 1, 2, "Packed")] {
        let (limiter, clock) = striped(limit, stripes, batch);
        assert!(format!("{limiter:?}").contains(form));
        let (worker, all) = (limiter.as_worker(0), stripes * batch);
        assert!(worker.check_n(limiter.max_request()).is_ok());
        clock.advance(Duration::from_millis(9));
        assert_eq!(passed(|| worker.check().is_ok()), all);
        // The ring enters a cell three milliseconds after the stripes enter a period.
        clock.advance(Duration::from_millis(3));
        assert!(worker.check_n(limiter.max_request()).is_ok());
        clock.advance(Duration::from_millis(8) - Duration::from_nanos(1));
        let denied = worker.check().expect_err("all is used");
        assert_eq!(denied.retry_after(), Some(Duration::from_nanos(1)));
        clock.advance(Duration::from_nanos(1));
        assert_eq!(limiter.remaining(), all);
        assert_eq!(passed(|| worker.check().is_ok()), all);
    }
}

/// Permits that are used while the clock is set back expire by the time that the ring has published.
#[test]
fn a_clock_that_is_set_back_ends_no_permit_early() {
    let (limiter, clock) = striped(100, 2, 10);
    let passed = || passed(|| limiter.as_worker(0).check().is_ok());
    clock.advance(3 * WINDOW);
    assert!(limiter.as_worker(0).check_n(80).is_ok());
    clock.set(Nanos::ZERO);
    assert_eq!(passed(), 20);
    clock.set(Nanos::from_duration(3 * WINDOW));
    assert_eq!(passed(), 0, "all was used since that time was published");
    clock.advance(WINDOW + CELL);
    assert_eq!(passed(), 100);
}

#[test]
fn a_denial_leaves_the_stripes_as_they_are() {
    let (limiter, clock) = striped(90, 1, 10);
    assert!(limiter.as_worker(0).check_n(80).is_ok());
    assert!(limiter.as_worker(0).check_n(5).is_ok());
    let before = counts(&limiter);
    for micros in [0, 1_500] {
        clock.advance(Duration::from_micros(micros));
        for permits in [6, 10, 11, 80, 81, u64::MAX] {
            assert!(limiter.as_worker(1).check_n(permits).is_err());
        }
    }
    clock.set(Nanos::ZERO);
    assert_eq!(counts(&limiter), before);
}

/// A stripe is partly used, and its thread has ended. Other threads charge its count, whether or not their requests
/// fill a stripe.
#[test]
fn nothing_stays_uncharged_while_a_thread_makes_requests() {
    for permits in [10, 3] {
        let (limiter, clock) = striped(1_000, 4, 10);
        for worker in 1..4 {
            assert!(limiter.as_worker(worker).check_n(7).is_ok());
        }
        for _ in 0..40 {
            clock.advance(WINDOW / 16);
            assert!(limiter.as_worker(0).check_n(permits).is_ok());
        }
        let debug = format!("{limiter:?}");
        assert!(debug.matches("count: 0").count() >= 3, "{debug}");
        // After a silence, only the uncharged permits of the caller's own stripe are missing.
        clock.advance(2 * WINDOW);
        assert!(passed(|| limiter.as_worker(3).check().is_ok()) > 990);
    }
}

#[test]
fn a_decision_allocates_nothing() {
    let (limiter, clock) = striped(1_000, 4, 10);
    let counted = allocation_counter::measure(|| {
        for turn in 0..3_000 {
            clock.advance(Duration::from_micros(1));
            let _ = limiter.check();
            let _ = limiter.as_worker(turn).check_n(3);
            let _ = limiter
                .check_n(20)
                .is_err_and(|denied| denied.retry_after().is_some());
            let mut own = limiter.as_worker(turn).local_stripe();
            for _ in 0..turn % 30 {
                let _ = own.check();
            }
            let _ = own.check_n(3);
        }
    });
    assert_eq!(counted.count_total, 0);
}

/// Only the owner of a local stripe gets its remaining batch, which is not counted for other callers. If all stripes
/// are claimed, the ring decides for the others.
#[test]
fn the_remaining_batch_of_a_local_stripe_is_its_own() {
    let (limiter, _) = striped(100, 2, 10);
    let mut own = limiter.as_worker(0).local_stripe();
    let other = limiter.as_worker(1).local_stripe();
    assert!(own.check_n(3).is_ok());
    assert_eq!(limiter.remaining(), 80);
    assert_eq!(passed(|| limiter.check().is_ok()), 80);
    drop(other);
    assert_eq!(limiter.remaining(), 10);
    assert_eq!(passed(|| limiter.check().is_ok()), 10);
    assert_eq!(passed(|| own.check().is_ok()), 7);
    assert!(own.check_n(0).is_ok() && limiter.check_n(0).is_ok());
    assert_eq!(limiter.remaining(), 0);
}

/// Thread numbers that differ by the number of stripes share a stripe. One local stripe at a time claims it. The
/// other local stripe decides without it, and claims it at its first request after the release, also on another
/// thread.
#[test]
fn one_local_stripe_at_a_time_claims_a_stripe() {
    let (limiter, _) = striped(100, 2, 10);
    let first = limiter.as_worker(0).local_stripe();
    let mut second = limiter.as_worker(2).local_stripe();
    assert!(second.check().is_ok());
    assert_eq!((first.has_claim(), second.has_claim()), (true, false));
    drop(first);
    thread::scope(|scope| {
        scope.spawn(|| assert!(second.check().is_ok()));
    });
    assert!(second.has_claim());
    assert_eq!(passed(|| second.check().is_ok()), 98);
    assert!(!second.has_claim(), "it was given back when the ring was full");
}

/// A leaked local stripe loses its own permits permanently, and no others.
#[test]
fn a_leaked_local_stripe_loses_its_batch() {
    let (limiter, clock) = striped(100, 2, 10);
    core::mem::forget(limiter.as_worker(0).local_stripe());
    for _ in 0..3 {
        assert_eq!(passed(|| limiter.check().is_ok()), 90);
        clock.advance(WINDOW + CELL + WINDOW / 8);
    }
}

#[test]
fn a_small_limit_is_kept_by_the_ring_alone() {
    for limit in [1, 2, 100, 255] {
        let limiter = builder(limit).build_with(ManualClock::new()).expect("a limiter");
        assert_eq!((limiter.stripes(), limiter.batch()), (0, 0));
        assert_eq!((limiter.bound(), limiter.max_request()), (limit, limit));
        assert_eq!(passed(|| limiter.check().is_ok()), limit);
        assert!(limiter.check_n(0).is_ok());
        assert_eq!(
            limiter.check_n(limit + 1).expect_err("too many").retry_after(),
            None
        );
    }
}

#[test]
fn batches_are_chosen_from_the_limit_and_the_cores() {
    let cores = thread::available_parallelism()
        .expect("cores")
        .get()
        .next_power_of_two()
        .min(64);
    // Cells of ten seconds, so that the largest limits fit.
    let builder = |limit| StripedLimiter::builder(Quota::per_minute(limit).expect("a quota"));
    for (limit, batch) in [(100_000_000, 4_096), (1_000_000, 1_000_000 / 32 / cores as u64)] {
        let limiter = builder(limit).build_with(ManualClock::new()).expect("a limiter");
        assert_eq!((limiter.stripes(), limiter.batch()), (cores, batch.min(4_096)));
        assert_eq!(limiter.bound(), limit);
        assert!(limiter.max_request() >= limit - limit / 32);
    }
    // The builder chooses fewer stripes rather than batches of fewer than eight permits.
    let limiter = builder(256).build_with(ManualClock::new()).expect("a limiter");
    assert_eq!((limiter.stripes(), limiter.batch()), (1, 8));
    let limiter = builder(1_024)
        .stripes(4)
        .build_with(ManualClock::new())
        .expect("a limiter");
    assert_eq!((limiter.stripes(), limiter.batch()), (4, 8));
    let limiter = builder(1_023)
        .stripes(4)
        .build_with(ManualClock::new())
        .expect("a limiter");
    assert_eq!((limiter.stripes(), limiter.batch()), (0, 0));
}

#[test]
fn a_wrong_configuration_names_its_field() {
    let error = |builder: StripedBuilder| {
        builder
            .build_with(ManualClock::new())
            .expect_err("wrong")
            .to_string()
    };
    for stripes in [0, 3, 65, 128, u64::MAX] {
        assert_eq!(
            error(builder(1_000_000).stripes(stripes)),
            format!("invalid stripes: {stripes} stripes (expected a power of two from 1 to 64)")
        );
    }
    for batch in [0, 4_097, u64::MAX] {
        assert_eq!(
            error(builder(1_000_000).batch(batch)),
            format!("invalid batch: {batch} permits (expected 1 to 4096 permits)")
        );
    }
    assert_eq!(
        error(builder(89).stripes(8).batch(10)),
        "invalid batch: 10 permits for each of 8 stripes (expected at most 9 permits, with a limit of 89 permits)"
    );
    assert!(
        builder(90)
            .stripes(8)
            .batch(10)
            .build_with(ManualClock::new())
            .is_ok()
    );
    assert!(error(builder(19).batch(10)).starts_with("invalid batch: 10 permits for each of 1 stripes"));
    assert!(error(builder(1_000).cells(0)).starts_with("invalid cells: "));
    // The error names the given limit, and not only the limit of the ring.
    assert_eq!(
        error(
            StripedLimiter::builder(Quota::per_second(1_000_000_000).expect("a quota"))
                .cells(5)
                .stripes(4)
                .batch(10)
        ),
        "invalid limit: 1000000000 permits, without batches 999999960 permits with cells of 200ms \
         (expected at most 268435455 permits with such cells, or fewer and wider cells)"
    );
}
