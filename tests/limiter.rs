//! A limiter as its users see it: checks, peeks, refunds, settling, saving and restoring.
#![cfg(not(ringgate_loom))]

#[expect(dead_code, reason = "the state is for tests of the algorithms themselves")]
mod common;

#[path = "limiter/custom.rs"]
mod custom;
#[path = "limiter/receipts.rs"]
mod receipts;

use core::time::Duration;
use std::collections::HashSet;

use common::{Any, Log, Subject};
use proptest::prelude::*;
use ringgate::algorithm::CounterRingBuilder;
use ringgate::limiter::SavedState;
use ringgate::{
    Admitted, Algorithm, CounterRing, Denied, Gcra, ManualClock, Nanos, Quota, RateLimiter, Receipt, Settled,
    TimestampRing,
};

type ByHand = RateLimiter<Any, ManualClock>;

fn quota(text: &str) -> Quota {
    text.parse().expect("a quota")
}

fn built(builder: CounterRingBuilder) -> CounterRing {
    builder.build().expect("a ring")
}

/// Every algorithm, with the limit and window of `quota`.
fn subjects(quota: Quota) -> Vec<Subject> {
    let builder = || CounterRing::builder(quota);
    vec![
        Subject::new("strict", built(builder())),
        Subject::new("unpacked", built(builder().unpacked())),
        Subject::new("classic", built(builder().classic())),
        Subject::new("fixed window", CounterRing::fixed_window(quota).expect("a ring")),
        Subject::new("timestamps", TimestampRing::new(quota).expect("a ring")),
        Subject::new("bucket", Gcra::new(quota).expect("a bucket")),
    ]
}

fn by_hand(it: impl Into<Any>) -> (ByHand, ManualClock) {
    let clock = ManualClock::new();
    clock.advance(Duration::from_secs(3600));
    (RateLimiter::with_clock(it.into(), clock.clone()), clock)
}

#[test]
fn checks_take_what_they_say() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm);
        let now = clock_time(&limiter);
        let one = limiter.check().expect("fresh");
        assert_eq!((one.at(), one.permits(), one.remaining()), (now, 1, 9), "{name}");
        let three = limiter.check_n(3).expect("nine are left");
        assert_eq!((three.permits(), three.remaining()), (3, 6), "{name}");
        // Details are computed on request, so they show later charges.
        assert_eq!(one.remaining(), 6, "{name}");
        clock.advance(Duration::from_millis(1));
        let at = clock_time(&limiter);
        assert_eq!(limiter.check_at(at, 0).expect("nothing").permits(), 0);
        assert_eq!(limiter.check_at(at, 6).expect("six are left").at(), at, "{name}");
        let denied = limiter.check_at(at, 2).expect_err("none is left");
        assert_eq!(
            (denied.at(), denied.permits(), denied.remaining()),
            (at, 2, 0),
            "{name}"
        );
        let retry = denied.retry_after().expect("at most the limit");
        clock.advance(retry - Duration::from_nanos(1));
        assert!(limiter.check_n(2).is_err(), "{name}");
        clock.advance(Duration::from_nanos(1));
        assert!(limiter.check_n(2).is_ok(), "{name}");
    }
}

/// The bound is by the times that are given: what is admitted at an old one counts from then on, not from the call on.
#[test]
fn an_old_reading_counts_from_its_own_time_on() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm);
        let old = clock_time(&limiter);
        clock.advance(Duration::from_millis(1_200));
        assert_eq!(limiter.check_at(old, 10).expect("fresh").at(), old, "{name}");
        assert!(limiter.check_n(10).is_ok(), "{name}");
    }
}

