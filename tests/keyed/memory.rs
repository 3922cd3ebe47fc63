//! The memory of a table: its size, that a table allocates it once, and that nearly every key finds an entry in it.

use super::*;

/// A table for 100,000 keys has 200,000 or 125,000 entries, a region of 24 bytes for every 64 entries, and one cache line for
/// alignment.
#[test]
fn entries_are_as_large_as_documented() {
    let builder = || CounterRing::builder(quota("10/s")).cells(5);
    let bucket = Gcra::new(quota("10/s")).expect("a bucket");
    let log = TimestampRing::new(quota("10/s")).expect("a log");
    let sizes: [(Any, usize, usize); 7] = [
        (built(builder()).into(), 1, 16),
        (bucket.into(), 1, 16),
        // A fixed window in several words.
        (built(builder().cells(1).classic().unpacked()).into(), 4, 48),
        (built(builder().unpacked()).into(), 5, 48),
        (built(builder()).into(), 1, 16),
        (built(builder().cells(60)).into(), 14, 128),
        (log.into(), 11, 96),
    ];
    for (it, words, entry) in sizes {
        let (limiter, _) = by_hand(it, 100_000, OnFull::Share);
        assert_eq!(limiter.algorithm().words(), words);
        let entries = if words == 1 { 200_000_usize } else { 125_000 };
        assert_eq!(limiter.capacity(), entries);
        let regions = entries.div_ceil(64);
        let found = limiter.bytes();
        assert_eq!(found, entries * entry + 24 * regions + 64, "{words} words");
    }
}

/// The documentation of the limiter states the sizes of entries of a counter ring.
#[test]
fn entries_are_as_large_as_the_limiter_states() {
    let text: Vec<&str> = include_str!("../../src/keyed/limiter.rs")
        .split_whitespace()
        .filter(|word| *word != "///")
        .collect();
    let entry = |cells| {
        let ring = built(CounterRing::builder(quota("1000/min")).cells(cells));
        let (limiter, _) = by_hand(ring, 100_000, OnFull::Share);
        let regions = limiter.capacity().div_ceil(64);
        (limiter.bytes() - 24 * regions - 64) / limiter.capacity()
    };
    let sizes = format!(
        "it takes {} with five cells and {} with the default of 60.",
        entry(5),
        entry(60)
    );
    assert!(text.join(" ").contains(&sizes), "{sizes}");
}

/// For each key of the capacity: 32.8 bytes with one word, and 60.5 with five strict cells. By the default capacity, 2.1 MB of one
/// word, and 10.5 MB with the default cells.
#[test]
fn a_key_takes_33_bytes_or_60() {
    let ring = || CounterRing::builder(quota("10/s"));
    let capacity = 65_536;
    for (ring, keys, bytes) in [
        (ring().cells(5), 100_000, 3_275_064),
        (ring().cells(5).unpacked(), 100_000, 6_046_960),
        (ring().cells(5), capacity, 2_146_368),
        (ring(), capacity, 10_516_544),
    ] {
        assert_eq!(by_hand(built(ring), keys, OnFull::Share).0.bytes(), bytes);
    }
}

/// The page about keys has the sizes of tables that withstand a flood.
#[test]
fn sizes_of_the_guide_are_those_of_tables() {
    let page = include_str!("../../src/guide/keys.md");
    let five = || CounterRing::builder(quota("10/s")).cells(5);
    let bytes = |ring| by_hand(built(ring), 100_000, OnFull::Share).0.bytes() as u64;
    let (one_word, wide) = (bytes(five()), bytes(five().unpacked()));
    let mut rows = 0;
    for row in page.lines().filter(|line| line.ends_with(" MB |")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, _, _, active, small, large, _] = cells[..] else {
            panic!("{row}")
        };
        let active: u64 = active.replace(',', "").parse().expect("a number of keys");
        let megabytes = |bytes: u64| format!("{} MB", (active * bytes / 100_000 + 500_000) / 1_000_000);
        let sizes = (megabytes(one_word), megabytes(2 * wide));
        assert_eq!((small, large), (&*sizes.0, &*sizes.1), "{row}");
        rows += 1;
    }
    assert_eq!(rows, 4);
}

