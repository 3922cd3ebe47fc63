//! Many decisions at once, over few keys and over more keys than fit into the caches, compared with memory accesses alone.

use std::hint::black_box;
use std::path::Path;

use ringgate::{Gcra, KeyedRateLimiter};

use crate::contestant::{DecideKeyed, Key, Room, Side};
use crate::keys::Random;
use crate::measure::{
    Effort, Entrant, Row, compare, cores, on_threads, one_and_all, print_head, repeat, together,
};
use crate::plot::{self, Bar};
use crate::rivals::{self, GOVERNOR, ours};
use crate::words;

/// Keys of one call.
const TOGETHER: usize = 64;

/// Requests of one thread before its stream of keys repeats. The stream is too long for caches and branch predictors.
const STREAM: usize = 1 << 20;

/// Decisions between two readings of the time.
const BATCH: usize = 1024;

const CHECK: &str = "ringgate, Gcra, check";
const CHECK_MANY: &str = "ringgate, Gcra, check_many of 64";
const FLOOR: &str = words::EXCHANGE;

/// Decides whole batches of keys.
struct Many<'a>(&'a KeyedRateLimiter<Gcra>);

impl DecideKeyed<u64> for Many<'_> {
    fn batch(&self, keys: &[u64]) -> u64 {
        let mut admitted = 0;
        for keys in keys.chunks(TOGETHER) {
            black_box(self.0).check_many(keys, |_, answer| admitted += u64::from(answer.is_ok()));
        }
        admitted
    }
}

pub fn run(effort: &Effort, plots: &Path) {
    print_head("Many decisions at once, admitted", FLOOR);
    let mut rows = Vec::new();
    for keys in [1_000, 100_000, 1_000_000, 10_000_000] {
        rows.extend(section(effort, keys));
    }
    println!("\n### check_many beside check, the same keys\n");
    println!("| workload | threads | times check |");
    println!("|---|--:|--:|");
    for many in rows.iter().filter(|row| row.name == CHECK_MANY) {
        let same = |row: &&Row| row.workload == many.workload && row.threads == many.threads;
        let check = rows.iter().filter(same).find(|row| row.name == CHECK);
        let times = many.times(check.expect("it is in the table"));
        println!("| {} | {} | {times:.2} |", many.workload, many.threads);
    }
    plot::bars(&plots.join("batch.svg"), &panels(&rows));
}

fn section(effort: &Effort, keys: u64) -> Vec<Row> {
    let streams: Vec<Vec<u64>> = (0..cores().len())
        .map(|thread| {
            let mut random = Random::new(thread);
            let key = || Key::number(random.below(keys));
            std::iter::repeat_with(key).take(STREAM).collect()
        })
        .collect();
    let limiter = KeyedRateLimiter::new(ours::gcra(Room::Plenty), keys).expect("a table");
    let governor = rivals::governor_keyed().make(keys as usize);
    let words = words::of(keys as usize);
    let all: [(&str, Side, &dyn DecideKeyed<u64>); 4] = [
        (CHECK, Side::Ours, &|key: &u64| {
            black_box(&limiter).check(key).is_ok()
        }),
        (CHECK_MANY, Side::Ours, &Many(&limiter)),
        (GOVERNOR, Side::Rival, &*governor),
        (FLOOR, Side::Floor, &|key: &u64| {
            // The keys are in random order.
            words::add(words::place(black_box(&words), *key), 1)
        }),
    ];
    let every: Vec<u64> = (0..keys).map(Key::number).collect();
    let entrants = all.map(|(name, side, limiter)| {
        limiter.batch(&every);
        Entrant { name, side }
    });
    let name = format!("{keys} u64 keys, uniform");
    let rows = one_and_all().into_iter().map(|threads| {
        compare(effort, &name, threads, FLOOR, &entrants, |index| {
            let done = on_threads(threads, |thread| {
                let mut batches = streams[thread].chunks(BATCH).cycle();
                repeat(effort.least, || {
                    let keys = batches.next().expect("it never ends");
                    (keys.len() as u64, all[index].2.batch(keys))
                })
            });
            together(&done)
        })
    });
    rows.flatten().collect()
}

fn panels(rows: &[Row]) -> Vec<(String, Vec<Bar>)> {
    let mut panels: Vec<(String, Vec<Bar>)> = Vec::new();
    for row in rows {
        let title = match row.threads {
            1 => format!("{}, 1 thread, ns per decision", row.workload),
            threads => format!("{}, {threads} threads, ns per decision", row.workload),
        };
        let bar = Bar {
            name: row.name,
            side: row.side,
            value: row.nanos(),
            mark: None,
        };
        match panels.last_mut().filter(|(last, _)| *last == title) {
            Some((_, bars)) => bars.push(bar),
            None => panels.push((title, vec![bar])),
        }
    }
    panels
}
