//! Any history of calls of one thread, at any readings, compared with the reference.

use std::sync::LazyLock;

use super::reference::World;
use super::*;
use crate::common::Log;
use crate::moves::{Size, back_and_forth, forward, size};
use proptest::prelude::*;
use proptest::test_runner::Config;

fn config() -> Config {
    Config {
        cases: 256,
        failure_persistence: None,
        ..Config::default()
    }
}

#[derive(Clone, Copy, Debug)]
enum Verb {
    Check(Size),
    Refund(usize),
    Reset,
    Peek(u64),
    Clear,
}

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        56 => size().prop_map(Verb::Check),
        8 => (0..6_usize).prop_map(Verb::Refund),
        4 => Just(Verb::Reset),
        4 => (0..4_u64).prop_map(Verb::Peek),
        1 => Just(Verb::Clear),
    ]
}

/// Every algorithm, with windows that the cells divide evenly or not.
fn subject() -> impl Strategy<Value = Subject> {
    let window = prop_oneof![1_000..100_000_u64, Just(1_000_000_000), Just(60_000_000_000)];
    (0..10_usize, 1..8_u64, window, 1..7_u64).prop_map(|(kind, limit, window, cells)| {
        let quota = Quota::new(limit, Duration::from_nanos(window)).expect("a quota");
        let ring = |unpacked: bool| {
            let builder = CounterRing::builder(quota).cells(cells);
            if unpacked { builder.unpacked() } else { builder }
        };
        let name = format!("{kind}: {quota:?}, {cells} cells");
        let longer = Quota::new(2 * limit, Duration::from_nanos(3 * window)).expect("a quota");
        match kind {
            0 | 1 => Subject::new(name, ring(kind == 1).build().expect("a ring")),
            2 | 3 => Subject::new(name, ring(kind == 3).classic().build().expect("a ring")),
            4 | 5 => Subject::new(name, ring(kind == 5).even().build().expect("a ring")),
            6 => Subject::new(name, ring(true).also(longer).build().expect("a ring"))
                .and(longer.window(), longer.limit()),
            7 => Subject::new(name, TimestampRing::new(quota).expect("a log")),
            8 => {
                // Units of several permits.
                let more = Quota::new(9 * limit, Duration::from_nanos(window)).expect("a quota");
                Subject::new(name, UnitRing::new(more).expect("a ring"))
            }
            _ => Subject::new(name, Gcra::new(quota).expect("a bucket")),
        }
    })
}

fn on_full() -> impl Strategy<Value = OnFull> {
    prop::sample::select(vec![OnFull::Share, OnFull::Deny, OnFull::Admit, OnFull::Forget])
}

/// Keys whose hashes are their numbers, or a crowd: 60 keys that have the same two buckets in the front of a small
/// table.
#[derive(Clone, Copy, Debug)]
struct Steered {
    crowd: bool,
}

/// Hashes of a crowd. A table finds one bucket from the upper bits of a product and the other from the upper bits of
/// its lower half (`src/table/layout.rs`), so all of these hashes have the same buckets.
static CROWD: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let sets = |hash: u64| {
        let product = u128::from(hash) * 0x9e37_79b9_7f4a_7c15;
        let [low, high] = [product, product >> 64].map(|bits| bits as u64);
        let bits = (low ^ high).wrapping_mul(0xbb67_ae85_84ca_a73b);
        [bits, bits.rotate_left(32)].map(|bits| bits >> 58)
    };
    // Hashes with these upper bits are in one bucket, even in the smallest table.
    let is_in_one = |bits: u64| (2..7).all(|sets| (bits * sets) >> 6 == ((bits + 1) * sets - 1) >> 6);
    let base = (1..)
        .map(sets)
        .find(|sets| sets.iter().all(|&bits| is_in_one(bits)));
    (1..1 << 32)
        .filter(|&hash| Some(sets(hash)) == base)
        .take(61)
        .collect()
});

impl Keys<u64> for Steered {
    fn hash(&self, key: &u64) -> u64 {
        let crowd = self
            .crowd
            .then(|| CROWD.get(usize::try_from(*key).expect("few keys")));
        crowd.flatten().copied().unwrap_or(*key)
    }
}

/// In a table of at most 28 entries, all keys of a crowd have the same three buckets. If this fails, the hashes of the crowd are
/// computed in another way than those of the table.
#[test]
fn a_crowd_has_twelve_entries() {
    let ring = CounterRing::builder("10/s".parse().expect("a quota"))
        .cells(5)
        .build()
        .expect("a ring");
    let table = sized(ring, 14, OnFull::Deny);
    let limiter = build(table, ManualClock::new(), Steered { crowd: true });
    assert_eq!(limiter.capacity(), 28);
    for key in 1..=60 {
        assert_eq!(limiter.check(&key).is_ok(), key <= COMMON, "key {key}");
    }
}

