//! The memory of a key.

use std::path::Path;
use std::process::Command;

use crate::contestant::{Key, Keyed, Side};
use crate::keyed;
use crate::measure::print_notes;
use crate::plot::{self, Bar};
use crate::rivals::{self, ours};

/// The argument by which this program measures one limiter in a process of its own.
pub const ONE: &str = "memory-of";

const KEYS: u64 = 1_000_000;

/// Prints a row for every limiter.
pub fn run(plots: &Path) {
    println!("\n### Memory, 1,000,000 keys\n");
    println!("| keys | | resident, bytes per key |");
    println!("|---|---|--:|");
    let mut panels = Vec::new();
    for (kind, names) in [(u64::NAME, names::<u64>()), (String::NAME, names::<String>())] {
        let mut bars = Vec::new();
        for (index, (name, side)) in names.into_iter().enumerate() {
            let bytes = measure(kind, index);
            println!("| {kind} | {name} | {bytes:.1} |");
            bars.push(Bar {
                name,
                side,
                value: bytes,
                mark: None,
            });
        }
        panels.push((format!("Resident bytes per key, 1,000,000 {kind} keys"), bars));
    }
    print_notes("Not in this table:", rivals::ABSENT_KEYED);
    plot::bars(&plots.join("memory.svg"), &panels);
}

fn contestants<K: Key>() -> Vec<Keyed<K>> {
    let mut all = keyed::everybody();
    all.push(ours::grouped());
    all
}

/// Returns the resident bytes per key of the limiter with this name.
pub fn bytes_per_key<K: Key>(name: &str) -> f64 {
    let mut names = names::<K>().into_iter();
    let index = names.position(|(known, _)| known == name);
    measure(K::NAME, index.expect("a limiter of the section `memory`"))
}

fn names<K: Key>() -> Vec<(&'static str, Side)> {
    contestants::<K>()
        .iter()
        .map(|contestant| (contestant.name, contestant.side))
        .collect()
}

fn measure(kind: &str, index: usize) -> f64 {
    let this = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new(this);
    let output = command.args([ONE, kind, &index.to_string()]).output();
    let text = String::from_utf8(output.expect("this program runs").stdout).expect("UTF-8");
    text.trim().parse().expect("a number")
}

/// Prints the bytes per key of one limiter.
pub fn print_one(kind: &str, index: &str) {
    let index = index.parse().expect("a number");
    let bytes = if kind == u64::NAME {
        of::<u64>(index)
    } else {
        of::<String>(index)
    };
    println!("{bytes}");
}

fn of<K: Key>(index: usize) -> f64 {
    let contestant = contestants::<K>().swap_remove(index);
    // Clocks and other statics are allocated before the first reading.
    contestant.make(16).batch(&[K::number(0)]);
    let before = resident();
    let limiter = contestant.make(KEYS as usize);
    for number in 0..KEYS {
        limiter.batch(&[K::number(number)]);
    }
    (resident() - before) as f64 / KEYS as f64
}

/// Bytes of this process that are in memory.
fn resident() -> u64 {
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux reports the memory of a process");
    let pages = statm.split(' ').nth(1).expect("the second number");
    pages.parse::<u64>().expect("a number") * PAGE
}
