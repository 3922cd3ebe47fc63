//! The time to save and to restore a table of a million keys. The target is 100 ms each on an idle machine.
//!
//! `cargo bench -p ringgate-benches --bench saved` prints the best of five rounds, in memory. No figure makes this bench fail.

use core::time::Duration;
use std::time::Instant;

use ringgate::algorithm::Reclaim;
use ringgate::keyed::{AnyKey, KeyedBuilder};
use ringgate::{CounterRing, Gcra, ManualClock, Quota};

const KEYS: u64 = 1_000_000;

const ROUNDS: u32 = 5;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    println!(
        "{:<16} {:>8} {:>12} {:>8} {:>8}",
        "", "entries", "bytes", "save", "restore"
    );
    let quota = Quota::per_minute(100)?;
    measure("gcra", Gcra::new(quota)?)?;
    measure("3 cells", CounterRing::builder(quota).cells(3).build()?)?;
    measure(
        "5 cells",
        CounterRing::builder(quota).cells(5).unpacked().build()?,
    )?;
    measure("60 cells", CounterRing::new(quota)?)?;
    Ok(())
}

fn measure<A: Reclaim + Clone>(name: &str, algorithm: A) -> Result<(), Box<dyn core::error::Error>> {
    let builder = KeyedBuilder::new(algorithm).capacity(KEYS);
    let keys = || AnyKey::with_seeds([1, 2, 3, 4]);
    let limiter = builder.clone().build_with(ManualClock::new(), keys())?;
    for key in 0..KEYS {
        let _ = limiter.check(&key);
    }
    let mut file = Vec::new();
    let (mut save, mut restore, mut entries) = (Duration::MAX, Duration::MAX, 0);
    for _ in 0..ROUNDS {
        file.clear();
        let start = Instant::now();
        limiter.save(&mut file)?;
        save = save.min(start.elapsed());
        let start = Instant::now();
        let restored = builder
            .clone()
            .restore_with(ManualClock::new(), keys(), &*file, Duration::ZERO)?;
        restore = restore.min(start.elapsed());
        entries = restored.len();
    }
    println!(
        "{name:<16} {entries:>8} {:>12} {:>5} ms {:>5} ms",
        file.len(),
        save.as_millis(),
        restore.as_millis()
    );
    Ok(())
}
