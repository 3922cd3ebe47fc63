//! Runs the algorithms on given arrivals.

use core::time::Duration;

use ringgate::{
    Algorithm, AnyAlgorithm, ConfigError, CounterRing, Gcra, ManualClock, Nanos, Quota, RateLimiter,
    TimestampRing,
};

/// Permits per window.
pub(crate) const LIMIT: u64 = 20;

/// Milliseconds per window.
pub(crate) const WINDOW: u64 = 1_000;

/// An algorithm with its name.
pub(crate) struct Lane {
    pub(crate) name: &'static str,
    pub(crate) algorithm: AnyAlgorithm,
}

/// The algorithms in the order of the table in the documentation of the crate.
pub(crate) fn lanes() -> Result<Vec<Lane>, ConfigError> {
    let quota = Quota::new(LIMIT, Duration::from_millis(WINDOW))?;
    let lane = |name, algorithm| Lane { name, algorithm };
    Ok(vec![
        lane("TimestampRing", TimestampRing::new(quota)?.into()),
        lane("CounterRing, strict", CounterRing::new(quota)?.into()),
        lane(
            "CounterRing, classic",
            CounterRing::builder(quota).classic().build()?.into(),
        ),
        lane(
            "CounterRing, even",
            CounterRing::builder(quota).even().build()?.into(),
        ),
        lane("fixed window", CounterRing::fixed_window(quota)?.into()),
        lane("Gcra, burst 20", Gcra::new(quota)?.into()),
        lane("Gcra, burst 1", Gcra::token_bucket(quota, 1)?.into()),
    ])
}

/// Requests one permit at each millisecond of `arrivals`, and returns the times of the admissions.
pub(crate) fn admitted(algorithm: &AnyAlgorithm, arrivals: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let clock = ManualClock::new();
    let limiter = RateLimiter::with_clock(algorithm.clone(), clock.clone());
    let mut admitted = Vec::new();
    for at in arrivals {
        clock.set(Nanos::from_duration(Duration::from_millis(at)));
        if limiter.check().is_ok() {
            admitted.push(at);
        }
    }
    admitted
}

/// Returns for each admission the number of admissions in the window that ends with it.
pub(crate) fn counts(admitted: &[u64]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let mut first = 0;
    admitted.iter().enumerate().map(move |(last, &at)| {
        // The window is half-open: an admission exactly a window old is outside.
        while admitted[first] + WINDOW <= at {
            first += 1;
        }
        (at, (last + 1 - first) as u64)
    })
}

/// Returns the most admissions in any window.
pub(crate) fn most(admitted: &[u64]) -> u64 {
    counts(admitted).map(|(_, count)| count).max().unwrap_or(0)
}

/// Returns the bound that the algorithm reports.
pub(crate) fn bound(algorithm: &AnyAlgorithm) -> u64 {
    algorithm.bound()
}
