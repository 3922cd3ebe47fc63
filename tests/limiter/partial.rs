//! Partial admission: as many permits as there is capacity for.

#[path = "with_limit.rs"]
mod with_limit;

use core::time::Duration;
use std::thread;

use ringgate::{CounterRing, Gcra, ManualClock, RateLimiter, TimestampRing};

use super::{built, by_hand, quota, subjects};
use crate::common::{Any, Subject};

/// `take_up_to` charges as many permits as one request could get. Its denial is that of a request for one permit.
#[test]
fn take_up_to_charges_the_available_permits() {
    let even = built(CounterRing::builder(quota("10/s")).even().cells(3));
    let even = Subject::new("even", even);
    for Subject { name, algorithm, .. } in subjects(quota("10/s")).into_iter().chain([even]) {
        let (limiter, clock) = by_hand(algorithm.clone());
        let table = ringgate::keyed::KeyedBuilder::new(algorithm)
            .capacity(4)
            .build_with(clock.clone(), ringgate::keyed::AnyKey::with_seeds([1, 2, 3, 4]))
            .expect("a table");
        assert_eq!(limiter.take_up_to(0).expect("nothing").permits(), 0, "{name}");
        let (mut parts, mut denials) = (0, 0);
        for step in 0..300_u64 {
            let wanted = [3, 1, 4, u64::MAX][step as usize % 4];
            let fits = limiter.peek().remaining().min(wanted);
            let taken = limiter.take_up_to(wanted);
            let of_key = table.take_up_to("alice", wanted);
            assert_eq!(
                of_key.map(|it| it.permits()).ok(),
                taken.as_ref().map(|it| it.permits()).ok()
            );
            match taken {
                Ok(taken) => {
                    assert_eq!(taken.permits(), fits, "{name}, {step}");
                    assert!(fits > 0);
                    parts += u64::from(fits < wanted);
                }
                Err(denied) => {
                    assert_eq!((denied.permits(), fits), (1, 0), "{name}, {step}");
                    assert!(denied.retry_after().is_some());
                    denials += 1;
                }
            }
            clock.advance(Duration::from_millis(37));
        }
        assert!(
            parts > 0 && denials > 0,
            "{name}: {parts} parts, {denials} denials"
        );
    }
}

/// Threads together take exactly the limit, whatever the interleaving.
#[test]
fn threads_together_take_exactly_the_limit() {
    const THREADS: u64 = 4;
    let limit = if cfg!(miri) { 40 } else { 100_000 };
    let quota = ringgate::Quota::per_minute(limit).expect("a quota");
    for algorithm in [
        Any::from(CounterRing::new(quota).expect("a ring")),
        TimestampRing::new(quota).expect("a log").into(),
        Gcra::new(quota).expect("a bucket").into(),
    ] {
        let limiter = RateLimiter::with_clock(algorithm, ManualClock::new());
        let taken: u64 = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let limiter = &limiter;
                    scope.spawn(move || {
                        let mut all = 0;
                        for wanted in (thread + 1..).step_by(3) {
                            match limiter.take_up_to(wanted % 50 + 1) {
                                Ok(taken) => all += taken.permits(),
                                Err(_) => break,
                            }
                        }
                        all
                    })
                })
                .collect();
            threads.into_iter().map(|it| it.join().expect("no panic")).sum()
        });
        assert_eq!(taken, limit);
    }
}

/// A denial that borrows nothing says the same, and outlives its limiter.
#[test]
fn an_owned_denial_says_the_same() {
    fn is_portable<T: core::error::Error + Send + Sync + 'static>(_: &T) {}

    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _clock) = by_hand(algorithm);
        while limiter.check().is_ok() {}
        for permits in [1, 11] {
            let denied = limiter.check_n(permits).expect_err("nothing is left");
            let text = denied.to_string();
            let said = (
                denied.at(),
                denied.permits(),
                denied.remaining(),
                denied.retry_after(),
            );
            let owned = denied.into_owned();
            is_portable(&owned);
            assert_eq!(owned.to_string(), text, "{name}");
            let owned_said = (
                owned.at(),
                owned.permits(),
                owned.remaining(),
                owned.retry_after(),
            );
            assert_eq!(owned_said, said, "{name}");
            assert!(!owned.is_overflow());
        }
    }
}