/// The entries of the smallest table, each of which any key may have, and the entries of a crowd.
const COMMON: u64 = 12;

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("days")
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_history_equals_the_reference(
        subject in subject(),
        on_full in on_full(),
        crowd in any::<bool>(),
        capacity in 1..21_u64,
        keys in 1..60_u64,
        history in prop::collection::vec((back_and_forth(), any::<u64>(), verb()), 1..200),
    ) {
        let hasher = Steered { crowd };
        // With more than 28 entries, the hashes of a crowd would have different buckets.
        let capacity = if subject.algorithm.words() == 1 { (capacity * 14 / 20).max(1) } else { capacity };
        let table = sized(subject.algorithm.clone(), capacity, on_full);
        let limiter = build(table, ManualClock::new(), hasher);
        let common = (crowd || limiter.capacity() as u64 == COMMON).then_some(COMMON);
        let mut world = World::new(&subject, limiter, on_full, hasher, common);
        let (most, span) = (subject.algorithm.max_request(), nanos(subject.algorithm.span()));
        let mut now = span;
        for (step, key, verb) in history {
            now = step.apply(now, span, span.div_ceil(6));
            // A hash of 0 counts as 1.
            let (key, at) = (1 + key % keys, Nanos::new(now));
            match verb {
                Verb::Check(size) => world.check(key, at, size.of(most)),
                Verb::Refund(which) => world.refund(which),
                Verb::Reset => world.reset(key, at),
                Verb::Peek(permits) => world.peek(key, at, permits),
                Verb::Clear => world.clear(),
            }
        }
        world.finish();
    }

    /// Clearing invalidates every earlier receipt, whatever state it charged, even if the same calls at the same
    /// times have followed.
    #[test]
    fn no_receipt_outlives_clearing(
        subject in subject(),
        on_full in on_full(),
        keys in 1..60_u64,
        history in prop::collection::vec((forward(), any::<u64>(), 1..3_u64), 1..80),
    ) {
        let hasher = Steered { crowd: false };
        let table = sized(subject.algorithm.clone(), 1, on_full);
        let limiter = build(table, ManualClock::new(), hasher);
        let common = Some(limiter.capacity() as u64);
        let mut world = World::new(&subject, limiter, on_full, hasher, common);
        let span = nanos(subject.algorithm.span());
        let play = |world: &mut World<'_, _>| {
            let mut now = span;
            for &(step, key, permits) in &history {
                now = step.apply(now, span, span.div_ceil(6));
                world.check(1 + key % keys, Nanos::new(now), permits.min(subject.algorithm.max_request()));
            }
        };
        play(&mut world);
        world.clear();
        play(&mut world);
        while world.refund_oldest() {}
        world.finish();
    }

    /// A key is never denied if a log of N + 1 cells has room for its requests and the table has room for all keys,
    /// whatever the other keys do. The clock does not step back.
    #[test]
    fn a_key_under_the_limit_is_never_denied(
        limit in 1..8_u64,
        cells in 1..7_u64,
        unpacked in any::<bool>(),
        history in prop::collection::vec((forward(), 0..8_u64, 0..5_u64), 1..200),
    ) {
        let width = 1_000_000;
        let quota = Quota::new(limit, Duration::from_nanos(cells * width)).expect("a quota");
        let builder = CounterRing::builder(quota).cells(cells);
        let ring = if unpacked { builder.unpacked() } else { builder };
        let table = sized(ring.build().expect("a ring"), 8, OnFull::Share);
        let limiter = build(table, ManualClock::new(), Steered { crowd: true });
        let mut logs = vec![Log::default(); 8];
        let mut now = 0;
        for (step, key, permits) in history {
            now = step.apply(now, (cells + 1) * width, width);
            let log = &mut logs[usize::try_from(key).expect("few keys")];
            let used = log.count(now, (cells + 1) * width);
            let permits = permits.min(limit - used.min(limit));
            let taken = limiter.check_at(&key, Nanos::new(now), permits);
            prop_assert!(taken.is_ok(), "{:?} of key {}", taken, key);
            log.add(Nanos::new(now), permits);
        }
        prop_assert_eq!(limiter.counts().overflowed, 0);
    }

    /// Under `Deny`, a request that was denied is admitted at its retry time, and not one nanosecond earlier.
    #[test]
    fn a_request_at_the_retry_time_is_admitted(
        subject in subject(),
        keys in 10..60_u64,
        history in prop::collection::vec((forward(), any::<u64>(), 1..4_u64), 20..80),
        permits in any::<u64>(),
    ) {
        let permits = 1 + permits % subject.algorithm.max_request();
        let span = nanos(subject.algorithm.span());
        let played = || {
            let table = sized(subject.algorithm.clone(), 3, OnFull::Deny);
            let limiter = build(table, ManualClock::new(), Steered { crowd: false });
            let mut now = span;
            for &(step, key, permits) in &history {
                now = step.apply(now, span, span.div_ceil(6));
                let _ = limiter.check_at(&(key % keys), Nanos::new(now), permits);
            }
            limiter.clock().set(Nanos::new(now));
            limiter
        };
        for key in 0..keys {
            let limiter = played();
            let Err(denied) = limiter.check_n(&key, permits) else { continue };
            let wait = denied.retry_after().expect("no more than the most");
            let before = played();
            before.clock().advance(wait.saturating_sub(Duration::from_nanos(1)));
            prop_assert!(before.check_n(&key, permits).is_err(), "{} too late", key);
            limiter.clock().advance(wait);
            prop_assert!(limiter.check_n(&key, permits).is_ok(), "{} too early", key);
        }
    }
}
