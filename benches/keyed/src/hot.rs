//! A few keys that all threads ask for.

use std::sync::Arc;

use ringgate::{ConfigError, KeyedBuilder, KeyedRateLimiter, Keys, QuantaClock, Reclaim};

use crate::keys::Few;
use crate::measure::{Case, compare, cores, decide, print_head};
use crate::rivals::{Beside, Floor, Governor, Ours, Touch, governor, governor_plenty};

/// Keys that are their own hash, so that their places in the table are known.
struct Placed;

impl Keys<u64> for Placed {
    fn hash(&self, key: &u64) -> u64 {
        *key
    }
}

/// What a table multiplies a hash with, before the upper bits say where the key's first line is.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

const KEYS: u64 = 100_000;

pub fn run() -> Result<(), ConfigError> {
    print_head("A few keys that all threads ask for, admitted");
    // Four entries of one word are a line.
    let lines = (KEYS + KEYS / 4) / 4;
    let near: Arc<[u64]> = (0..8).map(|line| place(lines / 2 + line, lines)).collect();
    let far: Arc<[u64]> = (0..8).map(|part| place(part * lines / 8, lines)).collect();
    let one: Arc<[u64]> = (0..4).map(|key| place(0, 1) + key).collect();
    workload("8 keys, neighbours by hash", &near, KEYS)?;
    workload("8 keys far apart", &far, KEYS)?;
    workload("4 keys of one set", &one, 3)
}

fn workload(name: &str, keys: &Arc<[u64]>, capacity: u64) -> Result<(), ConfigError> {
    let ours = Ours::plenty()?;
    let governor: Governor<u64> = governor(governor_plenty(), 0);
    let gcra = placed(ours.gcra, capacity)?;
    let packed = placed(ours.packed, capacity)?;
    let wide = placed(ours.wide, capacity)?;
    let floor = Floor::new(gcra.bytes(), Beside::Nothing, Touch::Exchange);
    for threads in [1, cores().len()] {
        let cases = [
            Case::rival("governor", decide(&governor, Few::of(keys), true)),
            Case::new("ringgate, Gcra", decide(&gcra, Few::of(keys), true)),
            Case::new(
                "ringgate, CounterRing packed",
                decide(&packed, Few::of(keys), true),
            ),
            Case::new("ringgate, CounterRing wide", decide(&wide, Few::of(keys), true)),
            Case::new("floor: compare-exchange", decide(&floor, Few::of(keys), true)),
        ];
        compare(name, threads, &cases);
    }
    Ok(())
}

fn placed<A: Reclaim>(
    algorithm: A,
    capacity: u64,
) -> Result<KeyedRateLimiter<A, QuantaClock, Placed>, ConfigError> {
    KeyedBuilder::new(algorithm)
        .capacity(capacity)
        .build_with(QuantaClock::new(), Placed)
}

/// The key whose first line is this one of so many.
fn place(line: u64, lines: u64) -> u64 {
    let upper = ((u128::from(line) << 64) / u128::from(lines)) as u64 + u64::MAX / lines / 2;
    // Newton: each step doubles the bits that are right, of which an odd number has three to begin with.
    let inverse = (0..5).fold(SPREAD, |inverse: u64, _| {
        inverse.wrapping_mul(2_u64.wrapping_sub(SPREAD.wrapping_mul(inverse)))
    });
    upper.wrapping_mul(inverse)
}
