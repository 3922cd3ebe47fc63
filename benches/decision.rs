//! The cost of one decision: one thread with one limiter.
//!
//! `cargo bench -p ringgate-benches --bench decision` first prints a table of ratios, and then criterion's statistics of the
//! same loops. Nanoseconds depend on the machine and its load. So the table compares each decision with the least work that
//! any limiter must do, measured in the same process within a few milliseconds:
//!
//! - an admission against one clock read and one compare-exchange loop on a line of its own;
//! - a denial against one clock read and one load of such a line;
//! - `check_at`, which is given the time, against the compare-exchange loop alone.
//!
//! No figure makes this bench fail.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::time::Instant;

use ringgate::{
    Algorithm, Clock, ConfigError, CounterRing, Gcra, Nanos, QuantaClock, Quota, RateLimiter, TimestampRing,
};

use ringgate_benches::{Case, Work, count, counted};

fn main() -> Result<(), ConfigError> {
    ringgate_benches::run(cases()?);
    Ok(())
}

fn cases() -> Result<Vec<Case>, ConfigError> {
    let day = Duration::from_secs(24 * 3600);
    // These limits are never reached while a bench runs. `of` asserts that a ring has the representation that its row names.
    let packed = CounterRing::fixed_window(Quota::per_second(4_000_000_000)?)?;
    let fresh = CounterRing::builder(Quota::per_minute(100)?).cells(4).build()?;
    let wide = CounterRing::builder(Quota::per_minute(10_000_000_000)?)
        .cells(5)
        .build()?;
    let even = CounterRing::builder(Quota::per_minute(10_000_000_000)?)
        .even()
        .build()?;
    let several = CounterRing::builder(Quota::per_minute(10_000_000_000)?)
        .cells(5)
        .also(Quota::per_hour(17_000_000_000)?)
        .build()?;
    // A thousand decisions take longer than the window of five microseconds, so every slot that is reused is stale.
    let log = TimestampRing::new(Quota::new(1_000, Duration::from_micros(5))?)?;
    let gcra = Gcra::new(Quota::per_second(1_000_000_000)?)?;
    // These limits are used up before the bench, for a day.
    let few = Quota::new(100, day)?;
    let many = Quota::new(1_000_000, day)?;

    let mut cases = Vec::new();
    let mut group = |group, members: Vec<(&'static str, Option<f64>, Work)>| {
        cases.extend(members.into_iter().map(|(name, target, work)| Case {
            group,
            name,
            target,
            work,
        }));
    };
    group("clock", vec![("one clock read", None, clock_read())]);
    group(
        "admitted",
        vec![
            ("clock + compare-exchange", None, clock_and_exchange()),
            ("CounterRing, packed", Some(1.3), admitted(of(1, packed.clone()))),
            (
                "CounterRing, packed, fresh",
                Some(1.3),
                admitted_afresh(of(1, fresh.clone())),
            ),
            ("CounterRing, wide", Some(1.3), admitted(of(7, wide.clone()))),
            ("CounterRing, wide, even", None, admitted(of(6, even))),
            (
                "CounterRing, two windows",
                None,
                admitted(of(13, several.clone())),
            ),
            ("TimestampRing", Some(1.6), admitted(of(1_001, log.clone()))),
            ("Gcra", Some(1.3), admitted(of(1, gcra.clone()))),
        ],
    );
    group(
        "admitted, at()",
        vec![
            ("clock + compare-exchange", None, clock_and_exchange()),
            ("CounterRing, packed", None, admitted_at(of(1, packed.clone()))),
            ("CounterRing, wide", None, admitted_at(of(7, wide.clone()))),
            ("TimestampRing", None, admitted_at(of(1_001, log.clone()))),
            ("Gcra", None, admitted_at(of(1, gcra.clone()))),
        ],
    );
    group(
        "admitted, check_at",
        vec![
            ("compare-exchange", None, exchange()),
            ("CounterRing, packed", None, admitted_given(of(1, packed.clone()))),
            ("CounterRing, wide", None, admitted_given(of(7, wide.clone()))),
            ("TimestampRing", None, admitted_given(of(1_001, log.clone()))),
            ("Gcra", None, admitted_given(of(1, gcra.clone()))),
        ],
    );
    group(
        "admitted, check_mut",
        vec![
            ("clock + compare-exchange", None, clock_and_exchange()),
            ("CounterRing, packed", None, admitted_mut(of(1, packed))),
            ("CounterRing, wide", None, admitted_mut(of(7, wide))),
            ("TimestampRing", None, admitted_mut(of(1_001, log))),
            ("Gcra", None, admitted_mut(of(1, gcra))),
        ],
    );
    group(
        "denied",
        vec![
            ("clock + load", None, clock_and_load()),
            (
                "CounterRing, packed",
                Some(1.2),
                denied(of(1, CounterRing::builder(few).cells(5).build()?)),
            ),
            (
                "CounterRing, wide",
                Some(1.2),
                denied(of(7, CounterRing::builder(many).cells(5).build()?)),
            ),
            (
                "CounterRing, two windows",
                None,
                denied(of(13, CounterRing::builder(many).cells(5).also(few).build()?)),
            ),
            (
                "TimestampRing",
                Some(1.2),
                denied(of(101, TimestampRing::new(few)?)),
            ),
            ("Gcra", Some(1.2), denied(of(1, Gcra::new(few)?))),
        ],
    );
    group(
        "denied, retry_after()",
        vec![
            ("clock + load", None, clock_and_load()),
            (
                "CounterRing, packed",
                None,
                denied_retry(of(1, CounterRing::builder(few).cells(5).build()?)),
            ),
            (
                "CounterRing, wide",
                None,
                denied_retry(of(7, CounterRing::builder(many).cells(5).build()?)),
            ),
            (
                "TimestampRing",
                None,
                denied_retry(of(101, TimestampRing::new(few)?)),
            ),
            ("Gcra", None, denied_retry(of(1, Gcra::new(few)?))),
        ],
    );
    Ok(cases)
}