/// A time ahead of the clock is believed, and what is admitted at it counts until a window after it.
#[test]
fn a_time_ahead_of_the_clock_is_believed() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm);
        let ahead = clock_time(&limiter).saturating_add(Duration::from_secs(60));
        assert_eq!(limiter.check_at(ahead, 10).expect("fresh").at(), ahead, "{name}");
        for _ in 0..2 {
            // Now, and when the clock has got there.
            assert!(limiter.check().is_err(), "{name}");
            clock.set(ahead);
        }
        clock.advance(Duration::from_millis(1_200));
        assert!(limiter.check_n(10).is_ok(), "{name}");
        // As far ahead as can be: never again.
        let _ = limiter.check_at(Nanos::MAX, 10);
        clock.advance(Duration::from_secs(86_400));
        let denied = limiter.check().expect_err("all is used up");
        let text = denied.to_string();
        match denied.retry_after() {
            // A bucket's time goes on for longer.
            Some(after) => assert!(after > Duration::from_secs(20 * 366 * 86_400), "{name}"),
            None => assert_eq!(text, "rate limit reached until the limiter's time ends", "{name}"),
        }
    }
}

#[test]
fn owned_checks_decide_as_shared_ones() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (shared, clock) = by_hand(algorithm.clone());
        let mut owned = RateLimiter::with_clock(algorithm, clock.clone());
        // Miri: one step takes a hundredth of a second.
        for step in 0..if cfg!(miri) { 50 } else { 3_000_u64 } {
            clock.advance(Duration::from_millis(step % 83));
            let now = clock_time(&shared);
            let (one, other) = match step % 3 {
                0 => (plain(shared.check()), plain(owned.check_mut())),
                1 => (
                    plain(shared.check_n(step % 5)),
                    plain(owned.check_n_mut(step % 5)),
                ),
                _ => (plain(shared.check_at(now, 2)), plain(owned.check_at_mut(now, 2))),
            };
            assert_eq!(one, other, "{name} at step {step}");
        }
    }
}

/// An answer without the borrow of the limiter: when, how many, how many are left, and
/// when to try again.
type Plain = (Nanos, u64, u64, Option<Duration>);

fn plain(answer: Result<Admitted<'_, Any>, Denied<'_, Any>>) -> Result<Plain, Plain> {
    match answer {
        Ok(it) => Ok((it.at(), it.permits(), it.remaining(), None)),
        Err(it) => Err((it.at(), it.permits(), it.remaining(), it.retry_after())),
    }
}

#[test]
fn a_peek_tells_and_changes_nothing() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm);
        let peek = limiter.peek();
        assert_eq!(
            (peek.at(), peek.remaining(), peek.spent()),
            (clock_time(&limiter), 10, 0),
            "{name}"
        );
        assert_eq!(peek.retry_after(10), Some(Duration::ZERO), "{name}");
        assert_eq!(peek.retry_after(11), None, "{name}");
        assert!(limiter.check_n(4).is_ok());
        // The same peek, asked again, shows what was taken since.
        assert_eq!((peek.remaining(), peek.spent()), (6, 4), "{name}");
        assert_eq!(peek.retry_after(6), Some(Duration::ZERO), "{name}");
        let wait = peek.retry_after(7).expect("at most the limit");
        assert!(wait > Duration::ZERO, "{name}");
        // Miri: one peek takes milliseconds.
        for _ in 0..if cfg!(miri) { 3 } else { 1_000 } {
            assert_eq!(
                (limiter.peek().remaining(), limiter.peek().retry_after(7)),
                (6, Some(wait)),
                "{name}"
            );
        }
        clock.advance(wait);
        assert_eq!(limiter.peek().retry_after(7), Some(Duration::ZERO), "{name}");
        assert!(limiter.check_n(7).is_ok(), "{name}");
    }
}

