//! The memory of a limiter in each of a million connections, and the cost of two limiters on one cache line.
//!
//! `cargo bench -p ringgate-benches --bench connections` prints both. No figure makes this bench fail.

extern crate alloc;

use alloc::sync::Arc;
use core::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;
use std::{fs, thread};

use ringgate::limiter::Policy;
use ringgate::{ConfigError, Gcra, InlineLimiter, Nanos, QuantaClock, Quota, RateLimiter};

const CONNECTIONS: usize = 1_000_000;

/// The decisions of each thread in a round.
const DECISIONS: u64 = 2_000_000;

const ROUNDS: usize = 7;

type Shared = Arc<Policy<Gcra, QuantaClock>>;

fn main() -> Result<(), ConfigError> {
    let clock = QuantaClock::new();
    // A limit that is never used up.
    let bucket = Gcra::new(Quota::per_second(1_000_000_000)?)?;
    let policy: Shared = Arc::new(Policy::with_clock(bucket.clone(), clock.clone())?);

    println!(
        "{:<44} {:>10} {:>14}",
        "one million limiters", "size_of", "resident, MB"
    );
    memory("RateLimiter<Gcra>", || {
        RateLimiter::with_clock(bucket.clone(), clock.clone())
    });
    memory("InlineLimiter<Arc<Policy<Gcra>>>", || {
        InlineLimiter::new(Arc::clone(&policy))
    });
    memory("InlineLimiter<&Policy<Gcra>>", || InlineLimiter::new(&*policy));

    println!("\n{:<44} {:>10}", "two threads, a limiter each", "ns, best");
    let inline = || InlineLimiter::new(Arc::clone(&policy));
    race(
        "InlineLimiter, same line",
        &[Line([inline(), inline()])],
        |lines, thread, now| lines[0].0[thread].check_at(now, 1).is_ok(),
    );
    race(
        "InlineLimiter, neighbouring lines",
        &[Line([inline(), inline()]), Line([inline(), inline()])],
        |lines, thread, now| lines[thread].0[0].check_at(now, 1).is_ok(),
    );
    race(
        "InlineLimiter, 128 bytes each",
        &[Apart(inline()), Apart(inline())],
        |limiters, thread, now| limiters[thread].0.check_at(now, 1).is_ok(),
    );
    let alone = || RateLimiter::with_clock(bucket.clone(), clock.clone());
    race(
        "RateLimiter, neighbours in an array",
        &[alone(), alone()],
        |limiters, thread, now| limiters[thread].check_at(now, 1).is_ok(),
    );

    println!("\n{:<44} {:>10}", "two threads, one limiter", "ns, best");
    race("RateLimiter", &[alone()], |limiters, _, now| {
        limiters[0].check_at(now, 1).is_ok()
    });
    race(
        "InlineLimiter, 128 bytes",
        &[Apart(inline())],
        |limiters, _, now| limiters[0].0.check_at(now, 1).is_ok(),
    );
    Ok(())
}

/// Two limiters in one line.
#[repr(align(64))]
struct Line<T>([T; 2]);

/// A limiter that shares no pair of lines.
#[repr(align(128))]
struct Apart<T>(T);

/// Creates the limiters, and prints the growth of the resident memory.
fn memory<T>(name: &str, create: impl Fn() -> T) {
    let before = resident();
    let limiters: Vec<T> = (0..CONNECTIONS).map(|_| create()).collect();
    let grown = resident().saturating_sub(before);
    println!("{name:<44} {:>10} {:>14.1}", size_of::<T>(), grown as f64 / 1e6);
    black_box(limiters);
}

/// Resident memory of this process, in bytes. Zero without the proc file system.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    // Pages have this size where the figures were taken.
    pages.unwrap_or_default() * 4096
}

/// Makes the decisions of two threads at once, and prints the time of a decision in the best round.
fn race<T: Sync>(name: &str, limiters: &[T], decide: impl Fn(&[T], usize, Nanos) -> bool + Sync) {
    let round = || {
        let barrier = Barrier::new(2);
        let work = |thread: usize| {
            barrier.wait();
            let start = Instant::now();
            // The readings are given, so that the clock is not measured. They are far enough apart to be admitted.
            let admitted = (1..=DECISIONS).filter(|&now| decide(limiters, thread, Nanos::new(now * 2)));
            black_box(admitted.count());
            start.elapsed().as_secs_f64() * 1e9 / DECISIONS as f64
        };
        thread::scope(|scope| {
            let other = scope.spawn(|| work(1));
            work(0).max(other.join().expect("no panic"))
        })
    };
    let best = (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min);
    println!("{name:<44} {best:>10.1}");
}
