//! The verbs beside a check: partial admission, which takes as many permits as there is capacity for, decisions with a lower
//! limit than the limiter's, and a pause, which denies until its time and changes no answer afterwards.

use std::thread;

use ringgate::Clock as _;

use super::*;
use crate::random::Random;

/// `take_up_to` charges as many permits as one request could get. Its denial is that of a request for one permit.
#[test]
fn take_up_to_charges_the_available_permits() {
    let even = built(CounterRing::builder(quota("10/s")).even().cells(3));
    let even = Subject::new("even", even);
    for Subject { name, algorithm, .. } in subjects(quota("10/s")).into_iter().chain([even]) {
        let (limiter, clock) = by_hand(algorithm.clone());
        let table = ringgate::keyed::KeyedBuilder::new(algorithm)
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
            assert_eq!(
                of_key.map(|it| it.permits()).ok(),
                taken.as_ref().map(|it| it.permits()).ok()
            );
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
            let owned = denied.into_owned();
            is_portable(&owned);
            assert_eq!(owned.to_string(), text, "{name}");
            let owned_said = (
                owned.at(),
                owned.permits(),
                owned.remaining(),
                owned.retry_after(),
            );
            assert_eq!(owned_said, said, "{name}");
            assert!(!owned.is_overflow());
        }
    }
}

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

/// Permits that a lower limit has admitted are refunded and settled by the same limit.
#[test]
fn a_lower_limit_refunds_its_receipts() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _) = by_hand(algorithm.clone());
        let lowered = limiter.with_limit(5).expect("up to ten");
        let taken = lowered.check_n(4).expect("five are free").into_receipt();
        let settled = lowered.settle(taken, 1);
        if name == "timestamps" {
            assert_eq!(settled, Settled::Forfeited(3));
            continue;
        }
        assert_eq!((settled, lowered.peek().spent()), (Settled::Exact, 1), "{name}");
        let more = lowered.check().expect("one of five is spent");
        assert_eq!(lowered.refund(more), Settled::Exact, "{name}");
        assert_eq!(lowered.peek().spent(), 1, "{name}");
    }
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
fn a_denial_by_a_pause_names_the_first_time_that_is_admitted() {
    // One pause ends while the charge counts, and one after that.
    for pause in [Duration::from_millis(330), Duration::from_millis(700), HOUR] {
        for it in subjects(quota("10/s")) {
            let (limiter, clock, until) = paused(&it, 9, pause);
            for permits in [1, 6] {
                let denied = limiter.check_n(permits).expect_err("a pause");
                let retry = denied.retry_after().expect("a time");
                assert_eq!(limiter.peek().retry_after(permits), Some(retry), "{}", it.name);
                let due = clock.now().saturating_add(retry);
                assert!(
                    due >= until,
                    "{}: {permits} permits, {due:?} before {until:?}",
                    it.name
                );
                // A fresh limiter with equal charges, whose readings may be later than those of the next one.
                let (twin, _, _) = paused(&it, 9, pause);
                assert!(
                    twin.check_at(Nanos::new(due.get() - 1), permits).is_err(),
                    "{}: earlier",
                    it.name
                );
                let (twin, _, _) = paused(&it, 9, pause);
                assert!(
                    twin.check_at(due, permits).is_ok(),
                    "{}: {permits} at {due:?}",
                    it.name
                );
            }
        }
    }
}

#[test]
fn the_latest_time_of_a_pause_wins() {
    let (limiter, clock) = by_hand(CounterRing::new(quota("10/s")).expect("a ring"));
    let at = |after: u64| clock.now().saturating_add(Duration::from_secs(after));
    limiter.pause_until(at(20));
    limiter.pause_until(at(10));
    assert_eq!(limiter.peek().retry_after(1), Some(Duration::from_secs(20)));
    limiter.pause_until(at(30));
    assert_eq!(limiter.peek().retry_after(1), Some(Duration::from_secs(30)));
}

#[test]
fn resume_ends_a_pause() {
    let (limiter, clock) = by_hand(Gcra::new(quota("10/s")).expect("a bucket"));
    limiter.pause_until(clock.now().saturating_add(HOUR));
    assert!(limiter.check().is_err());
    assert!(limiter.with_limit(5).expect("a lower limit").check().is_err());
    limiter.resume();
    assert_eq!(limiter.peek().retry_after(10), Some(Duration::ZERO));
    assert!(limiter.check_n(10).is_ok());
    // An earlier time than that of the ended pause.
    limiter.pause_until(clock.now().saturating_add(Duration::from_secs(5)));
    assert_eq!(limiter.peek().retry_after(1), Some(Duration::from_secs(5)));
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

/// A limiter that was paused answers as one that was not.
#[test]
fn a_pause_that_is_over_changes_no_answer() {
    let even = CounterRing::builder(quota("10/s")).cells(3).even().build();
    let even = Subject::new("even", even.expect("a ring"));
    for it in subjects(quota("10/s")).into_iter().chain([even]) {
        let spent = it.algorithm.max_request() - 1;
        let (limiter, clock, _) = paused(&it, spent, Duration::from_millis(100));
        let (twin, twin_clock, _) = paused(&it, spent, Duration::from_millis(100));
        twin.resume();
        for clock in [&clock, &twin_clock] {
            clock.advance(Duration::from_millis(100));
        }
        for step in 0..30 {
            let answers = |limiter: &ByHand| {
                let peek = limiter.peek();
                let retry: Vec<_> = (1..=11).map(|permits| peek.retry_after(permits)).collect();
                (peek.remaining(), retry)
            };
            assert_eq!(answers(&limiter), answers(&twin), "{} at step {step}", it.name);
            for clock in [&clock, &twin_clock] {
                clock.advance(Duration::from_millis(50));
            }
        }
    }
}
