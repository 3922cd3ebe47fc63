//! Checks, peeks, resets, clearing, counting, and many keys at once.

use super::*;

#[test]
fn any_hashable_value_is_a_key() {
    let it = subjects(quota("2/s")).swap_remove(0).algorithm;
    let table = sized(it, 100, OnFull::Share);
    let limiter = build(table, ManualClock::new(), AnyKey::with_seeds([1, 2, 3, 4]));
    // A string and what is borrowed from it are one key.
    let owned = String::from("alice");
    assert!(limiter.check("alice").is_ok());
    assert!(limiter.check(&owned).is_ok());
    assert!(limiter.check(owned.as_str()).is_err());
    assert!(limiter.check("bob").is_ok());
    // So are an array's items as a slice, and a vector.
    assert!(limiter.check(&[1_u8, 2, 3][..]).is_ok());
    assert!(limiter.check(&vec![1_u8, 2, 3]).is_ok());
    assert!(limiter.check(&[1_u8, 2, 3][..]).is_err());
    let address: IpAddr = "192.0.2.1".parse().expect("an address");
    for _ in 0..2 {
        assert!(limiter.check(&7_u64).is_ok());
        assert!(limiter.check(&(7_u64, "alice")).is_ok());
        assert!(limiter.check(&address).is_ok());
    }
    assert!(limiter.check(&7_u64).is_err());
    assert!(limiter.check(&(7_u64, owned.as_str())).is_err());
    assert!(limiter.check(&address).is_err());
    assert_eq!(limiter.len(), 6);
}

/// Two keys with equal hashes share a limit. A hash of 0 counts as 1.
#[test]
fn keys_with_equal_hashes_share_a_limit() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _) = by_hand(algorithm.clone(), 100, OnFull::Share);
        let most = limiter.peek(&0).remaining();
        assert_eq!(drain(&limiter, 0), most, "{name}");
        assert_eq!(drain(&limiter, 1), 0, "{name}");
        assert_eq!(limiter.len(), 1, "{name}");
        assert!(limiter.reset(&1));
        assert!(!limiter.reset(&0));
    }
}

/// An answer that is equal for every state needs no state.
#[cfg(not(miri))] // Full tables take Miri minutes.
#[test]
fn requests_for_no_or_too_many_permits_insert_no_key() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        for on_full in [OnFull::Share, OnFull::Deny, OnFull::Admit, OnFull::Forget] {
            let (empty, clock) = by_hand(algorithm.clone(), 10, on_full);
            let (full, _) = filled(algorithm.clone(), on_full, 0);
            // A key that has an entry.
            let (known, _) = by_hand(algorithm.clone(), 10, on_full);
            assert!(known.check(&1).is_ok());
            let most = algorithm.max_request();
            for limiter in [&empty, &full, &known] {
                let before = (limiter.counts(), limiter.peek(&1).spent());
                let nothing = limiter.check_n(&1, 0).expect("nothing is always admitted");
                assert_eq!((nothing.at(), nothing.permits()), (now(&clock), 0));
                for permits in [most + 1, u64::MAX] {
                    let denied = limiter.check_n(&1, permits).expect_err("more than ever");
                    assert_eq!((denied.at(), denied.permits()), (now(&clock), permits));
                    assert_eq!(
                        (denied.retry_after(), denied.is_overflow()),
                        (None, false),
                        "{name}"
                    );
                    let text = format!("{permits} permits at once are never admitted; at most {most} are");
                    assert_eq!(denied.to_string(), text);
                }
                assert_eq!((limiter.counts(), limiter.peek(&1).spent()), before, "{name}");
            }
        }
    }
}

