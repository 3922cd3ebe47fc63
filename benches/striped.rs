//! Compares a striped limiter with a plain strict ring.
//!
//! `cargo bench -p ringgate-benches --bench striped` prints a table of ratios, measured in alternating rounds, with one
//! thread and with one thread for each core. All requests are admitted, except in the last group. No figure makes this
//! bench fail.

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use ringgate::striped::set_thread_index;
use ringgate::{ConfigError, CounterRing, QuantaClock, Quota, RateLimiter, StripedLimiter};

/// A function that makes the given number of requests as the given worker, and returns the number of admissions.
type Check<'a> = Box<dyn Fn(usize, u64) -> u64 + Sync + 'a>;

struct Case<'a> {
    name: String,
    check: Check<'a>,
}

fn main() -> Result<(), ConfigError> {
    let has = |flag: &str| std::env::args().any(|arg| arg == flag);
    if has("--list") {
        return Ok(());
    }
    // `cargo bench` passes `--bench`. Without it, or with `--test`, one round shows that the cases run.
    let (rounds, least) = if has("--bench") && !has("--test") {
        (9, Duration::from_millis(200))
    } else {
        (1, Duration::from_millis(1))
    };
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
    let clock = QuantaClock::new();

    // A quota that many cores do not use up.
    let plenty = Quota::per_minute(17_000_000_000)?;
    let ring = RateLimiter::with_clock(CounterRing::builder(plenty).cells(5).build()?, clock.clone());
    let mut limiters = Vec::new();
    for batch in [16, 64, 256, 4_096] {
        let builder = StripedLimiter::builder(plenty).cells(5).batch(batch);
        limiters.push((batch, builder.build_with(clock.clone())?));
    }
    let mut cases = vec![Case {
        name: "CounterRing".into(),
        check: count(|| ring.check().is_ok()),
    }];
    for (batch, limiter) in &limiters {
        cases.push(Case {
            name: format!("StripedLimiter, batches of {batch}"),
            check: count(|| limiter.check().is_ok()),
        });
        cases.push(Case {
            name: format!("local stripes, batches of {batch}"),
            check: Box::new(|worker, turns| {
                set_thread_index(worker);
                let mut stripe = limiter.local_stripe();
                (0..turns)
                    .map(|_| u64::from(black_box(&mut stripe).check().is_ok()))
                    .sum()
            }),
        });
    }
    println!("{cores} cores, {rounds} alternating rounds of {least:?} each; medians");
    println!(
        "{:<10} {:<32} {:>3} {:>19} {:>14} {:>6}",
        "", "", "threads", "ns/decision, thread", "million/s", "ratio"
    );
    for threads in [1, cores] {
        compare("admitted", threads, &cases, rounds, least);
    }

    // A quota that is used up before the measurement, for a day.
    let day = Quota::new(100_000, Duration::from_secs(24 * 3600))?;
    let ring = RateLimiter::with_clock(CounterRing::builder(day).cells(5).build()?, clock.clone());
    let limiter = StripedLimiter::builder(day).cells(5).build_with(clock.clone())?;
    while ring.check().is_ok() {}
    while limiter.check().is_ok() {}
    let cases = [
        Case {
            name: "CounterRing".into(),
            check: count(|| ring.check().is_ok()),
        },
        Case {
            name: format!("StripedLimiter, batches of {}", limiter.batch()),
            check: count(|| limiter.check().is_ok()),
        },
    ];
    for threads in [1, cores] {
        compare("denied", threads, &cases, rounds, least);
    }
    Ok(())
}

fn count<'a>(check: impl Fn() -> bool + Sync + 'a) -> Check<'a> {
    Box::new(move |_, turns| (0..turns).map(|_| u64::from(black_box(&check)())).sum())
}

/// Runs the cases in alternating rounds. Prints the median rate of each, and the median ratio to the first.
fn compare(group: &str, threads: usize, cases: &[Case<'_>], rounds: usize, least: Duration) {
    let mut rates = vec![Vec::with_capacity(rounds); cases.len()];
    for _ in 0..rounds {
        for (case, rates) in cases.iter().zip(&mut rates) {
            rates.push(rate(case, threads, least, group == "admitted"));
        }
    }
    for (index, case) in cases.iter().enumerate() {
        let ratios = rates[index]
            .iter()
            .zip(&rates[0])
            .map(|(this, first)| this / first);
        let ratio = median(ratios.collect());
        let rate = median(rates[index].clone());
        println!(
            "{group:<10} {:<32} {threads:>7} {:>19.1} {rate:>14.1} {ratio:>6.2}",
            case.name,
            1e3 * threads as f64 / rate,
        );
    }
}

/// Returns the millions of decisions per second of `threads` threads together.
fn rate(case: &Case<'_>, threads: usize, least: Duration, admitted: bool) -> f64 {
    const BATCH: u64 = 4_096;
    let (barrier, over) = (Barrier::new(threads), AtomicBool::new(false));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let (barrier, over) = (&barrier, &over);
                scope.spawn(move || {
                    barrier.wait();
                    let (mut decisions, start) = (0, Instant::now());
                    // All threads run until the first has finished, so every measured decision is contended.
                    while !over.load(Ordering::Relaxed) {
                        let count = (case.check)(worker, BATCH);
                        assert_eq!(count, if admitted { BATCH } else { 0 });
                        decisions += BATCH;
                        if start.elapsed() >= least {
                            over.store(true, Ordering::Relaxed);
                        }
                    }
                    decisions as f64 / start.elapsed().as_secs_f64() / 1e6
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no thread panics"))
            .sum()
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
