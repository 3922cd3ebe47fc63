//! Giving back what was taken of a key.

use core::time::Duration;

use ringgate::algorithm::Reclaim;
use ringgate::keyed::OnFull;
use ringgate::{Algorithm, RateLimiter, Settled};

use super::{Subject, by_hand, filled, keys_of, now, quota, subjects};

/// The answer and the later state equal those of a single limiter.
#[test]
fn refunds_of_a_key_equal_those_of_a_single_limiter() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm.clone(), 100, OnFull::Share);
        let own = RateLimiter::with_clock(algorithm.clone(), clock.clone());
        assert!(limiter.check(&2).is_ok());
        let mut taken = Vec::new();
        for (step, permits) in [(0, 1), (0, 1), (250, 2), (0, 0), (400, 1), (900, 2)] {
            clock.advance(Duration::from_millis(step));
            if let (Ok(one), Ok(other)) = (limiter.check_n(&1, permits), own.check_n(permits)) {
                taken.push((one.into_receipt(), other.into_receipt()));
            }
            // The newest first, so that some can be given back and some cannot.
            if step > 0 || permits == 0 {
                let (one, other) = taken.pop().expect("the first are admitted");
                assert_eq!(limiter.refund(&1, one), own.refund(other), "{name}");
                assert_eq!(limiter.peek(&1).spent(), own.peek().spent(), "{name}");
            }
        }
        for (one, other) in taken {
            assert_eq!(limiter.refund(&1, one), own.refund(other), "{name}");
        }
        assert_eq!(limiter.peek(&1).spent(), own.peek().spent(), "{name}");
        assert_eq!(limiter.peek(&2).spent(), own_spent_of_one(&name), "{name}");
    }
}

/// The key that asked once in the beginning is idle, but in the longer of two windows.
fn own_spent_of_one(name: &str) -> u64 {
    u64::from(name == "two windows")
}

/// A refund is exact while its cell is the newest. A log refunds nothing.
#[test]
fn a_fresh_refund_is_exact() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _) = by_hand(algorithm.clone(), 100, OnFull::Share);
        let taken = limiter.check_n(&1, 2).expect("fresh");
        let (settled, spent) = if name == "timestamps" {
            (Settled::Forfeited(2), 2)
        } else {
            (Settled::Exact, 0)
        };
        assert_eq!(limiter.refund(&1, taken), settled, "{name}");
        assert_eq!(limiter.peek(&1).spent(), spent, "{name}");
        let nothing = limiter.check_n(&1, 0).expect("nothing");
        assert_eq!(limiter.refund(&1, nothing), Settled::Exact, "{name}");
    }
}

/// The excess is refunded as by a single limiter. A shortfall is charged as far as there is capacity.
#[test]
fn a_key_is_settled_at_the_actual_cost() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _) = by_hand(algorithm.clone(), 100, OnFull::Share);
        let most = 1;
        let estimate = || limiter.check_n(&1, most).expect("there is room");
        assert_eq!(limiter.settle(&1, estimate(), most), Settled::Exact);
        let spent = limiter.peek(&1).spent();
        let settled = limiter.settle(&1, estimate(), 0);
        let kept = if settled == Settled::Exact { 0 } else { most };
        assert_eq!(limiter.peek(&1).spent(), spent + kept, "{name}");
        // More than is left: the rest is forgiven, and named.
        let left = limiter.peek(&1).remaining();
        let nothing = limiter.check_n(&1, 0).expect("nothing");
        assert_eq!(
            limiter.settle(&1, nothing, left + 5),
            Settled::Forgiven(5),
            "{name}"
        );
        assert!(limiter.check(&1).is_err(), "{name}");
        assert_eq!(limiter.peek(&2).spent(), 0, "{name}");
    }
}

/// The window of the charge has expired: the refund changes neither the key that has the entry now, nor the old key's next
/// entry.
#[test]
fn a_refund_to_a_key_that_lost_its_entry_is_forfeited() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        for returns in [false, true] {
            let (limiter, clock) = filled(algorithm.clone(), OnFull::Deny, 1);
            let taken = limiter.check(&1).expect("an entry is left").into_receipt();
            clock.advance(3 * algorithm.span());
            // Every entry passes on.
            let entries = limiter.capacity() as u64;
            for key in 2..2 + entries {
                assert!(limiter.check(&key).is_ok(), "{name}");
            }
            assert_eq!(limiter.counts().reclaimed, entries, "{name}");
            if returns {
                clock.advance(3 * algorithm.span());
                assert!(limiter.check(&1).is_ok(), "{name}");
            }
            assert_eq!(limiter.refund(&1, taken), Settled::Forfeited(1), "{name}");
            if returns {
                assert_eq!(limiter.peek(&1).spent(), 1, "{name}");
            } else {
                for key in 2..2 + entries {
                    assert_eq!(limiter.peek(&key).spent(), 1, "{name}");
                }
            }
        }
    }
}

