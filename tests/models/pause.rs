//! Models of the pause of a limiter.

use core::sync::atomic::Ordering;
use core::time::Duration;

use ringgate::sync::AtomicU64;
use ringgate::{Gcra, ManualClock, Nanos, Quota, RateLimiter};

#[cfg(not(ringgate_loom))]
use alloc::sync::Arc;
#[cfg(ringgate_loom)]
use loom::{sync::Arc, thread};
#[cfg(not(ringgate_loom))]
use std::thread;

use super::harness::FULL;

type Limiter = RateLimiter<Gcra, ManualClock>;

/// The times are far below the time per permit, so only the first of the burst's permits is charged.
fn limiter() -> Limiter {
    let bucket = Gcra::new(Quota::new(2, Duration::from_secs(1)).unwrap()).unwrap();
    RateLimiter::with_clock(bucket, ManualClock::new())
}

fn is_admitted(limiter: &Limiter, at: u64) -> bool {
    limiter.check_at(Nanos::new(at), 1).is_ok()
}

/// A decision that observes the return of `pause_until` is denied, and a concurrent one is before or after.
#[test]
fn pause_of_a_limiter() {
    FULL.explore(|| {
        let limiter = Arc::new(limiter());
        let returned = Arc::new(AtomicU64::new(0));
        let (theirs, ours) = (Arc::clone(&limiter), Arc::clone(&returned));
        let pausing = thread::spawn(move || {
            theirs.pause_until(Nanos::new(10));
            ours.store(1, Ordering::Release);
            assert!(!is_admitted(&theirs, 9), "the pausing thread itself");
        });
        let has_returned = returned.load(Ordering::Acquire) == 1;
        let admitted = is_admitted(&limiter, 9);
        assert!(!(has_returned && admitted), "admitted after the return");
        pausing.join().unwrap();
        assert!(!is_admitted(&limiter, 9), "admitted after the join");
        assert!(is_admitted(&limiter, 10), "denied at the end of the pause");
    });
}

#[test]
fn pause_by_two_threads() {
    FULL.explore(|| {
        let limiter = Arc::new(limiter());
        let theirs = Arc::clone(&limiter);
        let pausing = thread::spawn(move || {
            theirs.pause_until(Nanos::new(20));
            assert!(!is_admitted(&theirs, 19), "the later time is lost");
        });
        limiter.pause_until(Nanos::new(10));
        assert!(!is_admitted(&limiter, 9), "the earlier time is lost");
        pausing.join().unwrap();
        assert!(!is_admitted(&limiter, 19), "the later time has not won");
        assert!(is_admitted(&limiter, 20), "denied at the end of the pause");
    });
}