#[test]
fn more_than_the_most_is_never_admitted_and_says_so() {
    let even = built(CounterRing::builder(quota("10/s")).even().cells(4));
    let bucket = Gcra::token_bucket(quota("10/s"), 3).expect("a bucket");
    for (it, most) in [(Any::from(even), 3), (bucket.into(), 3)]
        .into_iter()
        .chain(subjects(quota("10/s")).into_iter().map(|it| (it.algorithm, 10)))
    {
        let (limiter, clock) = by_hand(it);
        for _ in 0..20 {
            for permits in [most + 1, u64::MAX] {
                let denied = limiter.check_n(permits).expect_err("too many");
                assert_eq!(denied.retry_after(), None);
                assert_eq!(
                    denied.to_string(),
                    format!("{permits} permits at once are never admitted; at most {most} are")
                );
                assert_eq!(limiter.peek().retry_after(permits), None);
            }
            assert!(limiter.peek().retry_after(most).is_some());
            clock.advance(Duration::from_millis(250));
        }
    }
}

#[test]
fn a_denial_is_an_error_that_says_when() {
    let (limiter, _clock) = by_hand(TimestampRing::new(quota("1/1500ms")).expect("a ring"));
    assert!(limiter.check().is_ok());
    let denied = limiter.check().expect_err("one has passed");
    let error: &dyn core::error::Error = &denied;
    assert_eq!(error.to_string(), "rate limit reached; try again in 1.5s");
    assert!(error.source().is_none());
}

#[test]
fn a_refund_gives_back_what_was_taken() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        if matches!(algorithm, Any::Log(_)) {
            continue;
        }
        let (limiter, _clock) = by_hand(algorithm);
        let taken = limiter.check_n(4).expect("fresh");
        assert_eq!(limiter.refund(taken), Settled::Exact, "{name}");
        assert_eq!(
            (limiter.peek().remaining(), limiter.peek().spent()),
            (10, 0),
            "{name}"
        );
        // A receipt does not borrow the limiter, and does the same.
        let receipt: Receipt = limiter.check_n(10).expect("all were given back").into_receipt();
        assert_eq!(limiter.peek().remaining(), 0);
        assert_eq!(limiter.refund(receipt), Settled::Exact, "{name}");
        assert_eq!(limiter.peek().remaining(), 10, "{name}");
        let nothing = limiter.check_n(0).expect("nothing");
        assert_eq!(limiter.refund(nothing), Settled::Exact, "{name}");
    }
}

/// A log only moves on, and says so.
#[test]
fn a_log_gives_nothing_back() {
    let (limiter, _clock) = by_hand(TimestampRing::new(quota("10/s")).expect("a ring"));
    let taken = limiter.check_n(4).expect("fresh");
    assert_eq!(limiter.refund(taken), Settled::Forfeited(4));
    let estimate = limiter.check_n(3).expect("six are left");
    assert_eq!(limiter.settle(estimate, 1), Settled::Forfeited(2));
    assert_eq!((limiter.peek().remaining(), limiter.peek().spent()), (3, 7));
    let nothing = limiter.check_n(0).expect("nothing");
    assert_eq!(limiter.refund(nothing), Settled::Exact);
}

/// Counter rings give back until a later cell is entered, whatever came in between; GCRA while
/// nothing came in between.
#[test]
fn a_refund_that_comes_too_late_is_forfeited() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        if matches!(algorithm, Any::Log(_)) {
            continue;
        }
        let is_counter = matches!(algorithm, Any::Counter(_));
        let (limiter, clock) = by_hand(algorithm);
        let first = limiter.check_n(2).expect("fresh").into_receipt();
        let second = limiter.check_n(3).expect("eight are left").into_receipt();
        let expected = if is_counter {
            Settled::Exact
        } else {
            Settled::Forfeited(2)
        };
        assert_eq!(limiter.refund(first), expected, "{name}");
        // The newest goes back, whatever became of the one before.
        assert_eq!(limiter.refund(second), Settled::Exact, "{name}");
        let spent = if is_counter { 0 } else { 2 };
        assert_eq!(limiter.peek().spent(), spent, "{name}");

        let late = limiter.check_n(2).expect("enough are left").into_receipt();
        clock.advance(Duration::from_millis(1_000));
        assert!(limiter.check().is_ok());
        let before = limiter.peek().spent();
        assert_eq!(limiter.refund(late), Settled::Forfeited(2), "{name}");
        assert_eq!(limiter.peek().spent(), before, "{name}");
    }
}

