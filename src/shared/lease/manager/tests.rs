use super::*;
use crate::shared::lease::state::SpendResult;
use crate::shared::store::{CounterRequest, Counting};

const PERIOD: u64 = 1_000_000;

/// A lease ends a term after its last answered request.
const TERM: u64 = 1_000 * PERIOD;

/// The part of a term that is left unused.
const MARGIN: u64 = PERIOD / 2;

/// A manager whose lease has nothing.
fn assigned(state: &LeaseState, is_registered: bool) -> LeaseManager {
    let counter = CounterRequest::new("rule", 1, Counting::Log, 100, Duration::from_secs(1));
    let mut manager = LeaseManager::default();
    assert!(state.reassign(1));
    let lease = Lease {
        counter,
        is_registered,
        most_permits: 10,
        period: PERIOD,
        term: TERM,
        margin: MARGIN,
        fallback: None,
    };
    manager.assign(lease, 7, PERIOD);
    manager
}

/// The manager of a budget of a key, which was just answered and has nothing left.
fn spent(state: &LeaseState) -> LeaseManager {
    let mut manager = assigned(state, false);
    state.note_shortage(1);
    let (request, _) = manager.request(state, PERIOD, true, || 8).expect("it is due");
    let answer = (&request, LeaseGrant::of(0));
    assert!(manager.answer(state, answer, (PERIOD, PERIOD), || 8).is_some());
    manager
}

/// A waiting request is not forgotten by a look at the lease that comes before it is due.
#[test]
fn a_shortage_is_kept_until_a_request_is_made() {
    let state = LeaseState::new();
    let mut manager = spent(&state);
    assert!(manager.is_free(&state, PERIOD));
    state.note_shortage(1);
    assert!(!manager.is_free(&state, PERIOD), "a request waits for an answer");
    let soon = PERIOD + 1;
    assert!(manager.request(&state, soon, false, || 8).is_none(), "too early");
    assert!(!manager.is_free(&state, soon), "the request still waits");
    assert!(manager.is_busy(&state), "the flusher looks again");
    let (request, _) = manager.request(&state, soon, true, || 8).expect("it is due");
    assert_eq!(request.wanted, 10);
}

/// A release that is due when an answer leaves nothing to release ends the demand, too.
#[test]
fn an_answer_that_leaves_nothing_to_release_ends_the_demand() {
    let state = LeaseState::new();
    let mut manager = assigned(&state, true);
    state.note_shortage(8);
    let asked = manager.request(&state, 2 * PERIOD, true, || 8);
    let (request, _) = asked.expect("it is due");
    assert!(manager.release(&state).is_some());
    let answer = (&request, LeaseGrant::of(0));
    assert!(manager.answer(&state, answer, (PERIOD, PERIOD), || 8).is_some());
    assert!(manager.is_released(&state));
    assert!(manager.request(&state, 3 * PERIOD, false, || 8).is_none());
}

/// The store has the permits of a lease until it executes the request that gives them back, and no request waits for a withheld
/// lease.
#[test]
fn permits_that_are_given_back_count_until_the_answer() {
    let state = LeaseState::new();
    let mut manager = assigned(&state, true);
    state.note_shortage(8);
    let asked = manager.request(&state, 2 * PERIOD, true, || 8);
    let (request, _) = asked.expect("it is due");
    assert_eq!(
        manager.most_unspent(&state),
        10,
        "the store may have granted them"
    );
    let answer = (&request, LeaseGrant::of(10));
    assert!(manager.answer(&state, answer, (PERIOD, PERIOD), || 8).is_some());
    assert!(matches!(
        state.spend(1, 3, || PERIOD),
        SpendResult::Covered { .. }
    ));
    assert!(manager.is_worth_waiting(&state));
    manager.withhold();
    assert!(!manager.is_worth_waiting(&state));
    assert!(manager.release(&state).is_some());
    let (request, _) = manager
        .request(&state, 3 * PERIOD, true, || 8)
        .expect("it is due");
    assert_eq!((request.wanted, request.charge), (0, 3));
    assert_eq!(manager.most_unspent(&state), 7);
    let answer = (&request, LeaseGrant::of(0));
    assert!(manager.answer(&state, answer, (PERIOD, PERIOD), || 8).is_some());
    assert_eq!(manager.most_unspent(&state), 0);
}

