//! Local stripes: when they charge, what they charge, and the state that they leave.

use super::{AsWorker, CELL, WINDOW, counts, passed, striped};

/// A local stripe without admissions changes nothing: the kept count and its expiry remain.
#[test]
fn a_local_stripe_that_is_not_used_leaves_no_trace() {
    let (limiter, clock) = striped(30, 1, 10);
    clock.advance(CELL);
    assert!(limiter.check_n(20).is_ok());
    let mut own = limiter.as_worker(0).local_stripe();
    assert!(own.check_n(7).is_ok());
    // The remaining permits do not suffice, and the ring has no room, so the seven used permits are kept.
    assert!(own.check_n(5).is_err() && !own.has_claim());
    drop(own);
    let before = counts(&limiter);
    assert!(
        before.contains("count: 7, is_expiring: true, is_claimed: false"),
        "{before}"
    );
    let own = limiter.as_worker(0).local_stripe();
    assert!(own.has_claim());
    drop(own);
    assert_eq!(counts(&limiter), before);
    // The seven permits have expired, so they are not charged with the later ones.
    clock.advance(2 * WINDOW);
    assert_eq!(limiter.remaining(), 30);
    assert_eq!(passed(|| limiter.as_worker(0).local_stripe().check().is_ok()), 30);
}

/// While the ring is full, the stripe is released for all callers. When there is room, the local stripe claims it
/// again.
#[test]
fn a_local_stripe_takes_its_stripe_again() {
    let (limiter, clock) = striped(100, 2, 10);
    let mut own = limiter.as_worker(0).local_stripe();
    for _ in 0..3 {
        assert_eq!(passed(|| own.check().is_ok()), 100);
        assert!(!own.has_claim());
        clock.advance(2 * WINDOW);
        assert!(own.check().is_ok());
        assert!(own.check().is_ok() && own.has_claim());
        drop(own);
        assert_eq!(passed(|| limiter.as_worker(1).check().is_ok()), 98);
        clock.advance(2 * WINDOW);
        own = limiter.as_worker(0).local_stripe();
    }
}

/// A thread that makes requests by a local stripe also charges the counts that other threads have left.
#[test]
fn nothing_stays_uncharged_while_a_local_stripe_goes_on() {
    let (limiter, clock) = striped(1_000, 4, 10);
    for worker in 1..4 {
        assert!(limiter.as_worker(worker).check_n(7).is_ok());
    }
    let mut own = limiter.as_worker(0).local_stripe();
    for _ in 0..40 {
        clock.advance(WINDOW / 16);
        assert!(own.check_n(10).is_ok() && own.has_claim());
    }
    let debug = format!("{limiter:?}");
    assert!(debug.matches("count: 0").count() >= 3, "{debug}");
}
