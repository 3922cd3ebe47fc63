//! Far more keys than there is room for.

use super::*;

type Table = KeyedRateLimiter<CounterRing, ManualClock>;

/// A fiftieth without optimization, where a decision takes microseconds.
const FLOOD: u64 = if cfg!(debug_assertions) {
    200_000
} else {
    10_000_000
};
const CAPACITY: u64 = 100_000;
const WARM_UP: u64 = 4 * CAPACITY;
const LIMIT: u64 = 5;
const VICTIMS: u64 = 100;

/// Resident memory of this process, in bytes.
#[cfg(target_os = "linux")]
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("the proc file system");
    let pages: u64 = pages
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("the second number");
    // Pages are at least so large; where they are larger, the growth would be too.
    pages * 4096
}

fn victim(number: u64) -> u64 {
    u64::MAX - number
}

/// Runs `work` in a process of its own: in this one other tests take memory meanwhile.
fn alone(test: &str, work: impl FnOnce()) {
    const ALONE: &str = "RINGGATE_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        work();
        return;
    }
    let program = std::env::current_exe().expect("the program of this test");
    let output = std::process::Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, "yes")
        .output()
        .expect("it can be run again");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
    assert!(stdout.contains("1 passed"), "no test is called {test}: {stdout}");
}

/// Victims have spent what they have; until their window is over, no flood gives them more.
fn flood(on_full: OnFull) {
    let clock = ManualClock::new();
    let ring = built(CounterRing::builder(quota("5/min")).cells(5));
    let table = sized(ring, CAPACITY, on_full);
    let limiter: Table = build(table, clock.clone(), AnyKey::with_seeds([3, 1, 4, 1]));
    clock.advance(Duration::from_secs(3_600));
    for number in 0..VICTIMS {
        assert!(limiter.check_n(&victim(number), LIMIT).is_ok());
    }
    // The warm-up touches every entry, and takes the whole catch-all.
    let mut admitted = (0..WARM_UP).filter(|key| limiter.check(key).is_ok()).count() as u64;
    let full = limiter.counts();
    assert_eq!(full.tracked, limiter.len());
    assert!(full.tracked > limiter.capacity() as u64 * 99 / 100, "{full:?}");
    #[cfg(target_os = "linux")]
    let before = resident();
    // Within 50 s, so that no entry is idle.
    for part in 0..50 {
        let keys = WARM_UP + part * FLOOD / 50..WARM_UP + (part + 1) * FLOOD / 50;
        admitted += keys.filter(|key| limiter.check(key).is_ok()).count() as u64;
        for number in 0..VICTIMS {
            let denied = limiter.check(&victim(number)).expect_err("its window still runs");
            assert!(!denied.is_overflow(), "it keeps its entry");
        }
        clock.advance(Duration::from_secs(1));
    }
    #[cfg(target_os = "linux")]
    {
        let grown = resident().saturating_sub(before);
        assert!(grown < limiter.bytes() as u64, "{grown} bytes");
    }
    let counts = limiter.counts();
    let entries = limiter.capacity() as u64;
    assert!(counts.tracked <= entries);
    assert_eq!((counts.reclaimed, counts.forgotten), (0, 0));
    // Every key was new: it has an entry, or the rule decided.
    assert_eq!(counts.tracked + counts.overflowed, VICTIMS + WARM_UP + FLOOD);
    let shared = match on_full {
        OnFull::Share => LIMIT,
        _ => 0,
    };
    assert_eq!(admitted, counts.tracked - VICTIMS + shared);
    // The window is over, and the victims' entries still are their own.
    clock.advance(Duration::from_secs(30));
    for number in 0..VICTIMS {
        let taken = limiter.check_n(&victim(number), LIMIT).expect("a new window");
        assert!(!taken.is_overflow() && taken.at() == clock.now());
    }
}

#[test]
fn a_flood_gives_no_tracked_key_a_fresh_budget_under_share() {
    alone(
        "flood::a_flood_gives_no_tracked_key_a_fresh_budget_under_share",
        || flood(OnFull::Share),
    );
}

#[test]
fn a_flood_gives_no_tracked_key_a_fresh_budget_under_deny() {
    alone(
        "flood::a_flood_gives_no_tracked_key_a_fresh_budget_under_deny",
        || flood(OnFull::Deny),
    );
}

/// A burst has twice as many keys as the capacity. Then new keys send one request each for minutes, with half of
/// the capacity active at a time. The burst must not keep these keys from entries that have become idle.
#[test]
fn a_table_recovers_from_a_burst_while_new_keys_keep_coming() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(100));
    let ring = built(CounterRing::builder(quota("1000/s")).cells(5));
    let table = sized(ring, 1_000, OnFull::Share);
    let limiter: Table = build(table, clock.clone(), AnyKey::with_seeds([1, 2, 3, 4]));
    for key in 0..2_000_u64 {
        clock.advance(Duration::from_micros(50));
        let _ = limiter.check(&key);
    }
    assert!(limiter.counts().overflowed > 500, "{:?}", limiter.counts());
    let mut late = (0, 0);
    for turn in 0..60_000_u64 {
        clock.advance(Duration::from_millis(2));
        let before = limiter.counts().overflowed;
        let denied = limiter.check(&(1_000_000 + turn)).is_err();
        if turn >= 2_000 {
            late.0 += limiter.counts().overflowed - before;
            late.1 += u64::from(denied);
        }
    }
    // Overflowed and denied, from four seconds after the burst on.
    assert_eq!(late, (0, 0));
}

/// A service whose clients get 20 requests per second and bursts of 40, with 34,000 new clients each second. An entry is free
/// again as soon as its bucket is full, so no first request is denied, even where the table is small.
#[test]
fn first_requests_to_a_bucket_are_admitted_at_34_000_new_clients_a_second() {
    for capacity in [5_000, 65_536] {
        let clock = ManualClock::new();
        clock.advance(Duration::from_secs(100));
        let bucket = Gcra::token_bucket(quota("20/s"), 40).expect("a bucket");
        let table = sized(bucket, capacity, OnFull::Share);
        let limiter = build(table, clock.clone(), AnyKey::with_seeds([1, 2, 3, 4]));
        let refused = (0..200_000_u64)
            .filter(|client| {
                clock.advance(Duration::from_nanos(1_000_000_000 / 34_000));
                limiter.check(client).is_err()
            })
            .count();
        assert_eq!((refused, limiter.counts().overflowed), (0, 0), "{capacity}");
    }
}
