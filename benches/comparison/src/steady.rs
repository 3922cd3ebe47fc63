//! A server that has run for long: every entry is some key's, nearly all of them are idle, and each new key needs one.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::time::Duration;

use ringgate::algorithm::Reclaim;
use ringgate::{CounterRing, Gcra, KeyedRateLimiter, Quota};

use crate::contestant::Side;
use crate::measure::{Effort, Entrant, compare, on_threads, print_head, repeat, together};
use crate::rivals::GOVERNOR;

/// Keys that a table is made for.
const KEYS: u64 = 100_000;

/// Entries of ours, and keys at which governor drops those that are idle.
const ENTRIES: usize = 200_000;

/// Decisions between two looks at the time.
const BATCH: u64 = 1024;

/// Decides about the next new key.
type Decide = Box<dyn Fn() -> bool + Send>;

pub fn run(effort: &Effort) {
    print_head("Only new u64 keys, and every entry is of an idle one", "");
    let idle_after = Duration::from_micros(1);
    let quota = Quota::new(1_000, idle_after).expect("a quota");
    let contestants: [(&'static str, Side, &(dyn Fn() -> Decide + Sync)); 3] = [
        ("ringgate, GCRA", Side::Ours, &|| {
            ours(Gcra::new(quota).expect("a bucket"))
        }),
        ("ringgate, counter in one word", Side::Ours, &|| {
            ours(CounterRing::fixed_window(quota).expect("a ring"))
        }),
        (GOVERNOR, Side::Rival, &governor),
    ];
    let entrants = contestants.map(|(name, side, _)| Entrant { name, side });
    compare(effort, "u64, steady", 1, "", &entrants, |index| {
        let done = on_threads(1, |_| {
            let decide = contestants[index].2();
            for _ in 0..4 * ENTRIES {
                decide();
            }
            repeat(effort.least, || {
                (BATCH, (0..BATCH).map(|_| u64::from(decide())).sum())
            })
        });
        together(&done)
    });
}

fn ours<A: Reclaim + Send + 'static>(algorithm: A) -> Decide {
    let limiter = KeyedRateLimiter::new(algorithm, KEYS).expect("a table");
    let next = Cell::new(0_u64);
    Box::new(move || limiter.check(&next.replace(next.get() + 1)).is_ok())
}

/// Governor keeps every key until it is told to drop those that are as fresh ones.
fn governor() -> Decide {
    let burst = NonZeroU32::new(1_000).expect("not 0");
    let quota = governor::Quota::with_period(Duration::from_nanos(1))
        .expect("not 0")
        .allow_burst(burst);
    let limiter = governor::RateLimiter::keyed(quota);
    let next = Cell::new(0_u64);
    Box::new(move || {
        let key = next.replace(next.get() + 1);
        if key % BATCH == 0 && limiter.len() >= ENTRIES {
            limiter.retain_recent();
        }
        limiter.check_key(&key).is_ok()
    })
}
