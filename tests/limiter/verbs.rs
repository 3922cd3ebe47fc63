//! The verbs beside a check: partial admission, which takes as many permits as there is capacity for, decisions with a lower
//! limit than the limiter's, and a pause, which denies until its time and changes no answer afterwards.

use std::thread;

use ringgate::Clock as _;

use super::*;

/// `take_up_to` charges as many permits as one request could get. Its denial is that of a request for one permit.
#[test]
fn take_up_to_charges_the_available_permits() {
    let even = built(CounterRing::builder(quota("10/s")).even().cells(3));
    let even = Subject::new("even", even);
    for Subject { name, algorithm, .. } in subjects(quota("10/s")).into_iter().chain([even]) {
        let (limiter, clock) = by_hand(algorithm.clone());
        let table = ringgate::KeyedRateLimiter::builder(algorithm)
            .capacity(4)
            .build_with(clock.clone(), ringgate::keyed::AnyKey::with_seeds([1, 2, 3, 4]))
            .expect("a table");
        assert_eq!(limiter.take_up_to(0).expect("nothing").permits(), 0, "{name}");
        let (mut parts, mut denials) = (0, 0);
        for step in 0..300_u64 {
            let wanted = [3, 1, 4, u64::MAX][step as usize % 4];
            let fits = limiter.peek().remaining().min(wanted);
            let taken = limiter.take_up_to(wanted);
            let of_key = table.take_up_to("alice", wanted);
            let found = of_key.map(|it| it.permits()).ok();
            assert_eq!(found, taken.as_ref().map(|it| it.permits()).ok());
            match taken {
                Ok(taken) => {
                    assert_eq!(taken.permits(), fits, "{name}, {step}");
                    assert!(fits > 0);
                    parts += u64::from(fits < wanted);
                }
                Err(denied) => {
                    assert_eq!((denied.permits(), fits), (1, 0), "{name}, {step}");
                    assert!(denied.retry_after().is_some());
                    denials += 1;
                }
            }
            clock.advance(Duration::from_millis(37));
        }
        assert!(
            parts > 0 && denials > 0,
            "{name}: {parts} parts, {denials} denials"
        );
    }
}

/// Threads together take exactly the limit, whatever the interleaving.
#[test]
fn threads_together_take_exactly_the_limit() {
    const THREADS: u64 = 4;
    let limit = if cfg!(miri) { 40 } else { 100_000 };
    let quota = ringgate::Quota::per_minute(limit).expect("a quota");
    for algorithm in [
        Any::from(CounterRing::new(quota).expect("a ring")),
        TimestampRing::new(quota).expect("a log").into(),
        Gcra::new(quota).expect("a bucket").into(),
    ] {
        let limiter = RateLimiter::with_clock(algorithm, ManualClock::new());
        let taken: u64 = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let limiter = &limiter;
                    scope.spawn(move || {
                        let mut all = 0;
                        for wanted in (thread + 1..).step_by(3) {
                            match limiter.take_up_to(wanted % 50 + 1) {
                                Ok(taken) => all += taken.permits(),
                                Err(_) => break,
                            }
                        }
                        all
                    })
                })
                .collect();
            threads.into_iter().map(|it| it.join().expect("no panic")).sum()
        });
        assert_eq!(taken, limit);
    }
}

/// A denial that borrows nothing says the same, and outlives its limiter.
#[test]
fn an_owned_denial_says_the_same() {
    fn is_portable<T: core::error::Error + Send + Sync + 'static>(_: &T) {}

    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _clock) = by_hand(algorithm);
        while limiter.check().is_ok() {}
        for permits in [1, 11] {
            let denied = limiter.check_n(permits).expect_err("nothing is left");
            let text = denied.to_string();
            let said = (
                denied.at(),
                denied.permits(),
                denied.remaining(),
                denied.retry_after(),
            );
            let owned = OwnedDenied::from(denied);
            is_portable(&owned);
            assert_eq!(owned.to_string(), text, "{name}");
            let owned_said = (owned.at, owned.permits, owned.remaining, owned.retry_after);
            assert_eq!(owned_said, said, "{name}");
            assert!(!owned.is_overflow);
        }
    }
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

/// A limit is one permit at least, and at most the limiter's own.
#[test]
fn a_limit_out_of_range_is_an_error() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _) = by_hand(algorithm.clone());
        for limit in [0, 11, u64::MAX] {
            let error = limiter.with_limit(limit).expect_err("out of range");
            let text =
                format!("invalid limit: {limit} (expected 1 to 10 permits, the limit that is lowered)");
            assert_eq!(error.to_string(), text, "{name}");
        }
    }
    let several = built(CounterRing::builder(quota("10/s")).also(quota("100/min")));
    let (limiter, _) = by_hand(several);
    assert_eq!(
        limiter.with_limit(5).expect_err("which of them?").field,
        "windows"
    );
}

const HOUR: Duration = Duration::from_secs(3600);

/// A pause that begins with `spent` of ten permits charged, and ends within or after the window.
fn paused(it: &Subject, spent: u64, pause: Duration) -> (ByHand, ManualClock, Nanos) {
    let (limiter, clock) = by_hand(it.algorithm.clone());
    limiter.check_n(spent).expect("the window is empty");
    let until = clock.now().saturating_add(pause);
    limiter.pause_until(until);
    (limiter, clock, until)
}

#[test]
fn a_paused_limiter_admits_nothing_before_the_time() {
    for it in subjects(quota("10/s")) {
        let (mut limiter, clock, until) = paused(&it, 1, HOUR);
        let before = Nanos::new(until.get() - 1);
        for now in [clock.now(), before] {
            assert!(limiter.check_at(now, 1).is_err(), "{}: check_at {now:?}", it.name);
            assert!(
                limiter.check_at_mut(now, 1).is_err(),
                "{}: check_at_mut {now:?}",
                it.name
            );
            assert!(limiter.check_at(now, 0).is_ok(), "{}: no permits", it.name);
        }
        assert!(
            limiter.check().is_err() && limiter.check_mut().is_err(),
            "{}: check",
            it.name
        );
        assert!(limiter.take_up_to(3).is_err(), "{}: take_up_to", it.name);
        assert_eq!(limiter.peek().remaining(), 0, "{}", it.name);
        assert_eq!(limiter.peek().spent(), 1, "{}: a pause charges nothing", it.name);
        clock.advance(HOUR);
        assert_eq!(limiter.peek().remaining(), 10, "{}", it.name);
        assert!(limiter.check_n(10).is_ok(), "{}: the whole limit", it.name);
    }
}

#[test]
fn a_pause_is_not_saved() {
    let ring = || CounterRing::new(quota("10/s")).expect("a ring");
    let (limiter, clock) = by_hand(ring());
    limiter.check_n(4).expect("the window is empty");
    let before = limiter.save();
    limiter.pause_until(clock.now().saturating_add(HOUR));
    assert_eq!(limiter.save(), before);
    let (restored, _) = by_hand(ring());
    restored.restore(&before, Duration::ZERO);
    assert_eq!(restored.peek().remaining(), 6);
}

/// The capacity of a pause at the end of time is never.
#[test]
fn a_pause_without_end_overflows_nothing() {
    for it in subjects(quota("10/s")) {
        let (limiter, clock, _) = paused(&it, 1, Duration::MAX);
        let retry = limiter.peek().retry_after(1);
        assert!(
            retry.is_none_or(|retry| clock.now().saturating_add(retry) == Nanos::MAX),
            "{}",
            it.name
        );
        assert!(limiter.check().is_err(), "{}", it.name);
    }
}
