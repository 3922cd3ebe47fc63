//! Decisions against a lower limit in place equal those of the algorithm with that limit.

use core::time::Duration;

use proptest::prelude::*;
use ringgate::algorithm::{InUnits, Reclaim};
use ringgate::sync::Words;
use ringgate::{Algorithm, CounterRing, Gcra, ManualClock, Quota, RateLimiter};

use super::walk::{Size, Walk, acts, anywhere, config, history, limiter_subject, quota, size, window};
use crate::common::{Any, State};

fn words_of(state: &State, words: usize) -> Vec<u64> {
    let load = |index| state.shared().load(index, core::sync::atomic::Ordering::Relaxed);
    (0..words).map(load).collect()
}

proptest! {
    #![proptest_config(config())]

    /// An attempt in place has the same result, and leaves the same words. Limits are valid or invalid for both.
    #[test]
    fn an_attempt_in_place_is_that_of_the_algorithm_with_the_limit(
        subject in limiter_subject(),
        part in 0..=1100_u64,
        history in history(anywhere(), acts()),
        sizes in prop::collection::vec(size(), 1..12),
    ) {
        let mut walk = Walk::new(&subject.algorithm);
        let it = walk.algorithm;
        let limit = Size::Permille(part).of(it.bound());
        let lowered = it.with_limit(limit);
        prop_assert_eq!(it.validate_limit(limit).err(), lowered.clone().err());
        let Ok(lowered) = lowered else { return Ok(()) };
        for (op, size) in history.into_iter().zip(sizes.into_iter().cycle()) {
            walk.step(op);
            let (now, permits) = (walk.at(), size.of(lowered.max_request()));
            let (one, other) = (walk.state.clone(), walk.state.clone());
            prop_assert_eq!(
                it.attempt_with_limit(limit, one.shared(), now, permits),
                lowered.attempt(other.shared(), now, permits)
            );
            prop_assert_eq!(words_of(&one, it.words()), words_of(&other, it.words()));
            if permits % 2 == 0 {
                walk.state = one;
            }
        }
    }

    /// The burst of a lower limit is in proportion, rounded down, but at least one permit and short enough for the bound.
    #[test]
    fn a_lower_burst_is_in_proportion(
        limit in prop_oneof![1..400_u64, 1..1_000_000_000_u64, 1..Quota::MAX_LIMIT],
        window in prop_oneof![window(), 1_000_000_000..Quota::MAX_WINDOW.as_nanos() as u64],
        burst in prop_oneof![Just(1000), 0..2000_u64, 0..20_u64, 990..1010_u64],
        lower in prop_oneof![0..=1000_u64, 0..20_u64, 980..=1000_u64],
    ) {
        let per_mille = |of: u64, part: u64| (u128::from(of) * u128::from(part) / 1000) as u64;
        let burst = per_mille(limit, burst).max(1);
        let Ok(bucket) = Gcra::token_bucket(quota(limit, window), burst) else { return Ok(()) };
        let lower = per_mille(limit, lower).max(1);
        // The second limit is a limit of the first one.
        let (mut bucket, mut limit) = (bucket, limit);
        for lower in [lower, lower.div_ceil(2)] {
            let lowered = bucket.with_limit(lower).expect("at most its own");
            let units = 2 * u128::from(window);
            let [fast, slow] = [limit, lower].map(|limit| units.div_ceil(u128::from(limit)));
            let share = u128::from(bucket.burst()) * u128::from(lower) / u128::from(limit);
            let others = (u128::from(bucket.bound()) * fast - units) / slow;
            let expected = share.min(others + 1).max(1);
            prop_assert_eq!(u128::from(lowered.burst()), expected);
            prop_assert_eq!(lowered.bound(), lowered.burst() + lower - 1);
            let refilled = (expected * slow).div_ceil(2);
            prop_assert_eq!(lowered.span(), Duration::from_nanos(refilled as u64));
            (bucket, limit) = (lowered, lower);
        }
    }
}

/// A lower limit in units is rounded down to whole ones. A limit of less than one unit is an error.
#[test]
fn a_lower_limit_in_units_is_rounded_down() {
    let rate = Quota::per_second(3_125_000_000).expect("a quota");
    let ring = InUnits::new(rate, |units, _| CounterRing::new(units).map(Any::from)).expect("a ring");
    let bucket = InUnits::new(rate, |units, _| Gcra::new(units).map(Any::from)).expect("a bucket");
    for it in [Any::from(ring), Any::from(bucket)] {
        let unit = 256;
        let limiter = RateLimiter::with_clock(it.clone(), ManualClock::new());
        let lower = limiter.with_limit(7 * unit + unit - 1).expect("seven units");
        assert_eq!((lower.peek().remaining(), lower.peek().spent()), (7 * unit, 0));
        assert!(lower.check_n(7 * unit + 1).is_err());
        assert!(lower.check_n(6 * unit + 1).is_ok());
        assert!(lower.check().is_err());
        assert!(lower.check_n(0).is_ok());
        let error = it.with_limit(unit - 1).expect_err("less than one unit");
        assert_eq!(limiter.with_limit(unit - 1).map(|_| ()), Err(error));
    }
}
