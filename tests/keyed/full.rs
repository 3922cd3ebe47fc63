//! The decisions for keys that find the table full.

use core::time::Duration;

use ringgate::algorithm::Reclaim;
use ringgate::keyed::OnFull;
use ringgate::{Algorithm, Clock, CounterRing, Gcra, Nanos};

use super::{NANO, Subject, built, by_hand, drain, filled, keys_of, now, quota, subjects};
use crate::common::Log;

/// After the clock has stepped back behind the loss of an entry, a denial of a full table states the wait by the reading of the
/// caller: the same request is denied one nanosecond earlier, and admitted then.
#[test]
fn a_denial_after_a_step_back_states_the_wait_of_the_caller() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        for back in [1, 50, 400, 900, 1_150, 5_000, 29_000] {
            for on_full in [OnFull::Deny, OnFull::Share] {
                let it = &algorithm;
                let (limiter, clock) = filled(it.clone(), on_full, 0);
                clock.advance(Duration::from_secs(30));
                let lost = now(&clock);
                // The first keys take the entries of idle ones, until each is used by a new key.
                let mut newcomers = 1..;
                while newcomers
                    .next()
                    .is_some_and(|key| match limiter.check_n(&key, it.max_request()) {
                        Ok(taken) => !taken.is_overflow(),
                        Err(denied) => !denied.is_overflow(),
                    })
                {}
                let reading = Nanos::new(lost.get() - back * 1_000_000);
                clock.set(reading);
                let case = format!("{name}, {on_full:?}, {back} ms back");
                let Err(denied) = limiter.check_n(&9_999, it.max_request()) else {
                    assert!(on_full == OnFull::Share, "{case}");
                    continue;
                };
                assert!(denied.is_overflow() && denied.at() == reading, "{case}");
                let wait = denied.retry_after().expect("long before time ends");
                assert!(!wait.is_zero(), "{case}");
                if on_full == OnFull::Deny {
                    clock.set(Nanos::new(reading.saturating_add(wait).get() - 1));
                    assert!(limiter.check_n(&9_999, it.max_request()).is_err(), "{case}");
                    clock.set(reading.saturating_add(wait));
                    assert!(limiter.check_n(&9_999, it.max_request()).is_ok(), "{case}");
                }
            }
        }
    }
}

#[test]
fn keys_without_an_entry_share_one_limit() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _) = filled(algorithm.clone(), OnFull::Share, 0);
        let most = limiter.peek(&1).remaining();
        let taken = limiter.check(&1).expect("the catch-all is fresh");
        assert!(taken.is_overflow() && limiter.peek(&1).is_overflow(), "{name}");
        // One key after another: together they get what one would.
        let admitted: u64 = 1 + (1..20).map(|key| drain(&limiter, key)).sum::<u64>();
        assert_eq!(admitted, most, "{name}");
        let denied = limiter.check(&20).expect_err("the catch-all is used up");
        assert!(denied.is_overflow());
        assert!(denied.retry_after().is_some());
        // Each admission counts as an overflow, and each of the twenty denials.
        assert_eq!(limiter.counts().overflowed, most + 20, "{name}");
        // Keys with an entry are not affected, and count no overflow.
        for key in keys_of(&limiter) {
            assert_eq!(drain(&limiter, key), most - 1, "{name}");
        }
        let counts = limiter.counts();
        assert_eq!(
            (counts.tracked, counts.overflowed),
            (limiter.capacity() as u64, most + 20)
        );
        assert_eq!((counts.reclaimed, counts.forgotten), (0, 0));
    }
}

