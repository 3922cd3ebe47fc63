//! Measures cases side by side: as ratios to the first case of their group in the same round, and by criterion.

use core::fmt;
use core::time::Duration;
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use criterion::Criterion;

/// A function that repeats the work the given number of times, and returns the elapsed time.
pub type Work = Box<dyn FnMut(u64) -> Duration>;

/// One row of the table of ratios.
pub struct Case {
    /// The group of the case. The other cases of the group are compared with the first.
    pub group: &'static str,
    /// The name of the row.
    pub name: &'static str,
    /// The ratio that the case should stay within, if there is a target.
    pub target: Option<f64>,
    /// The work that is measured.
    pub work: Work,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.group, self.name)
    }
}

/// Measures all cases.
pub fn run(mut cases: Vec<Case>) {
    let has = |flag: &str| std::env::args().any(|arg| arg == flag);

    if !has("--list") {
        // `cargo bench` passes `--bench`. Without it, or with `--test`, one round shows that the cases run.
        let rounds = if has("--bench") && !has("--test") { 301 } else { 1 };
        print_ratios(&mut cases, rounds);
    }
    let mut criterion = Criterion::default().configure_from_args();
    for case in &mut cases {
        criterion
            .benchmark_group(case.group)
            .bench_function(case.name, |bencher| bencher.iter_custom(&mut case.work));
    }
    criterion.final_summary();
}

/// Measures the turns, and asserts that each returns true. Otherwise a denial could be measured as an admission.
pub fn counted(mut turn: impl FnMut() -> bool + 'static) -> Work {
    Box::new(move |turns| {
        let start = Instant::now();
        let count = count(turns, &mut turn);
        let time = start.elapsed();
        assert_eq!(turns, count);
        time
    })
}

/// Calls `turn` the given number of times, and returns how often it was true.
#[inline]
pub fn count(turns: u64, mut turn: impl FnMut() -> bool) -> u64 {
    (0..turns).map(|_| u64::from(turn())).sum()
}

/// Runs all cases in alternating rounds. Prints the median time of each, and the median ratio to the first of its group.
fn print_ratios(cases: &mut [Case], rounds: usize) {
    const TURNS: u64 = 10_000;
    let mut nanos = vec![Vec::with_capacity(rounds); cases.len()];
    for _ in 0..rounds {
        for (case, nanos) in cases.iter_mut().zip(&mut nanos) {
            nanos.push((case.work)(TURNS).as_secs_f64() * 1e9 / TURNS as f64);
        }
    }
    println!("one thread, {rounds} alternating rounds of {TURNS} decisions each; medians");
    println!(
        "{:<23} {:<27} {:>11} {:>7} {:>7}",
        "", "", "ns/decision", "ratio", "target"
    );
    let mut first = 0;
    for (index, case) in cases.iter().enumerate() {
        if case.group != cases[first].group {
            first = index;
        }
        let ratios = nanos[index]
            .iter()
            .zip(&nanos[first])
            .map(|(this, least)| this / least);
        let target = case.target.map_or(String::new(), |target| format!("{target:.1}"));
        println!(
            "{:<23} {:<27} {:>11.1} {:>7.2} {target:>7}",
            if index == first { case.group } else { "" },
            case.name,
            median(nanos[index].clone()),
            median(ratios.collect()),
        );
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// A process that ends with the bench.
#[derive(Debug)]
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail if the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a `redis-server` that listens on a socket in the folder, and on no port. Returns the server and its URL.
pub fn start_redis(folder: &Path) -> io::Result<(Process, String)> {
    let socket = folder.join("socket");
    let server = Command::new("redis-server")
        .args(["--save", "", "--port", "0", "--unixsocket"])
        .arg(&socket)
        .stdout(Stdio::null())
        .spawn()?;
    Ok((Process(server), format!("unix://{}", socket.display())))
}