/// Restoring a state adds to the permits that are spent. A receipt from before refunds at most its own permits, and no
/// restored ones.
#[test]
fn a_receipt_of_before_restoring_gives_back_its_own_permits_only() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm.clone());
        let saved = {
            let before = RateLimiter::with_clock(algorithm, clock);
            assert!(before.check_n(5).is_ok());
            before.save()
        };
        let taken = limiter.check_n(2).expect("fresh").into_receipt();
        limiter.restore(&saved, Duration::ZERO);
        assert_eq!(limiter.peek().spent(), 7, "{name}");
        let given_back = match limiter.refund(taken) {
            Settled::Exact => 2,
            Settled::Forfeited(2) => 0,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(limiter.peek().spent(), 7 - given_back, "{name}");
    }
}

#[test]
fn settling_charges_the_actual_cost() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm.clone());
        let estimate = || limiter.check_n(4).expect("room for an estimate");
        assert_eq!(limiter.settle(estimate(), 4), Settled::Exact);
        assert_eq!(limiter.peek().spent(), 4, "{name}");
        let (kept, spent) = if matches!(algorithm, Any::Log(_)) {
            (Settled::Forfeited(3), 8)
        } else {
            (Settled::Exact, 5)
        };
        assert_eq!(limiter.settle(estimate(), 1), kept);
        assert_eq!(limiter.peek().spent(), spent, "{name}");
        // More than there is: later decisions see the debt.
        let estimate = limiter.check_n(2).expect("at least two permits are left");
        assert_eq!(limiter.settle(estimate, 9), Settled::Exact);
        assert_eq!(
            (limiter.peek().remaining(), limiter.check().is_ok()),
            (0, false),
            "{name}"
        );
        assert!(limiter.peek().spent() >= 10, "{name}");
        let idle = limiter.save().idle_after();
        clock.advance(idle);
        assert_eq!(
            (limiter.peek().remaining(), limiter.peek().spent()),
            (10, 0),
            "{name}"
        );

        // Permits that are settled too low too late stay spent.
        let late = limiter.check_n(4).expect("idle").into_receipt();
        clock.advance(Duration::from_millis(1_000));
        assert!(limiter.check().is_ok());
        assert_eq!(limiter.settle(late, 1), Settled::Forfeited(3), "{name}");
    }
}

/// Permits that no word can hold are forgiven, and the answer says how many. (A ring of one word, and the
/// log of times, can hold whatever makes a difference.)
#[test]
fn debt_beyond_all_measure_is_forgiven_or_booked() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let forgives = name == "unpacked" || name == "bucket";
        let (limiter, clock) = by_hand(algorithm);
        let taken = limiter.check().expect("fresh");
        match limiter.settle(taken, u64::MAX) {
            Settled::Exact => assert!(!forgives, "{name}"),
            Settled::Forgiven(permits) => assert!(forgives && permits < u64::MAX - 10, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(limiter.peek().remaining(), 0, "{name}");
        // The next debt finds no room at all, in a word that is full.
        let nothing = limiter.check_n(0).expect("nothing is always admitted");
        let again = limiter.settle(nothing, 1_000);
        assert!(
            !forgives || matches!(again, Settled::Forgiven(_)),
            "{name}: {again:?}"
        );
        clock.advance(Duration::from_millis(900));
        assert!(limiter.check().is_err(), "{name}");
    }
}

#[test]
fn a_limiter_says_what_it_promises() {
    let (limiter, _clock) = by_hand(built(CounterRing::builder(quota("10/s")).classic()));
    assert_eq!(limiter.bound(), 20);
    let promise = limiter.promise();
    assert_eq!((promise.permits, promise.interval), (20, Duration::from_secs(1)));
    assert_eq!(limiter.algorithm().max_request(), 10);
    let debug = format!("{limiter:?}");
    assert!(
        debug.starts_with("RateLimiter") && debug.contains("ManualClock"),
        "{debug}"
    );
}