/// A key that the catch-all has admitted gets no entry until that admission expires, even if entries are idle. Its denial
/// states the time, and at that time it gets an entry.
#[test]
fn a_barred_key_gets_an_entry_at_its_retry_time() {
    for subject in subjects(quota("10/s")) {
        let it = &subject.algorithm;
        if subject.name == "fixed window" {
            // Whenever it was admitted, its cell is over when those of the others are.
            continue;
        }
        // Of a log the time of the end is told, though the unit of time that this is in would do.
        let early = if subject.name == "timestamps" {
            Duration::from_micros(10)
        } else {
            NANO
        };
        for (part, permits) in [(11, 1), (5, 1), (7, 2), (16, it.max_request())] {
            let (limiter, clock) = filled(it.clone(), OnFull::Share, 0);
            for key in keys_of(&limiter) {
                drain(&limiter, key);
            }
            let name = format!("{}, {part}", subject.name);
            clock.advance(it.span() * part / 17);
            // A permit of a bucket counts until the bucket is full again: for its whole span only if the bucket was empty.
            let charge = if subject.name == "bucket" {
                it.max_request()
            } else {
                1
            };
            let taken = limiter.check_n(&1, charge).expect("the catch-all is fresh");
            let (overflow, admitted) = (taken.is_overflow(), taken.at());
            assert!(overflow, "{name}");
            // By now the entries of all others are idle.
            clock.advance(it.span() * (19 - part) / 17);
            let denied = limiter.check_n(&1, permits).expect_err("it is barred");
            assert_eq!((denied.at(), denied.permits()), (now(&clock), permits));
            assert_eq!((denied.is_overflow(), denied.remaining()), (true, 0), "{name}");
            let wait = denied.retry_after().expect("no more than the most");
            let peek = limiter.peek(&1);
            assert_eq!((peek.at(), peek.is_overflow()), (now(&clock), true), "{name}");
            assert_eq!((peek.remaining(), peek.spent()), (0, 0), "{name}");
            assert_eq!(peek.retry_after(permits), Some(wait), "{name}");
            assert_eq!(peek.retry_after(it.max_request() + 1), None, "{name}");
            assert_eq!(limiter.counts().overflowed, 2, "{name}");
            // So is the 13th after it, which has the same mark; the ones between are not.
            assert!(limiter.check(&14).is_err(), "{name}");
            for key in 2..6 {
                assert!(!limiter.check(&key).expect("an entry").is_overflow(), "{name}");
            }
            assert_eq!(
                (limiter.counts().overflowed, limiter.counts().reclaimed),
                (3, 4),
                "{name}"
            );
            clock.advance(wait - early);
            // In an interval of one window since the admission it gets no entry, and then soon.
            if now(&clock) < admitted.saturating_add(it.window()) {
                assert!(limiter.check(&1).is_err(), "{name}");
            }
            let denied = limiter.check_n(&1, permits).expect_err("it is still barred");
            assert!(denied.is_overflow(), "{name}");
            assert_eq!(denied.retry_after(), Some(early), "{name}");
            clock.advance(early);
            assert!(!limiter.peek(&1).is_overflow(), "{name}");
            assert!(
                now(&clock) > admitted.saturating_add(it.window() * 4 / 5),
                "{name}"
            );
            let late = it.span() + Duration::from_millis(200) + Duration::from_nanos(4_096);
            assert!(
                permits > 1 || now(&clock) <= admitted.saturating_add(late),
                "{name}"
            );
            let taken = limiter.check_n(&1, permits).expect("an entry");
            assert_eq!((taken.is_overflow(), taken.at()), (false, now(&clock)), "{name}");
            assert_eq!(limiter.counts().reclaimed, 5, "{name}");
        }
    }
}

/// A key that the catch-all has admitted is denied an entry until that admission expires, even when the catch-all would
/// admit it sooner.
#[test]
fn a_key_is_admitted_at_the_retry_time_of_the_catch_all() {
    for subject in subjects(quota("10/s")) {
        let it = &subject.algorithm;
        for part in 1..17 {
            for permits in [1, it.max_request()] {
                let (limiter, clock) = filled(it.clone(), OnFull::Share, 0);
                let name = format!("{}, {part}, {permits}", subject.name);
                // The entries come free earlier than the catch-all's permits.
                clock.advance(it.span() * part / 17);
                if !limiter
                    .check_n(&1, it.max_request())
                    .is_ok_and(|it| it.is_overflow())
                {
                    // The entries are idle already.
                    continue;
                }
                let denied = limiter
                    .check_n(&1, permits)
                    .expect_err("the catch-all is used up");
                let wait = denied.retry_after().expect("no more than the most");
                assert_eq!(limiter.peek(&1).retry_after(permits), Some(wait), "{name}");
                clock.advance(wait);
                assert!(limiter.check_n(&1, permits).is_ok(), "{name}");
            }
        }
    }
}

