//! Known histories by number, and faults of other limiters by name.
#![cfg(not(ringgate_loom))]

#[expect(
    dead_code,
    reason = "the state and the log are for tests of the algorithms themselves"
)]
mod common;

#[path = "origins/faults.rs"]
mod faults;
#[path = "origins/histories.rs"]
mod histories;
#[path = "origins/keyed.rs"]
mod keyed;
#[cfg(feature = "rules")]
#[path = "origins/rules.rs"]
mod rules;

use core::num::NonZero;
use core::time::Duration;
use std::sync::Barrier;
use std::thread;

use common::{Any, Log, Subject};
use ringgate::{
    Algorithm, CounterRing, Gcra, ManualClock, Nanos, Quota, RateLimiter, Settled, TimestampRing, UnitRing,
};

fn quota(text: &str) -> Quota {
    text.parse().expect("a quota")
}

fn strict(text: &str) -> CounterRing {
    CounterRing::new(quota(text)).expect("a ring")
}

fn stamps(text: &str) -> TimestampRing {
    TimestampRing::new(quota(text)).expect("a ring")
}

/// A limiter with a manual clock that shows one hour.
fn by_hand<A: Algorithm>(algorithm: A) -> (RateLimiter<A, ManualClock>, ManualClock) {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    (RateLimiter::with_clock(algorithm, clock.clone()), clock)
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Every algorithm with a limit of 10 per second.
fn ten_per_second() -> Vec<Subject> {
    let built = |builder: ringgate::algorithm::CounterRingBuilder| builder.build().expect("a ring");
    let builder = || CounterRing::builder(quota("10/s")).cells(5);
    vec![
        Subject::new("strict", strict("10/s")),
        Subject::new("unpacked", built(builder().unpacked())),
        Subject::new("many cells", built(builder().cells(100))),
        Subject::new("classic", built(builder().classic())),
        Subject::new(
            "fixed window",
            CounterRing::fixed_window(quota("10/s")).expect("a ring"),
        ),
        Subject::new("several windows", built(builder().also(quota("1000/min")))),
        Subject::new("units", UnitRing::new(quota("10/s")).expect("a ring")),
        Subject::new("timestamps", stamps("10/s")),
        Subject::new("bucket", Gcra::new(quota("10/s")).expect("a bucket")),
    ]
}

/// The number of admissions among `calls` at the same time.
fn passed<A: Algorithm>(limiter: &RateLimiter<A, ManualClock>, calls: usize) -> usize {
    (0..calls).filter(|_| limiter.check().is_ok()).count()
}

/// The number of admissions among `calls` that eight threads make while the clock stands still.
fn passed_together<A: Algorithm + Sync>(limiter: &RateLimiter<A, ManualClock>, calls: usize) -> usize {
    let together = Barrier::new(8);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    together.wait();
                    passed(limiter, calls / 8)
                })
            })
            .collect();
        callers
            .into_iter()
            .map(|caller| caller.join().expect("no panic"))
            .sum()
    })
}

/// The most permits in any second, of requests that come in bursts, by the times of the decisions.
fn worst_second(it: Any, bursts: &[(Duration, u64)]) -> u64 {
    let (limiter, clock) = by_hand(it);
    let mut log = Log::default();
    for &(pause, calls) in bursts {
        clock.advance(pause);
        for _ in 0..calls {
            if let Ok(admitted) = limiter.check() {
                log.add(admitted.at(), 1);
            }
        }
    }
    log.worst(Duration::from_secs(1))
}

fn clock_time<A: Algorithm>(limiter: &RateLimiter<A, ManualClock>) -> Nanos {
    limiter.peek().at()
}
