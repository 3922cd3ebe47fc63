//! A receipt is good for the limiter that made it, and for no other.

use core::time::Duration;

use ringgate::limiter::SavedState;
use ringgate::{Algorithm, CounterRing, Gcra, ManualClock, Nanos, RateLimiter, Receipt, Settled};

use super::{ByHand, by_hand, quota, subjects};
use crate::common::{Any, State};

/// Three permits of `limiter`, as a receipt.
fn taken(limiter: &ByHand) -> Receipt {
    limiter.check_n(3).expect("three are free").into_receipt()
}

/// Two limiters over one algorithm, whose states are equal word for word.
#[test]
fn a_receipt_of_another_limiter_is_forfeited() {
    for subject in subjects(quota("10/s")) {
        let (one, _) = by_hand(subject.algorithm.clone());
        let (other, _) = by_hand(subject.algorithm);
        let (ours, theirs) = (taken(&one), taken(&other));
        assert_eq!((theirs.at(), theirs.mark()), (ours.at(), ours.mark()));
        assert_eq!(one.refund(theirs), Settled::Forfeited(3), "{}", subject.name);
        assert_eq!(
            one.settle(taken(&other), 1),
            Settled::Forfeited(2),
            "{}",
            subject.name
        );
        assert_eq!(
            (one.peek().spent(), other.peek().spent()),
            (3, 6),
            "{}",
            subject.name
        );
        // An answer that is handed over is no different from a receipt.
        assert_eq!(
            one.refund(other.check().expect("four are free")),
            Settled::Forfeited(1)
        );
        if !matches!(one.algorithm(), Any::Log(_)) {
            assert_eq!(one.refund(ours), Settled::Exact, "{}", subject.name);
        }
    }
}

/// The cost above the estimate is charged to the limiter whose `settle` was called.
#[test]
fn the_debt_of_another_limiters_receipt_is_charged() {
    for subject in subjects(quota("10/s")) {
        let (one, _) = by_hand(subject.algorithm.clone());
        let (other, _) = by_hand(subject.algorithm);
        assert_eq!(one.settle(taken(&other), 5), Settled::Exact, "{}", subject.name);
        assert_eq!(
            (one.peek().spent(), other.peek().spent()),
            (2, 3),
            "{}",
            subject.name
        );
    }
}

#[test]
fn a_moved_limiter_accepts_its_receipts() {
    let (limiter, _) = by_hand(
        CounterRing::builder(quota("10/s"))
            .cells(5)
            .build()
            .expect("a ring"),
    );
    let receipt = taken(&limiter);
    let mut moved = vec![limiter];
    moved.reserve(1_000);
    let boxed = Box::new(moved.remove(0));
    // The receipt does not include the permits that a restart has left to charge.
    boxed.restore(&SavedState::new(2, Duration::from_secs(1)), Duration::ZERO);
    assert_eq!(boxed.refund(receipt), Settled::Exact);
    assert_eq!(boxed.peek().spent(), 2);
}

#[test]
fn a_receipt_of_check_mut_is_accepted() {
    let (mut limiter, _) = by_hand(Gcra::new(quota("10/s")).expect("a bucket"));
    let receipt = limiter.check_n_mut(3).expect("three are free").into_receipt();
    assert_eq!(limiter.refund(receipt), Settled::Exact);
    assert_eq!(limiter.peek().spent(), 0);
}

/// A new limiter may have the memory of a dropped one.
#[test]
fn a_receipt_of_a_dropped_limiter_is_forfeited() {
    let make = || {
        by_hand(
            CounterRing::builder(quota("10/s"))
                .cells(5)
                .build()
                .expect("a ring"),
        )
        .0
    };
    let mut receipts = Vec::new();
    for _ in 0..100 {
        let limiter = make();
        receipts.push(taken(&limiter));
    }
    let limiter = make();
    let _ = limiter.check_n(5);
    for receipt in receipts {
        assert_eq!(limiter.refund(receipt), Settled::Forfeited(3));
    }
}

/// The receipt is of an algorithm over words in the caller's own memory.
#[test]
fn a_receipt_of_an_algorithm_alone_is_forfeited() {
    let ring = CounterRing::builder(quota("10/s"))
        .cells(5)
        .build()
        .expect("a ring");
    let limiter = RateLimiter::with_clock(ring.clone(), ManualClock::new());
    let words = State::fresh(&ring);
    let _ = limiter.check_n(3).expect("three are free").into_receipt();
    let receipt = ring
        .decide(words.shared(), Nanos::ZERO, 3)
        .expect("three are free");
    assert_eq!(limiter.refund(receipt), Settled::Forfeited(3));
    assert_eq!(limiter.peek().spent(), 3);
}

/// A table forfeits receipts of a limiter, and a limiter forfeits receipts of a table.
#[test]
fn receipts_of_tables_and_limiters_are_not_exchangeable() {
    use ringgate::keyed::{AnyKey, KeyedBuilder};

    let ring = CounterRing::builder(quota("10/s"))
        .cells(5)
        .build()
        .expect("a ring");
    let clock = ManualClock::new();
    let limiter = RateLimiter::with_clock(ring.clone(), clock.clone());
    let table = KeyedBuilder::new(ring)
        .capacity(10)
        .build_with(clock, AnyKey::with_seeds([1, 2, 3, 4]))
        .expect("a small table");
    let of_limiter = limiter.check_n(3).expect("three are free").into_receipt();
    let of_table = table.check_n("key", 3).expect("three are free").into_receipt();
    assert_eq!(limiter.refund(of_table), Settled::Forfeited(3));
    assert_eq!(table.refund("key", of_limiter), Settled::Forfeited(3));
    assert_eq!((limiter.peek().spent(), table.peek("key").spent()), (3, 3));
}
