//! Rounds in which every case has its turn, and what they say.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use core_affinity::CoreId;

use crate::keys::Source;
use crate::rivals::Check;

/// Rounds, in each of which every case runs once.
const ROUNDS: usize = 7;

/// The shortest time that counts as a measurement.
pub const LEAST: Duration = Duration::from_millis(300);

/// Decisions between two looks at the time.
const BATCH: u64 = 4096;

/// What one thread has done.
pub struct Done {
    pub decisions: u64,
    pub time: Duration,
}

/// Millions of decisions per second of so many threads.
pub type Work<'a> = Box<dyn Fn(usize) -> f64 + 'a>;

pub struct Case<'a> {
    name: String,
    /// Whose throughput the figures are divided by.
    rival: bool,
    work: Work<'a>,
}

impl<'a> Case<'a> {
    pub fn new(name: &str, work: Work<'a>) -> Self {
        Self {
            name: name.into(),
            rival: false,
            work,
        }
    }

    /// The one that the others are compared with.
    pub fn rival(name: &str, work: Work<'a>) -> Self {
        Self {
            rival: true,
            ..Self::new(name, work)
        }
    }
}

/// One decision after the other for [`LEAST`], each of which must be as `expected`: a figure about admissions
/// that were denials would be a figure about something else.
pub fn decide<'a, L, S>(limiter: &'a L, source: impl Fn(usize) -> S + Sync + 'a, expected: bool) -> Work<'a>
where
    L: Check<S::Key>,
    S: Source,
{
    each_for_itself(move |thread| {
        let mut source = source(thread);
        repeat(|| {
            let as_expected = (0..BATCH)
                .map(|_| u64::from(black_box(limiter).check(source.next()) == expected))
                .sum::<u64>();
            assert_eq!(as_expected, BATCH);
            BATCH
        })
    })
}

/// The sum of what the threads do per second, each of which is told its number.
pub fn each_for_itself<'a>(work: impl Fn(usize) -> Done + Sync + 'a) -> Work<'a> {
    Box::new(move |threads| {
        let rate = |done: Done| done.decisions as f64 / done.time.as_secs_f64() / 1e6;
        on_threads(threads, &work).into_iter().map(rate).sum()
    })
}

/// Batches for [`LEAST`]; each says how many decisions it was.
pub fn repeat(mut batch: impl FnMut() -> u64) -> Done {
    let mut decisions = 0;
    let start = Instant::now();
    loop {
        decisions += batch();
        let time = start.elapsed();
        if time >= LEAST {
            return Done { decisions, time };
        }
    }
}

/// The cores that there are.
pub fn cores() -> Vec<CoreId> {
    core_affinity::get_core_ids().expect("the system tells of its cores")
}

/// Runs as many threads at once, each on a core of its own.
pub fn on_threads(threads: usize, work: impl Fn(usize) -> Done + Sync) -> Vec<Done> {
    let barrier = Barrier::new(threads);
    let (barrier, work) = (&barrier, &work);
    thread::scope(|scope| {
        let threads: Vec<_> = (cores().into_iter().take(threads).enumerate())
            .map(|(thread, core)| {
                scope.spawn(move || {
                    assert!(core_affinity::set_for_current(core));
                    barrier.wait();
                    work(thread)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no thread panics"))
            .collect()
    })
}

/// Runs the cases in alternating rounds, and prints a row for each.
pub fn compare(workload: &str, threads: usize, cases: &[Case<'_>]) {
    let mut rates = vec![Vec::with_capacity(ROUNDS); cases.len()];
    for _ in 0..ROUNDS {
        for (case, rates) in cases.iter().zip(&mut rates) {
            rates.push((case.work)(threads));
        }
    }
    let rival = cases.iter().position(|case| case.rival);
    for (index, case) in cases.iter().enumerate() {
        let ratio = rival.map_or(String::new(), |rival| {
            let ratios = rates[index]
                .iter()
                .zip(&rates[rival])
                .map(|(this, rival)| this / rival);
            format!("{:.2}", sorted(ratios)[ROUNDS / 2])
        });
        let rates = sorted(rates[index].iter().copied());
        let (median, least, most) = (rates[ROUNDS / 2], rates[0], rates[ROUNDS - 1]);
        println!(
            "| {workload} | {threads} | {} | {:.1} | {median:.2} | {least:.2} – {most:.2} | {ratio} |",
            case.name,
            1e3 * threads as f64 / median,
        );
    }
}

/// The head of a table of [`compare`].
pub fn print_head(title: &str) {
    println!("\n### {title}\n");
    println!(
        "| workload | threads | | ns per decision and thread | million per second | min – max | times governor |"
    );
    println!("|---|--:|---|--:|--:|--:|--:|");
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
