//! Reports the keys that are denied most, in fixed memory.
//!
//! ```text
//! cargo run --release --package ringgate-examples --bin top_keys
//! ```
//!
//! A table stores only hashes of keys, so the example counts denials by key in a Space-Saving summary (Metwally, Agrawal
//! and El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005). Of n denials, every
//! key with more than n/SIZE of them is in the summary. A new key replaces the key with the lowest count, and starts from
//! that count. So a count may be too high by the replaced count; the column "at least" subtracts it.

use core::cmp::Reverse;
use core::error::Error;
use std::sync::{Mutex, PoisonError};

use ringgate::{CounterRing, KeyedRateLimiter, Quota};

/// Keys in the summary.
const SIZE: usize = 16;

struct Count {
    key: String,
    denials: u64,
    /// The part of `denials` that may belong to keys that this key replaced.
    excess: u64,
}

/// The summary. Only denied requests take its lock.
#[derive(Default)]
struct TopKeys(Mutex<Vec<Count>>);

impl TopKeys {
    fn add(&self, key: &str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.iter_mut().find(|count| count.key == key) {
            count.denials += 1;
            return;
        }
        let excess = if counts.len() < SIZE {
            0
        } else {
            let least = (0..SIZE).min_by_key(|&index| counts[index].denials);
            least.map_or(0, |index| counts.swap_remove(index).denials)
        };
        counts.push(Count {
            key: key.to_owned(),
            denials: excess + 1,
            excess,
        });
    }

    fn report(&self) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.sort_by_key(|count| Reverse(count.denials));
        println!("{:<10} {:>8} {:>9}", "key", "denials", "at least");
        for count in counts.iter().take(5) {
            println!(
                "{:<10} {:>8} {:>9}",
                count.key,
                count.denials,
                count.denials - count.excess
            );
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let limiter = KeyedRateLimiter::new(CounterRing::new(Quota::per_minute(5)?)?, 10_000)?;
    let top = TopKeys::default();
    // Client k sends 2,000/k requests, so few clients are far above the limit, and most are below it.
    for client in 1..=1_000_u32 {
        let key = format!("client-{client}");
        for _ in 0..2_000 / client {
            if limiter.check(&key).is_err() {
                top.add(&key);
            }
        }
    }
    top.report();
    Ok(())
}
