//! What a key takes of memory.

use std::hash::Hash;
use std::process::Command;

use ringgate::{ConfigError, Reclaim};

use crate::keys::Addresses;
use crate::rivals::{Check, Governor, Ours, governor, governor_plenty, keyed};

const KEYS: u64 = 1_000_000;

/// What is measured, each in a process of its own.
const CASES: [(&str, &str); 8] = [
    ("gcra", "ringgate, Gcra (one word), any key"),
    ("packed", "ringgate, CounterRing packed (one word), any key"),
    ("wide", "ringgate, CounterRing wide (five cells), any key"),
    ("gcra-strings", "ringgate, Gcra (one word), address strings"),
    ("governor-u64", "governor, u64"),
    ("governor-u64-sized", "governor, u64, map made for all keys"),
    ("governor-strings", "governor, address strings"),
    (
        "governor-strings-sized",
        "governor, address strings, map made for all keys",
    ),
];

/// Prints a row for each case.
pub fn run() {
    println!("\n### Memory, 1,000,000 keys asked for and entered\n");
    println!(
        "| | resident, bytes per key | bytes() per key asked for | bytes() per entry | keys with an entry |"
    );
    println!("|---|--:|--:|--:|--:|");
    let this = std::env::current_exe().expect("this program has a path");
    for (case, name) in CASES {
        let output = Command::new(&this).args(["memory-of", case]).output();
        let row = String::from_utf8(output.expect("this program runs").stdout).expect("UTF-8");
        println!("| {name} | {} |", row.trim());
    }
}

/// The rest of one row.
pub fn print(case: &str) -> Result<(), ConfigError> {
    let ours = Ours::plenty()?;
    let sized = if case.ends_with("-sized") {
        KEYS as usize
    } else {
        0
    };
    match case {
        "gcra" => print_ours(ours.gcra, |key| key),
        "packed" => print_ours(ours.packed, |key| key),
        "wide" => print_ours(ours.wide, |key| key),
        "gcra-strings" => print_ours(ours.gcra, Addresses::name),
        case if case.starts_with("governor-u64") => print_governor(sized, |key| key),
        _ => print_governor(sized, Addresses::name),
    }
    Ok(())
}

fn print_ours<A: Reclaim, Q: Hash>(algorithm: A, key: impl Fn(u64) -> Q) {
    let before = resident();
    let limiter = keyed(algorithm, KEYS);
    for number in 0..KEYS {
        let _ = limiter.check(&key(number));
    }
    let (table, entries) = (limiter.bytes() as f64, limiter.capacity() as f64);
    println!(
        "{:.2} | {:.2} | {:.2} | {}",
        (resident() - before) as f64 / KEYS as f64,
        table / KEYS as f64,
        table / entries,
        limiter.len(),
    );
}

fn print_governor<Q: Hash + Eq + Clone + Send + Sync>(sized: usize, key: impl Fn(u64) -> Q) {
    let before = resident();
    let limiter: Governor<Q> = governor(governor_plenty(), sized);
    assert!((0..KEYS).all(|number| Check::check(&limiter, &key(number))));
    let more = (resident() - before) as f64;
    println!("{:.2} | | | {}", more / KEYS as f64, limiter.len());
}

/// Bytes of this process that are in memory.
fn resident() -> u64 {
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux tells of a process's memory");
    let pages = statm.split(' ').nth(1).expect("the second number");
    pages.parse::<u64>().expect("a number") * PAGE
}
