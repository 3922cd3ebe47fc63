//! Decisions compared with those of brute-force models, and with those of another representation of the algorithm. A decision
//! against a lower limit in place equals that of the algorithm with that limit.

use core::time::Duration;

use proptest::prelude::*;
use ringgate::algorithm::{InUnits, Reclaim};
use ringgate::sync::Words;
use ringgate::{
    Algorithm, CounterRing, Gcra, ManualClock, Nanos, Quota, RateLimiter, Receipt, TimestampRing,
};

use super::reference::{Bucket, CellLog, Queue};
use super::walk::{
    Act, Kind, Outcome, Ring, Size, Walk, acts, anywhere, asks, back_and_forth, config, forward, history,
    limit, limiter_subject, nanos, quota, ring, several, size, small_debt, subject, window,
};
use crate::common::{Any, State, unit};

proptest! {
    #![proptest_config(config())]

    /// The decisions and answers of a ring equal the sum of its cells, for any clock, with refunds and debts.
    #[test]
    fn a_counter_ring_equals_the_list_of_its_cells(
        ring in ring(),
        history in history(back_and_forth(), acts()),
    ) {
        let it = ring.build();
        let (state, mut model) = (State::fresh(&it), CellLog::new(ring, it.words()));
        let cell = nanos(it.cell());
        prop_assert_eq!(cell, ring.width());
        let mut held: Vec<(Receipt, u64)> = Vec::new();
        let mut now = 0;
        let mut debt = 0;
        for (step, act) in history {
            now = step.apply(now, ring.window, cell);
            let at = Nanos::new(now);
            match act {
                Act::Ask(size) => {
                    let permits = size.of(it.max_request());
                    let present = model.present(now);
                    let decision = it.decide(state.shared(), at, permits);
                    prop_assert_eq!(
                        decision.as_ref().map(|receipt| receipt.at().get()),
                        model.decide(now, permits)
                    );
                    held.extend(decision.map(|receipt| (receipt, present)));
                }
                Act::Refund(which, part) => if let Some(which) = held.len().checked_sub(which + 1) {
                    let (receipt, present) = held.remove(which);
                    let permits = receipt.permits() * part / 1000;
                    let done = it.refund(state.shared(), &receipt, permits);
                    if done || debt == 0 {
                        prop_assert_eq!(done, model.refund(present, permits));
                    }
                }
                Act::Charge(size) => {
                    let permits = size.of(it.max_request());
                    let spent = model.spent(now);
                    let booked = it.charge(state.shared(), at, permits);
                    // Permits that a word cannot hold are not charged, which makes no difference while this is the
                    // newest debt. A word can always hold as much debt as the limit.
                    // In a table, a cell can hold as many permits as the limit. Until they expire, a larger count changes no decision.
                    let is_full = ring.in_table && it.spent(state.shared(), at) >= ring.limit;
                    prop_assert!(booked == permits || is_full || spent.saturating_add(permits) > 2 * ring.limit + 1);
                    model.charge(now, booked.min(1 << 40));
                    debt += booked.min(1 << 40);
                }
            }
            prop_assert_eq!(it.remaining(state.shared(), at), model.remaining(now));
            let held_back = |spent: u64| if debt == 0 { spent } else { spent.min(ring.limit + 1) };
            prop_assert_eq!(held_back(it.spent(state.shared(), at)), held_back(model.spent(now)));
            prop_assert_eq!(it.idle_at(state.shared(), at).map(Nanos::get), model.idle_at(now));
            for permits in [0, 1, 2, it.max_request() / 2, it.max_request()] {
                if permits <= it.max_request() {
                    prop_assert_eq!(
                        it.ready_at(state.shared(), at, permits).map(Nanos::get),
                        model.ready_at(now, permits)
                    );
                }
            }
        }
    }

    /// Readings and windows are whole units, and the clock does not step back. Then nothing is rounded, and the ring
    /// equals "the oldest of L" to the nanosecond, with debts of any size.
    #[test]
    fn a_timestamp_ring_equals_a_queue(
        limit in limit(),
        window in 10..100_000_u64,
        in_slots: bool,
        history in history(forward(), acts()),
    ) {
        let unit = unit(limit);
        let window = (window * unit).max(1_000);
        let it = TimestampRing::new(quota(limit, window.next_multiple_of(unit))).expect("ten units");
        let it = if in_slots { it.for_limiter() } else { it };
        let window = nanos(it.window());
        let state = State::fresh(&it);
        // Every charge, in nanoseconds.
        let mut log: Vec<u64> = Vec::new();
        let mut last: Option<Receipt> = None;
        let mut now = 0_u64;
        for (step, act) in history {
            now = step.apply(now, window, window.div_ceil(5)).next_multiple_of(unit);
            let at = Nanos::new(now);
            let spent = log.iter().filter(|&&then| then + window > now).count() as u64;
            prop_assert_eq!(it.remaining(state.shared(), at), limit.saturating_sub(spent));
            prop_assert_eq!(it.spent(state.shared(), at), spent.min(limit));
            match act {
                Act::Ask(size) => {
                    let permits = size.of(limit);
                    let decision = it.decide(state.shared(), at, permits);
                    prop_assert_eq!(decision.is_some(), permits == 0 || spent.saturating_add(permits) <= limit);
                    if let Some(receipt) = decision {
                        prop_assert_eq!(receipt.at(), at);
                        log.extend((0..permits).map(|_| now));
                        last = Some(receipt);
                    }
                }
                Act::Refund(_, part) => if let Some(receipt) = last.take() {
                    let permits = receipt.permits() * part / 1000;
                    // A log never moves back.
                    prop_assert_eq!(it.refund(state.shared(), &receipt, permits), permits == 0);
                }
                Act::Charge(size) => {
                    let permits = size.of(limit);
                    prop_assert_eq!(it.charge(state.shared(), at, permits), permits);
                    log.extend((0..permits.min(2 * limit)).map(|_| now));
                }
            }
        }
    }

    /// With any readings and any clock, recorded times are rounded up, requested times are rounded down, and an older
    /// reading is decided at the newest certain time.
    #[test]
    fn a_timestamp_ring_equals_a_queue_of_rounded_times(
        limit in limit(),
        window in 10_000..1_000_000_000_u64,
        in_slots: bool,
        history in history(back_and_forth(), acts()),
    ) {
        let it = TimestampRing::new(quota(limit, window)).expect("ten units");
        let it = if in_slots { it.for_limiter() } else { it };
        let (state, mut model) = (State::fresh(&it), Queue::new(limit, window));
        let mut now = 0;
        for (step, act) in history {
            now = step.apply(now, window, window.div_ceil(5));
            let at = Nanos::new(now);
            match act {
                Act::Ask(size) => {
                    let permits = size.of(limit);
                    let decision = it.decide(state.shared(), at, permits);
                    prop_assert_eq!(decision.is_some(), model.decide(now, permits));
                }
                Act::Refund(..) => {}
                Act::Charge(size) => {
                    let permits = size.of(limit);
                    it.charge(state.shared(), at, permits);
                    model.charge(now, permits.min(2 * limit));
                }
            }
            prop_assert_eq!(it.remaining(state.shared(), at), model.remaining(now));
            prop_assert_eq!(it.spent(state.shared(), at), model.spent(now).min(limit));
            for permits in [1, limit.div_ceil(2), limit] {
                prop_assert_eq!(
                    it.ready_at(state.shared(), at, permits).map(Nanos::get),
                    Some(model.ready_at(now, permits))
                );
            }
        }
    }

    /// GCRA equals a bucket with a level that time refills.
    #[test]
    fn gcra_equals_a_bucket(
        limit in limit(),
        window in 2_000..10_000_000_000_u64,
        burst in 1..100_u64,
        history in history(forward(), prop_oneof![6 => asks(), 1 => small_debt().prop_map(Act::Charge)]),
    ) {
        let it = Gcra::token_bucket(quota(limit, window), burst).expect("a small burst");
        let (state, mut model) = (State::fresh(&it), Bucket::new(limit, window, burst));
        let mut now = 0;
        for (step, act) in history {
            now = step.apply(now, window, window.div_ceil(5));
            let at = Nanos::new(now);
            match act {
                Act::Ask(size) => {
                    let permits = size.of(burst);
                    let decision = it.decide(state.shared(), at, permits);
                    prop_assert_eq!(decision.is_some(), model.decide(now, permits));
                }
                Act::Refund(..) => {}
                Act::Charge(size) => {
                    let permits = size.of(burst);
                    prop_assert_eq!(it.charge(state.shared(), at, permits), permits);
                    model.charge(now, permits);
                }
            }
            prop_assert_eq!(it.remaining(state.shared(), at), model.remaining(now));
            prop_assert_eq!(it.spent(state.shared(), at), model.spent(now));
            for permits in [1, burst.div_ceil(2), burst] {
                prop_assert_eq!(
                    it.ready_at(state.shared(), at, permits).map(Nanos::get),
                    Some(model.ready_at(now, permits))
                );
            }
        }
    }

    /// A strict ring lies between two logs. Let w be the width of a cell, and N·w the window rounded up to whole
    /// cells. The ring admits only if the log of the window admits, and denies only if the log of a window of (N +
    /// 1)·w denies.
    ///
    /// The ring denies at t if the cells from the N-th before the current one hold too much. These cells begin after
    /// t − (N + 1)·w. So a single caller that stays below the limit in every (N + 1)·w is never denied.
    #[test]
    fn a_strict_ring_lies_between_two_logs(
        ring in ring().prop_filter("strict", |ring| ring.kind == Kind::Strict),
        history in history(forward(), asks()),
    ) {
        let it = Any::from(ring.build());
        let mut walk = Walk::new(&it);
        let wider = (ring.cells + 1) * ring.width();
        for (step, act) in history {
            walk.go(step);
            let narrow = walk.log.count(walk.now, ring.window);
            let wide = walk.log.count(walk.now, wider);
            match walk.act(act) {
                Outcome::Admitted(permits) => prop_assert!(narrow + permits <= ring.limit),
                Outcome::Denied(permits) => prop_assert!(wide.saturating_add(permits) > ring.limit),
                _ => {}
            }
        }
    }

    /// A ring of several windows admits only if all logs have capacity, and denies only if some wider log has none.
    #[test]
    fn a_ring_of_several_windows_lies_between_two_logs_of_each(
        several in several().prop_filter("strict", |several| !several.classic),
        history in history(forward(), asks()),
    ) {
        let it = Any::from(several.build());
        let mut walk = Walk::new(&it);
        let windows: Vec<(u64, u64, u64)> = several
            .quotas
            .iter()
            .zip(several.widths())
            .map(|(quota, width)| (nanos(quota.window()), (several.cells + 1) * width, quota.limit()))
            .collect();
        for (step, act) in history {
            walk.go(step);
            let log = walk.log.clone();
            let now = walk.now;
            let narrow = |permits: u64| {
                windows.iter().all(|&(window, _, limit)| log.count(now, window).saturating_add(permits) <= limit)
            };
            let wide = |permits: u64| {
                windows.iter().all(|&(_, wider, limit)| log.count(now, wider).saturating_add(permits) <= limit)
            };
            match walk.act(act) {
                Outcome::Admitted(permits) => prop_assert!(narrow(permits)),
                Outcome::Denied(permits) => prop_assert!(!wide(permits)),
                _ => {}
            }
        }
    }

    /// The log of the window, and the log of a window that is two units longer.
    #[test]
    fn a_timestamp_ring_lies_between_two_logs(
        limit in limit(),
        window in 10_000..1_000_000_000_u64,
        history in history(forward(), asks()),
    ) {
        let it = Any::from(TimestampRing::new(quota(limit, window)).expect("ten units"));
        let mut walk = Walk::new(&it);
        for (step, act) in history {
            walk.go(step);
            let narrow = walk.log.count(walk.now, window);
            let wide = walk.log.count(walk.now, window + 2 * unit(limit));
            match walk.act(act) {
                Outcome::Admitted(permits) => prop_assert!(narrow + permits <= limit),
                Outcome::Denied(permits) => prop_assert!(wide.saturating_add(permits) > limit),
                _ => {}
            }
        }
    }

    /// Packed and wide rings decide and answer alike if the clock does not step back. After a step back, a denial of
    /// the wide ring has entered a cell and a denial of the packed ring has not, so the caller is decided in another
    /// cell.
    #[test]
    fn packed_and_wide_rings_decide_alike(
        ring in ring(),
        history in history(forward(), prop_oneof![
            8 => asks(),
            1 => small_debt().prop_map(Act::Charge),
        ]),
        refunds in prop::collection::vec(prop::option::weighted(0.2, 0..=1000_u64), 80),
    ) {
        let packed = Ring { unpacked: false, in_table: false, ..ring }.build();
        let unpacked = Ring { unpacked: true, ..ring }.build();
        let (left, right) = (State::fresh(&packed), State::fresh(&unpacked));
        let (mut now, mut in_debt) = (0, false);
        for ((step, act), refund) in history.into_iter().zip(refunds) {
            now = step.apply(now, ring.window, ring.width());
            let at = Nanos::new(now);
            match act {
                Act::Ask(size) => {
                    let permits = size.of(packed.max_request());
                    let one = packed.decide(left.shared(), at, permits);
                    let other = unpacked.decide(right.shared(), at, permits);
                    prop_assert_eq!(one.is_some(), other.is_some());
                    // A packed sum that is limited by debt refunds nothing.
                    let refund = refund.filter(|_| !in_debt);
                    if let (Some(one), Some(other), Some(part)) = (one, other, refund) {
                        prop_assert_eq!(one.at(), other.at());
                        let permits = permits * part / 1000;
                        prop_assert!(packed.refund(left.shared(), &one, permits));
                        prop_assert!(unpacked.refund(right.shared(), &other, permits));
                    }
                }
                Act::Charge(size) => {
                    let permits = size.of(packed.max_request());
                    // The wide ring does not charge more than this.
                    if unpacked.spent(right.shared(), at) + permits > 2 * ring.limit + 1 {
                        continue;
                    }
                    in_debt = true;
                    // The count of one cell may hold less.
                    let charged = unpacked.charge(right.shared(), at, permits);
                    packed.charge(left.shared(), at, charged);
                }
                Act::Refund(..) => {}
            }
            let stopped = |spent: u64| spent.min(ring.limit + 1);
            prop_assert_eq!(
                stopped(packed.spent(left.shared(), at)),
                stopped(unpacked.spent(right.shared(), at))
            );
            prop_assert_eq!(packed.remaining(left.shared(), at), unpacked.remaining(right.shared(), at));
            prop_assert_eq!(packed.idle_at(left.shared(), at), unpacked.idle_at(right.shared(), at));
            for permits in [0, 1, 2, packed.max_request(), packed.max_request() + 1] {
                prop_assert_eq!(
                    packed.ready_at(left.shared(), at, permits),
                    unpacked.ready_at(right.shared(), at, permits)
                );
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

    /// A single caller is never denied a request that a log of N + 1 cells has capacity for.
    #[test]
    fn a_single_caller_under_the_limit_is_never_denied(
        ring in ring().prop_filter("no shares", |ring| ring.kind != Kind::Even),
        moves in prop::collection::vec((forward(), size()), 1..80),
    ) {
        let it = Any::from(ring.build());
        let mut walk = Walk::new(&it);
        let wider = (ring.cells + 1) * ring.width();
        for (step, size) in moves {
            walk.go(step);
            let room = ring.limit - walk.log.count(walk.now, wider).min(ring.limit);
            let permits = size.of(it.max_request()).min(room);
            prop_assert_eq!(walk.ask(permits), Outcome::Admitted(permits));
        }
    }
}

/// The cells and shares of a ring do not depend on its representation. The shares of 10 in 4 cells are 2, 3, 2, 3.
#[test]
fn packed_and_wide_even_rings_have_equal_shares() {
    let ring = |unpacked| Ring {
        kind: Kind::Even,
        limit: 10,
        window: 4_000,
        cells: 4,
        unpacked,
        in_table: false,
    };
    let shares = |unpacked| {
        let it = ring(unpacked).build();
        [0, 1_000, 2_000, 3_000].map(|at| it.remaining(State::fresh(&it).shared(), Nanos::new(at)))
    };
    assert_eq!(shares(false), [2, 3, 2, 3]);
    assert_eq!(shares(true), [2, 3, 2, 3]);
}

fn words_of(state: &State, words: usize) -> Vec<u64> {
    let load = |index| state.shared().load(index, core::sync::atomic::Ordering::Relaxed);
    (0..words).map(load).collect()
}

proptest! {
    #![proptest_config(config())]

    /// An attempt in place has the same result, and leaves the same words. Limits are valid or invalid for both.
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
        prop_assert_eq!(it.validate_limit(limit).err(), lowered.clone().err());
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
        window in prop_oneof![window(), 1_000_000_000..Quota::MAX_WINDOW.as_nanos() as u64],
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
            let units = 2 * u128::from(window);
            let [fast, slow] = [limit, lower].map(|limit| units.div_ceil(u128::from(limit)));
            let share = u128::from(bucket.burst()) * u128::from(lower) / u128::from(limit);
            let others = (u128::from(bucket.bound()) * fast - units) / slow;
            let expected = share.min(others + 1).max(1);
            prop_assert_eq!(u128::from(lowered.burst()), expected);
            prop_assert_eq!(lowered.bound(), lowered.burst() + lower - 1);
            let refilled = (expected * slow).div_ceil(2);
            prop_assert_eq!(lowered.span(), Duration::from_nanos(refilled as u64));
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
