//! A pause of a limiter: denied until its time, and as without it afterwards.

use ringgate::Clock as _;

use super::*;

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
