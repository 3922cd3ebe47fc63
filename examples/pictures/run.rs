//! What the algorithms admit of given arrivals.

use core::time::Duration;

use ringgate::{
    Algorithm, AnyAlgorithm, ConfigError, CounterRing, Gcra, ManualClock, Nanos, Quota, RateLimiter,
    TimestampRing,
};

/// Permits per window in the pictures of what is admitted.
pub(crate) const LIMIT: u64 = 20;

/// Milliseconds in the window of all pictures.
pub(crate) const WINDOW: u64 = 1_000;

/// An algorithm, and what it is called.
pub(crate) struct Lane {
    pub(crate) name: &'static str,
    pub(crate) algorithm: AnyAlgorithm,
}

/// The algorithms that are drawn, in the order of the table in the crate's documentation.
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

/// When something was admitted, of one permit asked for at each of these milliseconds.
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

/// How many of these, which are in order, are in the window that ends with each of them.
pub(crate) fn counts(admitted: &[u64]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let mut first = 0;
    admitted.iter().enumerate().map(move |(last, &at)| {
        // Half-open: exactly a window old does not count.
        while admitted[first] + WINDOW <= at {
            first += 1;
        }
        (at, (last + 1 - first) as u64)
    })
}

/// The most in any window.
pub(crate) fn most(admitted: &[u64]) -> u64 {
    counts(admitted).map(|(_, count)| count).max().unwrap_or(0)
}

/// What the algorithm says is the most.
pub(crate) fn bound(algorithm: &AnyAlgorithm) -> u64 {
    algorithm.bound()
}
