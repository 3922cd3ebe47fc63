//! The bound of a bucket, b + L − 1: a greedy caller reaches it, and no rounding exceeds it.

use core::time::Duration;

use proptest::prelude::*;
use ringgate::{Algorithm, Gcra, Nanos};

use super::walk::{config, quota};
use crate::common::{Log, State};

/// Requests the whole burst at `begin`, and then all refilled permits in steps of at most the burst, until the last
/// nanosecond of the window. No refilled permit is lost, so no caller gets more between two full buckets.
fn greedy(bucket: &Gcra, limit: u64, window: u64, begin: u64) -> Log {
    let state = State::fresh(bucket);
    let mut log = Log::default();
    let mut take = |now: u64| {
        let now = Nanos::new(now);
        let permits = bucket.remaining(state.shared(), now);
        let receipt = bucket
            .decide(state.shared(), now, permits)
            .expect("so many are free");
        log.add(receipt.at(), permits);
        bucket
            .ready_at(state.shared(), now, 1)
            .expect("far from the end of time")
            .get()
    };
    let mut ready = take(begin);
    // The time in which half the burst is refilled, or one permit.
    let step = u64::try_from(u128::from(window) * u128::from(bucket.burst() / 2) / u128::from(limit))
        .expect("a window");
    let last = begin + window - 1;
    while ready < last {
        ready = take(ready.max(ready + step).min(last));
    }
    take(last);
    log
}

/// L divides W or not. b is 1, the limit, or in between. The limit is up to the largest.
#[test]
fn a_greedy_caller_reaches_the_bound_of_a_bucket() {
    const SECOND: u64 = 1_000_000_000;
    for (limit, window, burst) in [
        (1, SECOND, 1),
        (10, SECOND, 1),
        (10, SECOND, 10),
        (7, SECOND, 3),
        (999, SECOND, 1),
        (3, 1_000, 2),
        (30_000, SECOND, 30_000),
        (1_000_000, SECOND, 1_000_000),
        (333_333, 86_400 * SECOND, 1_000),
        (1_000, 1_000, 1),
        (1_000_000_000_000, 1_000_000 * SECOND, 1_000_000_000_000),
        (SECOND, SECOND, SECOND),
    ] {
        let bucket = Gcra::token_bucket(quota(limit, window), burst).expect("a bucket");
        let log = greedy(&bucket, limit, window, 5);
        assert_eq!(bucket.bound(), burst + limit - 1);
        assert_eq!(
            log.worst(Duration::from_nanos(window)),
            bucket.bound(),
            "{limit} in {window} ns, {burst}"
        );
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_rounding_exceeds_the_bound_of_a_bucket(
        (window, limit) in (1_000..31_622_400_000_000_000_u64).prop_flat_map(|window| {
            (Just(window), prop_oneof![1..1_000_u64, 1..=window.min(1_000_000_000_000)])
        }),
        part in 1..=1_000_u64,
        begin in 0..1_000_000_u64,
    ) {
        // At least a thousandth of the limit, so that the walk is short. With a small limit, one permit.
        let burst = (limit * part).div_ceil(1_000);
        let bucket = Gcra::token_bucket(quota(limit, window), burst).expect("no more than the limit");
        let most = greedy(&bucket, limit, window, begin).worst(Duration::from_nanos(window));
        // The time of a permit is rounded up to half a nanosecond, which may cost a few permits of a window.
        let permit = (2 * window).div_ceil(limit);
        prop_assert_eq!(most, burst + (2 * window - 2) / permit);
        prop_assert!(most <= bucket.bound());
    }
}