/// The reset and new charges of the same key happen at the time of the first charge.
#[test]
fn a_refund_from_before_a_reset_is_forfeited() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _) = by_hand(algorithm.clone(), 10, OnFull::Share);
        let most = algorithm.max_request();
        let before = limiter.check_n(&1, most).expect("fresh").into_receipt();
        assert!(limiter.reset(&1), "{name}");
        assert!(limiter.check_n(&1, most).is_ok(), "{name}");
        let settled = limiter.refund(&1, before);
        assert_eq!(settled, Settled::Forfeited(most), "{name}");
        assert!(limiter.check_n(&1, most).is_err(), "{name}");
        assert_eq!(limiter.peek(&1).spent(), most, "{name}");
    }
}

/// Every entry is reset, and passes to another key or to the same keys as soon as its state is idle. Refunds of the charges
/// before the resets change no state. The older receipt is of an earlier cell than the newest charge.
#[cfg(not(miri))] // Full tables take Miri minutes.
#[test]
fn a_refund_changes_no_entry_that_was_reset_and_passed_on() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        for first_key in [1_000, 2_000] {
            let (limiter, clock) = filled(algorithm.clone(), OnFull::Deny, 0);
            let entries = limiter.capacity() as u64;
            clock.advance(Duration::from_millis(200));
            let mut receipts = Vec::new();
            for _ in 0..2 {
                for key in keys_of(&limiter) {
                    let taken = limiter.check(&key).expect("one of ten");
                    receipts.push((key, taken.into_receipt()));
                }
                clock.advance(Duration::from_millis(200));
            }
            for key in keys_of(&limiter) {
                assert!(limiter.reset(&key), "{name}");
            }
            for key in first_key..first_key + entries {
                while let Err(denied) = limiter.check(&key) {
                    clock.advance(denied.retry_after().expect("an entry becomes idle"));
                }
            }
            assert_eq!((limiter.len(), limiter.counts().reclaimed), (entries, 0));
            let spent = |key: u64| limiter.peek(&key).spent();
            let before: Vec<u64> = (first_key..first_key + entries).map(spent).collect();
            for (key, receipt) in receipts {
                assert_eq!(limiter.refund(&key, receipt), Settled::Forfeited(1), "{name}");
            }
            let after: Vec<u64> = (first_key..first_key + entries).map(spent).collect();
            assert_eq!(after, before, "{name}");
        }
    }
}

/// Key 2 takes the entry of key 1 over under `Forget`, and key 1 takes it back. The charges of the older cells still count in
/// the entry, so a refund of the first one is exact.
#[cfg(not(miri))] // Full tables take Miri minutes.
#[test]
fn a_refund_to_an_entry_that_the_key_got_again_subtracts_the_charge_that_it_holds() {
    let names = ["strict", "strict, unpacked", "classic", "two windows"];
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        if !names.contains(&name.as_str()) {
            continue;
        }
        let (limiter, clock) = filled(algorithm.clone(), OnFull::Forget, 1);
        // Key 1 has spent least, whenever a key needs an entry.
        for key in keys_of(&limiter).take(limiter.capacity() - 1) {
            assert!(limiter.check_n(&key, 6).is_ok());
        }
        let first = limiter.check_n(&1, 2).expect("the last entry").into_receipt();
        for (key, spent) in [(2, 3), (1, 4)] {
            clock.advance(Duration::from_millis(200));
            assert!(limiter.check(&key).is_ok());
            assert_eq!(limiter.peek(&key).spent(), spent, "{name}");
        }
        assert_eq!(limiter.counts().forgotten, 2);
        assert_eq!(limiter.refund(&1, first), Settled::Exact, "{name}");
        assert_eq!(limiter.peek(&1).spent(), 2, "{name}");
        assert!(limiter.check_n(&1, 9).is_err(), "{name}");
        assert!(limiter.check_n(&1, 8).is_ok(), "{name}");
    }
}

/// The memory of the cleared table may be in use again: the second table after it often gets the same memory.
#[test]
fn a_refund_from_before_clearing_is_forfeited() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        for times in 1..5 {
            let (mut limiter, _) = by_hand(algorithm.clone(), 10, OnFull::Share);
            let most = algorithm.max_request();
            let before = limiter.check_n(&1, most).expect("fresh").into_receipt();
            for _ in 0..times {
                limiter.clear();
            }
            assert!(limiter.check_n(&1, most).is_ok(), "{name}");
            let settled = limiter.refund(&1, before);
            assert_eq!(settled, Settled::Forfeited(most), "{name}");
            assert_eq!(limiter.peek(&1).spent(), most, "{name}");
        }
    }
}

