//! Figures of the algorithms that the guide prints: bounds, and what a client paced exactly at the limit gets.
#![cfg(not(any(miri, ringgate_loom)))]

use core::time::Duration;

use ringgate::{
    Algorithm, AnyAlgorithm, ConfigError, CounterRing, Gcra, ManualClock, Quota, RateLimiter, TimestampRing,
    UnitRing,
};

/// Figures of one algorithm with a limit of 60 per minute.
struct Figures {
    bytes: usize,
    /// Most permits that were admitted in any minute, by any of the traffic below.
    worst: usize,
    /// Admitted requests of 3600, one a second.
    paced: usize,
    /// Seconds until a request is admitted after 60 requests at once.
    retry_after: u64,
}

const MINUTE: Duration = Duration::from_secs(60);

fn algorithms() -> Result<Vec<(&'static str, AnyAlgorithm)>, ConfigError> {
    let quota = Quota::per_minute(60)?;
    Ok(vec![
        ("`CounterRing`", CounterRing::new(quota)?.into()),
        ("`UnitRing`", UnitRing::new(quota)?.into()),
        ("`TimestampRing`", TimestampRing::new(quota)?.into()),
        ("`Gcra`", Gcra::new(quota)?.into()),
        (
            "`CounterRing::fixed_window`",
            CounterRing::fixed_window(quota)?.into(),
        ),
    ])
}

fn figures(algorithm: &AnyAlgorithm) -> Figures {
    let limiter = || {
        let clock = ManualClock::new();
        clock.advance(60 * MINUTE);
        (RateLimiter::with_clock(algorithm.clone(), clock.clone()), clock)
    };
    let (paced, clock) = limiter();
    let paced = (0..3600)
        .filter(|_| {
            clock.advance(Duration::from_secs(1));
            paced.check().is_ok()
        })
        .count();

    let (burst, _) = limiter();
    for _ in 0..60 {
        assert!(burst.check().is_ok());
    }
    let denied = burst.check().expect_err("the limit is reached");
    let retry_after = denied.retry_after().expect("a wait");

    // All permits after each silence, and then requests as fast as they are admitted.
    let worst = (0..60).step_by(7).map(|silence| {
        let (limiter, clock) = limiter();
        clock.advance(Duration::from_secs(silence));
        let mut admitted = Vec::new();
        for millisecond in (0..120_000).step_by(10) {
            while limiter.check().is_ok() {
                admitted.push(millisecond);
            }
            clock.advance(Duration::from_millis(10));
        }
        let in_window = |&start: &u64| {
            let window = start..start + 60_000;
            admitted.iter().filter(|at| window.contains(at)).count()
        };
        admitted.iter().map(in_window).max().unwrap_or(0)
    });
    Figures {
        bytes: 8 * algorithm.words(),
        worst: worst.max().unwrap_or(0),
        paced,
        retry_after: retry_after.as_nanos().div_ceil(1_000_000_000) as u64,
    }
}

#[test]
fn figures_are_those_of_the_guide() -> Result<(), ConfigError> {
    let page = include_str!("../src/guide/choosing.md");
    for (name, algorithm) in algorithms()? {
        let Figures {
            bytes,
            worst,
            paced,
            retry_after,
        } = figures(&algorithm);
        let share = paced * 100 / 3600;
        let figures = format!("| {worst} | {share} % | {retry_after} s | {bytes} bytes |");
        let row = page.lines().find(|line| line.starts_with(&format!("| {name} |")));
        let row = row.unwrap_or_else(|| panic!("no row {name}"));
        assert!(row.ends_with(&figures), "{name}: {figures}");
        assert!(worst as u64 <= algorithm.bound());
    }
    Ok(())
}
