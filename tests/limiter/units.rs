//! Limits that are counted in units of 2^k permits.

use core::time::Duration;

use ringgate::algorithm::{InUnits, Reclaim as _};
use ringgate::{
    Algorithm, ConfigError, CounterRing, Gcra, KeyedRateLimiter, ManualClock, Quota, RateLimiter, Settled,
    TimestampRing,
};

use crate::random::Random;

const GBIT: u64 = 125_000_000;

fn per_second(limit: u64) -> Quota {
    Quota::per_second(limit).expect("a quota")
}

/// The table in the documentation of `InUnits`, and limits that need no unit.
#[test]
fn units_are_as_documented() -> Result<(), ConfigError> {
    for (rate, unit, of_log) in [
        (1_000, 1, 1),
        (GBIT / 100, 1, 2),
        (15_625_000, 1, 16),
        (GBIT, 8, 128),
        (10 * GBIT, 128, 2_048),
        (25 * GBIT, 256, 4_096),
        (100 * GBIT, 1_024, 16_384),
        (400 * GBIT, 4_096, 65_536),
    ] {
        let quota = per_second(rate);
        let ring = InUnits::new(quota, |units, _| CounterRing::new(units))?;
        let classic = InUnits::new(quota, |units, _| CounterRing::builder(units).classic().build())?;
        let bucket = InUnits::new(quota, |units, _| Gcra::new(units))?;
        let log = InUnits::new(quota, |units, _| TimestampRing::new(units))?;
        assert_eq!((ring.unit(), classic.unit(), bucket.unit()), (unit, unit, unit));
        assert_eq!(log.unit(), of_log, "{rate}");
        for (bound, unit) in [(ring.bound(), unit), (log.bound(), of_log)] {
            assert!(bound <= rate && rate - bound < unit, "{rate}: {bound}");
        }
        // The rate of a bucket is at most one percent too low, and never too high.
        let limiter = RateLimiter::with_clock(bucket, ManualClock::new());
        let full = limiter.peek().remaining();
        assert!(limiter.check_n(full).is_ok());
        let wait = limiter.peek().retry_after(full).expect("a wait").as_nanos();
        let exact = u128::from(full) * 1_000_000_000 / u128::from(rate);
        assert!(
            (exact..=exact * 101 / 100 + 1).contains(&wait),
            "{rate}: {wait} ns"
        );
    }
    // In a short window, a bucket limits the number of units further.
    let short = Quota::new(1 << 30, Duration::from_micros(64))?;
    let bucket = InUnits::new(short, |units, _| Gcra::new(units))?;
    assert_eq!((bucket.unit(), bucket.max_request()), (1 << 21, 512 << 21));
    Ok(())
}

#[test]
fn an_error_of_the_algorithm_is_returned() {
    let error =
        InUnits::new(per_second(GBIT), |units, _| Gcra::token_bucket(units, 0)).expect_err("no burst");
    assert_eq!((error.field, error.given.as_str()), ("burst", "0"));
    let refused = |limit| {
        InUnits::new(per_second(limit), |units, _| {
            Err::<Gcra, _>(
                Gcra::new(Quota::new(units.limit() + 1_000, Duration::from_micros(1))?)
                    .expect_err("too fast"),
            )
        })
    };
    // Every unit up to the whole limit was tried.
    let error = refused(1_000).expect_err("never built");
    assert_eq!(
        (error.field, error.given.as_str()),
        ("limit", "1001 permits in 1µs")
    );
}