#[cfg(all(feature = "quanta", not(miri)))] // Miri has no time stamp counter to calibrate.
#[test]
fn the_default_limiter_has_the_default_clock() {
    let limiter: RateLimiter = RateLimiter::new(CounterRing::new(quota("2/h")).expect("a ring"));
    assert!(limiter.check().is_ok() && limiter.check().is_ok());
    assert!(limiter.check().is_err());
    // The clock's error is taken off the window: a microsecond, and 50 millionths of the hour.
    assert_eq!(
        limiter.promise().interval,
        Duration::from_secs(3600) - Duration::from_micros(180_001)
    );
}

#[test]
fn everything_may_cross_threads() {
    fn crosses<T: Send + Sync>() {}
    crosses::<RateLimiter<CounterRing, ManualClock>>();
    crosses::<RateLimiter<TimestampRing, ManualClock>>();
    crosses::<RateLimiter<Gcra, ManualClock>>();
    crosses::<Admitted<'_, CounterRing>>();
    crosses::<Denied<'_, CounterRing>>();
    crosses::<(Receipt, Settled, SavedState, Quota, Nanos, ringgate::ConfigError)>();
    #[cfg(feature = "quanta")]
    crosses::<(
        RateLimiter,
        ringgate::clock::CoarseClock,
        ringgate::clock::CoarseClockError,
    )>();
    let set: HashSet<Quota> = [quota("1/s"), quota("1/1000ms")].into_iter().collect();
    assert_eq!(set.len(), 1);
}

#[test]
fn decisions_are_shown_in_full() {
    let (limiter, _clock) = by_hand(TimestampRing::new(quota("1/s")).expect("a ring"));
    let admitted = limiter.check().expect("fresh");
    let shown = format!("{admitted:?}");
    assert!(
        shown.contains("3600000000000") && shown.contains("permits: 1"),
        "{shown}"
    );
    let shown = format!("{:?}", limiter.check_n(1).expect_err("one has passed"));
    assert!(
        shown.contains("3600000000000") && shown.contains("permits: 1"),
        "{shown}"
    );
    assert!(format!("{:?}", limiter.peek()).contains("3600000000000"));
    let receipt = Receipt::new(Nanos::new(5), 2, 7);
    assert_eq!(
        (receipt.at(), receipt.permits(), receipt.mark()),
        (Nanos::new(5), 2, 7)
    );
}

#[test]
fn what_is_saved_is_what_is_spent() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = by_hand(algorithm.clone());
        assert_eq!(
            (limiter.save().spent(), limiter.save().idle_after()),
            (0, Duration::ZERO),
            "{name}"
        );
        assert!(limiter.check_n(7).is_ok());
        let saved = limiter.save();
        assert_eq!(saved.spent(), 7, "{name}");
        assert!(
            saved.idle_after() > Duration::ZERO && saved.idle_after() <= Duration::from_millis(1_200),
            "{name}"
        );
        clock.advance(saved.idle_after() - Duration::from_nanos(1));
        assert!(limiter.save().spent() > 0, "{name}");
        clock.advance(Duration::from_nanos(1));
        assert_eq!(limiter.save().spent(), 0, "{name}");

        // Restored into a process whose clock begins at zero: at once, and just before and just
        // after it is idle.
        for (elapsed, spent) in [
            (Duration::ZERO, 7),
            (saved.idle_after() - Duration::from_nanos(1), 7),
            (saved.idle_after(), 0),
            (Duration::MAX, 0),
        ] {
            let restored = RateLimiter::with_clock(algorithm.clone(), ManualClock::new());
            restored.restore(&saved, elapsed);
            assert_eq!(restored.peek().spent(), spent, "{name} after {elapsed:?}");
            assert_eq!(
                restored.peek().remaining(),
                10 - spent,
                "{name} after {elapsed:?}"
            );
        }
    }
}

