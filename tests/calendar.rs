//! Calendar windows: exactly the limit in each period, whatever the readings.
#![cfg(all(feature = "calendar", not(any(miri, ringgate_loom))))]

extern crate alloc;

use alloc::collections::BTreeMap;
use core::time::Duration;
use std::time::SystemTime;

use proptest::prelude::*;
use ringgate::algorithm::{Calendar, CalendarQuota, Reclaim};
use ringgate::clock::SystemClock;
use ringgate::keyed::{AnyKey, OnFull};
use ringgate::{Algorithm, Clock, KeyedRateLimiter, ManualClock, Nanos, RateLimiter, Receipt};

const HOUR: u64 = 3_600_000_000_000;

/// The 20th of October 2026, 00:00 in Berlin. That week has 169 hours.
fn origin() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_792_447_200)
}

fn calendar(text: &str) -> Calendar {
    let quota: CalendarQuota = text.parse().expect(text);
    Calendar::with_origin(&quota.in_zone("Europe/Berlin").expect("a zone"), origin()).expect("in range")
}

/// The number of the civil day in Berlin, from the hours since the origin. The sixth day has 25 hours.
const fn day(hours: u64) -> u64 {
    if hours < 6 * 24 {
        hours / 24
    } else {
        (hours - 1) / 24
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Check(u64),
    Charge(u64),
    /// Refunds a part of an earlier receipt.
    Refund(usize, u64),
    /// Sets the clock to this hour, before or after the present one.
    Set(u64),
    Advance(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..12_u64).prop_map(Step::Check),
        1 => (0..15_u64).prop_map(Step::Charge),
        2 => (0..20_usize, 1..12_u64).prop_map(|(receipt, permits)| Step::Refund(receipt, permits)),
        1 => (0..240_u64).prop_map(Step::Set),
        3 => (1..30_u64).prop_map(Step::Advance),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each decision equals that of an exact count of each day. A reading of an earlier day is decided in the newest one.
    #[test]
    fn a_day_has_exactly_its_limit(steps in steps()) {
        let clock = ManualClock::new();
        let limiter = RateLimiter::with_clock(calendar("10/day"), clock.clone());
        let (mut hours, mut newest) = (0, 0);
        let mut used: BTreeMap<u64, u64> = BTreeMap::new();
        let mut receipts: Vec<(Receipt, u64)> = Vec::new();
        for step in steps {
            match step {
                Step::Set(to) => hours = to,
                Step::Advance(by) => hours += by,
                Step::Check(permits) => {
                    let today = newest.max(day(hours));
                    let count = used.entry(today).or_default();
                    let fits = permits == 0 || *count + permits <= 10;
                    prop_assert_eq!(limiter.peek().remaining(), 10_u64.saturating_sub(*count));
                    match limiter.check_n(permits) {
                        Ok(admitted) => {
                            prop_assert!(fits);
                            if permits > 0 {
                                newest = today;
                                *count += permits;
                                let receipt = admitted.into_receipt();
                                prop_assert_eq!(day(receipt.at().get() / HOUR), today);
                                receipts.push((receipt, today));
                            }
                        }
                        Err(denied) => {
                            prop_assert!(!fits);
                            let retry = denied.retry_after();
                            if permits > 10 {
                                prop_assert_eq!(retry, None);
                            } else {
                                let hour = hours + retry.expect("tomorrow").as_secs() / 3600;
                                prop_assert_eq!((day(hour), day(hour - 1)), (today + 1, today));
                            }
                        }
                    }
                }
                Step::Charge(permits) => {
                    let today = newest.max(day(hours));
                    // A receipt for nothing, settled at more, charges debt.
                    let receipt = limiter.check_n(0).expect("nothing").into_receipt();
                    let _ = limiter.settle(receipt, permits);
                    if permits > 0 {
                        newest = today;
                        *used.entry(today).or_default() += permits;
                    }
                }
                Step::Refund(index, permits) => {
                    if index < receipts.len() {
                        let (receipt, charged) = receipts.swap_remove(index);
                        let permits = permits.min(receipt.permits());
                        let keep = receipt.permits() - permits;
                        let _ = limiter.settle(receipt, keep);
                        if charged == newest {
                            *used.entry(charged).or_default() -= permits;
                        }
                    }
                }
            }
            clock.set(Nanos::new(hours * HOUR));
        }
    }
}

/// Threads with readings around midnight.
#[test]
fn threads_share_a_day() {
    for _ in 0..50 {
        let limiter = RateLimiter::with_clock(calendar("1000/day"), ManualClock::new());
        let admitted: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4_u64)
                .map(|thread| {
                    let limiter = &limiter;
                    scope.spawn(move || {
                        let mut admitted = [0; 2];
                        for step in 0..1500_u64 {
                            let late = (step * 7 + thread) % 11 < step / 200;
                            let now = Nanos::new(24 * HOUR - u64::from(!late));
                            if let Ok(it) = limiter.check_at(now, 1) {
                                admitted[usize::from(it.into_receipt().at().get() >= 24 * HOUR)] += 1;
                            }
                        }
                        admitted
                    })
                })
                .collect();
            let all = threads.into_iter().map(|thread| thread.join().expect("no panic"));
            all.fold(vec![0, 0], |sum, one| vec![sum[0] + one[0], sum[1] + one[1]])
        });
        assert!(admitted[0] <= 1000, "{admitted:?}");
        assert_eq!(admitted[1], 1000);
    }
}

