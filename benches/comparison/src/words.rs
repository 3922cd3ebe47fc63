//! The least work of any table: one access to a word in an array as large as the table of this crate.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::RandomState;
use quanta::Clock;
use ringgate::KeyedRateLimiter;

use crate::contestant::{Key, Keyed, Room, Side};
use crate::rivals::ours;

/// The floor that admissions of keys are compared with.
pub const EXCHANGE: &str = "floor: compare-exchange, as many bytes";

/// The floor that denials of keys are compared with.
pub const LOAD: &str = "floor: load, as many bytes";

/// Returns the floors with the hash alone, and with a reading of the clock, too.
pub fn keyed<K: Key>(room: Room) -> Vec<Keyed<K>> {
    let denied = room == Room::None;
    let (bare, timed) = if denied {
        (LOAD, "floor: clock, load, as many bytes")
    } else {
        (EXCHANGE, "floor: clock, compare-exchange, as many bytes")
    };
    vec![floor(bare, denied, false), floor(timed, denied, true)]
}

fn floor<K: Key>(name: &'static str, denied: bool, timed: bool) -> Keyed<K> {
    Keyed::new(name, Side::Floor, move |keys| {
        let words = of(keys);
        let (hasher, clock) = (RandomState::new(), Clock::new());
        move |key: &K| {
            let word = place(black_box(&words), hasher.hash_one(key));
            let more = if timed { clock.raw() } else { 1 };
            if denied {
                word.load(Ordering::Relaxed).max(more) > 0
            } else {
                add(word, more)
            }
        }
    })
}

/// An array as large as a table of one word for each of `keys` keys.
pub fn of(keys: usize) -> Box<[AtomicU64]> {
    let table = KeyedRateLimiter::new(ours::gcra(Room::Plenty), keys as u64).expect("a table");
    (0..table.bytes() / 8).map(|_| AtomicU64::new(1)).collect()
}

/// Returns the word for a hash.
pub fn place(words: &[AtomicU64], hash: u64) -> &AtomicU64 {
    &words[((u128::from(hash) * words.len() as u128) >> 64) as usize]
}

/// Adds in a loop, like a limiter that must read before it writes.
pub fn add(word: &AtomicU64, more: u64) -> bool {
    let mut seen = word.load(Ordering::Relaxed);
    loop {
        let new = seen.wrapping_add(more);
        match word.compare_exchange(seen, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(newer) => seen = newer,
        }
    }
}