/// A key moves between the catch-all and its own entry, in both directions, at any time.
#[test]
fn a_full_table_gives_no_key_a_fresh_budget() {
    let rounds = 400;
    for subject in subjects(quota("10/s")) {
        let span = subject.algorithm.span();
        let (limiter, clock) = filled(subject.algorithm.clone(), OnFull::Share, 0);
        let mut log = Log::default();
        let (mut last, mut from_shared, mut to_shared) = (None, 0, 0);
        for round in 0..rounds {
            clock.advance(span * (round * 11 % 37) / 17);
            // One clock is not quite with the other.
            let behind = span * (round % 5) / 9;
            let at = now(&clock)
                .get()
                .saturating_sub(u64::try_from(behind.as_nanos()).expect("seconds"));
            while let Ok(taken) = limiter.check_at(&1, Nanos::new(at), 1) {
                log.add(taken.at(), 1);
                match (last, taken.is_overflow()) {
                    (Some(true), false) => from_shared += 1,
                    (Some(false), true) => to_shared += 1,
                    _ => {}
                }
                last = Some(taken.is_overflow());
            }
            // Others take what is idle.
            clock.advance(span * (round * 5 % 13) / 7);
            for key in 0..16 {
                let _ = limiter.check(&(2_000 + u64::from(round) * 16 + key));
            }
        }
        assert_eq!(subject.broken(&log), None, "{}", subject.name);
        assert!(
            from_shared > 5 && to_shared > 5,
            "{}: {from_shared} and {to_shared} times",
            subject.name
        );
    }
}

#[test]
fn a_denied_key_is_admitted_at_its_retry_time() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let most = algorithm.max_request();
        for permits in [1, most] {
            let (limiter, clock) = by_hand(algorithm.clone(), 1, OnFull::Deny);
            // The third is idle first.
            for key in keys_of(&limiter) {
                let after = if key == 1_002 { 0 } else { 300 + key % 7 * 70 };
                let at = now(&clock).saturating_add(Duration::from_millis(after));
                assert!(limiter.check_at(&key, at, most).is_ok());
            }
            clock.advance(Duration::from_millis(123));
            let denied = limiter.check_n(&1, permits).expect_err("no room");
            assert_eq!((denied.at(), denied.permits()), (now(&clock), permits));
            assert_eq!((denied.remaining(), denied.is_overflow()), (0, true), "{name}");
            let wait = denied.retry_after().expect("not more than the limit");
            assert_eq!(limiter.peek(&1).retry_after(permits), Some(wait));
            assert_eq!(limiter.peek(&1).retry_after(0), Some(Duration::ZERO));
            assert_eq!(limiter.peek(&1).retry_after(most + 1), None);
            clock.advance(wait - NANO);
            assert!(limiter.check_n(&1, permits).is_err(), "{name}");
            assert!(limiter.peek(&1).is_overflow());
            clock.advance(NANO);
            assert!(!limiter.peek(&1).is_overflow(), "{name}");
            assert!(limiter.check_n(&1, permits).is_ok(), "{name}");
            let counts = limiter.counts();
            assert_eq!((counts.overflowed, counts.reclaimed), (2, 1));
        }
    }
}

#[test]
fn keys_admitted_without_an_entry_are_not_counted() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = filled(algorithm.clone(), OnFull::Admit, 0);
        let most = algorithm.max_request();
        for turn in 1..=30 {
            let taken = limiter.check_n(&1, most).expect("uncounted");
            assert!(taken.is_overflow());
            assert_eq!((taken.at(), taken.permits()), (now(&clock), most));
            assert_eq!(limiter.counts().overflowed, turn);
        }
        assert_eq!(
            (limiter.peek(&1).spent(), limiter.peek(&1).is_overflow()),
            (0, true)
        );
        assert_eq!(limiter.peek(&1).retry_after(most), Some(Duration::ZERO));
        // A key with an entry has its own limit.
        let left = limiter.peek(&1_000).remaining();
        assert_eq!(drain(&limiter, 1_000), left, "{name}");
        assert!(limiter.check(&1_000).is_err());
        assert_eq!(limiter.len(), limiter.capacity() as u64);
    }
}