/// The error of a lower limit names the limit that was given, and not its number of units.
#[test]
fn an_invalid_lower_limit_is_reported_as_it_was_given() -> Result<(), ConfigError> {
    let ring = InUnits::new(per_second(25 * GBIT), |units, _| CounterRing::new(units))?;
    let limiter = RateLimiter::with_clock(ring, ManualClock::new());
    for limit in [0, 255, 25 * GBIT + 256] {
        let error = limiter
            .with_limit(limit)
            .expect_err("less than a unit, or too many");
        assert_eq!(
            (error.field, error.given, error.expected.as_str()),
            (
                "limit",
                limit.to_string(),
                "1 to 12207031 permits, the limit that is lowered, each a unit of 256"
            )
        );
    }
    let lowered = limiter.with_limit(512)?;
    assert!(lowered.peek().algorithm().with_limit(255).is_err());
    assert!(limiter.with_limit(256)?.check_n(256).is_ok());
    Ok(())
}

/// A request is rounded up to units, and the algorithm decides about the units.
#[test]
fn requests_are_rounded_up() -> Result<(), ConfigError> {
    let quota = Quota::new(1 << 30, Duration::from_secs(1))?;
    let of_units = InUnits::new(quota, |units, _| CounterRing::new(units))?;
    let unit = of_units.unit();
    assert_eq!(unit, 128);
    let clock = ManualClock::new();
    let units = Quota::new((1 << 30) / unit, Duration::from_secs(1))?;
    let plain = RateLimiter::with_clock(CounterRing::new(units)?, clock.clone());
    let keyed = KeyedRateLimiter::builder(of_units.clone())
        .capacity(4)
        .build_with(clock.clone(), ringgate::keyed::AnyKey::with_seeds([1, 2, 3, 4]))?;
    let limiter = RateLimiter::with_clock(of_units, clock.clone());
    let (mut random, mut denied) = (Random::new(7), 0);
    for step in 0..if cfg!(miri) { 40 } else { 20_000 } {
        clock.advance(Duration::from_nanos(random.below(1 << 24)));
        let permits = random.below(1 << 25);
        let plain_taken = plain
            .check_n(permits.div_ceil(unit))
            .map(|admitted| admitted.into_receipt());
        let taken = limiter.check_n(permits).map(|admitted| admitted.into_receipt());
        assert_eq!(taken.is_ok(), plain_taken.is_ok(), "{step}");
        assert_eq!(keyed.check_n("alice", permits).is_ok(), taken.is_ok(), "{step}");
        let (Ok(taken), Ok(plain_taken)) = (taken, plain_taken) else {
            denied += 1;
            continue;
        };
        assert_eq!((taken.at(), taken.permits()), (plain_taken.at(), permits));
        assert_eq!(limiter.peek().remaining(), unit * plain.peek().remaining());
        assert_eq!(limiter.peek().spent(), unit * plain.peek().spent());
    }
    assert!(denied > 0);
    Ok(())
}

/// A refund returns the units that the actual cost does not need.
#[test]
fn refunds_are_whole_units() -> Result<(), ConfigError> {
    let bytes = InUnits::new(per_second(GBIT), |units, _| CounterRing::new(units))?;
    let limiter = RateLimiter::with_clock(bytes, ManualClock::new());
    let spent = || limiter.peek().spent();
    let receipt = limiter.check_n(17).expect("fresh").into_receipt();
    assert_eq!(spent(), 24);
    assert_eq!(limiter.settle(receipt, 9), Settled::Exact);
    assert_eq!(spent(), 16);
    let receipt = limiter.check_n(16).expect("room").into_receipt();
    assert_eq!(limiter.settle(receipt, 15), Settled::Exact);
    assert_eq!(spent(), 32);
    let receipt = limiter.check_n(8).expect("room").into_receipt();
    assert_eq!(limiter.refund(receipt), Settled::Exact);
    assert_eq!(spent(), 32);
    // A debt is rounded up, too.
    let receipt = limiter.check_n(8).expect("room").into_receipt();
    assert_eq!(limiter.settle(receipt, 9), Settled::Exact);
    assert_eq!(spent(), 48);
    // Never too much for the arithmetic.
    assert!(limiter.check_n(u64::MAX).is_err());
    assert_eq!(limiter.peek().retry_after(u64::MAX), None);
    Ok(())
}
