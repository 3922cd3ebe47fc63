//! Resets of one key, and of all.

use super::*;

#[test]
fn a_reset_makes_the_next_request_fresh() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _) = by_hand(algorithm.clone(), 10, OnFull::Share);
        assert!(!limiter.reset(&1), "{name}");
        let most = drain(&limiter, 1);
        assert_eq!(drain(&limiter, 2), most, "{name}");
        assert!(limiter.reset(&1), "{name}");
        assert_eq!((limiter.len(), limiter.peek(&1).spent()), (1, 0), "{name}");
        assert!(!limiter.reset(&1), "{name}");
        assert_eq!(drain(&limiter, 1), most, "{name}");
        // The other key has a limit of its own.
        assert_eq!(drain(&limiter, 2), 0, "{name}");
        assert_eq!((limiter.len(), limiter.counts().reclaimed), (2, 0), "{name}");
    }
}

/// An entry that was reset is reused when its state is idle, and not before.
#[cfg(not(miri))] // Full tables take Miri minutes.
#[test]
fn a_reset_entry_is_used_again_when_it_is_idle() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = filled(algorithm.clone(), OnFull::Deny, 0);
        assert!(limiter.reset(&1_001), "{name}");
        assert_eq!(limiter.len() + 1, limiter.capacity() as u64, "{name}");
        let wait = limiter.check(&1).expect_err("no entry is idle").retry_after();
        clock.advance(wait.expect("one permit"));
        assert!(limiter.check(&1).is_ok(), "{name}");
    }
}
