//! Limits that are computed from the request.

use super::*;
use RuleAlgorithm::{Classic, Counter, Fixed, Gcra, Log};

/// Twenty per minute at most, and what the request says.
fn limited(algorithm: RuleAlgorithm) -> Rule<Request> {
    let rule = rule("each", "20/min").algorithm(algorithm).by(&by_user());
    rule.limit_by(|request: &Request| request.limit)
}

fn with_limit(id: u64, limit: impl Into<Option<u64>>) -> Request {
    user(id).limit(limit.into())
}

/// The limit denies a request that also has no key.
#[test]
fn a_limit_of_zero_is_no_missing_key() {
    use ringgate::rules::OnMissingKey;
    let key = Key::optional("user", OnMissingKey::Share, |_: &Request, _| false);
    let (rules, _) = by_hand([rule("each", "2/min")
        .by(&key)
        .limit_by(|request: &Request| request.limit)]);
    assert!(rules.check(&user(1)).is_ok());
    let zero = with_limit(1, 0);
    let denied = rules.check(&zero).expect_err("zero");
    assert!(!denied.violations().next().expect("one").lacks_key);
}

#[test]
fn a_lowered_charge_is_refunded_and_settled() {
    let cost = by_cost();
    for algorithm in [Counter, Classic, Fixed, Gcra] {
        let (rules, clock) = by_hand([limited(algorithm).cost(&cost)]);
        let remaining = || rules.peek(&with_limit(1, 10)).next().expect("a rule").remaining();
        let request = with_limit(1, 10).cost(6);
        let reservation = rules.reserve(&request).expect("six of ten");
        assert_eq!(remaining(), 4);
        assert_eq!(rules.settle(reservation, &cost, 2), Settled::Exact);
        assert_eq!(remaining(), 8);
        // Debt counts at the rate of the limit: two of ten, and twelve more, are refilled in 84 seconds.
        let reservation = rules.reserve(&request).expect("six of eight");
        assert_eq!(rules.settle(reservation, &cost, 12), Settled::Exact);
        assert_eq!(remaining(), 0);
        if algorithm == Gcra {
            clock.advance(secs(24) - Duration::from_nanos(1));
            assert_eq!(remaining(), 0);
            clock.advance(secs(6) + Duration::from_nanos(1));
            assert_eq!(remaining(), 1);
        }
    }
}

/// A reload keeps the counts, adds and removes the function, and lowers the limits of all requests.
#[test]
fn a_reload_keeps_the_counts_and_replaces_the_function() {
    for algorithm in [Counter, Classic, Fixed, Log, Gcra] {
        let plain = || rule("each", "20/min").algorithm(algorithm).by(&by_user());
        let (live, _) = live([plain()]);
        assert_eq!(admissions(&live, &user(1), 10), 10);
        reload(&live, [limited(algorithm)]);
        // Half of the bucket is left, which is one permit of the lower limit.
        let left = if algorithm == Gcra { 1 } else { 0 };
        assert_eq!(admissions(&live, &with_limit(1, 2), 20), left, "{algorithm:?}");
        assert_eq!(admissions(&live, &with_limit(2, 4), 20), 4);
        let one_more = plain().limit_by(|request: &Request| request.limit.map(|limit| limit + 1));
        reload(&live, [one_more]);
        // An empty bucket stays empty.
        let more = if algorithm == Gcra { 0 } else { 1 };
        assert_eq!(admissions(&live, &with_limit(2, 4), 20), more, "{algorithm:?}");
        reload(&live, [plain()]);
        let rest = if algorithm == Gcra { 0 } else { 15 };
        assert_eq!(admissions(&live, &with_limit(2, 4), 20), rest, "{algorithm:?}");
    }
}

/// The words are replaced, because the window changes. The counts of a ring are charged as permits.
#[test]
fn a_reload_to_another_window_carries_the_counts_over() {
    let (live, _) = live([limited(Counter)]);
    assert_eq!(admissions(&live, &with_limit(1, 5), 20), 5);
    let hour = rule("each", "20/h")
        .by(&by_user())
        .limit_by(|request: &Request| request.limit);
    live.store(&set([hour])).expect("rules");
    assert_eq!(live.finish(), Reloaded::Done);
    assert_eq!(admissions(&live, &with_limit(1, 5), 20), 0);
    assert_eq!(admissions(&live, &with_limit(1, 7), 20), 2);
}

/// Debt is charged to the state that a reload has made by the limit of the request, as it is to the state of its admission.
#[test]
fn debt_to_a_successor_has_the_limit_of_its_request() {
    let cost = by_cost();
    let bucket = |capacity| limited(Gcra).cost(&cost).capacity(capacity);
    let (live, clock) = live([bucket(10)]);
    let remaining = || {
        let rules = live.load();
        rules.peek(&with_limit(1, 10)).next().expect("a rule").remaining()
    };
    let request = with_limit(1, 10).cost(6);
    let reservation = live.load().reserve(&request).expect("six of ten");
    reload(&live, [bucket(20)]);
    assert_eq!(remaining(), 4);
    // Twelve permits of ten in a minute are refilled in 72 seconds.
    assert_eq!(live.load().settle(reservation, &cost, 12), Settled::Exact);
    clock.advance(secs(18) - Duration::from_nanos(1));
    assert_eq!(remaining(), 0);
    clock.advance(Duration::from_nanos(1));
    assert_eq!(remaining(), 1);
}

#[test]
fn a_view_states_that_a_function_lowers_the_limit() {
    assert!(limited(Counter).into_any().view().limit_by);
    assert!(!rule("each", "1/s").into_any().view().limit_by);
}
