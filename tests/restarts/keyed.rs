//! A table of keys.

use super::*;
use proptest::prelude::*;
use ringgate::KeyedRateLimiter;
use ringgate::keyed::{AnyKey, OnFull};

type Table = KeyedRateLimiter<Any, ManualClock, AnyKey>;

fn keys() -> AnyKey {
    AnyKey::with_seeds([1, 2, 3, 4])
}

/// The processes have tables of these capacities in turn.
fn follow(subject: &Subject, capacities: [u64; 2], acts: &[Act]) -> Followed<Table> {
    let mut capacities = capacities.into_iter().cycle();
    let mut builder = || {
        let builder = KeyedRateLimiter::builder(subject.algorithm.clone()).on_full(OnFull::Share);
        builder.capacity(capacities.next().expect("a cycle"))
    };
    let line = line();
    let table = builder().build_with(line.clock.clone(), keys());
    super::follow(
        table.expect("a table"),
        line,
        acts,
        |table, key, permits| {
            let admitted = table.check_n(&key, permits).ok()?;
            Some((permits, admitted.at()))
        },
        |before, line, elapsed| {
            let mut file = Vec::new();
            before.save(&mut file).expect("memory");
            let restored = builder().restore_with(line.clock.clone(), keys(), &*file, elapsed);
            restored.expect("the same algorithm")
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// No window of a key holds more than the bound, whether its own entry or the catch-all decides.
    #[test]
    fn no_window_of_a_key_exceeds_the_bound(
        which in 0..SUBJECTS,
        limit in 1..12_u64,
        capacities in [1..30_u64, 1..30_u64],
        acts in prop_oneof![history(1), history(24)],
    ) {
        let subject = subjects(limit).swap_remove(which);
        let Followed { read, receipts, .. } = follow(&subject, capacities, &acts);
        prop_assert_eq!(broken(&subject, &read), None, "{}", subject.name);
        prop_assert_eq!(broken(&subject, &receipts), None, "{}", subject.name);
    }

    /// Restarts make a table stricter by two cells at most: after that time and the span of the algorithm, a key is as a fresh
    /// one, and is decided at the reading.
    #[test]
    fn restarts_of_a_table_do_not_add_up(
        which in 0..SUBJECTS,
        limit in 1..12_u64,
        capacities in [1..30_u64, 1..30_u64],
        acts in prop_oneof![history(1), history(24)],
    ) {
        let subject = subjects(limit).swap_remove(which);
        let Followed { limiter, mut line, .. } = follow(&subject, capacities, &acts);
        line.wait(span_of(&subject) + 2 * cell_of(&subject));
        for key in 0..30 {
            prop_assert_eq!(limiter.peek(&key).spent(), 0, "{}", subject.name);
        }
        for key in 0..30 {
            if let Ok(admitted) = limiter.check(&key) {
                prop_assert_eq!(line.time_of(admitted.at()), line.now(), "{}", subject.name);
            } else {
                // The shares of the cells of an even ring.
                prop_assert!(subject.name.starts_with("even") || limiter.peek(&key).is_overflow());
            }
        }
    }

    /// A clock that steps back gives no fresh budget, by the times of the receipts: an interval that is shorter than the window
    /// by a cell holds no more than the bound.
    #[test]
    fn a_step_back_gives_no_key_a_fresh_budget(
        which in 0..SUBJECTS,
        limit in 1..12_u64,
        capacities in [1..30_u64, 1..30_u64],
        acts in prop_oneof![history_with_steps(1, WINDOW), history_with_steps(24, WINDOW)],
    ) {
        let subject = subjects(limit).swap_remove(which);
        let Followed { receipts, .. } = follow(&subject, capacities, &acts);
        let shorter = shorter_by_a_cell(&subject);
        prop_assert_eq!(broken(&shorter, &receipts), None, "{}", subject.name);
    }
}

/// A caller with a reading from before the restore is admitted by the restored log at a time after it. The next denial states the
/// first time at which a request is admitted.
#[test]
fn a_log_admits_an_older_reading_after_the_restore() {
    let log = TimestampRing::new("10/s".parse().expect("a quota")).expect("a ring");
    let unit = (log.span() - log.window()) / 2;
    let builder = || KeyedRateLimiter::builder(log.clone());
    for part in 0..5 {
        let clock = ManualClock::new();
        clock.set(Nanos::new(3_600_000_000_000));
        let before = builder().build_with(clock.clone(), keys()).expect("a table");
        let older = clock.now().saturating_add(Duration::from_millis(500));
        assert!(before.check_n(&1, 10).is_ok());
        let mut file = Vec::new();
        before.save(&mut file).expect("memory");
        let gap = log.window() + Duration::from_nanos(part);
        clock.advance(gap);
        let restored = clock.now();
        let after = builder()
            .restore_with(clock, keys(), &*file, gap)
            .expect("the same algorithm");
        for _ in 0..10 {
            let admitted = after.check_at(&1, older, 1).expect("no permit counts");
            assert!(admitted.at() >= restored && admitted.at().saturating_since(restored) <= 2 * unit);
        }
        let denied = after.check_at(&1, older, 1).expect_err("ten permits count");
        let ready = denied.at().saturating_add(denied.retry_after().expect("a time"));
        assert!(after.check_at(&1, Nanos::new(ready.get() - 1), 1).is_err());
        assert!(after.check_at(&1, ready, 1).is_ok());
    }
}
