//! Algorithms that are not the crate's own, at the edges of what the trait allows.

use core::time::Duration;

use ringgate::sync::Words;
use ringgate::{Algorithm, ManualClock, Nanos, RateLimiter, Receipt};

use crate::common::State;

/// Admits everything up to `max_request` at once, or nothing: without a state.
struct Stateless {
    most: u64,
    bound: u64,
}

impl Algorithm for Stateless {
    fn words(&self) -> usize {
        0
    }

    fn max_request(&self) -> u64 {
        self.most
    }

    fn bound(&self) -> u64 {
        self.bound
    }

    fn window(&self) -> Duration {
        Duration::ZERO
    }

    fn decide<W: Words>(&self, _words: W, now: Nanos, permits: u64) -> Option<Receipt> {
        match permits {
            permits if permits <= self.most => Some(Receipt::new(now, permits, 0)),
            _ => None,
        }
    }

    fn ready_at<W: Words>(&self, _words: W, now: Nanos, permits: u64) -> Option<Nanos> {
        (permits <= self.most).then_some(now)
    }

    fn remaining<W: Words>(&self, _words: W, _now: Nanos) -> u64 {
        self.most
    }

    fn refund<W: Words>(&self, _words: W, _receipt: &Receipt, _permits: u64) -> bool {
        true
    }

    fn charge<W: Words>(&self, _words: W, _now: Nanos, permits: u64) -> u64 {
        permits
    }

    fn spent<W: Words>(&self, _words: W, _now: Nanos) -> u64 {
        0
    }

    fn idle_at<W: Words>(&self, _words: W, now: Nanos) -> Option<Nanos> {
        Some(now)
    }
}

/// Every method of a limiter over it, none of which panics.
fn used(algorithm: Stateless) -> RateLimiter<Stateless, ManualClock> {
    let mut limiter = RateLimiter::with_clock(algorithm, ManualClock::new());
    for permits in [0, 1, u64::MAX] {
        if let Err(denied) = limiter.check_n(permits) {
            assert_eq!(denied.retry_after(), None);
        }
        let _ = limiter.check_n_mut(permits);
        let _ = limiter.peek().retry_after(permits);
    }
    limiter.restore(&limiter.save(), Duration::ZERO);
    let _ = (limiter.promise(), limiter.peek().spent());
    limiter
}

#[test]
fn an_algorithm_that_admits_nothing_gives_no_retry_time() {
    let limiter = used(Stateless { most: 0, bound: 0 });
    let (it, words) = (limiter.algorithm(), State::fresh(limiter.algorithm()));
    assert!(limiter.check().is_err());
    for permits in [1, 2, u64::MAX] {
        assert_eq!(it.earliest(words.shared(), Nanos::ZERO, permits), None);
    }
    assert_eq!(it.earliest(words.shared(), Nanos::ZERO, 0), Some(Nanos::ZERO));
}

#[test]
fn an_algorithm_without_a_maximum_admits_the_largest_number() {
    let limiter = used(Stateless {
        most: u64::MAX,
        bound: u64::MAX,
    });
    assert_eq!(
        limiter.check_n(u64::MAX).map(|admitted| admitted.permits()).ok(),
        Some(u64::MAX)
    );
    let words = State::fresh(limiter.algorithm());
    let ready = limiter
        .algorithm()
        .earliest(words.shared(), Nanos::new(7), u64::MAX);
    assert_eq!(ready, Some(Nanos::new(7)));
}

/// A bound of zero is wrong, and must not cause a division by zero.
#[test]
fn an_algorithm_with_a_bound_of_zero_does_not_divide_by_it() {
    let limiter = used(Stateless { most: 5, bound: 0 });
    let words = State::fresh(limiter.algorithm());
    assert_eq!(limiter.algorithm().earliest(words.shared(), Nanos::ZERO, 5), None);
}
