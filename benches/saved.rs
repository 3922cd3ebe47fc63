//! The time to save and to restore a table of a million keys. The target for one word per key is 100 ms each on an idle
//! machine.
//!
//! `cargo bench -p ringgate-benches --bench saved` prints the best of five rounds, in memory. No figure makes this bench fail.
//! With `-- --keys 50000`, it has one round with so many keys, for a profiler.

use core::time::Duration;
use std::time::Instant;

use ringgate::algorithm::Reclaim;
use ringgate::keyed::{AnyKey, KeyedBuilder};
use ringgate::saved::RestoreError;
use ringgate::{CounterRing, Gcra, KeyedRateLimiter, ManualClock, Quota};

/// The number of keys, and of rounds.
#[derive(Clone, Copy)]
struct Size {
    keys: u64,
    rounds: u32,
}

const SEEDS: [u64; 4] = [1, 2, 3, 4];

type Table<A> = KeyedRateLimiter<A, ManualClock, AnyKey>;

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let mut arguments = std::env::args().skip_while(|it| it != "--keys").skip(1);
    let size = match arguments.next() {
        Some(keys) => Size {
            keys: keys.parse()?,
            rounds: 1,
        },
        None => Size {
            keys: 1_000_000,
            rounds: 5,
        },
    };
    println!(
        "{:<16} {:>8} {:>12} {:>8} {:>8}",
        "", "entries", "bytes", "save", "restore"
    );
    let quota = Quota::per_minute(100)?;
    measure(size, "gcra", Gcra::new(quota)?)?;
    measure(size, "3 cells", CounterRing::builder(quota).cells(3).build()?)?;
    measure(
        size,
        "5 cells",
        CounterRing::builder(quota).cells(5).unpacked().build()?,
    )?;
    measure(size, "60 cells", CounterRing::new(quota)?)?;
    Ok(())
}

// A profiler counts the instructions of the next two functions: `valgrind --tool=callgrind --collect-atstart=no` with
// `--toggle-collect='saved::save_table*'`.

#[inline(never)]
fn save_table<A: Reclaim>(limiter: &Table<A>, file: &mut Vec<u8>) -> std::io::Result<u64> {
    limiter.save(file)
}

#[inline(never)]
fn restore_table<A: Reclaim>(builder: KeyedBuilder<A>, file: &[u8]) -> Result<Table<A>, RestoreError> {
    let keys = AnyKey::with_seeds([0; 4]);
    builder.restore_with(ManualClock::new(), keys, file, Duration::ZERO)
}

#[inline(never)]
fn measure<A: Reclaim + Clone>(
    size: Size,
    name: &str,
    algorithm: A,
) -> Result<(), Box<dyn core::error::Error>> {
    let builder = KeyedRateLimiter::builder(algorithm).capacity(size.keys);
    let limiter = builder
        .clone()
        .build_with(ManualClock::new(), AnyKey::with_seeds(SEEDS))?;
    for key in 0..size.keys {
        let _ = limiter.check(&key);
    }
    let mut file = Vec::new();
    let (mut save, mut restore, mut entries) = (Duration::MAX, Duration::MAX, 0);
    for _ in 0..size.rounds {
        file.clear();
        let start = Instant::now();
        save_table(&limiter, &mut file)?;
        save = save.min(start.elapsed());
        let start = Instant::now();
        let restored = restore_table(builder.clone(), &file)?;
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
