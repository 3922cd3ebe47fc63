//! One limiter for one thing.

use std::path::Path;

use crate::contestant::{Contestant, Room};
use crate::floors::{self, CLOCK_AND_EXCHANGE, CLOCK_AND_LOAD};
use crate::measure::{
    Effort, Entrant, Row, compare, on_threads, one_and_all, print_head, print_notes, repeat, thread_counts,
    together,
};
use crate::plot;
use crate::rivals;

/// Decisions between two looks at the time.
const BATCH: u64 = 4096;

pub fn run(effort: &Effort, plots: &Path) {
    print_head("One reading of a clock", "std Instant");
    measure(effort, "clock", "clock: std Instant", &[1], &floors::clocks());
    print_head("One limiter", "floor");
    let mut panels = Vec::new();
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
        panels.push((format!("One limiter, {name}"), rows));
    }
    print_notes(
        "The floor is clock + compare-exchange, for denials clock + load. In a way of their own:",
        rivals::REMARKS,
    );
    plot::throughput(&plots.join("direct.svg"), &panels);
}

fn measure(effort: &Effort, workload: &str, floor: &str, threads: &[usize], all: &[Contestant]) -> Vec<Row> {
    let entrants: Vec<Entrant> = (all.iter())
        .map(|contestant| Entrant {
            name: contestant.name,
            side: contestant.side,
        })
        .collect();
    let rows = threads.iter().map(|&threads| {
        compare(effort, workload, threads, floor, &entrants, |index| {
            let work = |_| repeat(effort.least, || (BATCH, all[index].batch(BATCH)));
            together(&on_threads(threads, work))
        })
    });
    rows.flatten().collect()
}
