//! Measures the default of both crates in a table of keys: a [`SlidingWindow`] beside governor, a [`Gcra`] and a ring of 60 cells.

use std::time::Duration;

use ahash::RandomState;
use governor::clock::FakeRelativeClock;
use governor::state::keyed::DashMapStateStore;
use ringgate::algorithm::{Algorithm, Reclaim};
use ringgate::keyed::AnyKey;
use ringgate::{CounterRing, Gcra, KeyedRateLimiter, ManualClock, Quota, SlidingWindow, UnitRing};

use crate::contestant::{Key, Keyed, Room, Side};
use crate::keyed::{KEYS, decide, entered, entrants, only_new};
use crate::keys::Order;
use crate::measure::{
    Effort, Entrant, Row, compare, cores, on_threads, one_and_all, print_head, repeat, together,
};
use crate::memory;
use crate::rivals::{self, GOVERNOR, ours};

const WINDOW: &str = "ringgate, SlidingWindow";
const GCRA: &str = "ringgate, Gcra";
const CELLS: &str = "ringgate, CounterRing, 60 cells";

/// The limiters of each row of the last table: a window or its ring, a bucket, 60 cells, and governor.
const COLUMNS: usize = 4;

pub fn run(effort: &Effort) {
    print_head("The default of both crates, and two others", "");
    let mut rows = short(effort);
    rows.extend(many_a_cell::<u64>(effort, &[Order::Uniform, Order::OneHot]));
    rows.extend(many_a_cell::<String>(effort, &[Order::Zipf]));
    let plenty = everybody::<u64>(Room::Plenty);
    rows.extend(only_new(effort, "", "", &plenty, &entrants(&plenty)));
    rows.extend(a_minute(effort));
    rows.extend(once_a_cell(effort));
    print_table(&rows);
}

/// Prints the rows in one table, and the one in which a window loses most to governor.
fn print_table(rows: &[Row]) {
    println!("\n### The default of both crates in one table\n");
    println!("| 100,000 keys | threads | `SlidingWindow` | `Gcra` | 60 cells | governor | ratio |");
    println!("|---|--:|--:|--:|--:|--:|--:|");
    let mut worst = (f64::INFINITY, String::new());
    for row in rows.chunks_exact(COLUMNS) {
        let (window, governor) = (&row[0], &row[COLUMNS - 1]);
        let nanos: Vec<String> = row.iter().map(|row| format!("{:.1}", row.nanos())).collect();
        let ratio = window.times(governor);
        println!(
            "| {} | {} | {} | {ratio:.2} |",
            window.workload,
            window.threads,
            nanos.join(" | ")
        );
        if ratio < worst.0 {
            worst = (ratio, format!("{}, threads: {}", window.workload, window.threads));
        }
    }
    bytes_a_key::<u64>();
    bytes_a_key::<String>();
    println!(
        "\nThe ratio is the time or the memory of governor divided by that of `SlidingWindow`. The worst time: {} ({:.2}).",
        worst.1, worst.0
    );
}

fn bytes_a_key<K: Key>() {
    let cells = ours::grouped::<K>().name;
    let bytes = [WINDOW, GCRA, cells, GOVERNOR].map(memory::bytes_per_key::<K>);
    let ratio = bytes[COLUMNS - 1] / bytes[0];
    let bytes = bytes.map(|bytes| format!("{bytes:.0}")).join(" | ");
    println!(
        "| {}, resident bytes per key, 1,000 a minute | | {bytes} | {ratio:.2} |",
        K::NAME
    );
}

/// Measures limits that are never used up, and limits of one.
fn many_a_cell<K: Key>(effort: &Effort, orders: &[Order]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (room, what) in [(Room::Plenty, ", admitted"), (Room::None, ", denied")] {
        let all = everybody::<K>(room);
        for &order in orders {
            rows.extend(entered(effort, order, what, "", &all, &entrants(&all)));
        }
    }
    rows
}

fn everybody<K: Key>(room: Room) -> Vec<Keyed<K>> {
    // One request uses up the limit, or none does in a day.
    let quota = move || match room {
        Room::None => Quota::per_hour(1).expect("a quota"),
        _ => Quota::new(1_000_000_000, Duration::from_secs(24 * 3600)).expect("a quota"),
    };
    vec![
        ours::table(WINDOW, move || SlidingWindow::new(quota()).expect("a window")),
        ours::table(GCRA, move || ours::gcra(room)),
        ours::table(CELLS, move || {
            CounterRing::builder(quota()).unpacked().build().expect("a ring")
        }),
        rivals::governor_keyed_in(room),
    ]
}