/// Clearing replaces the catch-all, too, so a charge to the old catch-all is not in the new one.
#[test]
fn a_refund_to_the_catch_all_from_before_clearing_is_forfeited() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (mut limiter, _) = filled(algorithm.clone(), OnFull::Share, 0);
        let most = limiter.peek(&1).remaining();
        let before = limiter.check_n(&1, most).expect("the catch-all is fresh");
        assert!(before.is_overflow());
        let before = before.into_receipt();
        limiter.clear();
        for key in keys_of(&limiter) {
            assert!(limiter.check(&key).is_ok(), "{name}");
        }
        let taken = limiter.check_n(&2, most).expect("the catch-all is fresh again");
        assert!(taken.is_overflow());
        let settled = limiter.refund(&1, before);
        assert_eq!(settled, Settled::Forfeited(most), "{name}");
        assert_eq!(limiter.peek(&3).spent(), most, "{name}");
        assert!(limiter.check_n(&3, 1).is_err(), "{name}");
    }
}

/// A receipt without a charge has the same effect before and after clearing: nothing was charged, so nothing is refunded.
#[test]
fn a_receipt_without_a_charge_is_valid_after_clearing() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (mut limiter, _) = filled(algorithm.clone(), OnFull::Admit, 0);
        let most = algorithm.max_request();
        let uncounted = limiter.check_n(&1, most).expect("uncounted").into_receipt();
        let nothing = limiter.check_n(&1_000, 0).expect("nothing").into_receipt();
        limiter.clear();
        assert!(limiter.check_n(&1, most).is_ok() && limiter.check_n(&1_000, most).is_ok());
        assert_eq!(limiter.refund(&1, uncounted), Settled::Exact, "{name}");
        assert_eq!(limiter.refund(&1_000, nothing), Settled::Exact, "{name}");
        for key in [1, 1_000] {
            assert_eq!(limiter.peek(&key).spent(), most, "{name}");
        }
    }
}

#[test]
fn permits_of_the_catch_all_are_refunded_to_it() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _) = filled(algorithm.clone(), OnFull::Share, 0);
        let most = limiter.peek(&1).remaining();
        let taken = limiter.check_n(&1, most).expect("the catch-all is fresh");
        assert!(taken.is_overflow());
        // Another key is served by the same.
        assert!(limiter.check(&2).is_err(), "{name}");
        let settled = limiter.refund(&1, taken);
        if name == "timestamps" {
            assert_eq!(settled, Settled::Forfeited(most));
            assert!(limiter.check(&2).is_err());
        } else {
            assert_eq!(settled, Settled::Exact, "{name}");
            assert!(limiter.check_n(&2, most).is_ok(), "{name}");
        }
        for key in keys_of(&limiter) {
            assert_eq!(limiter.peek(&key).spent(), 1, "{name}");
        }
    }
}

/// An entry that may be forgotten while it counts refunds nothing, because a refund would set its time back.
#[test]
fn a_bucket_under_forget_refunds_nothing() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _) = by_hand(algorithm.clone(), 1, OnFull::Forget);
        let taken = limiter.check(&1).expect("fresh");
        let exact = !["bucket", "timestamps"].contains(&name.as_str());
        let settled = if exact {
            Settled::Exact
        } else {
            Settled::Forfeited(1)
        };
        assert_eq!(limiter.refund(&1, taken), settled, "{name}");
        assert_eq!(limiter.peek(&1).spent(), u64::from(!exact), "{name}");
    }
}

/// No key was charged, so no permit is lost.
#[test]
fn a_refund_of_an_uncounted_admission_forfeits_nothing() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = filled(algorithm.clone(), OnFull::Admit, 0);
        let most = algorithm.max_request();
        let taken = limiter.check_n(&1, most).expect("uncounted");
        assert_eq!((taken.at(), taken.is_overflow()), (now(&clock), true));
        assert_eq!(limiter.refund(&1, taken), Settled::Exact, "{name}");
        let later = limiter.check_n(&1, most).expect("uncounted").into_receipt();
        // Not even when the key has an entry by now: its own charge stays.
        clock.advance(3 * algorithm.span());
        let permits = limiter.peek(&1).remaining();
        assert!(!limiter.check_n(&1, permits).expect("room by now").is_overflow());
        assert_eq!(limiter.refund(&1, later), Settled::Exact, "{name}");
        assert_eq!(limiter.peek(&1).spent(), permits, "{name}");
    }
}
