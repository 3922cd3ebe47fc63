//! Giving back what was taken of a key.

use super::*;
use ringgate::Settled;

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
        let found = limiter.settle(&1, nothing, left + 5);
        assert_eq!(found, Settled::Forgiven(5), "{name}");
        assert!(limiter.check(&1).is_err(), "{name}");
        assert_eq!(limiter.peek(&2).spent(), 0, "{name}");
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