/// Measures windows so short that each decision about one of many keys is the first of its window.
fn short(effort: &Effort) -> Vec<Row> {
    // A counter ring has bits for no more permits beside the ticks of so narrow cells.
    let quota = || Quota::new(15, Duration::from_micros(1)).expect("a quota");
    let all = vec![
        // A sliding window would choose cells, because the ticks of so narrow cells leave few bits for units.
        ours::table("ringgate, UnitRing", move || {
            UnitRing::new(quota()).expect("a ring")
        }),
        ours::table(GCRA, move || Gcra::new(quota()).expect("a bucket")),
        ours::table(CELLS, move || {
            CounterRing::builder(quota()).unpacked().build().expect("a ring")
        }),
        rivals::governor_keyed_in::<u64>(Room::Plenty),
    ];
    entered(effort, Order::Uniform, ", short windows", "", &all, &entrants(&all))
}

/// Measures a limit of 1,000 a minute, by which a ring of 60 cells has several counts in a word.
fn a_minute(effort: &Effort) -> Vec<Row> {
    let all = vec![
        ours::table(WINDOW, || SlidingWindow::new(ours::a_minute()).expect("a window")),
        ours::table(GCRA, || Gcra::new(ours::a_minute()).expect("a bucket")),
        ours::table(CELLS, || CounterRing::new(ours::a_minute()).expect("a ring")),
        rivals::governor_keyed_in::<u64>(Room::Plenty),
    ];
    let entrants = entrants(&all);
    let mut rows = only_new(effort, ", 1,000 a minute", "", &all, &entrants);
    // Each thread decides about all keys in turn, from another one on, so that no key uses up its limit.
    let keys: Vec<u64> = (0..KEYS).map(u64::number).collect();
    let stream = |thread: usize| {
        let mut keys = keys.clone();
        let first = thread * keys.len() / cores().len();
        keys.rotate_left(first);
        keys
    };
    let streams: Vec<_> = (0..cores().len()).map(stream).collect();
    for threads in one_and_all() {
        let name = "u64, in turn, admitted, 1,000 a minute";
        rows.extend(compare(effort, name, threads, "", &entrants, |index| {
            // The limit would not last for all turns.
            let limiter = all[index].make(KEYS as usize);
            limiter.batch(&keys);
            decide(effort.least, threads, &*limiter, &streams)
        }));
    }
    rows
}

/// Decides once about each of these keys, one cell after the previous call. Returns the number of admissions.
type Pass = Box<dyn Fn(&[u64]) -> u64 + Sync>;

/// Measures keys that are asked once a cell each, so that a ring enters the next cell, and the cells before it count. The cells
/// are those of the limiter, and the others have cells of a second.
fn once_a_cell(effort: &Effort) -> Vec<Row> {
    let second = Duration::from_secs(1);
    let ring = UnitRing::new(ours::a_minute()).expect("a ring");
    let all: [(&'static str, Side, Pass); COLUMNS] = [
        (WINDOW, Side::Ours, {
            let window = SlidingWindow::new(ours::a_minute()).expect("a window");
            pass(window, ring.span() - ring.window())
        }),
        (GCRA, Side::Ours, {
            pass(Gcra::new(ours::a_minute()).expect("a bucket"), second)
        }),
        (CELLS, Side::Ours, {
            pass(CounterRing::new(ours::a_minute()).expect("a ring"), second)
        }),
        (GOVERNOR, Side::Rival, governor_pass(second)),
    ];
    let entrants: Vec<_> = (all.iter())
        .map(|&(name, side, _)| Entrant { name, side })
        .collect();
    let keys: Vec<u64> = (0..KEYS).map(u64::number).collect();
    for (_, _, pass) in &all {
        // More than a window.
        (0..100).for_each(|_| assert_eq!(pass(&keys), KEYS));
    }
    let name = "u64, each once a cell, 1,000 a minute, manual clock";
    compare(effort, name, 1, "", &entrants, |index| {
        let pass = &all[index].2;
        together(&on_threads(1, |_| repeat(effort.least, || (KEYS, pass(&keys)))))
    })
}

fn pass<A: Reclaim + Send + Sync + 'static>(algorithm: A, step: Duration) -> Pass {
    let clock = ManualClock::new();
    let builder = KeyedRateLimiter::builder(algorithm).capacity(KEYS);
    let limiter = builder
        .build_with(clock.clone(), AnyKey::random())
        .expect("a table");
    Box::new(move |keys| {
        clock.advance(step);
        keys.iter().map(|key| u64::from(limiter.check(key).is_ok())).sum()
    })
}

fn governor_pass(step: Duration) -> Pass {
    let clock = FakeRelativeClock::default();
    let quota = governor::Quota::per_minute(1_000.try_into().expect("not zero"));
    let states = DashMapStateStore::with_hasher(RandomState::new());
    type Middleware = governor::middleware::NoOpMiddleware<governor::nanos::Nanos>;
    let limiter =
        governor::RateLimiter::<_, _, _, Middleware>::new(quota, states, clock.clone());
    Box::new(move |keys| {
        clock.advance(step);
        keys.iter()
            .map(|key| u64::from(limiter.check_key(key).is_ok()))
            .sum()
    })
}
