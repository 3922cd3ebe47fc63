//! The most that is admitted in any true window, by an exact log of the calls.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::contestant::{Contestant, LIMIT, Room};
use crate::floors;
use crate::measure::{Effort, cores, on_threads};
use crate::plot::{self, Bar};
use crate::rivals;

/// The window of the limit: every limiter is configured for [`LIMIT`] in it.
const WINDOW: Duration = Duration::from_secs(1);

/// The window of the log. It is shorter than [`WINDOW`] by more than the error of a calibrated counter in a second.
const JUDGED: Duration = Duration::from_micros(999_900);

/// A pattern of calls.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pattern {
    /// Constant calls, for six and a half windows.
    Hammer,
    /// One call, then silence for this part of a window, and then constant calls for two and a half windows.
    Silence(f64),
    /// Calls at twice the limit, for three windows.
    Paced,
}

const PATTERNS: [(Pattern, &str); 4] = [
    (Pattern::Hammer, "hammered"),
    (Pattern::Silence(0.5), "silent for half a window, then hammered"),
    (Pattern::Silence(0.95), "silent for 0.95, then hammered"),
    (Pattern::Paced, "paced at twice the limit"),
];

/// The times before and after an admitted call, in nanoseconds from the beginning.
type Call = (u64, u64);

/// The results of one limiter.
#[derive(Clone, Default)]
struct Seen {
    /// The most admitted in a window, by pattern.
    worst: [usize; PATTERNS.len()],
    /// The average of six windows with constant calls, after the first half of a window.
    sustained: f64,
}

pub fn run(effort: &Effort, plots: &Path) {
    let threads = cores().len();
    let mut seen: Vec<Seen> = Vec::new();
    for _ in 0..effort.rounds.min(2) {
        for (index, (pattern, _)) in PATTERNS.iter().enumerate() {
            let all = contestants();
            seen.resize(all.len(), Seen::default());
            let logs = hammer(*pattern, &all, threads);
            for (seen, log) in seen.iter_mut().zip(logs) {
                seen.worst[index] = seen.worst[index].max(worst(&log));
                if *pattern == Pattern::Hammer {
                    let counted = nanos(WINDOW / 2)..nanos(WINDOW * 13 / 2);
                    seen.sustained = log.iter().filter(|call| counted.contains(&call.0)).count() as f64 / 6.0;
                }
            }
        }
    }
    print(threads, &seen, plots);
}

fn contestants() -> Vec<Contestant> {
    let mut all = rivals::direct(Room::Limited);
    let mut floors = floors::direct(Room::Limited);
    let log = floors.pop().expect("the log is last");
    all.push(log.allows(LIMIT, "exact log"));
    all
}

/// Calls every limiter in turn, from all threads. Returns the admitted calls by contestant.
fn hammer(pattern: Pattern, all: &[Contestant], threads: usize) -> Vec<Vec<Call>> {
    // The calls begin when all threads have started.
    let begin = Instant::now() + Duration::from_millis(20);
    let logs = on_threads(threads, |thread| {
        let mut caller = Caller::new(all, begin);
        caller.follow(pattern, thread, threads);
        caller.logs
    });
    let mut merged = vec![Vec::new(); all.len()];
    for log in logs {
        for (merged, calls) in merged.iter_mut().zip(log) {
            merged.extend(calls);
        }
    }
    merged
}

struct Caller<'a> {
    all: &'a [Contestant],
    begin: Instant,
    logs: Vec<Vec<Call>>,
}

impl<'a> Caller<'a> {
    fn new(all: &'a [Contestant], begin: Instant) -> Self {
        let logs = all
            .iter()
            .map(|_| Vec::with_capacity(16 * LIMIT as usize))
            .collect();
        Self { all, begin, logs }
    }

    fn follow(&mut self, pattern: Pattern, thread: usize, threads: usize) {
        self.wait_until(Duration::ZERO);
        match pattern {
            Pattern::Hammer => self.call_until(WINDOW * 13 / 2),
            Pattern::Silence(part) => {
                if thread == 0 {
                    self.call();
                }
                let silence = WINDOW.mul_f64(part);
                self.wait_until(silence);
                self.call_until(silence + WINDOW * 5 / 2);
            }
            Pattern::Paced => {
                let calls = 2 * LIMIT as u32 * 3;
                for call in (thread as u32..calls).step_by(threads) {
                    self.wait_until(WINDOW * call / (2 * LIMIT as u32));
                    self.call();
                }
            }
        }
    }

    /// Returns the time since the beginning.
    fn now(&self) -> Duration {
        Instant::now().saturating_duration_since(self.begin)
    }

    fn wait_until(&self, then: Duration) {
        while Instant::now() < self.begin + then {
            std::hint::spin_loop();
        }
    }

    fn call_until(&mut self, then: Duration) {
        while self.now() < then {
            self.call();
        }
    }

    /// Calls each limiter once.
    fn call(&mut self) {
        for index in 0..self.all.len() {
            let before = nanos(self.now());
            if self.all[index].one() {
                let after = nanos(self.now());
                self.logs[index].push((before, after));
            }
        }
    }
}

/// Returns the most calls that began and ended within one window, which is a lower bound of the most in any window.
fn worst(log: &[Call]) -> usize {
    let mut begun: Vec<u64> = log.iter().map(|call| call.0).collect();
    let mut ended: Vec<u64> = log.iter().map(|call| call.1).collect();
    begun.sort_unstable();
    ended.sort_unstable();
    let within = |(earlier, from): (usize, &u64)| {
        let until = from + nanos(JUDGED);
        ended.partition_point(|&end| end < until).saturating_sub(earlier)
    };
    begun.iter().enumerate().map(within).max().unwrap_or_default()
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

fn print(threads: usize, seen: &[Seen], plots: &Path) {
    println!("\n### The worst window, limit of {LIMIT} a second, {threads} threads\n");
    let heads: Vec<&str> = PATTERNS.iter().map(|(_, name)| *name).collect();
    println!(
        "| | design | at most | {} | a window, on the average of six hammered |",
        heads.join(" | ")
    );
    println!("|---|---|--:|--:|--:|--:|--:|--:|");
    let mut bars = Vec::new();
    for (contestant, seen) in contestants().iter().zip(seen) {
        let bound = contestant.bound;
        let cells: Vec<String> = (seen.worst.iter())
            .map(|&worst| {
                if worst as u64 > bound {
                    format!("**{worst}**")
                } else {
                    worst.to_string()
                }
            })
            .collect();
        println!(
            "| {} | {} | {bound} | {} | {:.0} |",
            contestant.name,
            contestant.design,
            cells.join(" | "),
            seen.sustained
        );
        bars.push(Bar {
            name: contestant.name,
            side: contestant.side,
            value: seen.worst.into_iter().max().unwrap_or_default() as f64,
            mark: Some(bound as f64),
        });
    }
    println!("\n\"at most\" is the bound of the design; **bold** is above that.");
    let title = format!("Worst window of four patterns: limit of {LIMIT} a second; | bound of the design");
    plot::bars(&plots.join("windows.svg"), &[(title, bars)]);
}
