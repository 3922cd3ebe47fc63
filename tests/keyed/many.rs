//! Checks of many keys in one call.

use super::*;

/// Sixteen keys are prefetched at once. The test has fewer, as many and more keys, with duplicates within one batch and
/// across batches, on a table that becomes full meanwhile.
#[cfg(not(miri))] // Full tables take Miri minutes.
#[test]
fn check_many_equals_single_checks() {
    let sizes: &[u64] = &[0, 1, 15, 16, 17, 32, 100];
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        for on_full in [OnFull::Share, OnFull::Deny, OnFull::Admit, OnFull::Forget] {
            for &size in sizes {
                let (one, _) = by_hand(algorithm.clone(), 1, on_full);
                let (other, _) = by_hand(algorithm.clone(), 1, on_full);
                let keys: Vec<u64> = (0..size).map(|index| index * index % 29).collect();
                let mut together = Vec::new();
                one.check_many(&keys, |key, answer| together.push((*key, told(&answer))));
                let apart: Vec<_> = keys.iter().map(|key| (*key, told(&other.check(key)))).collect();
                assert_eq!(together, apart, "{name}, {on_full:?}");
                assert_eq!(one.counts(), other.counts());
            }
        }
    }
}

/// The closure that gets the answers may check or reset later keys, because entries that were prefetched are validated. An
/// iterator that has ended is not polled again.
#[test]
fn check_many_validates_entries_that_were_reused() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let most = algorithm.max_request();
        let (limiter, clock) = by_hand(algorithm.clone(), 1, OnFull::Share);
        for key in 0..12_u64 {
            assert!(limiter.check(&key).is_ok());
        }
        // All are idle, and found ahead; the first answer gives the entry of the second key to another.
        clock.advance(Duration::from_secs(3_600));
        let mut ended = false;
        let keys = core::iter::from_fn(|| {
            assert!(!core::mem::replace(&mut ended, true), "asked again");
            None
        });
        let keys = [&0_u64, &1, &1].into_iter().chain(keys);
        let mut passed = Vec::new();
        limiter.check_many(keys, |key, answer| {
            passed.push((*key, answer.is_ok()));
            if passed.len() == 1 {
                assert!(limiter.reset(&1));
                for other in 100..111 {
                    assert_eq!(drain(&limiter, other), most, "{name}");
                }
            }
        });
        assert_eq!(passed.len(), 3, "{name}");
        // No other key was charged for key 1, nor key 1 for another.
        for other in 100..111 {
            assert_eq!(limiter.peek(&other).spent(), most, "{name}");
        }
        let ones = passed.iter().filter(|it| **it == (1, true)).count() as u64;
        assert!(ones > 0 && limiter.peek(&1).spent() == ones, "{name}");
    }
}

/// The closure that gets the answers may call `check_many` itself, also for keys of the same batch. If the closure panics,
/// only the admissions that it received are charged.
#[test]
fn check_many_can_be_nested() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _) = by_hand(algorithm.clone(), 40, OnFull::Share);
        let keys: Vec<u64> = (1..=20).chain(15..=20).collect();
        let mut passed = vec![0; 21];
        let (mut answers, mut add) = (0, |key: u64, passes: bool| {
            passed[usize::try_from(key).expect("few keys")] += u64::from(passes);
        });
        let ended = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| {
            limiter.check_many(&keys, |&key, answer| {
                add(key, answer.is_ok());
                let others = [key, 21 - key, key];
                limiter.check_many(&others, |&other, answer| add(other, answer.is_ok()));
                answers += 1;
                assert!(answers < 23, "enough");
            });
        }));
        assert!(ended.is_err() && answers == 23);
        for (key, passed) in (0..).zip(passed).skip(1) {
            assert_eq!(limiter.peek(&key).spent(), passed, "{name} of key {key}");
        }
    }
}

#[test]
fn check_many_uses_one_reading() {
    let (limiter, clock) = by_hand(
        subjects(quota("10/s")).swap_remove(0).algorithm,
        100,
        OnFull::Share,
    );
    let began = now(&clock);
    let keys: Vec<u64> = (1..=50).collect();
    let mut seen = 0;
    limiter.check_many(&keys, |&key, answer| {
        seen += 1;
        assert_eq!((key, answer.expect("fresh").at()), (seen, began));
        clock.advance(Duration::from_secs(1));
    });
    assert_eq!(seen, 50);
}
