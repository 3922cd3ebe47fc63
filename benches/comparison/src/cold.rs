//! The time of a decision after other work has emptied the first two levels of cache, as in a server.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::contestant::{DecideKeyed, Key, Room};
use crate::keys::{Order, mix};
use crate::measure::Effort;
use crate::rivals;

const KEYS: u64 = 100_000;

/// Words of the other work: 8 MiB, more than the second level of any current core has.
const WORK: usize = 1 << 20;

/// Words of a cache line.
const LINE: usize = 8;

/// Decisions of a round.
const DECISIONS: usize = 2_000;

/// The time between the other work and a decision.
const PAUSE: Duration = Duration::from_micros(20);

/// A function that decides about a key.
type Decide = Box<dyn Fn(u64)>;

pub fn run(effort: &Effort) {
    println!(
        "\n### A decision after other work, in nanoseconds, with two readings of the clock\n\n\
         100,000 u64 keys, uniform, admitted; 8 MiB are read between two decisions.\n\n\
         | | p50 | p99 |\n|---|--:|--:|"
    );
    let keys = Order::Uniform.stream(KEYS, 0);
    let mut work = vec![1_u64; WORK];
    let all = contestants();
    let mut histograms =
        vec![Histogram::<u64>::new_with_bounds(1, 1_000_000_000, 3).expect("a histogram"); all.len()];
    for round in 0..effort.rounds {
        for ((_, decide), histogram) in all.iter().zip(&mut histograms) {
            for turn in 0..DECISIONS {
                for word in work.iter_mut().step_by(LINE) {
                    *word = word.wrapping_add(1);
                }
                black_box(&mut work);
                // The pause lets the stores leave the core. Otherwise they would delay the first read of memory.
                let written = Instant::now();
                while written.elapsed() < PAUSE {}
                let key = keys[(round * DECISIONS + turn) % keys.len()];
                // This clock is read after all earlier loads have their values. A bare counter may be read before.
                let before = Instant::now();
                decide(key);
                let nanos = before.elapsed().as_nanos();
                histogram.saturating_record(nanos.try_into().unwrap_or(u64::MAX));
            }
        }
    }
    for ((name, _), histogram) in all.iter().zip(&histograms) {
        let [half, most] = [0.5, 0.99].map(|quantile| histogram.value_at_quantile(quantile));
        println!("| {name} | {half} | {most} |");
    }
}

fn contestants() -> Vec<(&'static str, Decide)> {
    let keys: Vec<u64> = (0..KEYS).map(Key::number).collect();
    let mut all: Vec<(&'static str, Decide)> = Vec::new();
    for one in rivals::keyed_few::<u64>(Room::Plenty) {
        let limiter: Box<dyn DecideKeyed<u64>> = one.make(KEYS as usize);
        limiter.batch(&keys);
        let decide = move |key: u64| {
            black_box(limiter.batch(&[key]));
        };
        all.push((one.name, Box::new(decide)));
    }
    all.push(("floor: nothing between the readings", Box::new(|_| ())));
    for (name, misses) in [
        ("floor: one miss", 1),
        ("floor: two misses, one after the other", 2),
    ] {
        all.push((name, Box::new(misses_of(misses))));
    }
    all
}

/// Reads this number of lines of a table as large as one of this crate. Each line holds the position of the next one.
fn misses_of(misses: usize) -> impl Fn(u64) {
    let lines = 2 * KEYS as usize;
    let table: Vec<u64> = (0..(lines * LINE) as u64).map(mix).collect();
    move |key| {
        let mut at = mix(key);
        for _ in 0..misses {
            at = table[(at as usize % lines) * LINE];
        }
        black_box(at);
    }
}