/// The clock steps back over midnight, and neither a known key, nor a key whose entry was reused, gets a second budget.
#[test]
fn a_clock_that_steps_back_gives_no_second_budget() {
    let clock = ManualClock::new();
    let limiter = KeyedRateLimiter::builder(calendar("10/day"))
        .capacity(1)
        .on_full(OnFull::Share)
        .build_with(clock.clone(), AnyKey::with_seeds([1, 2, 3, 4]))
        .expect("a table");
    let noon = |day: u64| clock.set(Nanos::new((day * 24 + 12) * HOUR));
    let mut keys = 0_u64..;
    noon(0);
    assert!(limiter.check_n("a", 10).is_ok());
    noon(1);
    assert!(limiter.check_n("a", 10).is_ok());
    noon(0);
    assert!(limiter.check("a").is_err());
    // On the third day, other keys evict it.
    noon(3);
    for key in keys.by_ref().take(2000) {
        let _ = limiter.check(&key);
    }
    noon(1);
    assert!(limiter.check("a").is_err() || limiter.check("a").expect("no entry").is_overflow());
    // Three days later, it has its budget, and keeps its entry until midnight.
    noon(6);
    assert!(limiter.check_n("a", 7).is_ok());
    for key in keys.by_ref().take(2000) {
        let _ = limiter.check(&key);
    }
    assert_eq!(limiter.peek("a").spent(), 7);
}

/// The limits of an algorithm, and lower ones.
#[test]
fn the_bound_is_that_of_two_periods() {
    let calendar = calendar("10/day");
    assert_eq!((calendar.bound(), calendar.max_request()), (20, 10));
    assert_eq!(calendar.window(), Duration::from_secs(23 * 3600));
    assert_eq!(calendar.span(), Duration::from_secs(25 * 3600));
    let clock = ManualClock::new();
    let limiter = RateLimiter::with_clock(calendar, clock.clone());
    assert!(limiter.with_limit(3).expect("lower").check_n(4).is_err());
    assert!(limiter.with_limit(3).expect("lower").check_n(3).is_ok());
    assert!(limiter.with_limit(3).expect("lower").check().is_err());
    assert!(limiter.check_n(7).is_ok());
    assert!(limiter.with_limit(11).is_err());
    // The last period has no end.
    clock.set(Nanos::MAX);
    assert!(limiter.check_n(10).is_ok());
    assert_eq!(limiter.check().expect_err("spent").retry_after(), None);
}

/// The time at the origin of a clock is that of the operating system, less the reading.
#[test]
fn a_calendar_follows_the_operating_system() {
    let clock = SystemClock::new();
    let before = SystemTime::now();
    let reading = clock.now();
    let after = SystemTime::now();
    let at = |now: SystemTime| Nanos::from_duration(now.duration_since(before).expect("not set back"));
    assert!(reading.get() < 10_000_000_000 && at(after) >= Nanos::ZERO);
    let by_day = CalendarQuota::per_day(1).expect("a quota");
    // Days of UTC are multiples of 24 hours.
    for passed in [0, 30 * 24 * HOUR + 5] {
        let clock = ManualClock::new();
        clock.set(Nanos::new(passed));
        let calendar = Calendar::new(&by_day, &clock).expect("in range");
        let limiter = RateLimiter::with_clock(calendar, clock);
        let today = |now: SystemTime| {
            now.duration_since(SystemTime::UNIX_EPOCH)
                .expect("later")
                .as_secs()
                / 86_400
        };
        let (first, began) = (today(SystemTime::now()), SystemTime::now());
        assert!(limiter.check().is_ok());
        let wait = limiter
            .check()
            .expect_err("spent")
            .retry_after()
            .expect("tomorrow");
        let next = began + wait;
        if today(SystemTime::now()) == first {
            let off = next
                .duration_since(SystemTime::UNIX_EPOCH)
                .expect("later")
                .as_secs_f64()
                .rem_euclid(86_400.0);
            assert!(!(10.0..86_390.0).contains(&off), "{off} s from midnight");
        }
    }
}
