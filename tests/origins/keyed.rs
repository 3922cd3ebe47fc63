//! O5 with one queue for each name: names have limits of their own, by any algorithm.

use core::time::Duration;

use ringgate::algorithm::Reclaim;
use ringgate::keyed::{AnyKey, KeyedBuilder, OnFull};
use ringgate::{KeyedRateLimiter, ManualClock, Nanos};

use super::{millis, stamps, strict};

fn table<A: Reclaim>(
    algorithm: A,
    capacity: u64,
    on_full: OnFull,
) -> (KeyedRateLimiter<A, ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    let limiter = KeyedBuilder::new(algorithm)
        .capacity(capacity)
        .on_full(on_full)
        .build_with(clock.clone(), AnyKey::with_seeds([1, 2, 3, 4]))
        .expect("a table");
    (limiter, clock)
}

#[test]
fn o5_one_queue_per_name() {
    let (limiter, clock) = table(stamps("5/10s"), 100, OnFull::Share);
    let start = clock.clone();
    let at = |time: u64| start.set(Nanos::new((3_600_000 + time) * 1_000_000));
    for time in [1_000, 2_800, 4_000, 5_000, 7_900] {
        at(time);
        assert!(limiter.check("login").is_ok());
    }
    at(8_000);
    assert!(limiter.check("login").is_err());
    // Another name has a queue of its own.
    assert!(limiter.check("search").is_ok());
    at(10_900);
    assert!((0..100).all(|_| limiter.check("login").is_err()));
    at(11_100);
    assert!(limiter.check("login").is_ok());
}

/// Faults of O5 and of peers: a map that only grows, keys unbounded under address spraying.
#[test]
fn fault_a_map_that_only_grows() {
    let (limiter, clock) = table(strict("5/min"), 1_000, OnFull::Share);
    let bytes = limiter.bytes();
    for name in 0..50_000_u64 {
        clock.advance(millis(1));
        let _ = limiter.check(&name);
    }
    assert_eq!(limiter.bytes(), bytes);
    assert!(limiter.len() <= limiter.capacity() as u64);
}

/// A fault of other limiters: eviction gives a key a fresh budget, so that an attacker can flush its own history.
#[test]
fn fault_eviction_gives_a_fresh_budget() {
    for on_full in [OnFull::Share, OnFull::Deny] {
        let (limiter, clock) = table(strict("5/min"), 100, on_full);
        assert!((0..5).all(|_| limiter.check("victim").is_ok()));
        for name in 0..10_000_u64 {
            clock.advance(millis(1));
            let _ = limiter.check(&name);
            assert!(limiter.check("victim").is_err(), "{on_full:?}, after {name}");
        }
    }
}

/// Fault of peers: idle for longer than the window, and then a check is skipped or a budget doubled.
#[test]
fn fault_idle_for_longer_than_the_window() {
    let (limiter, clock) = table(strict("5/min"), 1, OnFull::Deny);
    assert!(limiter.check("one").is_ok());
    clock.advance(Duration::from_secs(100_000));
    // The entry is another's meanwhile, and comes back.
    for name in 0..limiter.capacity() {
        assert!(limiter.check(&name).is_ok());
    }
    assert!(limiter.check("one").is_err(), "every entry is in use");
    clock.advance(Duration::from_secs(100_000));
    assert_eq!((0..10).filter(|_| limiter.check("one").is_ok()).count(), 5);
}
