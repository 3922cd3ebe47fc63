//! A flood of keys that each use up their limit, and the share of new keys that are denied afterwards.
//!
//! The scenario is the one that rate-net publishes for its capacity of 100,000 keys. Each limiter has as many bytes as rate-net
//! takes for that. After the flood, each of its keys asks once more: whatever is admitted then is above the limit.

use std::time::Duration;

use rate_net::{Eviction, RateLimiter};
use ringgate::algorithm::Reclaim;
use ringgate::{CounterRing, Gcra, KeyedRateLimiter, Quota};

/// The capacity of rate-net, in keys.
const CAPACITY: u64 = 100_000;

/// Bytes of rate-net by key of its capacity, its tables of evicted keys included, as its documentation states.
const BYTES: u64 = 202;

/// Requests of each key of the flood: all are admitted if nothing else is counted for the key.
const LIMIT: u32 = 10;

/// New keys after the flood.
const NEWCOMERS: u64 = 10_000;

/// So long that no permit comes back during a run.
const WINDOW: Duration = Duration::from_secs(24 * 3600);

/// The flood in multiples of rate-net's capacity.
const FLOODS: [u64; 7] = [3, 4, 6, 9, 10, 12, 16];

/// Decides about a key.
type Decide = Box<dyn Fn(u64) -> bool>;

pub fn run() {
    println!(
        "\n### A flood of keys that use up their limit, in {} MB\n",
        BYTES * CAPACITY / 1_000_000
    );
    println!("| | keys of the flood | newcomers denied | flood admitted above the limit |");
    println!("|---|--:|--:|--:|");
    let contestants: [(&str, fn() -> Decide); 4] = [
        ("ringgate, Gcra", || ours(Gcra::new(quota()).expect("a bucket"))),
        ("ringgate, CounterRing packed, 5 cells", || {
            ours(CounterRing::builder(quota()).cells(5).build().expect("a ring"))
        }),
        ("ringgate, CounterRing wide, 5 cells", || {
            let ring = CounterRing::builder(quota()).cells(5).unpacked();
            ours(ring.build().expect("a ring"))
        }),
        ("rate-net, token bucket", rate_net),
    ];
    for (name, make) in contestants {
        for times in FLOODS {
            let (denied, above) = flood(&make(), times * CAPACITY);
            let percent = denied as f64 * 100.0 / NEWCOMERS as f64;
            println!("| {name} | {} | {percent:.1} % | {above} |", times * CAPACITY);
        }
    }
}

/// Newcomers that are denied, and permits above the limit of their key.
fn flood(decide: &Decide, keys: u64) -> (u64, u64) {
    let mut admitted = vec![0_u32; keys as usize];
    drain(decide, &mut admitted);
    let denied = (keys..keys + NEWCOMERS).filter(|key| !decide(*key)).count();
    drain(decide, &mut admitted);
    let above: u32 = admitted.iter().map(|permits| permits.saturating_sub(LIMIT)).sum();
    (denied as u64, above.into())
}

/// Takes single permits of each key until one is denied.
fn drain(decide: &Decide, admitted: &mut [u32]) {
    for (key, admitted) in (0..).zip(admitted) {
        while decide(key) {
            *admitted += 1;
        }
    }
}

fn quota() -> Quota {
    Quota::new(LIMIT.into(), WINDOW).expect("a quota")
}

/// A table of the largest capacity that takes no more bytes than rate-net.
fn ours<A: Reclaim + Clone + 'static>(algorithm: A) -> Decide {
    let of = |capacity| KeyedRateLimiter::new(algorithm.clone(), capacity).expect("a table");
    let keys = CAPACITY * CAPACITY * BYTES / of(CAPACITY).bytes() as u64;
    let limiter = of(keys);
    Box::new(move |key| limiter.check(&key).is_ok())
}

fn rate_net() -> Decide {
    let limiter = RateLimiter::builder()
        .quota(LIMIT, WINDOW)
        .eviction(Eviction::capacity(CAPACITY as usize))
        .try_build()
        .expect("a limiter");
    Box::new(move |key| limiter.check(key).is_allow())
}