/// The answer to a request for no permits has the values of the key's own entry.
#[cfg(not(miri))] // Hundreds of tables.
#[test]
fn a_request_for_no_permits_is_answered_by_the_entry_of_the_key() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        for first in (1..1_000_u64).step_by(8) {
            let (limiter, _) = by_hand(algorithm.clone(), 1, OnFull::Share);
            for key in first..first + 8 {
                assert!(limiter.check(&key).is_ok());
            }
            for key in first..first + 8 {
                let nothing = limiter.check_n(&key, 0).expect("nothing is always admitted");
                assert_eq!(nothing.remaining(), limiter.peek(&key).remaining(), "{name}");
            }
        }
    }
}

#[cfg(not(miri))] // Full tables take Miri minutes.
#[test]
fn a_cleared_table_equals_a_new_one() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (mut limiter, _) = filled(algorithm.clone(), OnFull::Share, 0);
        let (bytes, entries) = (limiter.bytes(), limiter.capacity());
        // The catch-all is in use as well.
        let most = drain(&limiter, 1);
        assert!(limiter.counts().overflowed > most, "{name}");
        limiter.clear();
        assert_eq!(limiter.counts(), TableCounts::default(), "{name}");
        assert!(limiter.is_empty());
        assert_eq!((limiter.bytes(), limiter.capacity()), (bytes, entries));
        for key in keys_of(&limiter) {
            assert_eq!(drain(&limiter, key), most, "{name}");
        }
        assert_eq!(drain(&limiter, 1), most, "{name}: the catch-all");
    }
}

#[cfg(not(miri))] // Full tables take Miri minutes.
#[test]
fn keys_with_an_entry_are_counted() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm.clone(), 1, OnFull::Deny);
        assert!(limiter.is_empty());
        let entries = limiter.capacity() as u64;
        for key in 1..=entries {
            assert!(limiter.check(&key).is_ok(), "{name}");
            // The second time there is nothing to enter.
            let _ = limiter.check(&key);
            assert_eq!(limiter.len(), key, "{name}");
        }
        assert!(!limiter.is_empty());
        assert!(limiter.check(&(entries + 1)).is_err(), "{name}");
        clock.advance(Duration::from_secs(30));
        // Idle keys keep their entries until others need them.
        assert_eq!(limiter.len(), entries);
        for key in 101..=100 + entries {
            assert!(limiter.check(&key).is_ok(), "{name}");
            assert_eq!(limiter.len(), entries);
            assert_eq!(limiter.counts().reclaimed, key - 100, "{name}");
        }
        let counts = limiter.counts();
        assert_eq!(
            (counts.tracked, counts.overflowed, counts.forgotten),
            (entries, 1, 0)
        );
    }
}

#[cfg(not(miri))] // Full tables take Miri minutes.
#[test]
fn fixed_seeds_reproduce_every_decision() {
    let steps = 2_000_u64;
    for Subject { name, algorithm, .. } in subjects(quota("3/s")) {
        let decisions = |seeds: [u64; 4]| {
            let clock = ManualClock::new();
            let table = sized(algorithm.clone(), 20, OnFull::Share);
            let limiter = build(table, clock.clone(), AnyKey::with_seeds(seeds));
            let decide = |step: u64| {
                clock.advance(Duration::from_millis(step % 7));
                told(&limiter.check(&(step * step % 61)))
            };
            ((0..steps).map(decide).collect::<Vec<_>>(), limiter.counts())
        };
        assert_eq!(decisions([1, 2, 3, 4]), decisions([1, 2, 3, 4]), "{name}");
    }
}

#[test]
fn debug_output_contains_no_seed_and_no_key() {
    let it = subjects(quota("3/s")).swap_remove(0).algorithm;
    let table = sized(it, 10, OnFull::Share);
    let limiter = build(table, ManualClock::new(), AnyKey::with_seeds([918_273_645; 4]));
    assert!(limiter.check("a user's secret name").is_ok());
    let text = format!("{limiter:?}");
    assert!(text.contains("Share"), "{text}");
    assert!(!text.contains("918273645") && !text.contains("secret"), "{text}");
}
