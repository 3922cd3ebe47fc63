//! Decisions about keys with lower limits than the table's.

use core::time::Duration;

use ringgate::Settled;
use ringgate::keyed::OnFull;

use super::{by_hand, filled, quota, subjects};

/// The limit is an argument of each decision: it holds for the key of that decision, and the next one may have another.
#[test]
fn each_decision_has_its_limit() {
    for subject in subjects(quota("10/s")) {
        if ["even", "even, unpacked", "two windows", "bucket"].contains(&subject.name.as_str()) {
            continue;
        }
        let name = &subject.name;
        let (limiter, clock) = by_hand(subject.algorithm.clone(), 100, OnFull::Share);
        let with = |limit| limiter.with_limit(limit).expect("up to ten");
        assert!(with(4).check_n(&1, 5).is_err(), "{name}");
        assert!(with(4).check_n(&1, 4).is_ok(), "{name}");
        assert!(with(4).check(&1).is_err(), "{name}");
        // Another key, and a higher limit of the same key.
        assert_eq!(with(4).peek(&2).remaining(), 4, "{name}");
        assert_eq!(with(6).check(&1).expect("four of six").remaining(), 1, "{name}");
        // A lower limit takes effect at once.
        for limit in 1..=5 {
            let lowered = with(limit);
            let denied = lowered.check(&1).expect_err("five are spent");
            assert_eq!(denied.remaining(), 0, "{name}");
            assert!(denied.retry_after().is_some_and(|wait| !wait.is_zero()), "{name}");
        }
        assert_eq!(
            (limiter.peek(&1).remaining(), limiter.peek(&1).spent()),
            (5, 5),
            "{name}"
        );
        let lowered = with(5);
        let wait = lowered.check(&1).expect_err("five are spent").retry_after();
        clock.advance(wait.expect("they expire"));
        assert!(lowered.check(&1).is_ok(), "{name}");
    }
}

/// A key without an entry has its limit in the catch-all.
#[test]
fn a_key_without_an_entry_has_its_limit_too() {
    for subject in subjects(quota("10/s")) {
        if ["even", "even, unpacked", "two windows", "bucket"].contains(&subject.name.as_str()) {
            continue;
        }
        let (limiter, _) = filled(subject.algorithm.clone(), OnFull::Share, 0);
        let lowered = limiter.with_limit(3).expect("up to ten");
        let admitted = (0..10).filter(|_| lowered.check(&1).is_ok()).count();
        assert_eq!(admitted, 3, "{}", subject.name);
        assert!(limiter.check(&1).expect("three of ten").is_overflow());
    }
}

#[test]
fn what_a_lower_limit_admitted_is_settled_by_it() {
    for subject in subjects(quota("10/s")) {
        if ["two windows", "timestamps"].contains(&subject.name.as_str()) {
            continue;
        }
        let (limiter, clock) = by_hand(subject.algorithm.clone(), 100, OnFull::Share);
        let lowered = limiter.with_limit(5).expect("up to ten");
        let taken = lowered.check(&1).expect("a fresh key").into_receipt();
        clock.advance(Duration::from_nanos(1));
        assert_eq!(lowered.refund(&1, taken), Settled::Exact, "{}", subject.name);
        assert_eq!(lowered.peek(&1).spent(), 0, "{}", subject.name);
    }
}
