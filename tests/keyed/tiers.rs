//! Limits that differ by key: tiers of quotas over one table, and decisions with lower limits than the table's.

use core::sync::atomic::AtomicUsize;

use super::*;

type Tiered<F> = KeyedRateLimiter<Any, ManualClock, Tiers<F>>;

/// Ten, four and two per second, and which of them holds for all keys but key 0.
fn tiered(it: impl Into<Any>) -> (Tiered<impl Fn(&u64) -> usize>, Arc<AtomicUsize>) {
    let tier = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&tier);
    let tier_of = move |key: &u64| match key {
        0 => 0,
        _ => told.load(Ordering::Relaxed),
    };
    let keys = Tiers::new(tier_of, AnyKey::with_seeds([5, 6, 7, 8]));
    let table = sized(it.into(), 100, OnFull::Share).tier(4).tier(2);
    (build(table, ManualClock::new(), keys), tier)
}

fn drain<F: Fn(&u64) -> usize>(limiter: &Tiered<F>, key: u64) -> u64 {
    (0..).take_while(|_| limiter.check(&key).is_ok()).count() as u64
}

fn rings() -> [Any; 5] {
    let builder = || CounterRing::builder(quota("10/s")).cells(5);
    [
        built(builder()).into(),
        built(builder().unpacked()).into(),
        built(builder().classic()).into(),
        CounterRing::fixed_window(quota("10/s")).expect("a ring").into(),
        TimestampRing::new(quota("10/s")).expect("a log").into(),
    ]
}

#[test]
fn each_tier_has_its_limit() {
    let bucket = Gcra::new(quota("10/s")).expect("a bucket");
    for it in rings().into_iter().chain([bucket.into()]) {
        let (limiter, tier) = tiered(it);
        for (number, limit) in [(0, 10), (1, 4), (2, 2)] {
            tier.store(number, Ordering::Relaxed);
            let key = 1 + number as u64;
            assert_eq!(limiter.peek(&key).remaining(), limit);
            assert!(limiter.check_n(&key, limit + 1).is_err());
            assert_eq!(drain(&limiter, key), limit);
        }
    }
}

/// A number without a tier counts as the first tier.
#[test]
fn an_unknown_tier_counts_as_the_first() {
    for it in rings() {
        for number in [3, 4, usize::MAX] {
            let (limiter, tier) = tiered(it.clone());
            tier.store(number, Ordering::Relaxed);
            assert_eq!(drain(&limiter, 1), 10);
        }
    }
}

#[test]
fn a_change_of_tier_applies_at_once_and_keeps_the_charges() {
    for it in rings() {
        let (limiter, tier) = tiered(it);
        assert!(limiter.check_n(&1, 6).is_ok());
        tier.store(1, Ordering::Relaxed);
        // Six are more than the four of the lower tier.
        assert!(limiter.check(&1).is_err());
        assert_eq!((limiter.peek(&1).spent(), limiter.peek(&1).remaining()), (6, 0));
        tier.store(0, Ordering::Relaxed);
        assert_eq!(drain(&limiter, 1), 4);
        // Upwards: four of the lower tier count in the higher one.
        tier.store(1, Ordering::Relaxed);
        assert_eq!(drain(&limiter, 2), 4);
        tier.store(0, Ordering::Relaxed);
        assert_eq!(drain(&limiter, 2), 6);
        // A key whose tier has not changed is not concerned.
        assert_eq!(drain(&limiter, 0), 10);
        assert_eq!(limiter.len(), 3);
    }
}

/// A bucket counts permits as time. Six of ten permits per second are 0.6 s. The lower tier has four per second, so its
/// second has room for one more permit of 0.25 s.
#[test]
fn a_bucket_keeps_its_time_when_the_tier_changes() {
    let (limiter, tier) = tiered(Gcra::new(quota("10/s")).expect("a bucket"));
    assert!(limiter.check_n(&1, 6).is_ok());
    tier.store(1, Ordering::Relaxed);
    assert_eq!(limiter.peek(&1).remaining(), 1);
    assert_eq!(drain(&limiter, 1), 1);
    // 0.85 s are spent, which is eight and a half permits of the higher tier.
    tier.store(0, Ordering::Relaxed);
    assert_eq!(drain(&limiter, 1), 1);
}

/// Entries of keys of a lower tier are reused as others are, and no earlier.
#[cfg(not(miri))] // A minute of looks at full sets.
#[test]
fn tiers_share_the_entries() {
    for it in rings() {
        let (limiter, tier) = tiered(it);
        tier.store(1, Ordering::Relaxed);
        for key in 1..=200 {
            let _ = limiter.check(&key);
        }
        let full = limiter.len();
        assert!(limiter.counts().overflowed > 0 && limiter.counts().reclaimed == 0);
        limiter.clock().advance(Duration::from_secs(10));
        tier.store(2, Ordering::Relaxed);
        for key in 1_001..=1_050 {
            assert!(limiter.check(&key).is_ok());
        }
        assert!(limiter.counts().reclaimed > 0);
        assert!(limiter.len() >= full);
    }
}

/// A key without an entry has its limit in the catch-all.
#[test]
fn a_key_without_an_entry_has_its_limit_too() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        if ["even", "even, unpacked", "two windows", "bucket"].contains(&name.as_str()) {
            continue;
        }
        let (limiter, _) = filled(algorithm.clone(), OnFull::Share, 0);
        let lowered = limiter.with_limit(3).expect("up to ten");
        let admitted = (0..10).filter(|_| lowered.check(&1).is_ok()).count();
        assert_eq!(admitted, 3, "{name}");
        assert!(limiter.check(&1).expect("three of ten").is_overflow());
    }
}
