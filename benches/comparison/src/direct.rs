//! One limiter for one thing.

use std::path::Path;

use crate::contestant::{Contestant, Room};
use crate::floors::{self, CLOCK_AND_EXCHANGE, CLOCK_AND_LOAD};
use crate::measure::{
    Effort, Entrant, Row, Turn, compare, cores, median, on_threads, one_and_all, print_head, print_notes,
    repeat, thread_counts, together,
};
use crate::plot;
use crate::rivals;

/// Decisions between two readings of the time.
const BATCH: u64 = 4096;

pub fn run(effort: &Effort, plots: &Path) {
    print_head("One limiter", "floor");
    let mut panels = Vec::new();
    let mut stripes = Vec::new();
    let workloads = [
        ("admitted", Room::Plenty, CLOCK_AND_EXCHANGE),
        ("denied", Room::None, CLOCK_AND_LOAD),
        ("half", Room::Half, CLOCK_AND_EXCHANGE),
    ];
    for (name, room, floor) in workloads {
        let mut all = rivals::direct(room);
        all.extend(floors::direct(room));
        let threads = if room == Room::Plenty {
            thread_counts()
        } else {
            one_and_all()
        };
        let rows = measure(effort, name, floor, &threads, &all);
        stripes.extend(beside(&rows));
        panels.push((format!("One limiter, {name}"), rows));
    }
    print_notes(
        "The floor is clock + compare-exchange, for denials clock + load. In a way of their own:",
        rivals::REMARKS,
    );
    plot::throughput(&plots.join("direct.svg"), &panels);
    println!("\n### Stripes beside governor and the plain ring\n");
    println!(
        "| workload | threads | | times governor | times {} |",
        rivals::RING
    );
    println!("|---|--:|---|--:|--:|");
    stripes.iter().for_each(|line| println!("{line}"));
    scaling(effort);
}

/// A line for each striped limiter: its throughput as a multiple of governor's and the plain ring's.
fn beside(rows: &[Row]) -> Vec<String> {
    let striped = rows.iter().filter(|row| rivals::STRIPED.contains(&row.name));
    let line = |row: &Row| {
        let times = |name: &str| {
            let other = (rows.iter()).find(|other| other.name == name && other.threads == row.threads);
            row.times(other.expect("it is in the table"))
        };
        let (governor, ring) = (times(rivals::GOVERNOR), times(rivals::RING));
        let (workload, threads, name) = (&row.workload, row.threads, row.name);
        format!("| {workload} | {threads} | {name} | {governor:.2} | {ring:.2} |")
    };
    striped.map(line).collect()
}

/// Measures the throughput of all cores, as a fraction of that many times the throughput of one core, in turn.
fn scaling(effort: &Effort) {
    let cores = cores().len();
    println!("\n### Throughput of {cores} cores relative to {cores} times one\n");
    println!("| | million per second, 1 thread | {cores} threads | {cores} / ({cores} × 1) | min – max |");
    println!("|---|--:|--:|--:|--:|");
    let mut all = rivals::direct_few(Room::Plenty);
    all.retain(|one| {
        [&rivals::STRIPED[..], &[rivals::RING, rivals::GOVERNOR]]
            .concat()
            .contains(&one.name)
    });
    all.push(floors::own_words(cores));
    let mut rates = vec![Vec::with_capacity(effort.rounds); all.len()];
    for _ in 0..effort.rounds {
        for (contestant, rates) in all.iter().zip(&mut rates) {
            let rate = |threads| run_on(effort, threads, contestant).rate;
            rates.push((rate(1), rate(cores)));
        }
    }
    for (contestant, rates) in all.iter().zip(&rates) {
        let shares = || rates.iter().map(|(one, all)| all / (one * cores as f64));
        println!(
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} – {:.2} |",
            contestant.name,
            median(rates.iter().map(|rate| rate.0)),
            median(rates.iter().map(|rate| rate.1)),
            median(shares()),
            shares().fold(f64::INFINITY, f64::min),
            shares().fold(0.0, f64::max),
        );
    }
}

fn run_on(effort: &Effort, threads: usize, contestant: &Contestant) -> Turn {
    let work = |_| repeat(effort.least, || (BATCH, contestant.batch(BATCH)));
    together(&on_threads(threads, work))
}

pub fn measure(
    effort: &Effort,
    workload: &str,
    floor: &str,
    threads: &[usize],
    all: &[Contestant],
) -> Vec<Row> {
    let entrants: Vec<Entrant> = (all.iter())
        .map(|contestant| Entrant {
            name: contestant.name,
            side: contestant.side,
        })
        .collect();
    let rows = threads.iter().map(|&threads| {
        compare(effort, workload, threads, floor, &entrants, |index| {
            run_on(effort, threads, &all[index])
        })
    });
    rows.flatten().collect()
}
