//! Long random histories: limits that change from request to request, refunds, resets, and callers with older readings.
//!
//! After each step, the answers are compared with the definition of its algorithm (`common/exact.rs`), and the admissions with
//! the promises:
//!
//! - No interval of one window holds more than the bound.
//! - A lower limit takes effect at once.
//! - A denied request is denied until one nanosecond before its retry time, and admitted at the retry time.
//!
//! `RINGGATE_STEPS` sets the number of steps of each history. Ten million take 5 minutes:
//! `RINGGATE_STEPS=10000000 cargo test --release --all-features --test oracle long -- --nocapture`.

use ringgate::{KeyedRateLimiter, ManualClock, RateLimiter};

#[path = "long/cases.rs"]
mod cases;
#[path = "long/history.rs"]
mod history;
#[path = "long/target.rs"]
mod target;

use cases::cases;
use history::History;
use target::Plain;

#[test]
fn long_histories_of_a_limiter() {
    for case in cases() {
        let clock = ManualClock::new();
        let limiter = RateLimiter::with_clock(case.subject.algorithm.clone(), clock.clone());
        History::new(&case, &limiter, clock, 1).run();
    }
}

/// Every key has an entry.
#[test]
fn long_histories_of_a_table() {
    for case in cases() {
        let clock = ManualClock::new();
        let builder = KeyedRateLimiter::builder(case.subject.algorithm.clone()).capacity(64);
        let limiter = builder.build_with(clock.clone(), Plain).expect("a table");
        let mut history = History::new(&case, &limiter, clock, 4);
        history.late = false;
        history.run();
        assert_eq!(limiter.counts().overflowed, 0);
    }
}

/// Keys take each other's entries, or find none. Their decisions may be stricter than those of the definition.
#[test]
fn long_histories_of_a_crowded_table() {
    for case in cases() {
        let clock = ManualClock::new();
        let builder = KeyedRateLimiter::builder(case.subject.algorithm.clone()).capacity(1);
        let limiter = builder.build_with(clock.clone(), Plain).expect("a table");
        let keys = 2 * limiter.capacity();
        let mut history = History::new(&case, &limiter, clock, keys);
        history.exact = false;
        history.run();
        let counts = limiter.counts();
        assert!(counts.reclaimed > 0, "{}: {counts:?}", case.subject.name);
    }
}
