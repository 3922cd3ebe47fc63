//! O5 with one queue for each name: names have limits of their own, by any algorithm.

use ringgate::keyed::AnyKey;
use ringgate::{KeyedRateLimiter, ManualClock, Nanos};

use super::stamps;

#[test]
fn o5_one_queue_per_name() {
    let clock = ManualClock::new();
    let table = KeyedRateLimiter::builder(stamps("5/10s")).capacity(100);
    let limiter = table
        .build_with(clock.clone(), AnyKey::with_seeds([1, 2, 3, 4]))
        .expect("a table");
    let at = |time: u64| clock.set(Nanos::new((3_600_000 + time) * 1_000_000));
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