/// A smaller limit than what was spent is used up, and a larger one keeps the difference.
#[test]
fn what_is_saved_is_charged_to_another_quota() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _clock) = by_hand(algorithm);
        assert!(limiter.check_n(8).is_ok());
        let saved = limiter.save();
        for (other, remaining) in [("5/s", 0), ("8/s", 0), ("20/s", 12)] {
            for successor in subjects(quota(other)) {
                let (restored, _clock) = by_hand(successor.algorithm);
                restored.restore(&saved, Duration::ZERO);
                assert_eq!(
                    restored.peek().remaining(),
                    remaining,
                    "{name} to {} {other}",
                    successor.name
                );
            }
        }
    }
}

#[cfg(feature = "serde")]
#[test]
fn a_saved_state_is_written_and_read_back() {
    let (limiter, _clock) = by_hand(TimestampRing::new(quota("100/min")).expect("a ring"));
    assert!(limiter.check_n(12).is_ok());
    let saved = limiter.save();
    let text = serde_json::to_string(&saved).expect("text");
    assert_eq!(text, r#"{"spent":12,"idle_after_nanos":60000000000}"#);
    assert_eq!(serde_json::from_str::<SavedState>(&text).expect("a state"), saved);
    let documented = r#"{"spent": 12, "idle_after_nanos": 48000000000}"#;
    let read: SavedState = serde_json::from_str(documented).expect("a state");
    assert_eq!((read.spent(), read.idle_after()), (12, Duration::from_secs(48)));
    assert!(serde_json::from_str::<SavedState>(r#"{"spent":1,"idle_after_nanos":1,"more":1}"#).is_err());
    assert!(serde_json::from_str::<SavedState>(r#"{"spent":1}"#).is_err());
    assert!(serde_json::from_str::<SavedState>(r#"{"spent":-1,"idle_after_nanos":1}"#).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig {
        // Miri: a history takes seconds there.
        cases: if cfg!(miri) { 2 } else { 300 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A restart in the middle of a history: what was admitted before and after it together keeps
    /// the bound, and the restored limiter admits only what the old one, had it gone on, would have
    /// admitted too.
    #[test]
    fn a_restart_gives_nothing_away(
        which in 0..6_usize,
        limit in 1..30_u64,
        before in prop::collection::vec((0..400_u64, 0..6_u64), 0..30),
        pause in 0..2_000_u64,
        doubt in 0..=1_000_u64,
        after in prop::collection::vec((0..400_u64, 0..6_u64), 1..30),
    ) {
        let quota = Quota::per_second(limit).expect("a quota");
        let subject = subjects(quota).swap_remove(which);
        let (old, clock) = by_hand(subject.algorithm.clone());
        let mut log = Log::default();
        for (millis, permits) in before {
            clock.advance(Duration::from_millis(millis));
            if let Ok(admitted) = old.check_n(permits) {
                log.add(admitted.at(), permits);
            }
        }
        let saved = old.save();
        clock.advance(Duration::from_millis(pause));
        // The new one counts from the same origin here, so that one log can hold both; and the wall
        // clock may have lost part of the pause.
        let restored = RateLimiter::with_clock(subject.algorithm.clone(), clock.clone());
        restored.restore(&saved, Duration::from_millis(pause * doubt / 1_000));
        for (millis, permits) in after {
            clock.advance(Duration::from_millis(millis));
            if let Ok(admitted) = restored.check_n(permits) {
                log.add(admitted.at(), permits);
                prop_assert!(old.check_n(permits).is_ok(), "{}", subject.name);
            }
        }
        prop_assert_eq!(subject.broken(&log), None);
    }
}

fn clock_time(limiter: &ByHand) -> Nanos {
    limiter.peek().at()
}
