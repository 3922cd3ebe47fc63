//! `KeyedRateLimiter` by its public methods: each method, full tables, histories compared with a reference, threads and
//! floods of keys.
//!
//! `models.rs` tests interleavings.
#![cfg(not(ringgate_loom))]

extern crate alloc;

#[expect(dead_code, reason = "what only the tests of algorithms use")]
mod common;
#[path = "common/random.rs"]
mod random;

#[path = "keyed/addresses.rs"]
mod addresses;
#[path = "keyed/config.rs"]
mod config;
#[path = "keyed/custom.rs"]
mod custom;
#[cfg(not(miri))] // A million decisions take too long under Miri.
#[path = "keyed/flood.rs"]
mod flood;
#[cfg(not(miri))] // Every algorithm with every overflow policy takes minutes under Miri.
#[path = "keyed/full.rs"]
mod full;
#[cfg(not(miri))] // Thousands of histories take too long, and have only one thread.
#[path = "keyed/histories.rs"]
mod histories;
#[cfg(all(feature = "std", not(miri)))]
#[path = "keyed/layouts.rs"]
mod layouts;
#[cfg(not(miri))] // Every algorithm on full tables takes minutes under Miri.
#[path = "keyed/least_spent.rs"]
mod least_spent;
#[expect(dead_code, reason = "moves to any time")]
#[path = "common/moves.rs"]
mod moves;
#[path = "keyed/many.rs"]
mod many;
#[cfg(not(miri))] // Miri initializes each word of these large tables.
#[path = "keyed/memory.rs"]
mod memory;
#[cfg(not(miri))]
#[path = "keyed/reference.rs"]
mod reference;
#[cfg(not(miri))]
#[path = "keyed/refunds.rs"]
mod refunds;
#[path = "keyed/resets.rs"]
mod resets;
#[cfg(all(feature = "std", not(miri)))] // Every algorithm, every bit of a file.
#[path = "keyed/saved.rs"]
mod saved;
#[cfg(all(feature = "quanta", not(miri)))] // Miri's clock and threads are too slow for windows of milliseconds.
#[path = "keyed/stress.rs"]
mod stress;
#[path = "keyed/tiers.rs"]
mod tiers;
#[path = "keyed/verbs.rs"]
mod verbs;

use alloc::sync::Arc;
use core::net::IpAddr;
use core::sync::atomic::Ordering;
use core::time::Duration;

use common::{Any, Subject};
use ringgate::algorithm::{CounterRingBuilder, Reclaim};
use ringgate::keyed::{AnyKey, KeyedBuilder, Keys, OnFull, TableCounts, Tiers};
use ringgate::sync::Words;
use ringgate::{
    Admitted, Algorithm, Clock, CounterRing, Denied, Gcra, KeyedRateLimiter, ManualClock, Nanos, Quota,
    RateLimiter, Receipt, TimestampRing, UnitRing,
};

/// The hash of a key is the key itself, so that its buckets are the same in each run.
#[derive(Clone, Debug)]
struct Plain;

impl Keys<u64> for Plain {
    fn hash(&self, key: &u64) -> u64 {
        *key
    }
}

type ByHand = KeyedRateLimiter<Any, ManualClock, Plain>;

#[cfg(not(miri))]
const NANO: Duration = Duration::from_nanos(1);

fn quota(text: &str) -> Quota {
    text.parse().expect("a quota")
}

fn built(builder: CounterRingBuilder) -> CounterRing {
    builder.build().expect("a ring")
}

/// Every algorithm and representation, with the limit and window of `quota`.
fn subjects(quota: Quota) -> Vec<Subject> {
    let builder = || CounterRing::builder(quota).cells(5);
    let longer = Quota::new(3 * quota.limit(), 10 * quota.window()).expect("a quota");
    let mut all = vec![
        Subject::new("strict", built(builder())),
        Subject::new("strict, unpacked", built(builder().unpacked())),
        Subject::new("classic", built(builder().classic())),
        Subject::new("even", built(builder().even())),
        Subject::new("even, unpacked", built(builder().even().unpacked())),
        Subject::new("fixed window", CounterRing::fixed_window(quota).expect("a ring")),
        Subject::new("two windows", built(builder().also(longer))).and(longer.window(), longer.limit()),
        Subject::new("units", UnitRing::new(quota).expect("a ring")),
        Subject::new("timestamps", TimestampRing::new(quota).expect("a ring")),
        Subject::new("bucket", Gcra::new(quota).expect("a bucket")),
    ];
    if cfg!(miri) {
        // A step takes 10 ms under Miri, so two algorithms with several words suffice.
        all.retain(|it| ["strict, unpacked", "timestamps"].contains(&it.name.as_str()));
    }
    all
}

/// The settings of a table.
fn sized<A: Reclaim>(it: A, capacity: u64, on_full: OnFull) -> KeyedBuilder<A> {
    KeyedRateLimiter::builder(it).capacity(capacity).on_full(on_full)
}

fn build<A: Reclaim, C: Clock, K>(table: KeyedBuilder<A>, clock: C, keys: K) -> KeyedRateLimiter<A, C, K> {
    table.build_with(clock, keys).expect("a table")
}

/// A table whose keys are their hashes, with a manual clock that shows one hour.
fn by_hand(it: impl Into<Any>, capacity: u64, on_full: OnFull) -> (ByHand, ManualClock) {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    let table = sized(it.into(), capacity, on_full);
    (build(table, clock.clone(), Plain), clock)
}

/// Makes a table of at most four buckets, so that each key may have any entry. All entries except `left` belong to keys from
/// 1,000 on, which are charged one permit each.
fn filled(it: impl Into<Any>, on_full: OnFull, left: u64) -> (ByHand, ManualClock) {
    let (limiter, clock) = by_hand(it, 1, on_full);
    let entries = limiter.capacity() as u64;
    assert!(entries <= 16);
    for key in 1_000..1_000 + entries - left {
        let taken = limiter.check(&key).expect("there is an entry for it");
        assert!(!taken.is_overflow());
    }
    assert_eq!(limiter.len(), entries - left);
    (limiter, clock)
}

/// The keys of a [filled] table.
fn keys_of(limiter: &ByHand) -> core::ops::Range<u64> {
    1_000..1_000 + limiter.capacity() as u64
}

/// Requests single permits until one is denied, and returns the number of admissions.
fn drain(limiter: &ByHand, key: u64) -> u64 {
    (0..).take_while(|_| limiter.check(&key).is_ok()).count() as u64
}

/// An answer without its borrow: time, permits, remaining permits, retry time, and whether the table was full.
type Told = (Nanos, u64, u64, Option<Duration>, bool);

fn told(answer: &Result<Admitted<'_, Any>, Denied<'_, Any>>) -> Result<Told, Told> {
    match answer {
        Ok(it) => Ok((it.at(), it.permits(), it.remaining(), None, it.is_overflow())),
        Err(it) => Err((
            it.at(),
            it.permits(),
            it.remaining(),
            it.retry_after(),
            it.is_overflow(),
        )),
    }
}

fn now(clock: &ManualClock) -> Nanos {
    clock.now()
}
