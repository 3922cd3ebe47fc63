//! Errors of the builder, and the size of the tables that it builds.

use super::*;

fn error(builder: KeyedBuilder<Any>) -> (&'static str, String) {
    let built = builder.build_with(ManualClock::new(), Plain);
    let error = built.expect_err("it cannot be built");
    (error.field, error.to_string())
}

fn builder(it: impl Into<Any>) -> KeyedBuilder<Any> {
    KeyedRateLimiter::builder(it.into())
}

#[test]
fn a_capacity_is_1_to_2_to_the_32() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        for keys in [0, (1 << 32) + 1, u64::MAX] {
            let expected = format!("invalid capacity: {keys} (expected 1 to 4294967296 keys)");
            let error = error(builder(algorithm.clone()).capacity(keys));
            assert_eq!(error, ("capacity", expected), "{name}");
        }
    }
}

/// The table would need 45 petabytes.
#[cfg(target_pointer_width = "64")]
#[cfg(not(miri))] // Miri's allocator does not fail.
#[test]
fn a_table_too_large_for_memory_is_an_error() {
    let quota = ringgate::Quota::new(1 << 20, core::time::Duration::from_secs(60)).expect("a quota");
    let log = TimestampRing::new(quota).expect("a log");
    let expected = "invalid capacity: 4294967296 keys with entries of 8388624 bytes (expected a capacity for which memory can be allocated)";
    let found = error(builder(log).capacity(1 << 32));
    assert_eq!(found, ("capacity", expected.to_owned()));
}

#[test]
fn a_tier_with_a_higher_limit_is_an_error() {
    let ring = || CounterRing::builder(quota("10/s")).cells(5);
    let bucket = Gcra::new(quota("10/s")).expect("a bucket");
    let log = TimestampRing::new(quota("10/s")).expect("a log");
    for it in [
        Any::from(built(ring())),
        built(ring().unpacked()).into(),
        bucket.into(),
        log.into(),
    ] {
        for limit in [0, 11, u64::MAX] {
            let expected =
                format!("invalid limit: {limit} (expected 1 to 10 permits, the limit that is lowered)");
            // Also behind one that is right.
            for builder in [builder(it.clone()), builder(it.clone()).tier(5)] {
                assert_eq!(error(builder.tier(limit)), ("limit", expected.clone()));
            }
        }
        let tiers = builder(it).capacity(1).tier(10).tier(1);
        assert!(tiers.build_with(ManualClock::new(), Plain).is_ok());
    }
    let several = built(ring().also(quota("100/min")));
    let expected = "invalid windows: 2 (expected one window for a ring whose limit is lowered)";
    assert_eq!(error(builder(several).tier(5)), ("windows", expected.to_owned()));
}

/// The algorithm of a limiter has the form for words that are never reused. A table uses the form for tables.
#[test]
fn a_table_of_the_algorithm_of_a_limiter_reuses_entries() {
    let log = TimestampRing::new(quota("1/s")).expect("a log");
    let limiter = RateLimiter::with_clock(Any::from(log), ManualClock::new());
    // A key that gets no entry is denied.
    let (keys, clock) = by_hand(limiter.algorithm().clone(), 1, OnFull::Deny);
    for key in 0..100_u64 {
        clock.advance(Duration::from_secs(2));
        assert!(keys.check(&key).is_ok() && keys.check(&key).is_err(), "{key}");
    }
}

/// Two entries for each key with states of one word, and otherwise five for every four keys.
#[test]
fn there_are_more_entries_than_keys() {
    let one_word = CounterRing::builder(quota("10/s")).cells(5);
    let rings = [(built(one_word.clone()), 8), (built(one_word.unpacked()), 5)];
    for (ring, entries_of_four) in &rings {
        for keys in (1..40).chain([63, 64, 65, 1_000, 12_345]) {
            let (limiter, _) = by_hand(ring.clone(), keys, OnFull::Share);
            let entries = limiter.capacity() as u64;
            // Rounded up to whole buckets.
            let least = entries_of_four * keys;
            assert!((least..least + 64).contains(&(4 * entries)), "{keys}: {entries}");
        }
    }
    let default = builder(built(CounterRing::builder(quota("10/s")).cells(5)));
    let default: KeyedRateLimiter<_, _, _> = default.build_with(ManualClock::new(), Plain).expect("a table");
    assert_eq!(default.capacity(), 2 * 65_536);
    assert_eq!(default.counts(), TableCounts::default());
}

#[test]
fn a_table_has_its_algorithm_and_its_clock() {
    for subject in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(subject.algorithm.clone(), 1, OnFull::Share);
        assert_eq!(
            limiter.algorithm().bound(),
            subject.bounds[0].1,
            "{}",
            subject.name
        );
        let in_table = subject.algorithm.for_table(subject.bounds[0].1).expect("a form");
        assert_eq!(format!("{:?}", limiter.algorithm()), format!("{in_table:?}"));
        assert_eq!(format!("{:?}", limiter.clock()), format!("{clock:?}"));
    }
    assert_eq!(OnFull::default(), OnFull::Share);
}
