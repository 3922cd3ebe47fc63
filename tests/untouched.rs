//! The operating system provides the memory of a table only as keys come. The test is alone in its program, so that
//! nothing else takes memory and no allocator counts.
#![cfg(all(target_os = "linux", not(miri), not(ringgate_loom)))]

use std::fs;

use ringgate::keyed::AnyKey;
use ringgate::{CounterRing, KeyedRateLimiter, ManualClock};

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").expect("the proc file system");
    let pages = pages.split_whitespace().nth(1).expect("the second number");
    // Pages have at least this size.
    pages.parse::<u64>().expect("a number of pages") * 4096
}

#[test]
fn untouched_memory_of_a_table_is_not_resident() {
    let ring = CounterRing::builder("5/min".parse().expect("a quota"))
        .cells(5)
        .build()
        .expect("a ring");
    let before = resident();
    let limiter = KeyedRateLimiter::builder(ring)
        .capacity(10_000_000)
        .build_with(ManualClock::new(), AnyKey::with_seeds([1, 2, 3, 4]))
        .expect("a table");
    let grown = resident().saturating_sub(before);
    let bytes = limiter.bytes() as u64;
    assert!(bytes > 320_000_000);
    assert!(grown < bytes / 100, "{grown} of {bytes} bytes");
    // A hundred keys are on nearly as many pages.
    for key in 0..100_u64 {
        assert!(limiter.check(&key).is_ok());
    }
    assert!(resident() > before + 50 * 4096);
}
