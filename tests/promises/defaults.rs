//! A client that sends evenly at the limit is admitted the share that the documentation of each default states.

use core::time::Duration;

use ringgate::{
    AnyAlgorithm, ConfigError, CounterRing, Gcra, KeyedRateLimiter, ManualClock, Quota, RateLimiter,
    TimestampRing, UnitRing,
};

/// The windows in which the client sends requests, after a first window in which none is denied.
const WINDOWS: u64 = if cfg!(miri) { 1 } else { 12 };

/// Limits per minute whose interval is a whole number of nanoseconds, below and above the number of cells.
const LIMITS: [u64; 7] = [1, 6, 30, 60, 75, 300, 1000];

/// The least share of a paced client's requests that a strict ring admits: `L` of `⌈L·(N + 1)/N⌉`.
fn documented(limit: u64, cells: u64) -> (u64, u64) {
    (limit, (limit * (cells + 1)).div_ceil(cells))
}

/// Asserts that a client that sends a request every W/L is admitted at least `least.0` of `least.1` requests.
fn assert_share(name: &str, limit: u64, least: (u64, u64), mut check: impl FnMut(Duration) -> bool) {
    let pace = Duration::from_secs(60) / u32::try_from(limit).expect("a small limit");
    // One hour after the origin, in the middle of a cell, and in whole units of a log.
    let mut now = Duration::new(3_600, 123_456_000);
    for _ in 0..limit {
        assert!(check(now), "{name}, {limit} per minute: the first window");
        now += pace;
    }
    // Whole blocks of requests, because a partial block could be in the client's favour.
    let asked = least.1 * WINDOWS;
    let admitted = (0..asked).filter(|_| {
        now += pace;
        check(now - pace)
    });
    let admitted = admitted.count() as u64;
    assert!(
        admitted * least.1 >= asked * least.0,
        "{name}, {limit} per minute: {admitted} of {asked} admitted, documented are {} of {}",
        least.0,
        least.1
    );
}

fn at(clock: &ManualClock, time: Duration) {
    clock.set(ringgate::Nanos::from_duration(time));
}

fn direct(name: &str, limit: u64, least: (u64, u64), algorithm: impl Into<AnyAlgorithm>) {
    let clock = ManualClock::new();
    let limiter = RateLimiter::with_clock(algorithm.into(), clock.clone());
    assert_share(name, limit, least, |now| {
        at(&clock, now);
        limiter.check().is_ok()
    });
}

#[test]
fn a_paced_client_of_a_direct_limiter() -> Result<(), ConfigError> {
    for limit in LIMITS {
        let quota = Quota::per_minute(limit)?;
        let all = (1, 1);
        direct(
            "CounterRing::new",
            limit,
            documented(limit, 60),
            CounterRing::new(quota)?,
        );
        for cells in [5, 13, 29, 61] {
            let ring = CounterRing::builder(quota).cells(cells).build()?;
            direct("cells", limit, documented(limit, cells), ring);
        }
        let units = UnitRing::new(quota)?;
        direct("units", limit, units.guaranteed_share(), units);
        direct("log", limit, all, TimestampRing::new(quota)?);
        direct("gcra", limit, all, Gcra::new(quota)?);
        direct("fixed", limit, all, CounterRing::fixed_window(quota)?);
        let classic = CounterRing::builder(quota).classic().build()?;
        direct("classic", limit, all, classic);
    }
    // The share of each cell is a whole permit.
    for limit in [60, 300, 1000] {
        let even = CounterRing::builder(Quota::per_minute(limit)?).even().build()?;
        direct("even", limit, (1, 1), even);
    }
    Ok(())
}

#[test]
fn a_paced_key_of_a_table() -> Result<(), ConfigError> {
    for limit in LIMITS {
        let clock = ManualClock::new();
        let ring = CounterRing::new(Quota::per_minute(limit)?)?;
        let limiter = KeyedRateLimiter::builder(ring)
            .capacity(16)
            .build_with(clock.clone(), ringgate::keyed::AnyKey::with_seeds([1, 2, 3, 4]))?;
        assert_share("table", limit, documented(limit, 60), |now| {
            at(&clock, now);
            limiter.check("alice").is_ok()
        });
    }
    Ok(())
}

