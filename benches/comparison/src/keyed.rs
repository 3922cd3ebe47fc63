//! Measures limiters of many keys.

use std::path::Path;
use std::time::Duration;

use crate::contestant::{DecideKeyed, Key, Keyed, Room};
use crate::keys::Order;
use crate::maps::{self, DASHMAP};
use crate::measure::{
    Done, Effort, Entrant, Row, Turn, Watch, compare, cores, on_threads, one_and_all, print_head,
    print_notes, repeat, thread_counts, together,
};
use crate::plot;
use crate::rivals;
use crate::words;

/// Keys that have an entry before the measurement.
pub const KEYS: u64 = 100_000;

/// Keys that are entered into a new limiter.
const NEW: u64 = 100_000;

/// Decisions between two readings of the time.
const BATCH: usize = 1024;

pub fn run(effort: &Effort, plots: &Path) {
    print_head("Many keys, admitted", DASHMAP);
    let mut panels = Vec::new();
    section::<u64>(effort, &mut panels);
    section::<String>(effort, &mut panels);
    print_notes("Not in this table:", rivals::ABSENT_KEYED);
    plot::throughput(&plots.join("keyed.svg"), &panels);
    print_head("Many keys, denied", words::LOAD);
    denied::<u64>(effort);
    denied::<String>(effort);
}

/// Returns the limiters, and maps with a counter for each key.
pub fn everybody<K: Key>() -> Vec<Keyed<K>> {
    let mut all = rivals::keyed();
    all.extend(maps::keyed());
    all
}

fn section<K: Key>(effort: &Effort, panels: &mut Vec<(String, Vec<Row>)>) {
    let mut all = everybody::<K>();
    all.extend(words::keyed(Room::Plenty));
    let entrants = entrants(&all);
    for order in [Order::Uniform, Order::Zipf, Order::OneHot] {
        let rows = entered(effort, order, "", DASHMAP, &all, &entrants);
        if order != Order::OneHot {
            panels.push((format!("100,000 {} keys, {}", K::NAME, order.name()), rows));
        }
    }
    only_new(effort, "", DASHMAP, &all, &entrants);
}

/// Measures keys that have no entry yet. `what` follows the name of the workload.
pub fn only_new<K: Key>(
    effort: &Effort,
    what: &str,
    floor: &str,
    all: &[Keyed<K>],
    entrants: &[Entrant],
) -> Vec<Row> {
    let keys: Vec<K> = (0..NEW).map(K::number).collect();
    let name = format!("{}, only new keys{what}", K::NAME);
    let rows = one_and_all().into_iter().map(|threads| {
        compare(effort, &name, threads, floor, entrants, |index| {
            enter(effort.least, threads, &all[index], &keys)
        })
    });
    rows.flatten().collect()
}

/// Measures this crate, governor and the floor of memory with keys that are used up.
fn denied<K: Key>(effort: &Effort) {
    let mut all = rivals::keyed_few::<K>(Room::None);
    all.extend(words::keyed(Room::None));
    let entrants = entrants(&all);
    for order in [Order::Uniform, Order::Zipf] {
        entered(effort, order, "", words::LOAD, &all, &entrants);
    }
}

pub fn entrants<K>(all: &[Keyed<K>]) -> Vec<Entrant> {
    let entrant = |contestant: &Keyed<K>| Entrant {
        name: contestant.name,
        side: contestant.side,
    };
    all.iter().map(entrant).collect()
}

/// Measures keys that have an entry. `what` follows the name of the order.
pub fn entered<K: Key>(
    effort: &Effort,
    order: Order,
    what: &str,
    floor: &str,
    all: &[Keyed<K>],
    entrants: &[Entrant],
) -> Vec<Row> {
    let streams: Vec<Vec<K>> = (0..cores().len())
        .map(|thread| order.stream(KEYS, thread))
        .collect();
    let keys: Vec<K> = (0..KEYS).map(K::number).collect();
    let limiters: Vec<Box<dyn DecideKeyed<K>>> = (all.iter())
        .map(|contestant| contestant.make(KEYS as usize))
        .inspect(|limiter| {
            limiter.batch(&keys);
        })
        .collect();
    let name = format!("{}, {}{what}", K::NAME, order.name());
    let counts = if order == Order::Uniform && K::NAME == u64::NAME {
        thread_counts()
    } else {
        one_and_all()
    };
    let rows = counts.into_iter().map(|threads| {
        compare(effort, &name, threads, floor, entrants, |index| {
            decide(effort.least, threads, &*limiters[index], &streams)
        })
    });
    rows.flatten().collect()
}

/// Measures decisions of each thread about the keys of its stream, again and again.
pub fn decide<K: Key>(
    least: Duration,
    threads: usize,
    limiter: &dyn DecideKeyed<K>,
    streams: &[Vec<K>],
) -> Turn {
    let done = on_threads(threads, |thread| {
        let mut batches = streams[thread].chunks(BATCH).cycle();
        repeat(least, || {
            let keys = batches.next().expect("it never ends");
            (keys.len() as u64, limiter.batch(keys))
        })
    });
    together(&done)
}

/// Enters all keys into as many new limiters as the measurement needs. Making and dropping limiters is not measured.
fn enter<K: Key>(least: Duration, threads: usize, contestant: &Keyed<K>, keys: &[K]) -> Turn {
    let (mut decisions, mut admitted, mut time) = (0, 0, Duration::ZERO);
    while time < least {
        let limiter = contestant.make(keys.len());
        let done = on_threads(threads, |thread| {
            let share = &keys[thread * (keys.len() / threads)..][..keys.len() / threads];
            let start = Watch::start();
            let admitted = limiter.batch(share);
            Done {
                decisions: share.len() as u64,
                admitted,
                time: start.elapsed(),
            }
        });
        decisions += done.iter().map(|done| done.decisions).sum::<u64>();
        admitted += done.iter().map(|done| done.admitted).sum::<u64>();
        time += done.iter().map(|done| done.time).max().unwrap_or_default();
    }
    Turn {
        rate: decisions as f64 / time.as_secs_f64() / 1e6,
        decisions,
        admitted,
    }
}