/// Makes a limiter with a clock of its own. Asserts that its state is `words` words, and so that a ring has the
/// representation that its row names.
fn of<A: Algorithm>(words: usize, algorithm: A) -> RateLimiter<A> {
    assert_eq!(algorithm.words(), words);
    RateLimiter::new(algorithm)
}

// The limiter passes through `black_box` in every turn, so that each decision loads it from memory. A caller that does
// other work between decisions has to load it, too.

fn admitted<A: Algorithm + 'static>(limiter: RateLimiter<A>) -> Work {
    counted(move || black_box(&limiter).check().is_ok())
}

fn admitted_at<A: Algorithm + 'static>(limiter: RateLimiter<A>) -> Work {
    counted(move || {
        black_box(&limiter)
            .check()
            .is_ok_and(|admitted| black_box(admitted.at()) > Nanos::ZERO)
    })
}

fn admitted_mut<A: Algorithm + 'static>(mut limiter: RateLimiter<A>) -> Work {
    counted(move || black_box(&mut limiter).check_mut().is_ok())
}

/// Decisions at times that the caller passes, 16 ns apart.
fn admitted_given<A: Algorithm + 'static>(limiter: RateLimiter<A>) -> Work {
    let mut now = limiter.clock().now().get();
    counted(move || {
        now += 16;
        black_box(&limiter)
            .check_at(Nanos::new(black_box(now)), 1)
            .is_ok()
    })
}

/// New limiters, each from its first admission to its last. Construction is not measured.
fn admitted_afresh(model: RateLimiter<CounterRing>) -> Work {
    Box::new(move |decisions| {
        let each = model.algorithm().max_request();
        let (mut time, mut left) = (Duration::ZERO, decisions);
        while left > 0 {
            let new = || RateLimiter::with_clock(model.algorithm().clone(), model.clock().clone());
            let limiters: [_; 16] = core::array::from_fn(|_| new());
            let start = Instant::now();
            for limiter in &limiters {
                let turns = left.min(each);
                left -= turns;
                assert_eq!(turns, count(turns, || black_box(limiter).check().is_ok()));
            }
            time += start.elapsed();
        }
        time
    })
}

fn denied<A: Algorithm + 'static>(limiter: RateLimiter<A>) -> Work {
    use_up(&limiter);
    counted(move || black_box(&limiter).check().is_err())
}

fn denied_retry<A: Algorithm + 'static>(limiter: RateLimiter<A>) -> Work {
    use_up(&limiter);
    counted(move || {
        black_box(&limiter)
            .check()
            .is_err_and(|denied| black_box(denied.retry_after()).is_some())
    })
}

fn use_up<A: Algorithm>(limiter: &RateLimiter<A>) {
    assert!(limiter.check_n(limiter.algorithm().max_request()).is_ok());
}

/// A word on cache lines of its own, as the state of a limiter is.
#[repr(align(128))]
struct Alone(AtomicU64);

fn clock_read() -> Work {
    let clock = QuantaClock::new();
    counted(move || black_box(&clock).now() > black_box(Nanos::ZERO))
}

fn clock_and_exchange() -> Work {
    let clock = QuantaClock::new();
    let word = Alone(AtomicU64::new(0));
    counted(move || {
        let now = black_box(&clock).now();
        add(&black_box(&word).0, now.get())
    })
}

fn exchange() -> Work {
    let word = Alone(AtomicU64::new(0));
    counted(move || add(&black_box(&word).0, black_box(16)))
}

#[inline]
fn add(word: &AtomicU64, more: u64) -> bool {
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        match word.compare_exchange(
            seen,
            seen.wrapping_add(more),
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            Ok(_) => return true,
            Err(newer) => seen = newer,
        }
    }
}

fn clock_and_load() -> Work {
    let clock = QuantaClock::new();
    let word = Alone(AtomicU64::new(0));
    counted(move || black_box(&clock).now().get() > black_box(&word).0.load(Ordering::Relaxed))
}
