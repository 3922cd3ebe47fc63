//! Idle permits: a request for one permit is admitted exactly while one remains, and no charge loses or creates a
//! permit.

use core::time::Duration;

use proptest::prelude::*;
use ringgate::Clock;

use super::{AsWorker, CELL, WINDOW, closed, passed, shapes, striped};

/// The move of the clock before a call, mostly none.
fn pause() -> impl Strategy<Value = Duration> {
    prop_oneof![
        6 => Just(Duration::ZERO),
        1 => (0..10_000_u64).prop_map(Duration::from_nanos),
        1 => (0..3_000_000_u64).prop_map(Duration::from_nanos),
        1 => Just(CELL),
        1 => (0..15_000_000_u64).prop_map(Duration::from_nanos),
    ]
}

/// Mostly one permit, and mostly few.
fn permits() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(1_u64), 2 => 1..6_u64, 1 => 1..40_u64]
}

proptest! {
    /// Each worker is admitted as many single permits as [`remaining`](ringgate::StripedLimiter::remaining) returns.
    /// A denial costs nothing, and an admission costs its permits.
    #[test]
    fn a_permit_is_admitted_exactly_while_one_remains(
        (limit, stripes, batch) in shapes(),
        calls in proptest::collection::vec((0..70_usize, permits(), pause()), 1..300),
    ) {
        let (limiter, clock) = striped(limit, stripes, batch);
        for (worker, permits, pause) in calls {
            clock.advance(pause);
            let before = limiter.remaining();
            prop_assert!(before <= limit);
            let admitted = limiter.as_worker(worker).check_n(permits).is_ok();
            let after = limiter.remaining() + if admitted { permits } else { 0 };
            if permits == 1 {
                prop_assert_eq!(admitted, before > 0, "{} remained", before);
            }
            prop_assert_eq!(after, before, "{} were asked for", permits);
        }
    }

    /// The clock stands still, and workers own stripes for a while. The admitted and the remaining permits together
    /// are the limit, whatever moves between local stripes, stripes and the ring.
    #[test]
    fn no_permit_is_lost_or_made_at_one_reading(
        (limit, stripes, batch) in shapes(),
        calls in proptest::collection::vec((0..6_usize, 0..4_usize, permits()), 1..300),
    ) {
        let (limiter, _) = striped(limit, stripes, batch);
        let mut workers = [const { None }; 4];
        let mut had = 0;
        for (what, worker, permits) in calls {
            let admitted = match (what, &mut workers[worker]) {
                (0, local) => {
                    *local = local.is_none().then(|| limiter.as_worker(worker).local_stripe());
                    false
                }
                (_, Some(own)) => own.check_n(permits).is_ok(),
                (_, None) => limiter.as_worker(worker).check_n(permits).is_ok(),
            };
            had += if admitted { permits } else { 0 };
            let own = workers.iter().flatten().filter(|worker| worker.has_claim()).count() as u64;
            let idle = had + limiter.remaining();
            prop_assert!(idle <= limit && idle + own * batch >= limit, "{} of {}", idle, limit);
        }
        drop(workers);
        prop_assert_eq!(had + limiter.remaining(), limit);
        prop_assert_eq!(had + passed(|| limiter.check().is_ok()), limit);
    }

    /// After any history, the retry time of a denial is right for one and for several permits on the worker that was
    /// denied. The request is admitted then, and not a nanosecond earlier.
    #[test]
    fn a_denial_after_any_history_has_a_retry_time(
        (limit, stripes, batch) in shapes(),
        calls in proptest::collection::vec((0..70_usize, permits(), pause()), 1..200),
        worker in 0..70_usize,
        permits in permits(),
    ) {
        let played = || {
            let (limiter, clock) = striped(limit, stripes, batch);
            for (worker, permits, pause) in &calls {
                clock.advance(*pause);
                let _ = limiter.as_worker(*worker).check_n(*permits);
            }
            while limiter.as_worker(worker).check_n(permits).is_ok() {}
            (limiter, clock)
        };
        let (limiter, clock) = played();
        let denied = limiter.as_worker(worker).check_n(permits).expect_err("all is used");
        if let Some(wait) = denied.retry_after() {
            prop_assert!(permits <= limiter.max_request() && wait > Duration::ZERO);
            clock.advance(wait);
            prop_assert!(limiter.as_worker(worker).check_n(permits).is_ok(), "too early: {:?}", wait);
            let (limiter, clock) = played();
            clock.advance(wait - Duration::from_nanos(1));
            prop_assert!(limiter.as_worker(worker).check_n(permits).is_err(), "too late: {:?}", wait);
        } else {
            prop_assert!(permits > limiter.max_request());
        }
    }
}

/// A caller with an old reading is decided at the newest published time, at which the uses of a stripe have expired.
#[test]
fn permits_expired_at_the_published_time_are_free() {
    for stripes in [1, 4] {
        let behind = 100 - stripes * 10;
        let (limiter, clock) = striped(100, stripes, 10);
        let (begin, late) = (clock.now(), clock.now().saturating_add(WINDOW + CELL));
        assert!(limiter.check_n(behind).is_ok());
        // The ring is full, so the stripes keep their counts.
        assert_eq!(passed(|| limiter.check().is_ok()), stripes * 10);
        assert!(closed(&limiter));
        clock.set(late);
        assert!(limiter.check_n(behind).is_ok());
        clock.set(begin);
        assert_eq!(limiter.remaining(), stripes * 10);
        assert_eq!(passed(|| limiter.check().is_ok()), stripes * 10);
        let denied = limiter.check().expect_err("all is used");
        assert_eq!(denied.retry_after(), Some(2 * (WINDOW + CELL)));
    }
}

/// The count of a stripe may be charged before the ring has room for the whole request.
#[test]
fn a_retry_time_includes_permits_of_stripes() {
    let (limiter, clock) = striped(100, 1, 10);
    // Five permits are charged in the first cell. Six are charged in the second cell, which fills the ring. Five
    // remain in the stripe.
    assert!(limiter.check_n(5).is_ok() && limiter.check_n(6).is_ok());
    clock.advance(CELL);
    assert!(limiter.check_n(5).is_ok() && limiter.check_n(79).is_ok());
    let denied = limiter.check_n(10).expect_err("five are left");
    let wait = denied.retry_after().expect("no more than the batch");
    assert_eq!(wait, WINDOW);
    clock.advance(wait);
    assert!(limiter.check_n(10).is_ok());
}