#[cfg(feature = "rules")]
#[test]
fn a_paced_client_of_a_rule() -> Result<(), Box<dyn core::error::Error>> {
    use core::hash::Hash;
    use ringgate::rules::RuleSetBuilder;
    use ringgate::{Key, Rule};

    let user = Key::new("user", |user: &str, key| user.hash(key));
    for limit in LIMITS {
        let quota = Quota::per_minute(limit)?;
        // Without a key in 60 cells, and with a key in one word.
        for (rule, least) in [
            (Rule::new("all", quota), documented(limit, 60)),
            (
                Rule::new("user", quota).by(&user).capacity(16),
                UnitRing::new(quota)?.guaranteed_share(),
            ),
        ] {
            let clock = ManualClock::new();
            let name = rule.name().to_owned();
            let rules = RuleSetBuilder::new()
                .rule(rule)
                .build_with(clock.clone(), [1, 2, 3, 4])?;
            assert_share(&name, limit, least, |now| {
                at(&clock, now);
                rules.check("alice").is_ok()
            });
        }
    }
    Ok(())
}

#[cfg(all(feature = "shared", not(miri)))]
#[tokio::test]
async fn a_paced_client_of_a_shared_limit() -> Result<(), Box<dyn core::error::Error>> {
    use alloc::sync::Arc;

    use ringgate::shared::{MemoryStore, OnError, SharedLimiter};

    for limit in LIMITS {
        let clock = ManualClock::new();
        let store = Arc::new(MemoryStore::with_clock(clock.clone()));
        let limiter = SharedLimiter::builder("paced", Quota::per_minute(limit)?)
            .on_error(OnError::Deny)
            .build(store)?;
        assert_share("shared", limit, documented(limit, 60), |now| {
            at(&clock, now);
            let check = core::pin::pin!(limiter.check("alice"));
            let mut context = core::task::Context::from_waker(core::task::Waker::noop());
            match check.poll(&mut context) {
                core::task::Poll::Ready(decided) => decided.is_ok(),
                core::task::Poll::Pending => panic!("a store in memory answers at once"),
            }
        });
    }
    Ok(())
}

/// The rows of the table in the documentation of `CounterRing`, with a limit that needs several words.
#[test]
fn rows_by_cells_are_as_documented() -> Result<(), ConfigError> {
    use ringgate::Algorithm as _;

    let docs = include_str!("../../src/algorithm/counter_ring/ring.rs");
    let quota = Quota::per_minute(1_000)?;
    for (cells, name, entry) in [
        (5, "5", 48),
        (13, "13", 64),
        (29, "29", 96),
        (60, "60, the default", 160),
        (61, "61", 160),
    ] {
        let ring = CounterRing::builder(quota).cells(cells).build()?;
        let clock = ManualClock::new();
        let bytes = 8 * ring.words();
        let table = KeyedRateLimiter::builder(ring.clone())
            .capacity(65_536)
            .build_with(clock.clone(), ringgate::keyed::AnyKey::with_seeds([1, 2, 3, 4]))?;
        // Five entries for every four keys, and the parts that entries share.
        let entries = table.bytes() as u64 / (65_536 * 5 / 4);
        assert_eq!(entries, entry, "{cells} cells");
        let limiter = RateLimiter::with_clock(ring, clock);
        assert!(limiter.check_n(1_000).is_ok());
        let wait = limiter.check().map(drop).expect_err("the limit is reached");
        let wait = wait.retry_after().expect("a wait").as_millis().div_ceil(1_000);
        let share = format!(
            "{}.{}",
            1_000 * cells / (cells + 1) / 10,
            1_000 * cells / (cells + 1) % 10
        );
        let row = docs
            .lines()
            .find(|line| line.starts_with(&format!("/// | {name} |")))
            .unwrap_or_else(|| panic!("no row {name}"));
        for part in [
            format!("{bytes} |"),
            format!("{entry} |"),
            format!("| {share} % |"),
            format!("| up to {wait} s |"),
        ] {
            assert!(row.contains(&part), "{cells} cells: {part} in {row}");
        }
    }
    Ok(())
}
