//! A full table that gives the entry of the key that has spent least to a new key.

use super::*;

/// The key that has spent least loses its entry, and its spent permits count for the new key.
#[test]
fn the_key_that_has_spent_least_is_forgotten() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, _) = by_hand(algorithm.clone(), 1, OnFull::Forget);
        for key in keys_of(&limiter) {
            let permits = if key == 1_002 { 1 } else { 2 };
            assert!(limiter.check_n(&key, permits).is_ok(), "{name}");
        }
        let peek = limiter.peek(&1);
        // Nothing is left of the window before, which the newcomer begins after.
        let kept = if name == "fixed window" { 0 } else { 1 };
        assert_eq!((peek.spent(), peek.is_overflow()), (kept, false), "{name}");
        assert!(
            !limiter
                .check(&1)
                .expect("in the place of the third")
                .is_overflow()
        );
        let counts = limiter.counts();
        assert_eq!(
            (counts.forgotten, counts.tracked, counts.overflowed),
            (1, limiter.capacity() as u64, 0)
        );
        assert_eq!(counts.reclaimed, 0);
        for key in keys_of(&limiter).filter(|&key| key != 1_002) {
            assert!(limiter.reset(&key), "{name}: {key} has its entry");
        }
        assert!(!limiter.reset(&1_002), "{name}");
        let inherited = match name.as_str() {
            // The time of one permit and a unit, rounded up to permits.
            "bucket" => 2,
            _ => kept,
        };
        assert_eq!(limiter.peek(&1).spent(), 1 + inherited, "{name}");
    }
}

/// Idle keys are evicted first, so no key with charged permits loses its entry.
#[test]
fn no_key_is_forgotten_while_a_key_is_idle() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = filled(algorithm.clone(), OnFull::Forget, 1);
        clock.advance(3 * algorithm.span());
        assert!(limiter.check(&1).is_ok());
        let entries = limiter.capacity() as u64;
        for key in 2..=entries {
            assert!(limiter.check(&key).is_ok());
            assert_eq!(limiter.peek(&key).spent(), 1, "{name}");
        }
        let counts = limiter.counts();
        assert_eq!((counts.reclaimed, counts.forgotten), (entries - 1, 0), "{name}");
        for key in 1..=entries {
            assert_eq!(limiter.peek(&key).spent(), 1, "{name}");
        }
    }
}

/// Thousands of keys evict each other within one cell. An hour later every state is fresh.
#[test]
fn forgetting_does_not_run_ahead_of_the_clock() {
    for Subject { name, algorithm, .. } in subjects(quota("10/min")) {
        let (limiter, clock) = by_hand(algorithm.clone(), 1, OnFull::Forget);
        for key in 1_000..9_000 {
            let _ = limiter.check(&key);
        }
        drain(&limiter, 1);
        clock.advance(Duration::from_secs(3_600));
        let taken = limiter.check(&1).expect("an hour after at most ten");
        assert_eq!((taken.is_overflow(), taken.at()), (false, now(&clock)), "{name}");
        assert_eq!(limiter.peek(&1).spent(), 1, "{name}");
    }
}

/// An entry whose state is ahead of the current cell is not forgotten. A log may be two units of time ahead of its clock. A
/// GCRA state is not ahead, because the next key begins a fraction of a nanosecond later.
#[test]
fn an_entry_is_forgotten_once_per_cell() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = filled(algorithm.clone(), OnFull::Forget, 0);
        let entries = limiter.capacity() as u64;
        let times = match name.as_str() {
            "bucket" => 5,
            "timestamps" => 2,
            _ => 1,
        };
        for key in 1..=times * entries {
            let taken = limiter.check(&key).expect("in the place of another");
            assert!(!taken.is_overflow(), "{name}");
            assert_eq!(limiter.counts().forgotten, key, "{name}");
        }
        if name == "bucket" {
            continue;
        }
        // By the catch-all.
        assert!(limiter.peek(&40).is_overflow(), "{name}");
        let taken = limiter.check(&40).expect("it is fresh");
        assert!(taken.is_overflow(), "{name}");
        let counts = limiter.counts();
        assert_eq!((counts.forgotten, counts.overflowed), (times * entries, 1));
        // Soon there is an entry to be taken, though not for the key that was served: it is denied as long as
        // that counts. Where a window is a cell, all of it is over.
        clock.advance(2 * cell(&name));
        let taken = limiter.check(&41).expect("in the place of another");
        assert!(!taken.is_overflow());
        let overflow = limiter
            .check(&40)
            .map_or_else(|it| it.is_overflow(), |it| it.is_overflow());
        let fixed = name == "fixed window";
        assert_eq!(overflow, !fixed, "{name}");
        let counts = limiter.counts();
        assert_eq!(counts.forgotten, times * entries + u64::from(!fixed), "{name}");
        assert_eq!(counts.reclaimed, 2 * u64::from(fixed), "{name}");
    }
}

