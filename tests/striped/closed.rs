//! Denials that are published to later callers.

use core::time::Duration;

use ringgate::{Clock, Quota, StripedLimiter};

use super::{AsWorker, CELL, WINDOW, closed, passed, striped};

#[test]
fn a_denial_holds_for_as_many_permits_and_not_for_fewer() {
    let (limiter, _) = striped(100, 1, 10);
    assert!(limiter.check_n(90).is_ok() && limiter.check_n(7).is_ok());
    assert!(limiter.check_n(5).is_err());
    assert!(closed(&limiter));
    assert!(limiter.check_n(5).is_err() && limiter.check_n(9).is_err() && limiter.check_n(50).is_err());
    assert!(limiter.check_n(0).is_ok() && limiter.check_n(3).is_ok());
    assert!(limiter.check_n(1).is_err());
    assert!(closed(&limiter));
}

/// A request for fewer permits than were denied finds them in another stripe.
#[test]
fn a_denial_holds_for_as_many_permits_whatever_the_stripe_of_the_caller_holds() {
    let (limiter, _) = striped(100, 2, 10);
    assert!(limiter.check_n(80).is_ok());
    assert!(limiter.as_worker(0).check_n(9).is_ok() && limiter.as_worker(1).check_n(7).is_ok());
    assert!(limiter.as_worker(0).check_n(5).is_err() && closed(&limiter));
    assert!(limiter.as_worker(0).check_n(3).is_ok());
}

/// Permits become free with the cells of the ring. The published denial ends at that time, and not earlier.
#[test]
fn a_denial_holds_until_permits_come_free() {
    for (limit, stripes, batch) in [(100, 1, 10), (100, 4, 10), (1_000, 2, 100)] {
        let (limiter, clock) = striped(limit, stripes, batch);
        assert_eq!(passed(|| limiter.check().is_ok()), limit);
        assert!(closed(&limiter));
        let wait = limiter.check().expect_err("all is used").retry_after();
        assert_eq!(wait, Some(WINDOW + CELL));
        clock.advance(WINDOW + CELL - Duration::from_nanos(1));
        assert!(limiter.check().is_err() && closed(&limiter));
        clock.advance(Duration::from_nanos(1));
        assert_eq!(passed(|| limiter.check().is_ok()), limit);
    }
}

/// The owner of a local stripe gets the rest of its batch, also while other callers are denied.
#[test]
fn a_local_stripe_is_denied_as_others_are_when_its_batch_is_spent() {
    let (limiter, _) = striped(100, 2, 10);
    let mut own = limiter.as_worker(0).local_stripe();
    assert!(own.check_n(3).is_ok());
    assert!(limiter.check_n(80).is_ok());
    assert_eq!(passed(|| limiter.as_worker(1).check().is_ok()), 10);
    assert!(closed(&limiter));
    assert_eq!(passed(|| own.check().is_ok()), 7);
    // The end of its claim has opened the limiter, and its own denial has closed it.
    assert!(!own.has_claim() && closed(&limiter));
    drop(own);
    assert!(closed(&limiter));
}

/// The word cannot hold a request for so many permits, so each request is decided by the stripes and the ring.
#[test]
fn a_denial_of_many_permits_is_not_published() {
    let (limiter, _) = striped(1_000, 1, 10);
    assert!(limiter.check_n(900).is_ok());
    assert!(limiter.check_n(100).is_err() && !closed(&limiter));
    assert!(limiter.check_n(91).is_err() && !closed(&limiter));
    assert!(limiter.check_n(90).is_ok());
}

/// The word cannot distinguish such short cells. Permits that become free within a unit of the word are admitted.
#[test]
fn a_denial_by_short_cells_is_not_published_for_longer() {
    let clock = ringgate::ManualClock::new();
    let limiter = StripedLimiter::builder(Quota::new(300, Duration::from_micros(50)).expect("a quota"))
        .stripes(1)
        .batch(10)
        .build_with(clock.clone())
        .expect("a limiter");
    for _ in 0..100 {
        let had = passed(|| limiter.check().is_ok());
        assert_eq!(limiter.remaining(), 0);
        let wait = limiter.check().expect_err("all is used").retry_after();
        clock.advance(wait.expect("permits come free"));
        assert!(had > 0 && limiter.remaining() > 0 && clock.now() > ringgate::Nanos::ZERO);
    }
}
