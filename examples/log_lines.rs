//! Limits the lines of a log by a limiter in a `static`, while four threads write them.
//!
//! ```text
//! cargo run --release --example log_lines
//! ```
//!
//! Each printed line says how many similar lines were suppressed before it. At the end, the printed and the suppressed lines
//! are all lines, because threads that race lose no count.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use ringgate::{LogLimiter, QuantaClock};

/// Five lines per second, and as many at once after silence.
static TIMEOUTS: LogLimiter = LogLimiter::per_second(5);

static PRINTED: AtomicU64 = AtomicU64::new(0);
static SUPPRESSED: AtomicU64 = AtomicU64::new(0);

fn on_timeout(worker: usize) {
    if let Some(suppressed) = TIMEOUTS.check() {
        println!("worker {worker}: timeout ({suppressed} similar lines suppressed)");
        PRINTED.fetch_add(1, Ordering::Relaxed);
        SUPPRESSED.fetch_add(suppressed, Ordering::Relaxed);
    }
}

fn main() {
    // Calibrates the clock now, and not in the first line.
    let _ = QuantaClock::of_process();
    let end = Instant::now() + Duration::from_secs(2);
    let work = |worker| {
        let mut timeouts = 0_u64;
        while Instant::now() < end {
            on_timeout(worker);
            timeouts += 1;
        }
        timeouts
    };
    let timeouts: u64 = thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|worker| scope.spawn(move || work(worker))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"))
            .sum()
    });
    let printed = PRINTED.load(Ordering::Relaxed);
    let suppressed = SUPPRESSED.load(Ordering::Relaxed) + TIMEOUTS.suppressed();
    println!("{timeouts} timeouts: {printed} lines printed, {suppressed} suppressed");
    assert_eq!(printed + suppressed, timeouts);
}
