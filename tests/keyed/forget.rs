//! The answer of a peek for a key that would take another's entry.

use core::time::Duration;

use ringgate::keyed::{KeyedBuilder, Keys, OnFull};
use ringgate::{Algorithm, Clock, CounterRing, KeyedRateLimiter, ManualClock};

use super::{Subject, filled as filled_with, now, quota, subjects};

/// A key's hash is the key.
struct Plain;

impl Keys<u64> for Plain {
    fn hash(&self, key: &u64) -> u64 {
        *key
    }
}

/// The smallest table, with all entries in use.
fn filled() -> KeyedRateLimiter<CounterRing, ManualClock, Plain> {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    let ring = CounterRing::builder("10/s".parse().expect("a quota"))
        .cells(5)
        .build()
        .expect("a ring");
    let limiter = KeyedBuilder::new(ring)
        .capacity(1)
        .on_full(OnFull::Forget)
        .build_with(clock, Plain)
        .expect("a table");
    for key in 0..limiter.capacity() as u64 {
        assert!(limiter.check(&(1_000 + key)).is_ok());
    }
    limiter
}

#[test]
fn a_peek_of_a_barred_key_is_a_denial() {
    let limiter = filled();
    for key in 1..=limiter.capacity() as u64 {
        assert!(!limiter.check(&key).expect("another's entry").is_overflow());
    }
    // Every entry was evicted in this cell.
    assert!(limiter.check(&40).expect("the catch-all").is_overflow());
    limiter.clock().advance(Duration::from_millis(400));
    let peek = limiter.peek(&40);
    let seen = (peek.is_overflow(), peek.retry_after(1));
    let denied = limiter.check(&40).expect_err("barred");
    assert_eq!(seen, (denied.is_overflow(), denied.retry_after()));
}

#[test]
fn a_peek_of_an_entry_of_another_key_uses_the_adopted_time() {
    let limiter = filled();
    let before = Clock::now(limiter.clock());
    limiter.clock().advance(Duration::from_millis(1_210));
    assert!(limiter.check(&1).is_ok());
    assert_eq!(limiter.counts().reclaimed, 1);
    let seen = Clock::now(limiter.clock());
    limiter.clock().set(before);
    assert_eq!(limiter.peek(&2).at(), before);
    let taken = limiter.check(&2).expect("another's entry");
    // The check is stamped with the beginning of the cell of the newer time.
    assert!(taken.at() <= seen && seen.saturating_since(taken.at()) < Duration::from_millis(200));
}

/// A takeover keeps the permits that count one cell later. A peek reads the state as the takeover would leave it.
#[test]
fn a_peek_of_an_entry_of_another_key_is_what_a_check_finds() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = filled_with(algorithm.clone(), OnFull::Forget, 0);
        // A time that no bucket reaches exactly: advancing a bucket costs a nanosecond.
        clock.advance(Duration::new(0, 50_000_017));
        for key in 5_000..5_200 {
            let permits = algorithm.max_request();
            let peek = limiter.peek(&key);
            let (fits, at) = (peek.remaining() >= permits, now(&clock));
            let taken = limiter.check_n(&key, permits);
            assert_eq!(taken.is_ok(), fits, "{name}: {key} at {at:?}");
        }
    }
}
