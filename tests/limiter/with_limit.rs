//! Decisions with a lower limit than the limiter's.

use crate::random::Random;
use crate::*;
use ringgate::Clock;

/// The algorithms that count permits. A bucket counts time instead.
fn counting() -> Vec<Subject> {
    let mut all = subjects(quota("10/s"));
    all.retain(|it| it.name != "bucket");
    all
}

/// While the window holds more than the lower limit, nothing is admitted by it; then as much as is left of it.
#[test]
fn a_lower_limit_takes_effect_at_once() {
    for subject in counting() {
        let name = &subject.name;
        let (limiter, clock) = by_hand(subject.algorithm.clone());
        let with = |limit| limiter.with_limit(limit).expect("up to ten");
        assert!(limiter.check_n(6).is_ok());
        for limit in 1..=6 {
            let lowered = with(limit);
            let denied = lowered.check().expect_err("six are more");
            assert_eq!(denied.remaining(), 0, "{name}, {limit}");
            let wait = denied.retry_after().expect("they expire");
            assert!(!wait.is_zero());
            assert_eq!(lowered.check_n(limit + 1).expect_err("never").retry_after(), None);
            assert_eq!(lowered.peek().spent(), 6);
        }
        for limit in 7..=10 {
            assert_eq!(with(limit).peek().remaining(), limit - 6, "{name}");
        }
        // Two more are too many for a limit of seven, and one is not.
        let seven = with(7);
        assert!(seven.check_n(2).is_err(), "{name}");
        assert_eq!(
            seven.check().expect("one of seven is left").remaining(),
            0,
            "{name}"
        );
        let denied = seven.check().expect_err("seven are spent");
        clock.advance(denied.retry_after().expect("they expire"));
        assert!(seven.check().is_ok(), "{name}");
        // The limiter's own limit holds for its own decisions.
        assert!(limiter.check_n(2).is_ok(), "{name}");
    }
}

/// The limits and the times of the decisions are arbitrary. An exact log says that no admission by a limit leaves more than the
/// limit in the window that it ends, and that no request is denied while the summed cells have capacity for it.
#[test]
fn a_limit_holds_for_each_decision_when_limits_change() {
    let mut random = Random::new(1);
    let steps = if cfg!(miri) { 100 } else { 30_000 };
    for subject in counting() {
        let name = subject.name.clone();
        let is_exact = ["strict", "unpacked", "timestamps"].contains(&name.as_str());
        let (limiter, clock) = by_hand(subject.algorithm.clone());
        let window = Duration::from_secs(1);
        let span = ringgate::algorithm::Reclaim::span(&subject.algorithm);
        let mut log: Vec<(Nanos, u64)> = Vec::new();
        let mut all = Log::default();
        let (mut admitted, mut denied) = (0, 0);
        for _ in 0..steps {
            clock.advance(Duration::from_millis(random.below(120)));
            let (limit, permits) = (1 + random.below(10), 1 + random.below(3));
            let now = clock.now();
            let spent_in = |length: Duration, log: &[(Nanos, u64)]| -> u64 {
                let young = log.iter().filter(|(at, _)| now.saturating_since(*at) < length);
                young.map(|(_, permits)| permits).sum()
            };
            let decision = if limit == 10 {
                limiter.check_n(permits).map(|taken| taken.at()).map_err(|_| ())
            } else {
                let lowered = limiter.with_limit(limit).expect("up to ten");
                let most = lowered.peek().remaining();
                let decision = lowered.check_n(permits);
                assert_eq!(decision.is_ok(), permits <= most, "{name}");
                decision.map(|taken| taken.at()).map_err(|_| ())
            };
            match decision {
                Ok(at) => {
                    admitted += 1;
                    log.push((at, permits));
                    all.add(at, permits);
                    assert!(!is_exact || spent_in(window, &log) <= limit, "{name}: {limit}");
                }
                Err(()) => {
                    denied += 1;
                    // The cells that are summed, and the part of one that the reading is in.
                    let most = spent_in(span + window / 5, &log) + permits;
                    assert!(most > limit, "{name}: {most} of {limit}");
                }
            }
            log.retain(|(at, _)| now.saturating_since(*at) < 3 * window);
        }
        assert!(
            admitted > steps / 10 && denied > steps / 10,
            "{name}: {admitted}, {denied}"
        );
        assert_eq!(subject.broken(&all), None, "{name}");
    }
}

/// A bucket admits no more than its own bound, by decisions with any lower limits, and a bucket that is used up stays so.
#[test]
fn a_bucket_with_lower_limits_keeps_its_bound() {
    let bucket = Gcra::new(quota("10/s")).expect("a bucket");
    let (limiter, clock) = by_hand(bucket.clone());
    assert!(limiter.check_n(10).is_ok());
    for limit in 1..10 {
        assert!(limiter.with_limit(limit).expect("up to ten").check().is_err());
    }
    clock.advance(Duration::from_secs(10));
    let mut log = Log::default();
    for step in 0..5_000_u64 {
        clock.advance(Duration::from_millis(step * 7 % 60));
        let lowered = limiter.with_limit(1 + step * 11 % 10).expect("up to ten");
        if let Ok(taken) = lowered.check() {
            log.add(taken.at(), 1);
        }
    }
    assert!(log.worst(Duration::from_secs(1)) <= bucket.bound());
}

