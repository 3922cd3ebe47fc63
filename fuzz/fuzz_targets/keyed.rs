//! Any sequence of calls on a small table of keys, with any overflow policy and any sequence of times.
//!
//! The decisions are compared with those of separate words for each key, and with the exact log.

#![no_main]

extern crate alloc;

#[expect(dead_code, reason = "other tests use the rest")]
#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/keyed/reference.rs"]
mod reference;

use arbitrary::Arbitrary;
use libfuzzer_sys::{Corpus, fuzz_target};
use ringgate::keyed::{Keys, OnFull};
use ringgate::{Algorithm, KeyedRateLimiter, ManualClock, Nanos};
use ringgate_fuzz::{HORIZON, Setting, Step};

use common::Subject;
use reference::World;

#[derive(Arbitrary, Debug)]
enum Op {
    Check { step: Step, key: u8, permits: u8 },
    CheckHuge { step: Step, key: u8, permits: u64 },
    Refund { which: u8 },
    Reset { step: Step, key: u8 },
    Peek { step: Step, key: u8, permits: u8 },
    Clear,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Full {
    Share,
    Deny,
    Admit,
    Forget,
}

impl From<Full> for OnFull {
    fn from(full: Full) -> Self {
        match full {
            Full::Share => Self::Share,
            Full::Deny => Self::Deny,
            Full::Admit => Self::Admit,
            Full::Forget => Self::Forget,
        }
    }
}

#[derive(Arbitrary, Debug)]
struct Input {
    setting: Setting,
    full: Full,
    capacity: u8,
    keys: u8,
    /// The factor by which a key's number is multiplied to make its hash.
    spread: u64,
    ops: Vec<Op>,
}

/// A hasher that multiplies by an odd factor, so different numbers have different hashes. No key has the number 0.
#[derive(Clone, Copy)]
struct Spread(u64);

impl Keys<u64> for Spread {
    fn hash(&self, key: &u64) -> u64 {
        key.wrapping_mul(self.0)
    }
}

fuzz_target!(|input: Input| -> Corpus {
    let Ok(algorithm) = input.setting.build() else {
        return Corpus::Reject;
    };
    // Large states take long to make, and run the same code as small ones.
    if algorithm.words() > 70 {
        return Corpus::Reject;
    }
    let on_full = OnFull::from(input.full);
    let hasher = Spread(input.spread | 1);
    let keys = 1 + u64::from(input.keys % 60);
    // A table replaces the two largest hashes by others. Two keys with one hash would share their entry.
    if (1..=keys).any(|key| hasher.hash(&key) >= u64::MAX - 1) {
        return Corpus::Reject;
    }
    let limiter = KeyedRateLimiter::builder(algorithm.clone())
        .capacity(1 + u64::from(input.capacity % 20))
        .on_full(on_full)
        .build_with(ManualClock::new(), hasher)
        .expect("a small table");
    // In the smallest table, of three buckets, each key may have any entry.
    let common = (limiter.capacity() == 12).then_some(12);
    let bounds = input.setting.bounds(&algorithm).into_iter();
    let subject = Subject {
        name: "fuzzed".into(),
        algorithm: algorithm.clone(),
        bounds: bounds.map(|(bound, window)| (window, bound)).collect(),
    };
    let mut world = World::new(&subject, limiter, on_full, hasher, common);
    let cell = input.setting.window() / u32::try_from(input.setting.cells()).expect("few cells");
    let cell = cell.max(std::time::Duration::from_nanos(1));
    let mut readings = Vec::new();
    for op in input.ops.into_iter().take(200) {
        let mut reading = |step: Step| {
            let now = step.from(&readings, algorithm.window(), cell);
            // At the end of the range of times, no key gets an entry.
            let now = now.min(Nanos::new(HORIZON));
            readings.push(now);
            now
        };
        let key = |key: u8| 1 + u64::from(key) % keys;
        match op {
            Op::Check {
                step,
                key: of,
                permits,
            } => {
                let permits = match permits {
                    permits @ ..128 => 1 + u64::from(permits % 2),
                    permits @ 128.. => u64::from(permits - 128) % (algorithm.max_request() + 2),
                };
                world.check(key(of), reading(step), permits);
            }
            Op::CheckHuge {
                step,
                key: of,
                permits,
            } => world.check(key(of), reading(step), permits),
            Op::Refund { which } => world.refund(usize::from(which % 16)),
            Op::Reset { step, key: of } => world.reset(key(of), reading(step)),
            Op::Peek {
                step,
                key: of,
                permits,
            } => {
                let permits = u64::from(permits) % (algorithm.max_request() + 2);
                world.peek(key(of), reading(step), permits);
            }
            Op::Clear => world.clear(),
        }
    }
    // Receipts from before a `clear` are refunded, too.
    while world.refund_oldest() {}
    world.finish();
    Corpus::Keep
});