/// The width of a cell of [`subjects`] with a quota per second.
fn cell(name: &str) -> Duration {
    if name == "fixed window" {
        Duration::from_secs(1)
    } else {
        Duration::from_millis(200)
    }
}

/// An entry that was reset is one cell ahead. When its time has come, another key gets it with the permits that still count.
#[test]
fn forgetting_reuses_entries_that_were_reset() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = filled(algorithm.clone(), OnFull::Forget, 0);
        for key in keys_of(&limiter) {
            assert!(limiter.reset(&key), "{name}");
        }
        assert!(limiter.is_empty());
        let inherited = if name == "bucket" {
            // The time of a permit and two units, rounded up.
            2
        } else if name == "timestamps" {
            1
        } else {
            assert!(limiter.check(&1).expect("the catch-all").is_overflow(), "{name}");
            clock.advance(2 * cell(&name));
            u64::from(name != "fixed window")
        };
        let taken = limiter.check(&2).expect("an entry without a key");
        assert!(!taken.is_overflow(), "{name}");
        let counts = limiter.counts();
        assert_eq!(
            (counts.tracked, counts.forgotten, counts.reclaimed),
            (1, 0, 0),
            "{name}"
        );
        assert_eq!(limiter.peek(&2).spent(), 1 + inherited, "{name}");
    }
}

/// The smallest table of a ring, with all entries in use.
fn filled_ring() -> (super::ByHand, ManualClock) {
    filled(
        built(CounterRing::builder(quota("10/s")).cells(5)),
        OnFull::Forget,
        0,
    )
}

/// While the catch-all decides about a key, a peek shows what it decides, also after it has admitted the key.
#[test]
fn a_peek_of_a_key_of_the_catch_all_is_the_next_decision() {
    let (limiter, _) = filled_ring();
    for key in 1..=limiter.capacity() as u64 {
        assert!(!limiter.check(&key).expect("another's entry").is_overflow());
    }
    // Every entry was evicted in this cell.
    for left in (1..=10).rev() {
        let peek = limiter.peek(&40);
        let seen = (peek.is_overflow(), peek.remaining(), peek.retry_after(1));
        assert_eq!(seen, (true, left, Some(Duration::ZERO)));
        assert!(limiter.check(&40).expect("the catch-all").is_overflow());
    }
    let wait = limiter.peek(&40).retry_after(1);
    assert!(wait > Some(Duration::ZERO));
    let denied = limiter.check(&40).expect_err("ten are admitted");
    assert_eq!(denied.retry_after(), wait);
}

#[test]
fn a_peek_of_a_barred_key_is_a_denial() {
    let (limiter, clock) = filled_ring();
    for key in 1..=limiter.capacity() as u64 {
        assert!(!limiter.check(&key).expect("another's entry").is_overflow());
    }
    // Every entry was evicted in this cell.
    assert!(limiter.check(&40).expect("the catch-all").is_overflow());
    clock.advance(Duration::from_millis(400));
    let peek = limiter.peek(&40);
    let seen = (peek.is_overflow(), peek.retry_after(1));
    let denied = limiter.check(&40).expect_err("barred");
    assert_eq!(seen, (denied.is_overflow(), denied.retry_after()));
}

#[test]
fn a_peek_of_an_entry_of_another_key_uses_the_adopted_time() {
    let (limiter, clock) = filled_ring();
    let before = now(&clock);
    clock.advance(Duration::from_millis(1_210));
    assert!(limiter.check(&1).is_ok());
    assert_eq!(limiter.counts().reclaimed, 1);
    let seen = now(&clock);
    clock.set(before);
    assert_eq!(limiter.peek(&2).at(), before);
    let taken = limiter.check(&2).expect("another's entry");
    // The check is stamped with the beginning of the cell of the newer time.
    assert!(taken.at() <= seen && seen.saturating_since(taken.at()) < Duration::from_millis(200));
}

/// A takeover keeps the permits that count one cell later. A peek reads the state as the takeover would leave it.
#[test]
fn a_peek_of_an_entry_of_another_key_is_what_a_check_finds() {
    for Subject { name, algorithm, .. } in subjects(quota("10/s")) {
        let (limiter, clock) = filled(algorithm.clone(), OnFull::Forget, 0);
        // A time that no bucket reaches exactly: advancing a bucket costs a nanosecond.
        clock.advance(Duration::new(0, 50_000_017));
        for key in 5_000..5_200 {
            let permits = algorithm.max_request();
            let peek = limiter.peek(&key);
            let (fits, at) = (peek.remaining() >= permits, now(&clock));
            let taken = limiter.check_n(&key, permits);
            assert_eq!(taken.is_ok(), fits, "{name}: {key} at {at:?}");
        }
    }
}