/// As many keys as the capacity, all in one window, find an entry. Fixed seeds make the result the same in each run.
#[test]
fn most_keys_find_an_entry() {
    // A million takes seconds without optimization.
    let sizes: &[u64] = if cfg!(debug_assertions) {
        &[100_000]
    } else {
        &[100_000, 1_000_000]
    };
    let one_word = built(CounterRing::builder(quota("10/h")).cells(5));
    let longer = built(CounterRing::builder(quota("10/h")));
    for (&keys, algorithm) in sizes.iter().flat_map(|keys| [(keys, &one_word), (keys, &longer)]) {
        for seed in 0..4 {
            let table = sized(algorithm.clone(), keys, OnFull::Deny);
            let limiter = build(table, ManualClock::new(), AnyKey::with_seeds([seed, 1, 2, 3]));
            let denied = (0..keys).filter(|key| limiter.check(key).is_err()).count();
            assert_eq!(denied, 0, "seed {seed}: of {keys}");
            let counts = limiter.counts();
            assert_eq!((counts.overflowed, counts.reclaimed), (0, 0));
            assert_eq!(counts.tracked, keys);
        }
    }
}

/// The guide advises a capacity of the number of active keys for states of one word, and twice that number for others. Each key is
/// active for six minutes, and a new one follows it.
#[test]
fn the_advised_capacity_is_enough() {
    let one_word = || Any::from(Gcra::new(quota("10/h")).expect("a bucket"));
    // A window of five minutes, and a cell of one.
    let ring = || CounterRing::builder(quota("10/5min")).cells(5);
    let longer = || Any::from(built(ring().unpacked()));
    let denied = |algorithm: Any, capacity: u64, active: u64| {
        let clock = ManualClock::new();
        let table = sized(algorithm, capacity, OnFull::Deny);
        let limiter = build(table, clock.clone(), AnyKey::with_seeds([1, 2, 3, 4]));
        let check = |key: u64| {
            clock.advance(Duration::from_secs(360) / active as u32);
            limiter.check(&key).is_err()
        };
        let denied = |keys: core::ops::Range<u64>| keys.filter(|&key| check(key)).count() as u64;
        // A new table is full after at most three spans.
        (denied(0..3 * active), denied(3 * active..40 * active))
    };
    let active = if cfg!(debug_assertions) { 5_000 } else { 100_000 };
    // One of so many new keys may find no entry until every entry has had a key.
    for (algorithm, capacity, one_of) in [(one_word(), active, 700), (longer(), 2 * active, 7_000)] {
        let (first, later) = denied(algorithm, capacity, active);
        assert!(first * one_of <= 3 * active, "{first} of {} new keys", 3 * active);
        assert_eq!(later, 0);
    }
    // With less capacity, new keys find no entry again and again.
    let (first, later) = denied(longer(), active, active);
    assert!(
        (25..=35).contains(&(first * 1_000 / (3 * active))),
        "{first} of {}",
        3 * active
    );
    let share = later * 1_000 / (37 * active);
    assert!((20..=30).contains(&share), "{share} in a thousand");
}

/// New keys, known keys, full tables, reused entries, and every method except `clear`.
#[test]
fn no_decision_allocates() {
    for Subject { name, algorithm, .. } in subjects(quota("3/s")) {
        for on_full in [OnFull::Share, OnFull::Deny, OnFull::Admit, OnFull::Forget] {
            let clock = ManualClock::new();
            let table = sized(algorithm.clone(), 20, on_full);
            let limiter = build(table, clock.clone(), AnyKey::with_seeds([1, 2, 3, 4]));
            let keys: [u64; 40] = core::array::from_fn(|index| index as u64);
            let counted = allocation_counter::measure(|| {
                for step in 0..3_000_u64 {
                    // Now and then all are idle.
                    let pause = if step % 500 == 499 { 60_000 } else { step % 90 };
                    clock.advance(Duration::from_millis(pause));
                    let key = step * step % 67;
                    let taken = limiter.check_n(&key, step % 4);
                    let taken = taken.map(|taken| (taken.remaining(), taken.into_receipt()));
                    match taken {
                        Ok((_, receipt)) if step % 3 == 0 => drop(limiter.refund(&key, receipt)),
                        _ => {}
                    }
                    if let Err(denied) = limiter.check_at(&(key + 1), now(&clock), 1) {
                        core::hint::black_box((denied.retry_after(), denied.remaining()));
                    }
                    let peek = limiter.peek(&(key + 2));
                    core::hint::black_box((peek.remaining(), peek.spent(), peek.retry_after(2)));
                    if step % 20 == 0 {
                        limiter.check_many(&keys, |_, answer| {
                            core::hint::black_box(answer.is_ok());
                        });
                        core::hint::black_box(limiter.reset(&key));
                    }
                    core::hint::black_box(limiter.counts());
                }
            });
            assert_eq!(counted.count_total, 0, "{name}, {on_full:?}");
            let counts = limiter.counts();
            assert!(counts.overflowed + counts.forgotten > 0, "{name}: {counts:?}");
            assert!(counts.reclaimed > 0, "{name}: {counts:?}");
        }
    }
}