/// A request with a reading older than the eviction of its key is decided at the time of the eviction, with or without an
/// entry.
#[test]
fn a_clock_that_steps_back_after_a_reclaim_gives_no_fresh_budget() {
    for subject in subjects(quota("10/s")) {
        for on_full in [OnFull::Share, OnFull::Deny] {
            for again in [false, true] {
                let (limiter, clock) = by_hand(subject.algorithm.clone(), 1, on_full);
                let mut log = Log::default();
                let mut ask = |at: Nanos| {
                    while let Ok(taken) = limiter.check_at(&1, at, 1) {
                        log.add(taken.at(), 1);
                    }
                };
                let began = now(&clock);
                ask(began);
                clock.advance(3 * subject.algorithm.span());
                let lost = now(&clock);
                for key in keys_of(&limiter) {
                    assert!(limiter.check_at(&key, lost, 1).is_ok(), "{}", subject.name);
                }
                assert_eq!(limiter.counts().reclaimed, 1);
                if again {
                    // One entry is idle again, but only for a reading after the loss.
                    let later = lost.saturating_add(3 * subject.algorithm.span());
                    assert!(limiter.check_at(&1_009, later, 1).is_ok(), "{}", subject.name);
                }
                for step in 0..5 {
                    ask(began.saturating_add(subject.algorithm.span() * step / 3));
                }
                assert_eq!(subject.broken(&log), None, "{}, {on_full:?}", subject.name);
                let denied = limiter.check_at(&1, began, 1);
                assert!(denied.is_err() || on_full == OnFull::Share, "{}", subject.name);
                assert!(clock.now() == lost);
            }
        }
    }
}

/// The entry becomes free in a cell whose share is too small, and the share of the next cell is too small, too.
#[test]
fn a_denial_of_an_even_ring_waits_for_a_large_enough_share() {
    let mut denials = 0;
    for unpacked in [false, true] {
        let builder = CounterRing::builder(quota("7/s")).even().cells(5);
        let even = built(if unpacked { builder.unpacked() } else { builder });
        let most = even.max_request();
        for start in 0..50 {
            let (limiter, clock) = by_hand(even.clone(), 1, OnFull::Deny);
            clock.advance(Duration::from_millis(37 * start));
            for key in keys_of(&limiter) {
                let _ = limiter.check(&key);
            }
            let denied = limiter
                .check_n(&1, most)
                .expect_err("the table is full, or the share is small");
            let wait = denied.retry_after().expect("no more than the most");
            denials += u64::from(denied.is_overflow());
            clock.advance(wait - NANO);
            assert!(limiter.check_n(&1, most).is_err(), "{start}");
            clock.advance(NANO);
            assert!(limiter.check_n(&1, most).is_ok(), "{start}");
        }
    }
    assert!(denials > 10);
}

/// Half a window before the time of a bucket ends, every entry and the catch-all are used up. None is full again before.
#[test]
fn a_key_has_no_retry_time_if_time_ends_before() {
    let bucket = Gcra::new(quota("10/s")).expect("a bucket");
    let end = Duration::from_secs(15 * 366 * 24 * 3600);
    for on_full in [OnFull::Share, OnFull::Deny] {
        let (limiter, clock) = by_hand(bucket.clone(), 1, on_full);
        let half = Duration::from_millis(500);
        clock.set(Nanos::from_duration(end - half));
        for key in 0..limiter.capacity() as u64 {
            assert_eq!(drain(&limiter, 1_000 + key), 10);
        }
        let shared = if on_full == OnFull::Share { 10 } else { 0 };
        assert_eq!(drain(&limiter, 1), shared);
        for _ in 0..4 {
            // The catch-all is half full when time ends.
            let denied = limiter.check_n(&1, 6).expect_err("time ends before");
            assert_eq!(denied.retry_after(), None, "{on_full:?} at {:?}", now(&clock));
            assert_eq!(
                limiter.peek(&1).retry_after(6),
                None,
                "{on_full:?} at {:?}",
                now(&clock)
            );
            clock.advance(half);
        }
    }
}
