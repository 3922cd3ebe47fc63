//! The longest times of a decision under load.

use std::path::Path;
use std::time::Instant;

use hdrhistogram::Histogram;
use quanta::Clock;

use crate::contestant::{Contestant, DecideKeyed, Key, Room, Side};
use crate::floors;
use crate::keys::Order;
use crate::measure::{Effort, on_threads, one_and_all};
use crate::plot::{self, Panel, Series};
use crate::rivals;

const KEYS: u64 = 100_000;

/// Decisions between two checks of the end time.
const BATCH: usize = 1024;

const QUANTILES: [(f64, &str); 4] = [(0.5, "p50"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99")];

pub fn run(effort: &Effort, plots: &Path) {
    println!("\n### Time of a decision in nanoseconds, including two readings of the counter\n");
    let heads: Vec<&str> = QUANTILES.iter().map(|(_, name)| *name).collect();
    println!("| workload | threads | | {} | longest |", heads.join(" | "));
    println!("|---|--:|---|--:|--:|--:|--:|--:|");
    let mut panels = Vec::new();
    for threads in one_and_all() {
        for (name, room) in [
            ("one limiter, admitted", Room::Plenty),
            ("one limiter, denied", Room::None),
        ] {
            let all = direct(room);
            let names: Vec<_> = all.iter().map(|one| (one.name, one.side)).collect();
            let series = measure(effort, name, threads, &names, |index, _| {
                all[index].one();
            });
            panels.push(panel(name, threads, series));
        }
        let name = "100,000 u64 keys, zipf, admitted";
        panels.push(panel(name, threads, keyed(effort, name, threads)));
    }
    plot::lines(&plots.join("tail.svg"), &panels);
}

fn panel(name: &str, threads: usize, series: Vec<Series>) -> Panel {
    Panel {
        title: match threads {
            1 => format!("{name}, 1 thread"),
            threads => format!("{name}, {threads} threads"),
        },
        across: QUANTILES.iter().map(|(_, name)| (*name).into()).collect(),
        unit: "ns",
        series,
    }
}

fn direct(room: Room) -> Vec<Contestant> {
    let mut all = rivals::direct_few(room);
    all.extend((floors::direct(room).into_iter()).filter(|floor| floor.name == floors::CLOCK_AND_EXCHANGE));
    all.push(Contestant::from_work(
        "floor: nothing between the readings",
        Side::Floor,
        || true,
    ));
    all
}

fn keyed(effort: &Effort, name: &str, threads: usize) -> Vec<Series> {
    let all = rivals::keyed_few::<u64>(Room::Plenty);
    let keys: Vec<u64> = (0..KEYS).map(Key::number).collect();
    let streams: Vec<Vec<u64>> = (0..threads)
        .map(|thread| Order::Zipf.stream(KEYS, thread))
        .collect();
    let limiters: Vec<Box<dyn DecideKeyed<u64>>> = (all.iter())
        .map(|one| one.make(KEYS as usize))
        .inspect(|limiter| {
            limiter.batch(&keys);
        })
        .collect();
    let names: Vec<_> = all.iter().map(|one| (one.name, one.side)).collect();
    let at = |thread: usize, turn: usize| &streams[thread][turn % streams[thread].len()..][..1];
    measure(effort, name, threads, &names, |index, (thread, turn)| {
        limiters[index].batch(at(thread, turn));
    })
}

/// Prints a row for each contestant. The rounds of a contestant are one distribution.
fn measure(
    effort: &Effort,
    workload: &str,
    threads: usize,
    names: &[(&'static str, Side)],
    decide: impl Fn(usize, (usize, usize)) + Sync,
) -> Vec<Series> {
    let clock = Clock::new();
    let mut histograms = vec![empty(); names.len()];
    for _ in 0..effort.rounds {
        for (index, histogram) in histograms.iter_mut().enumerate() {
            let parts = on_threads(threads, |thread| {
                let mut part = empty();
                (0..10 * BATCH).for_each(|turn| decide(index, (thread, turn)));
                let mut turns = 0..;
                let start = Instant::now();
                while start.elapsed() < effort.least {
                    for turn in turns.by_ref().take(BATCH) {
                        let before = clock.raw();
                        decide(index, (thread, turn));
                        let after = clock.raw();
                        part.saturating_record(clock.delta_as_nanos(before, after));
                    }
                }
                part
            });
            for part in parts {
                histogram.add(part).expect("they are alike");
            }
        }
    }
    (names.iter().zip(&histograms))
        .map(|(&(name, side), histogram)| print(workload, threads, name, side, histogram))
        .collect()
}

fn print(
    workload: &str,
    threads: usize,
    name: &'static str,
    side: Side,
    histogram: &Histogram<u64>,
) -> Series {
    let values = QUANTILES.map(|(quantile, _)| histogram.value_at_quantile(quantile));
    let cells: Vec<String> = values.iter().map(u64::to_string).collect();
    println!(
        "| {workload} | {threads} | {name} | {} | {} |",
        cells.join(" | "),
        histogram.max()
    );
    Series {
        name,
        side,
        values: values.into_iter().map(|nanos| nanos as f64).collect(),
    }
}

/// Returns a histogram of up to a second, with three significant figures.
fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 1_000_000_000, 3).expect("a histogram")
}
