//! Runs each algorithm under load on all cores, and checks that no window exceeded its bound.
//!
//! ```text
//! cargo run --release --package ringgate-examples --bin guard
//! cargo run --release --package ringgate-examples --bin guard -- --seconds 10
//! ```
//!
//! One worker per core sends requests as fast as possible, so nearly all of them are denied. Each
//! worker keeps a log of its admissions. Afterwards the program counts the admissions of each window.
//! If a window holds more than the bound, the program reports it and exits with status 1.

use core::error::Error;
use core::time::Duration;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use ringgate::{Algorithm, Clock, CounterRing, Gcra, Nanos, Quota, RateLimiter, TimestampRing};

const WINDOW: Duration = Duration::from_millis(100);

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let guard = Guard {
        workers: thread::available_parallelism()?.get(),
        time: seconds()?,
    };
    println!(
        "{} threads, windows of {WINDOW:?}, {:?} for each algorithm",
        guard.workers, guard.time
    );
    println!(
        "{:<28} {:>11} {:>11} {:>9} {:>11} {:>13} {:>8}",
        "algorithm", "decisions/s", "ns/decision", "admitted", "denied", "worst window", "bound"
    );

    // The counts of `few` fit into one word, and those of `many` do not.
    let few = Quota::new(100, WINDOW)?;
    let many = Quota::new(10_000, WINDOW)?;
    let second = Quota::new(60_000, Duration::from_secs(1))?;
    let ring = CounterRing::builder;

    let kept = [
        guard.run("CounterRing strict, packed", ring(few).cells(3).build()?, &[]),
        guard.run("CounterRing strict, wide", CounterRing::new(many)?, &[]),
        guard.run("CounterRing classic", ring(many).classic().build()?, &[]),
        guard.run("CounterRing even", ring(many).even().build()?, &[]),
        guard.run("CounterRing fixed window", CounterRing::fixed_window(many)?, &[]),
        guard.run(
            "CounterRing two windows",
            ring(many).also(second).build()?,
            &[second],
        ),
        guard.run("TimestampRing", TimestampRing::new(many)?, &[]),
        guard.run("Gcra", Gcra::new(many)?, &[]),
    ];
    Ok(if kept.contains(&false) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Returns the time for each algorithm: one second, or the value of `--seconds`, up to an hour.
fn seconds() -> Result<Duration, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => Ok(Duration::from_secs(1)),
        (Some("--seconds"), Some(number)) => {
            let seconds = number
                .parse()
                .ok()
                .filter(|&seconds| seconds > 0.0 && seconds <= 3600.0);
            let time = seconds.map(Duration::from_secs_f64);
            time.ok_or_else(|| {
                format!("invalid --seconds: {number:?} (expected more than 0 and at most 3600)").into()
            })
        }
        _ => Err("usage: guard [--seconds NUMBER]".into()),
    }
}

struct Guard {
    workers: usize,
    time: Duration,
}

/// The results of one worker.
struct Worker {
    /// The times of its admitted requests.
    admitted: Vec<Nanos>,
    denied: u64,
    busy: Duration,
}

impl Guard {
    /// Runs a limiter under load, prints its results, and returns whether every bound held: that of the
    /// algorithm, and those of its further windows.
    fn run<A: Algorithm + Sync>(&self, name: &str, algorithm: A, further: &[Quota]) -> bool {
        let limiter = RateLimiter::new(algorithm);
        let workers = self.load(&limiter);

        let mut admitted: Vec<Nanos> = workers.iter().flat_map(|w| &w.admitted).copied().collect();
        admitted.sort_unstable();
        let denied: u64 = workers.iter().map(|worker| worker.denied).sum();
        let busy: f64 = workers.iter().map(|worker| worker.busy.as_secs_f64()).sum();
        let decisions = admitted.len() as f64 + denied as f64;
        // The time of a decision as one worker measures it, while all workers decide.
        let each = busy / decisions;
        print!(
            "{name:<28} {:>11.0} {:>11.1} {:>9} {denied:>11}",
            self.workers as f64 / each,
            each * 1e9,
            admitted.len()
        );

        let mut kept = holds(&admitted, limiter.algorithm().window(), limiter.bound());
        for quota in further {
            print!("{:<74}", format!("  and in {:?}", quota.window()));
            kept &= holds(&admitted, quota.window(), quota.limit());
        }
        kept
    }

    /// Sends requests from all workers.
    fn load<A: Algorithm + Sync>(&self, limiter: &RateLimiter<A>) -> Vec<Worker> {
        // Each log has capacity for all admissions, so that no worker allocates while its time is measured.
        let windows = self.time.as_millis() / limiter.algorithm().window().as_millis() + 2;
        let room = limiter.bound() as usize * windows as usize;
        let mut workers: Vec<Worker> = (0..self.workers)
            .map(|_| Worker {
                admitted: Vec::with_capacity(room),
                denied: 0,
                busy: Duration::ZERO,
            })
            .collect();
        // The workers send bursts, and pause for 0.9 windows after each burst. The worst window of most
        // limiters follows a time without requests.
        let start = Instant::now();
        while start.elapsed() < self.time {
            let end = limiter.clock().now().saturating_add(WINDOW.mul_f64(2.3));
            thread::scope(|scope| {
                for worker in &mut workers {
                    scope.spawn(move || worker.burst(limiter, end));
                }
            });
            thread::sleep(WINDOW.mul_f64(0.9));
        }
        workers
    }
}

impl Worker {
    /// Makes decisions until `end`. Each decision returns its time, so no other clock is read.
    fn burst<A: Algorithm>(&mut self, limiter: &RateLimiter<A>, end: Nanos) {
        let start = Instant::now();
        loop {
            let now = match limiter.check() {
                Ok(admitted) => {
                    self.admitted.push(admitted.at());
                    admitted.at()
                }
                Err(denied) => {
                    self.denied += 1;
                    denied.at()
                }
            };
            if now >= end {
                break;
            }
        }
        self.busy += start.elapsed();
    }
}

/// Prints the most admissions in any window and the bound. Returns whether the bound held.
fn holds(admitted: &[Nanos], window: Duration, bound: u64) -> bool {
    let mut worst = 0;
    let mut first = 0;
    for (last, &at) in admitted.iter().enumerate() {
        // An admission that is exactly one window old does not count.
        while at.saturating_since(admitted[first]) >= window {
            first += 1;
        }
        worst = worst.max(last + 1 - first);
    }
    let kept = worst as u64 <= bound;
    println!(" {worst:>13} {bound:>8}");
    if !kept {
        eprintln!("{worst} admissions in {window:?} (expected at most {bound})");
    }
    kept
}
