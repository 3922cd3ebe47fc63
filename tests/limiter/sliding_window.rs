//! The default algorithm: what it chooses, and what its documentation promises of each choice.

use core::time::Duration;

use ringgate::algorithm::Reclaim;
use ringgate::keyed::AnyKey;
use ringgate::{
    Algorithm, ConfigError, KeyedRateLimiter, ManualClock, Nanos, Quota, RateLimiter, Settled, SlidingWindow,
    UnitRing,
};

const MINUTE: Duration = Duration::from_secs(60);

fn in_a_table(
    window: SlidingWindow,
    tiers: &[u64],
) -> Result<KeyedRateLimiter<SlidingWindow, ManualClock>, ConfigError> {
    let builder = KeyedRateLimiter::builder(window).capacity(100);
    let builder = tiers.iter().fold(builder, |builder, &limit| builder.tier(limit));
    builder.build_with(ManualClock::new(), AnyKey::with_seeds([1, 2, 3, 4]))
}

#[test]
fn a_window_after_the_last_permit_there_is_room() -> Result<(), ConfigError> {
    for limit in [1, 2, 5, 64] {
        let clock = ManualClock::new();
        let limiter = RateLimiter::with_clock(SlidingWindow::new(Quota::per_minute(limit)?)?, clock.clone());
        assert!(limiter.check_n(limit).is_ok() && limiter.check().is_err());
        clock.advance(MINUTE - Duration::from_nanos(1));
        assert!(limiter.check().is_err(), "{limit}: before the window has passed");
        clock.advance(Duration::from_nanos(1));
        assert!(limiter.check_n(limit).is_ok(), "{limit}");
    }
    Ok(())
}

#[test]
fn one_resource_has_a_log_up_to_64_permits_and_cells_above() -> Result<(), ConfigError> {
    for (limit, form, words) in [
        (1, "an exact log of 1 permits", 2),
        (64, "an exact log of 64 permits", 65),
        (65, "60 cells", 62),
        (1_000_000, "60 cells", 62),
    ] {
        let window = SlidingWindow::new(Quota::per_minute(limit)?)?;
        assert_eq!((window.to_string().as_str(), window.words()), (form, words));
        assert_eq!((window.bound(), window.window()), (limit, MINUTE));
    }
    Ok(())
}

#[test]
fn a_table_has_one_word_for_each_key() -> Result<(), ConfigError> {
    for (limit, form) in [
        (5, "one word of 27 cells in units of 1"),
        (60, "one word of 16 cells in units of 4"),
        (1_000, "one word of 12 cells in units of 64"),
        (1_000_000, "one word of 10 cells in units of 131072"),
    ] {
        let limiter = in_a_table(SlidingWindow::new(Quota::per_minute(limit)?)?, &[])?;
        assert_eq!(limiter.algorithm().to_string(), form);
        assert_eq!(
            (limiter.algorithm().words(), limiter.algorithm().bound()),
            (1, limit)
        );
    }
    Ok(())
}

#[test]
fn a_table_has_cells_for_settled_permits_and_for_low_tiers() -> Result<(), ConfigError> {
    let hundred = Quota::per_minute(100)?;
    let found = SlidingWindow::settled(Quota::per_minute(5)?)?.to_string();
    assert_eq!(found, "60 cells");
    let settled = in_a_table(SlidingWindow::settled(hundred)?, &[])?;
    assert_eq!(settled.algorithm().to_string(), "60 cells");
    assert_eq!(
        in_a_table(SlidingWindow::new(hundred)?, &[10])?
            .algorithm()
            .to_string(),
        "60 cells"
    );
    // A tier near the limit does not need them, and the unit is chosen for it.
    let tiers = in_a_table(SlidingWindow::new(hundred)?, &[50])?;
    assert_eq!(tiers.algorithm().words(), 1);
    let lowest = UnitRing::with_lowest_limit(hundred, 50)?;
    assert_eq!(tiers.algorithm().to_string(), lowest.to_string());
    // A limit so high that one word would guarantee less than 70 % of it.
    let high = in_a_table(SlidingWindow::new(Quota::per_minute(1_000_000_000)?)?, &[])?;
    assert_eq!(high.algorithm().words(), 62);
    Ok(())
}

#[test]
fn an_invalid_tier_is_reported_by_its_limit() -> Result<(), ConfigError> {
    for limit in [0, 101] {
        let error = in_a_table(SlidingWindow::new(Quota::per_minute(100)?)?, &[limit]).map(|_| ());
        let error = error.expect_err("no tier").to_string();
        assert!(
            error.contains("limit") && error.contains(&limit.to_string()),
            "{error}"
        );
    }
    Ok(())
}

#[test]
fn a_ring_in_one_word_refuses_limits_that_it_cannot_lower_to() -> Result<(), ConfigError> {
    let quota = Quota::per_minute(100)?;
    for lowest in [0, 101, u64::MAX] {
        let error = UnitRing::with_lowest_limit(quota, lowest)
            .map(|_| ())
            .expect_err("no limit");
        assert!(error.to_string().contains(&lowest.to_string()), "{error}");
    }
    // A million million permits in a millisecond.
    assert!(UnitRing::new(Quota::new(1_000_000_000_000, Duration::from_millis(1))?).is_err());
    Ok(())
}

#[cfg(all(feature = "quanta", not(miri)))] // Miri has no processor counter to calibrate.
#[test]
fn the_short_constructors_have_their_windows() -> Result<(), ConfigError> {
    for (limiter, window) in [
        (RateLimiter::per_second(7)?, Duration::from_secs(1)),
        (RateLimiter::per_minute(7)?, MINUTE),
    ] {
        assert_eq!((limiter.bound(), limiter.algorithm().window()), (7, window));
    }
    for (limiter, window) in [
        (KeyedRateLimiter::per_second(7, 10)?, Duration::from_secs(1)),
        (KeyedRateLimiter::per_minute(7, 10)?, MINUTE),
    ] {
        let it = limiter.algorithm();
        assert_eq!((it.bound(), it.window(), it.words()), (7, window, 1));
    }
    assert!(RateLimiter::per_minute(0).is_err() && KeyedRateLimiter::per_minute(5, 0).is_err());
    Ok(())
}

/// Each form forwards each method: a lower limit, a refund, and the time at which an entry can be reused.
#[test]
fn every_form_decides_as_its_algorithm() -> Result<(), ConfigError> {
    let tables = [60, 1_000].map(|limit| SlidingWindow::new(Quota::per_minute(limit)?)?.for_table(limit));
    let [small, large] = tables;
    let cells = [
        SlidingWindow::new(Quota::per_minute(90)?)?,
        SlidingWindow::settled(Quota::per_minute(4)?)?,
    ];
    for window in [small?, large?].into_iter().chain(cells) {
        let limit = window.bound();
        let limiter = RateLimiter::with_clock(window.clone(), ManualClock::new());
        let receipt = limiter.check_n(limit).expect("all permits").into_receipt();
        assert_eq!(limiter.peek().remaining(), 0);
        assert_eq!(limiter.refund(receipt), Settled::Exact);
        assert_eq!(limiter.peek().remaining(), limit);
        let lower = window.with_limit(limit / 2)?;
        assert_eq!((lower.bound(), lower.words()), (limit / 2, window.words()));
        assert!(window.with_limit(limit + 1).is_err() && window.with_limit(0).is_err());
        assert!(window.span() >= MINUTE);
        assert_eq!(window.latest_time(0), Nanos::ZERO);
    }
    Ok(())
}