/// The use of a budget that the store has ended is charged by the first request of the next one, whether it was reported
/// before or is spent meanwhile.
#[test]
fn the_use_of_an_ended_budget_is_charged() {
    let state = LeaseState::new();
    let mut manager = spent(&state);
    state.grant(10, u64::MAX);
    let spend = || matches!(state.spend(1, 3, || PERIOD), SpendResult::Covered { .. });
    assert!(spend());
    let (request, _) = manager
        .request(&state, 3 * PERIOD, true, || 8)
        .expect("it is due");
    assert_eq!((request.is_new, request.charge), (false, 3));
    assert!(spend());
    let answer = (&request, LeaseGrant::unknown());
    assert!(manager.answer(&state, answer, (PERIOD, PERIOD), || 8).is_some());
    assert!(!manager.is_free(&state, u64::MAX) && !manager.is_released(&state));
    assert_eq!(
        (manager.reported_permits(), manager.charging_request()),
        (6, Some((8, 1)))
    );
    let (request, _) = manager
        .request(&state, 5 * PERIOD, true, || 9)
        .expect("it is due");
    assert_eq!((request.is_new, request.charge, request.lease_id), (true, 6, 8));
    assert_eq!((request.cap, manager.reported_permits()), (6, 6));
    assert_eq!(
        manager.charging_request(),
        Some((8, 1)),
        "a flush waits for its answer"
    );
    let answer = (&request, LeaseGrant::of(4));
    assert!(manager.answer(&state, answer, (PERIOD, PERIOD), || 9).is_some());
    assert_eq!(
        (manager.reported_permits(), manager.charging_request()),
        (0, None)
    );
}

/// A store that answers each request with an error is not asked faster than once in a period, however many callers wait.
#[test]
fn a_request_that_failed_waits_for_the_period() {
    let state = LeaseState::new();
    let mut manager = spent(&state);
    state.note_shortage(1);
    let (request, _) = manager
        .request(&state, 3 * PERIOD, true, || 8)
        .expect("it is due");
    manager.fail(&request);
    for _ in 0..100 {
        state.note_shortage(1);
        assert!(manager.is_failing() && !manager.is_worth_waiting(&state));
        assert!(manager.request(&state, 3 * PERIOD, true, || 8).is_none());
    }
    let (copy, _) = manager
        .request(&state, 4 * PERIOD, false, || 8)
        .expect("the period is over");
    assert_eq!(
        (copy.lease_id, copy.sequence),
        (request.lease_id, request.sequence)
    );
    // A round without a place for the next copy makes the lease dirty, and the copy is sent when its period is over.
    manager.fail(&copy);
    assert!(manager.request(&state, 5 * PERIOD - 1, true, || 8).is_none());
    let (copy, _) = manager
        .request(&state, 5 * PERIOD, true, || 8)
        .expect("the period is over");
    assert_eq!(copy.sequence, request.sequence);
    let answer = (&copy, LeaseGrant::of(4));
    assert!(manager.answer(&state, answer, (PERIOD, PERIOD), || 8).is_some());
    assert!(!manager.is_failing());
}

/// Each permit is charged to the fallback limiter once: by a request, or before the request that reports it.
#[test]
fn the_fallback_is_charged_each_permit_once() {
    let state = LeaseState::new();
    let mut manager = spent(&state);
    state.grant(20, u64::MAX);
    let spend = |permits| {
        assert!(matches!(
            state.spend(1, permits, || PERIOD),
            SpendResult::Covered { .. }
        ));
    };
    spend(3);
    assert_eq!(manager.take_fallback_charge(&state), 3);
    spend(4);
    let (request, more) = manager
        .request(&state, 3 * PERIOD, true, || 8)
        .expect("it is due");
    assert_eq!((request.charge, more), (7, 4));
    spend(2);
    assert_eq!(manager.take_fallback_charge(&state), 2);
    assert_eq!(manager.take_fallback_charge(&state), 0);
    let answer = (&request, LeaseGrant::of(4));
    assert!(manager.answer(&state, answer, (PERIOD, PERIOD), || 8).is_some());
    spend(1);
    let (request, more) = manager
        .request(&state, 5 * PERIOD, true, || 8)
        .expect("it is due");
    assert_eq!((request.charge, more), (3, 1));
}

/// A request that returns a part of the budget also ends the notice of a denial, which counts the whole budget as taken.
#[test]
fn a_returned_budget_ends_the_notice() {
    let state = LeaseState::new();
    let mut manager = spent(&state);
    state.grant(10, u64::MAX);
    state.close((0, u64::MAX), 0, (1, u64::MAX));
    assert!(state.is_closed(2 * PERIOD));
    assert!(manager.release(&state).is_some());
    let (request, _) = manager
        .request(&state, 2 * PERIOD, false, || 8)
        .expect("it is released");
    assert_eq!(request.wanted, 0);
    assert!(!state.is_closed(2 * PERIOD));
}

