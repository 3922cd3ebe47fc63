//! Rounds in which every limiter has a turn, and their results.

use std::cell::Cell;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use core_affinity::CoreId;
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::contestant::Side;
use crate::rivals::GOVERNOR;

thread_local! {
    static WORKER: Cell<usize> = const { Cell::new(0) };
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Returns the number of this thread among those of [`on_threads`].
pub fn worker() -> usize {
    WORKER.get()
}

/// The length of a measurement.
pub struct Effort {
    /// The shortest time that counts as a measurement.
    pub least: Duration,
    /// Rounds, in each of which every limiter has one turn.
    pub rounds: usize,
}

impl Effort {
    pub fn full() -> Self {
        Self {
            least: Duration::from_millis(300),
            rounds: 5,
        }
    }

    /// A fifth of the full time. The ratios are still usable.
    pub fn brief() -> Self {
        Self {
            least: Duration::from_millis(60),
            rounds: 5,
        }
    }

    pub fn quick() -> Self {
        Self {
            least: Duration::from_millis(10),
            rounds: 1,
        }
    }
}

/// The result of one turn.
#[derive(Clone, Copy, Default)]
pub struct Turn {
    /// Millions of decisions per second, of all threads together.
    pub rate: f64,
    pub decisions: u64,
    pub admitted: u64,
}

/// The result of one thread.
pub struct Done {
    pub decisions: u64,
    pub admitted: u64,
    pub time: Duration,
}

/// A limiter that has a turn in each round.
pub struct Entrant {
    pub name: &'static str,
    pub side: Side,
}

/// The results of one limiter over all rounds.
#[derive(Clone)]
pub struct Row {
    pub workload: String,
    pub threads: usize,
    pub name: &'static str,
    pub side: Side,
    pub median: f64,
    least: f64,
    most: f64,
    pub times_governor: Option<f64>,
    times_floor: Option<f64>,
    share: f64,
    /// Millions of decisions per second, by round.
    rates: Vec<f64>,
}

impl Row {
    /// Nanoseconds that a thread takes for a decision.
    pub fn nanos(&self) -> f64 {
        1e3 * self.threads as f64 / self.median
    }

    /// Returns the throughput as a multiple of another's in the same rounds.
    pub fn times(&self, other: &Self) -> f64 {
        let ratios = self.rates.iter().zip(&other.rates);
        median(ratios.map(|(this, other)| this / other))
    }

    pub fn print(&self) {
        let times = |times: Option<f64>| times.map_or(String::new(), |times| format!("{times:.2}"));
        println!(
            "| {} | {} | {} | {:.1} | {:.2} | {:.2} – {:.2} | {} | {} | {} |",
            self.workload,
            self.threads,
            self.name,
            self.nanos(),
            self.median,
            self.least,
            self.most,
            times(self.times_governor),
            times(self.times_floor),
            share(self.share),
        );
    }
}

fn share(admitted: f64) -> String {
    if admitted.is_nan() {
        return String::new();
    }
    // The share is not rounded to 0 % or 100 %, so that a single unexpected decision is visible.
    let percent = 100.0 * admitted;
    if percent > 99.9 && percent < 100.0 {
        "< 100 %".into()
    } else if percent > 0.0 && percent < 0.1 {
        "> 0 %".into()
    } else {
        format!("{percent:.0} %")
    }
}

/// The head of a table of rows.
pub fn print_head(title: &str, floor: &str) {
    println!("\n### {title}\n");
    println!(
        "| workload | threads | | ns per decision and thread | million per second | min – max | times governor \
         | times {floor} | admitted |"
    );
    println!("|---|--:|---|--:|--:|--:|--:|--:|--:|");
}

/// Gives every limiter a turn in every round, prints a row for each, and returns the rows.
///
/// Each round begins with another limiter. Ratios are medians of the ratios within a round.
pub fn compare(
    effort: &Effort,
    workload: &str,
    threads: usize,
    floor: &str,
    entrants: &[Entrant],
    turn: impl Fn(usize) -> Turn,
) -> Vec<Row> {
    let mut turns = vec![Vec::with_capacity(effort.rounds); entrants.len()];
    for round in 0..effort.rounds {
        let first = round * entrants.len() / effort.rounds;
        for index in (first..entrants.len()).chain(0..first) {
            turns[index].push(turn(index));
        }
    }
    let times = |index: usize, other: &str| {
        let other = entrants.iter().position(|entrant| entrant.name == other)?;
        let ratios = turns[index].iter().zip(&turns[other]);
        Some(median(ratios.map(|(this, other)| this.rate / other.rate)))
    };
    let row = |(index, entrant): (usize, &Entrant)| {
        let rates = sorted(turns[index].iter().map(|turn| turn.rate));
        let decisions: u64 = turns[index].iter().map(|turn| turn.decisions).sum();
        let admitted: u64 = turns[index].iter().map(|turn| turn.admitted).sum();
        let share = admitted as f64 / decisions as f64;
        Row {
            workload: workload.into(),
            threads,
            name: entrant.name,
            side: entrant.side,
            median: middle(&rates),
            least: rates[0],
            most: rates[rates.len() - 1],
            times_governor: times(index, GOVERNOR),
            times_floor: times(index, floor),
            share: if entrant.side == Side::Floor {
                f64::NAN
            } else {
                share
            },
            rates: turns[index].iter().map(|turn| turn.rate).collect(),
        }
    };
    let rows: Vec<Row> = entrants.iter().enumerate().map(row).collect();
    rows.iter().for_each(Row::print);
    rows
}

/// Adds up the decisions of all threads per second.
pub fn together(done: &[Done]) -> Turn {
    Turn {
        rate: (done.iter())
            .map(|done| done.decisions as f64 / done.time.as_secs_f64() / 1e6)
            .sum(),
        decisions: done.iter().map(|done| done.decisions).sum(),
        admitted: done.iter().map(|done| done.admitted).sum(),
    }
}

/// A stopwatch of one thread. A thread that runs alone is measured by its processor time, so that other programs on the
/// core do not count. Threads that run together may wait for each other, so they are measured by elapsed time.
pub enum Watch {
    Alone(Timespec),
    Together(Instant),
}

impl Watch {
    /// Starts a stopwatch in a thread of [`on_threads`].
    pub fn start() -> Self {
        if ALONE.get() {
            Self::Alone(clock_gettime(ClockId::ThreadCPUTime))
        } else {
            Self::Together(Instant::now())
        }
    }

    pub fn elapsed(&self) -> Duration {
        match self {
            Self::Together(start) => start.elapsed(),
            Self::Alone(start) => {
                let time = clock_gettime(ClockId::ThreadCPUTime) - *start;
                Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
            }
        }
    }
}

/// Repeats a batch for at least the time `least`. Each batch returns its decisions and its admissions. Batches that warm up
/// do not count.
pub fn repeat(least: Duration, mut batch: impl FnMut() -> (u64, u64)) -> Done {
    let start = Instant::now();
    while start.elapsed() < least / 20 {
        batch();
    }
    let (mut decisions, mut admitted) = (0, 0);
    let start = Watch::start();
    loop {
        let (more, let_in) = batch();
        decisions += more;
        admitted += let_in;
        let time = start.elapsed();
        if time >= least {
            return Done {
                decisions,
                admitted,
                time,
            };
        }
    }
}

/// The cores of the machine.
pub fn cores() -> Vec<CoreId> {
    core_affinity::get_core_ids().expect("the system lists its cores")
}

/// Returns 1, 2, 4, … and the number of cores.
pub fn thread_counts() -> Vec<usize> {
    let cores = cores().len();
    let doubled = std::iter::successors(Some(1), |threads| Some(threads * 2));
    doubled
        .take_while(|&threads| threads < cores)
        .chain([cores])
        .collect()
}

/// Returns 1 and the number of cores.
pub fn one_and_all() -> Vec<usize> {
    let mut counts = vec![1, cores().len()];
    counts.dedup();
    counts
}

/// Runs threads concurrently, each pinned to another core.
pub fn on_threads<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(threads);
    let (barrier, work) = (&barrier, &work);
    thread::scope(|scope| {
        let handles: Vec<_> = (cores().into_iter().take(threads).enumerate())
            .map(|(thread, core)| {
                scope.spawn(move || {
                    assert!(core_affinity::set_for_current(core));
                    WORKER.set(thread);
                    ALONE.set(threads == 1);
                    barrier.wait();
                    work(thread)
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"))
            .collect()
    })
}

/// Prints notes about limiters that a table leaves out or uses in another way.
pub fn print_notes(head: &str, notes: &[(&str, &str)]) {
    println!("\n{head}\n");
    for (who, why) in notes {
        println!("- {who}: {why}.");
    }
}

/// Returns the middle value.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    middle(&sorted(values))
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn middle(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}
