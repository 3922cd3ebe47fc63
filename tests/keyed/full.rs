//! The decisions for keys that find the table full.

use super::*;

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
            let found = limiter.peek(&1).retry_after(6);
            assert_eq!(found, None, "{on_full:?} at {:?}", now(&clock));
            clock.advance(half);
        }
    }
}

/// With `Admit`, a peek of a key without an entry shows what a check does, in whatever cell.
#[test]
fn a_peek_of_a_key_that_is_not_limited_has_room() {
    for Subject { name, algorithm, .. } in subjects(quota("3/h")) {
        let most = algorithm.max_request();
        let (limiter, clock) = by_hand(algorithm, 1, OnFull::Admit);
        for key in keys_of(&limiter) {
            // An even ring has cells without a permit.
            while limiter.check(&key).is_err() {
                clock.advance(Duration::from_secs(60));
            }
        }
        for minute in 0..18 {
            let peek = limiter.peek(&1);
            assert_eq!(
                (peek.is_overflow(), peek.remaining()),
                (true, most),
                "{name}, minute {minute}"
            );
            let waits = [1, most, most + 1].map(|permits| peek.retry_after(permits));
            assert_eq!(
                waits,
                [Some(Duration::ZERO), Some(Duration::ZERO), None],
                "{name}, minute {minute}"
            );
            assert!(limiter.check_n(&1, most).is_ok(), "{name}, minute {minute}");
            clock.advance(Duration::from_secs(60));
        }
    }
}