/// At high rates the rounding of the time per permit is a large part of it. The lower limit decides last, when the bucket is
/// used up by the limiter.
#[test]
fn a_bucket_with_lower_limits_keeps_its_bound_at_any_rate() {
    let window = Duration::from_secs(1);
    for limit in [
        1,
        2,
        3,
        10,
        1_260,
        2_000,
        44_722,
        1_000_000,
        999_999_999,
        1_000_000_000,
    ] {
        for burst in [1, limit / 2, limit] {
            let quota = Quota::new(limit, window).expect("a quota");
            let Ok(bucket) = Gcra::token_bucket(quota, burst) else {
                assert_eq!(burst, 0);
                continue;
            };
            for lower in [1, limit / 3, limit / 2 + 1, limit - 1, limit] {
                if !(1..=limit).contains(&lower) {
                    continue;
                }
                let (limiter, clock) = by_hand(bucket.clone());
                let lowered = limiter.with_limit(lower).expect("a lower limit");
                // In proportion, up to the rounding.
                let proportion = u128::from(burst) * u128::from(lower) / u128::from(limit);
                let rounding = u128::from(burst).div_ceil(2_000_000_000 / u128::from(limit));
                let most = u128::from(lowered.peek().remaining());
                assert!(most <= proportion.max(1) && most + rounding >= proportion);
                let mut admitted = 0;
                for later in [Duration::ZERO, window - Duration::from_nanos(1)] {
                    clock.advance(later);
                    let own = limiter.peek().remaining();
                    assert!(limiter.check_n(own).is_ok());
                    let others = lowered.peek().remaining();
                    assert!(lowered.check_n(others).is_ok());
                    admitted += own + others;
                }
                assert!(
                    admitted <= bucket.bound(),
                    "{admitted} of {}, by {lower} of {limit} with a burst of {burst}",
                    bucket.bound()
                );
            }
        }
    }
}

/// A lower limit takes more time per permit. So its refund of an earlier charge must not be taken for a later one.
#[test]
fn a_lower_limit_does_not_refund_a_later_charge_of_a_bucket() {
    let (limiter, _) = by_hand(Gcra::new(quota("10/s")).expect("a bucket"));
    let first = limiter.check().expect("ten are free").into_receipt();
    assert!(limiter.check().is_ok());
    let lowered = limiter.with_limit(5).expect("up to ten");
    assert_eq!(lowered.refund(first), Settled::Forfeited(1));
    assert_eq!(limiter.peek().spent(), 2);
    // The newest charge is refunded whole, by any limit.
    let last = limiter.check_n(3).expect("eight are free").into_receipt();
    assert_eq!(lowered.refund(last), Settled::Exact);
    assert_eq!(limiter.peek().spent(), 2);
}

/// A limit is one permit at least, and at most the limiter's own.
#[test]
fn a_limit_out_of_range_is_an_error() {
    for subject in subjects(quota("10/s")) {
        let (limiter, _) = by_hand(subject.algorithm.clone());
        for limit in [0, 11, u64::MAX] {
            let error = limiter.with_limit(limit).expect_err("out of range");
            let text =
                format!("invalid limit: {limit} (expected 1 to 10 permits, the limit that is lowered)");
            assert_eq!(error.to_string(), text, "{}", subject.name);
        }
    }
    let several = built(CounterRing::builder(quota("10/s")).also(quota("100/min")));
    let (limiter, _) = by_hand(several);
    assert_eq!(
        limiter.with_limit(5).expect_err("which of them?").field,
        "windows"
    );
}

/// Permits that a lower limit has admitted are refunded and settled by the same limit.
#[test]
fn a_lower_limit_refunds_its_receipts() {
    for subject in subjects(quota("10/s")) {
        let (limiter, _) = by_hand(subject.algorithm.clone());
        let lowered = limiter.with_limit(5).expect("up to ten");
        let taken = lowered.check_n(4).expect("five are free").into_receipt();
        let settled = lowered.settle(taken, 1);
        if subject.name == "timestamps" {
            assert_eq!(settled, Settled::Forfeited(3));
            continue;
        }
        assert_eq!(
            (settled, lowered.peek().spent()),
            (Settled::Exact, 1),
            "{}",
            subject.name
        );
        let more = lowered.check().expect("one of five is spent");
        assert_eq!(lowered.refund(more), Settled::Exact, "{}", subject.name);
        assert_eq!(lowered.peek().spent(), 1, "{}", subject.name);
    }
}
