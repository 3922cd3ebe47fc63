//! Decisions compared with those of the definition of the algorithm, with exact logs, and with those of words of one thread. A
//! decision against a lower limit in place equals that of the algorithm with that limit.

use core::time::Duration;

use proptest::prelude::*;
use ringgate::algorithm::{InUnits, Reclaim};
use ringgate::sync::Words;
use ringgate::{Algorithm, CounterRing, Gcra, ManualClock, Nanos, Quota, RateLimiter, Receipt};

use super::subjects::{between, cell_of, defined};
use super::walk::{
    Act, Outcome, Size, Walk, acts, anywhere, asks, back_and_forth, config, forward, history,
    limiter_subject, nanos, quota, size, subject, window,
};
use crate::common::{Any, State};
use crate::exact::{Definition, Mark};

proptest! {
    #![proptest_config(config())]

    /// The decisions and answers of an algorithm equal those of its definition, for any clock, with refunds and debts, and by
    /// lower limits that change from call to call.
    #[test]
    fn every_algorithm_equals_its_definition(
        (subject, mut exact) in defined(),
        history in history(back_and_forth(), acts()),
        parts in prop::collection::vec(prop::option::weighted(0.3, 0..=1000_u64), 1..12),
    ) {
        let own = &subject.algorithm;
        let (state, own_limit) = (State::fresh(own), exact.limit());
        let (window, cell) = (nanos(own.window()), cell_of(own));
        let mut held: Vec<(Receipt, Mark)> = Vec::new();
        let (mut now, mut debt) = (0, 0);
        for ((step, act), part) in history.into_iter().zip(parts.into_iter().cycle()) {
            now = step.apply(now, window, cell);
            let at = Nanos::new(now);
            // Debts are charged by the own limit.
            let lower = part.filter(|_| !matches!(act, Act::Charge(_)));
            let lower = lower.map(|part| (own_limit * part / 1000).max(1));
            let lowered = lower.map(|limit| own.with_limit(limit).expect("at most its own"));
            let it = lowered.as_ref().unwrap_or(own);
            exact.set_limit(lower);
            let most = it.max_request();
            match act {
                Act::Ask(size) => {
                    let permits = size.of(most);
                    let decision = it.decide(state.shared(), at, permits);
                    let expected = exact.decide(now, permits);
                    prop_assert_eq!(
                        decision.as_ref().map(|receipt| receipt.at().get()),
                        expected.map(|mark| mark.at)
                    );
                    held.extend(decision.zip(expected));
                }
                Act::Refund(which, part) => if let Some(which) = held.len().checked_sub(which + 1) {
                    let (receipt, mark) = held.remove(which);
                    let permits = receipt.permits() * part / 1000;
                    let done = it.refund(state.shared(), &receipt, permits);
                    if done || debt == 0 {
                        prop_assert_eq!(done, exact.refund(mark, receipt.permits(), permits));
                    }
                }
                Act::Charge(size) => {
                    // A word of a bucket holds the time of any few windows, and no number of permits.
                    let most_of_a_bucket = if matches!(it, Any::Gcra(_)) { most + 1 } else { u64::MAX };
                    let permits = size.of(most).min(most_of_a_bucket);
                    let spent = exact.spent(now);
                    let booked = it.charge(state.shared(), at, permits);
                    // Permits that a word cannot hold are not charged, which makes no difference while this is the
                    // newest debt. A word can always hold as much debt as the limit.
                    // In a table, a cell can hold as many permits as the limit. Until they expire, a larger count changes no
                    // decision.
                    let is_full = it.words() > 1 && it.spent(state.shared(), at) >= own_limit;
                    prop_assert!(booked == permits || is_full || spent.saturating_add(permits) > 2 * own_limit + 1);
                    exact.charge(now, booked.min(1 << 40));
                    debt += booked.min(1 << 40);
                }
            }
            prop_assert_eq!(it.remaining(state.shared(), at), exact.remaining(now));
            // A log holds no more than its limit, and a ring with debts may hold only one permit more.
            let held_back = |spent: u64| match it {
                Any::Log(_) => spent.min(own_limit),
                Any::Counter(_) if debt > 0 => spent.min(own_limit + 1),
                _ => spent,
            };
            prop_assert_eq!(held_back(it.spent(state.shared(), at)), held_back(exact.spent(now)));
            prop_assert_eq!(it.idle_at(state.shared(), at).map(Nanos::get), exact.idle_at(now));
            for permits in [0, 1, 2, most / 2, most, most + 1] {
                prop_assert_eq!(
                    it.ready_at(state.shared(), at, permits).map(Nanos::get),
                    exact.ready_at(now, permits)
                );
            }
        }
    }

    /// An algorithm lies between two logs of each window. It admits only if the log of the window admits, and denies only if
    /// the log of a longer window denies: that of one cell more than the window has, or of two units more for a timestamp ring.
    ///
    /// A ring denies at t if the cells from the N-th before the current one hold too much. These cells begin after
    /// t − (N + 1)·w, where w is the width of a cell. So a single caller that stays below the limit in every (N + 1)·w is never
    /// denied. The classic form sums one cell less, and promises only this.
    #[test]
    fn decisions_lie_between_two_logs(
        (subject, logs) in between(),
        history in history(forward(), asks()),
    ) {
        let mut walk = Walk::new(&subject.algorithm);
        for (step, act) in history {
            walk.go(step);
            let (log, now) = (walk.log.clone(), walk.now);
            let room = |window: u64, limit: u64| limit.saturating_sub(log.count(now, window));
            match walk.act(act) {
                Outcome::Admitted(permits) => {
                    prop_assert!(logs.iter().all(|it| !it.is_strict || permits <= room(it.window, it.limit)));
                }
                Outcome::Denied(permits) => {
                    prop_assert!(logs.iter().any(|it| permits > room(it.wider, it.limit)));
                }
                _ => {}
            }
        }
    }

    /// Words of one thread and shared words have equal contents after any history.
    #[test]
    fn exclusive_and_shared_words_decide_alike(subject in subject(), history in history(anywhere(), asks())) {
        let it = &subject.algorithm;
        let (shared, mut owned) = (State::fresh(it), State::fresh(it));
        let mut now = 0;
        let window = nanos(it.window());
        for (step, act) in history {
            now = step.apply(now, window, window.div_ceil(5));
            let Act::Ask(size) = act else { continue };
            let (at, permits) = (Nanos::new(now), size.of(it.max_request()));
            prop_assert_eq!(
                it.decide(shared.shared(), at, permits),
                it.decide(owned.exclusive(), at, permits)
            );
            prop_assert_eq!(format!("{:?}", shared), format!("{:?}", owned));
        }
    }
}