/// The store has ended a lease that was not answered for a term, so the next request is the first of a new one.
#[test]
fn a_lease_without_permits_begins_anew_after_its_term() {
    for (at, expected) in [(TERM, (7, 2, false)), (PERIOD + TERM, (8, 1, true))] {
        let state = LeaseState::new();
        let mut manager = spent(&state);
        state.note_shortage(1);
        let (request, _) = manager.request(&state, at, true, || 8).expect("it is due");
        assert_eq!((request.lease_id, request.sequence, request.is_new), expected);
    }
}

/// A key with too few requests for a lease does not keep its place.
#[test]
fn a_lease_without_demand_is_free() {
    let state = LeaseState::new();
    let mut manager = assigned(&state, true);
    state.note_shortage(1);
    assert!(manager.request(&state, 2 * PERIOD, true, || 8).is_none());
    assert!(!manager.is_free(&state, 2 * PERIOD));
    assert!(manager.request(&state, 9 * PERIOD, false, || 8).is_none());
    assert_eq!(manager.target_permits(), 0);
    assert!(manager.is_free(&state, 9 * PERIOD));
    assert!(!manager.is_busy(&state));
}

/// The term of granted permits begins when the request is sent, so that it ends no later on the node than in the store. The node spends
/// them up to the margin before its end, and keeps the lease until the end.
#[test]
fn a_term_begins_with_the_request() {
    let state = LeaseState::new();
    let mut manager = assigned(&state, true);
    state.note_shortage(100);
    let (request, _) = manager.request(&state, PERIOD, true, || 8).expect("it is due");
    let answer = (&request, LeaseGrant::of(10).with_remaining(5, Duration::ZERO));
    assert!(
        manager
            .answer(&state, answer, (PERIOD, 4 * PERIOD), || 8)
            .is_some()
    );
    let end = PERIOD + TERM;
    let spent = |now| matches!(state.peek(1, 1, now), SpendResult::Covered { .. });
    assert_eq!([end - MARGIN - 1, end - MARGIN].map(spent), [true, false]);
    assert_eq!(
        [end - MARGIN - 1, end - MARGIN].map(|now| state.remaining(now)),
        [15, 5]
    );
    assert_eq!(
        [end - 1, end].map(|now| manager.is_free(&state, now)),
        [false, true]
    );
}

/// The use of a lease that the store does not know any more is charged to the fallback limiter, once.
#[test]
fn the_use_of_a_lost_lease_is_charged_to_the_fallback() {
    // The permits that are spent before the report, after it, and after the fallback limiter was charged in between.
    for (reported, charged, lost) in [(1, 0, 3), (3, 0, 0), (3, 0, 4), (2, 3, 0), (1, 3, 5), (1, 9, 0)] {
        for is_registered in [false, true] {
            let state = LeaseState::new();
            let mut manager = assigned(&state, is_registered);
            state.note_shortage(100);
            let (request, _) = manager.request(&state, PERIOD, true, || 8).expect("it is due");
            let answer = (&request, LeaseGrant::of(10));
            assert_eq!(manager.answer(&state, answer, (PERIOD, PERIOD), || 8), Some(0));
            let spend = |permits| {
                let spent = state.spend(1, permits, || PERIOD);
                assert!(permits == 0 || matches!(spent, SpendResult::Covered { .. }));
            };
            spend(reported);
            let (request, at_report) = manager
                .request(&state, 3 * PERIOD, false, || 8)
                .expect("it is due");
            spend(charged);
            let by_request = manager.take_fallback_charge(&state);
            spend(lost);
            assert_eq!((at_report, by_request), (reported, charged));
            let answer = (&request, LeaseGrant::unknown());
            let more = manager.answer(&state, answer, (3 * PERIOD, 3 * PERIOD), || 9);
            assert_eq!(more, Some(lost), "{reported} {charged} {lost} {is_registered}");
            // The next report charges what the store has not, and the fallback limiter nothing.
            let next = manager.request(&state, 9 * PERIOD, false, || 9);
            assert_eq!(
                (
                    manager.take_fallback_charge(&state),
                    next.map_or(0, |(_, more)| more)
                ),
                (0, 0)
            );
        }
    }
}
