//! Refunds and settlement of a charge. A receipt is good for the limiter that made it, and for no other.

use ringgate::algorithm::Reclaim;

use super::*;
use crate::common::State;

/// Restoring a state adds to the permits that are spent. A receipt from before refunds at most its own permits, and no
/// restored ones.
#[test]
fn a_receipt_from_before_a_restore_refunds_only_its_own_permits() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm.clone());
        let saved = {
            let before = RateLimiter::with_clock(algorithm, clock);
            assert!(before.check_n(5).is_ok());
            before.save()
        };
        let taken = limiter.check_n(2).expect("fresh").into_receipt();
        limiter.restore(&saved, Duration::ZERO);
        assert_eq!(limiter.peek().spent(), 7, "{name}");
        let given_back = match limiter.refund(taken) {
            Settled::Exact => 2,
            Settled::Forfeited(2) => 0,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(limiter.peek().spent(), 7 - given_back, "{name}");
    }
}

#[test]
fn settling_charges_the_actual_cost() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm.clone());
        let estimate = || limiter.check_n(4).expect("room for an estimate");
        assert_eq!(limiter.settle(estimate(), 4), Settled::Exact);
        assert_eq!(limiter.peek().spent(), 4, "{name}");
        let (kept, spent) = if matches!(algorithm, Any::Log(_)) {
            (Settled::Forfeited(3), 8)
        } else {
            (Settled::Exact, 5)
        };
        assert_eq!(limiter.settle(estimate(), 1), kept);
        assert_eq!(limiter.peek().spent(), spent, "{name}");
        // More than there is: later decisions see the debt.
        let estimate = limiter.check_n(2).expect("at least two permits are left");
        assert_eq!(limiter.settle(estimate, 9), Settled::Exact);
        assert_eq!(
            (limiter.peek().remaining(), limiter.check().is_ok()),
            (0, false),
            "{name}"
        );
        assert!(limiter.peek().spent() >= 10, "{name}");
        let idle = Duration::from_nanos(limiter.save().idle_after_nanos);
        clock.advance(idle);
        assert_eq!(
            (limiter.peek().remaining(), limiter.peek().spent()),
            (10, 0),
            "{name}"
        );

        // Permits that are settled too low too late stay spent.
        let late = limiter.check_n(4).expect("idle").into_receipt();
        clock.advance(algorithm.span());
        assert!(limiter.check().is_ok());
        assert_eq!(limiter.settle(late, 1), Settled::Forfeited(3), "{name}");
    }
}

/// Permits that no word can hold are not charged, and the answer states their number. A packed ring and a log can hold every
/// debt that has an effect.
#[test]
fn debt_that_no_word_can_hold_is_reported() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let forgives = name == "unpacked" || name == "bucket";
        let (limiter, clock) = by_hand(algorithm);
        let taken = limiter.check().expect("fresh");
        match limiter.settle(taken, u64::MAX) {
            Settled::Exact => assert!(!forgives, "{name}"),
            Settled::Forgiven(permits) => assert!(forgives && permits < u64::MAX - 10, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(limiter.peek().remaining(), 0, "{name}");
        // The next debt finds no room at all, in a word that is full.
        let nothing = limiter.check_n(0).expect("nothing is always admitted");
        let again = limiter.settle(nothing, 1_000);
        assert!(
            !forgives || matches!(again, Settled::Forgiven(_)),
            "{name}: {again:?}"
        );
        clock.advance(Duration::from_millis(900));
        assert!(limiter.check().is_err(), "{name}");
    }
}

fn ring() -> CounterRing {
    built(CounterRing::builder(quota("10/s")).cells(5))
}

/// Three permits of `limiter`, as a receipt.
fn taken(limiter: &ByHand) -> Receipt {
    limiter.check_n(3).expect("three are free").into_receipt()
}

/// Two limiters over one algorithm, whose states are equal word for word.
#[test]
fn a_receipt_of_another_limiter_is_forfeited() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (one, _) = by_hand(algorithm.clone());
        let (other, _) = by_hand(algorithm);
        let (ours, theirs) = (taken(&one), taken(&other));
        assert_eq!((theirs.at(), theirs.mark()), (ours.at(), ours.mark()));
        assert_eq!(one.refund(theirs), Settled::Forfeited(3), "{name}");
        assert_eq!(one.settle(taken(&other), 1), Settled::Forfeited(2), "{name}");
        assert_eq!((one.peek().spent(), other.peek().spent()), (3, 6), "{name}");
        // An answer that is handed over is no different from a receipt.
        let found = one.refund(other.check().expect("four are free"));
        assert_eq!(found, Settled::Forfeited(1));
        if !matches!(one.algorithm(), Any::Log(_)) {
            assert_eq!(one.refund(ours), Settled::Exact, "{name}");
        }
    }
}

/// The cost above the estimate is charged to the limiter whose `settle` was called.
#[test]
fn the_debt_of_another_limiters_receipt_is_charged() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (one, _) = by_hand(algorithm.clone());
        let (other, _) = by_hand(algorithm);
        assert_eq!(one.settle(taken(&other), 5), Settled::Exact, "{name}");
        assert_eq!((one.peek().spent(), other.peek().spent()), (2, 3), "{name}");
    }
}

#[test]
fn a_moved_limiter_accepts_its_receipts() {
    let (limiter, _) = by_hand(ring());
    let receipt = taken(&limiter);
    let mut moved = vec![limiter];
    moved.reserve(1_000);
    let boxed = Box::new(moved.remove(0));
    // The receipt does not include the permits that a restart has left to charge.
    let two = SavedState {
        spent: 2,
        idle_after_nanos: 1_000_000_000,
    };
    boxed.restore(&two, Duration::ZERO);
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
    let make = || by_hand(ring()).0;
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
    let ring = ring();
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
    use ringgate::KeyedRateLimiter;
    use ringgate::keyed::AnyKey;

    let ring = ring();
    let clock = ManualClock::new();
    let limiter = RateLimiter::with_clock(ring.clone(), clock.clone());
    let table = KeyedRateLimiter::builder(ring)
        .capacity(10)
        .build_with(clock, AnyKey::with_seeds([1, 2, 3, 4]))
        .expect("a small table");
    let of_limiter = limiter.check_n(3).expect("three are free").into_receipt();
    let of_table = table.check_n("key", 3).expect("three are free").into_receipt();
    assert_eq!(limiter.refund(of_table), Settled::Forfeited(3));
    assert_eq!(table.refund("key", of_limiter), Settled::Forfeited(3));
    assert_eq!((limiter.peek().spent(), table.peek("key").spent()), (3, 3));
}