fn words_of(state: &State, words: usize) -> Vec<u64> {
    let load = |index| state.shared().load(index, core::sync::atomic::Ordering::Relaxed);
    (0..words).map(load).collect()
}

proptest! {
    #![proptest_config(config())]

    /// An attempt in place has the same result, and leaves the same words. `with_limit` accepts the limits of
    /// `lower_limits`, and no others.
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
        let (lowest, highest) = it.lower_limits();
        prop_assert_eq!((lowest..=highest).contains(&limit), lowered.is_ok());
        let Ok(lowered) = lowered else { return Ok(()) };
        for (op, size) in history.into_iter().zip(sizes.into_iter().cycle()) {
            walk.step(op);
            let (now, permits) = (walk.at(), size.of(lowered.max_request()));
            let (one, other) = (walk.state.clone(), walk.state.clone());
            prop_assert_eq!(
                it.attempt(Some(limit), one.shared(), now, permits),
                lowered.attempt(None, other.shared(), now, permits)
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
        window in prop_oneof![window(), 1_000_000_000..366 * 24 * 3600 * 1_000_000_000_u64],
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
            let definition = Definition::bucket(limit, window, bucket.max_request()).lowered(lower);
            prop_assert_eq!(lowered.max_request(), definition.max_request());
            prop_assert_eq!(lowered.bound(), lowered.max_request() + lower - 1);
            let refilled = u128::from(lowered.max_request()) * (2 * u128::from(window)).div_ceil(u128::from(lower));
            prop_assert_eq!(lowered.span(), Duration::from_nanos(refilled.div_ceil(2) as u64));
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

/// Debts of any size in cell after cell fill the words of a ring, and reach no other field of them.
#[test]
fn debts_in_every_cell_stay_within_the_words() {
    // The shorter the window, the fewer bits are left for permits.
    for (limit, window) in [
        (2, 1_000_000),
        (1_000, 1_000_000),
        (1_000, 60_000_000_000),
        (100_000, 1_000_000_000),
    ] {
        for cells in [3, 10, 60] {
            let ring = CounterRing::builder(quota(limit, window)).cells(cells).unpacked();
            let it = Any::from(ring.build().expect("a ring"))
                .for_table(1)
                .expect("a form for tables");
            let (state, cell) = (State::fresh(&it), cell_of(&it));
            for number in 0..3 * cells {
                let (at, case) = (
                    Nanos::new(number * cell),
                    format!("{limit} in {cells}: cell {number}"),
                );
                it.charge(state.shared(), at, u64::MAX);
                assert_eq!(it.remaining(state.shared(), at), 0, "{case}");
                assert_eq!(it.decide(state.shared(), at, 1), None, "{case}");
                // A debt counts until its cell has ended, and then for a window.
                let idle = it.idle_at(state.shared(), at).expect("long before time ends");
                assert!(
                    at < idle && idle.get() <= (number + 1 + cells) * cell,
                    "{case}: {idle:?}"
                );
                assert_eq!(it.remaining(state.shared(), idle), limit, "{case}");
            }
        }
    }
}
