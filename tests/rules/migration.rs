//! The permits that a reload carries over from one state to another, and those that it does not.

use super::*;

/// A charge to a state that was replaced is not refunded.
#[test]
fn a_refund_after_a_change_of_window_is_forfeited() {
    let (live, _) = live([rule("all", "10/10s")]);
    let kept = live.load().reserve(&user(1)).expect("the first");
    let lost = live.load().reserve(&user(1)).expect("the second");
    // A charge to a reused state is refunded.
    reload(&live, [rule("all", "12/10s")]);
    assert_eq!(live.load().refund(kept), Settled::Exact);
    reload(&live, [rule("all", "12/20s")]);
    assert_eq!(live.load().refund(lost), Settled::Forfeited(1));
    assert_eq!(admissions(&live, &user(1), 20), 11);
}

/// A charge to the catch-all is refunded while its state is reused, and not after it was replaced.
#[test]
fn a_refund_to_the_catch_all_after_a_reload_is_of_its_own_state() {
    for algorithm in [
        RuleAlgorithm::Counter,
        RuleAlgorithm::Classic,
        RuleAlgorithm::Even,
        RuleAlgorithm::Fixed,
        RuleAlgorithm::Gcra,
    ] {
        let each = |quota, keys| {
            let rule = rule("each", quota).by(&by_user()).algorithm(algorithm);
            rule.capacity(keys).on_full(OnFull::Share)
        };
        let (live, _) = live([each("40/10s", 1)]);
        // One request of each key takes an entry, until none is left.
        assert!(
            (100..112).all(|id| live.load().check(&user(id)).is_ok()),
            "{algorithm:?}"
        );
        let reserve = |id| live.load().reserve(&user(id)).expect("room in the catch-all");
        let (first, second) = (reserve(1), reserve(2));
        // The state is reused: a charge to its catch-all can be refunded.
        reload(&live, [each("30/10s", 1)]);
        assert_eq!(live.load().refund(second), Settled::Exact, "{algorithm:?}");
        // The state was replaced: the charge stays in its successor.
        reload(&live, [each("30/10s", 2)]);
        let spent = || -> Vec<u64> {
            let looks = |id| live.load().peek(&user(id)).map(|look| look.spent()).sum();
            (0..200).map(looks).collect()
        };
        let before = spent();
        assert_eq!(live.load().refund(first), Settled::Forfeited(1), "{algorithm:?}");
        assert_eq!(spent(), before, "{algorithm:?}");
    }
}

/// A rule that was removed and added again has another state, without the earlier charges.
#[test]
fn a_refund_to_a_rule_that_was_removed_is_forfeited() {
    for is_keyed in [false, true] {
        let all = || keyed(rule("all", "4/10s"), is_keyed);
        let (live, _) = live([all()]);
        let before = live.load().reserve(&user(1)).expect("the first");
        reload::<AnyKind>(&live, []);
        reload(&live, [all()]);
        assert_eq!(admissions(&live, &user(1), 20), 4);
        assert_eq!(live.load().refund(before), Settled::Forfeited(1));
        assert_eq!(admissions(&live, &user(1), 20), 0);
    }
}

/// Two rules become windows of one ring. The ring is charged the larger of their counts, in either order.
#[test]
fn of_two_states_that_become_one_the_larger_count_is_carried_over() {
    let [a, b] = ["a", "b"].map(|name| rule(name, "10/10s"));
    for a_first in [true, false] {
        let both = |b: &Rule<Request>| match a_first {
            true => set([a.clone(), b.clone()]),
            false => set([b.clone(), a.clone()]),
        };
        let (live, _) = live([a.clone()]);
        assert_eq!(admissions(&live, &user(1), 4), 4);
        // A shadow rule has a separate state.
        assert_eq!(
            live.store(&both(&b.clone().shadow())).expect("valid rules"),
            Reloaded::Done
        );
        assert_eq!(live.load().states(), 2);
        assert_eq!(admissions(&live, &user(1), 3), 3);
        assert_eq!(live.store(&both(&b)).expect("valid rules"), Reloaded::Done);
        assert_eq!(live.load().states(), 1);
        // The three permits that `b` counted are among the seven of `a`.
        assert_eq!(admissions(&live, &user(1), 20), 3, "{a_first}");
    }
}

/// A key without an entry, whose debt the full catch-all cannot hold, is denied until the debt expires.
#[test]
fn a_key_whose_debt_does_not_fit_is_barred() {
    let each = |quota, keys| {
        let log = rule("each", quota).algorithm(RuleAlgorithm::Log);
        log.by(&by_user()).capacity(keys).on_full(OnFull::Share)
    };
    let (live, clock) = live([each("3/10s", 1_000)]);
    clock.set(Nanos::new(3_600_000_000_000));
    let held: LoadedRules<_, _> = live.load();
    assert!(matches!(
        live.store(&set([each("3/20s", 1)])),
        Ok(Reloaded::Pending(_))
    ));
    // Other keys take all entries of the new table, and use up its catch-all.
    for id in 100..130 {
        let _ = live.load().check(&user(id)).is_ok();
    }
    clock.advance(secs(19));
    // The charge is by the old rules only.
    let victim = user(7);
    let spent = (0..5).filter(|_| held.check(&victim).is_ok()).count();
    assert_eq!(spent, 3);
    drop(held);
    assert_eq!(live.finish(), Reloaded::Done);
    // The entries and the catch-all are idle now, and the debt still counts.
    clock.advance(secs(2));
    assert_eq!(admissions(&live, &victim, 5), 0);
    clock.advance(secs(20));
    assert_eq!(admissions(&live, &victim, 5), 3);
}

/// Whether the request is admitted, and whether the catch-all admitted it because its key has no entry.
fn admission(live: &Live, request: &Request) -> Option<bool> {
    let overflowed = || {
        live.load()
            .counts()
            .map(|(_, counts)| counts.overflowed)
            .sum::<u64>()
    };
    let before = overflowed();
    (admissions(live, request, 1) == 1).then(|| overflowed() > before)
}

/// Each key that the old catch-all has admitted is barred in the new table, whatever its place in the tables.
#[test]
fn every_key_of_the_catch_all_is_barred_after_a_reload() {
    for (from, to) in [(300, 300), (300, 3_000), (300, 1)] {
        let each = |keys, text| rule("each", text).by(&by_user()).cells(5).capacity(keys);
        let (live, clock) = live([each(from, "5000/10s")]);
        // These keys fill the table. The entries are reused shortly before the catch-all is empty.
        let with_entry: Vec<u64> = (0..4_000)
            .filter(|&id| admission(&live, &user(id)) == Some(false))
            .collect();
        clock.advance(millis(11_500));
        for id in with_entry {
            admissions(&live, &user(id), 1);
        }
        clock.advance(millis(1_000));
        let shared: Vec<u64> = (4_000..4_050)
            .filter(|&id| admission(&live, &user(id)) == Some(true))
            .take(12)
            .collect();
        let spent = shared.len() as u64;
        assert!(spent > 9, "{spent} keys without an entry");
        // The entries are idle now, and the catch-all is not.
        clock.advance(millis(10_500));
        reload(&live, [each(to, "5000/20s")]);
        let rules = live.load();
        for id in shared {
            let request = user(id);
            let peek = rules.peek(&request).next().expect("a rule");
            let left = peek.remaining();
            assert!(left <= 5_000 - spent, "{from} to {to}: user {id} has {left} left");
        }
    }
}

/// The catch-all is carried over at its latest recorded time, if the clock is behind that time.
#[test]
fn the_catch_all_is_carried_over_at_its_latest_time() {
    let each = |keys, text| rule("each", text).by(&by_user()).capacity(keys);
    let (live, clock) = live([each(1, "10/1000s")]);
    let ahead = clock.now().saturating_add(secs(900));
    // These keys fill the table of twelve entries. The catch-all admits the last ones.
    for id in 0..20 {
        let rules = live.load();
        let _ = rules.check_at(&user(id), ahead).is_ok();
    }
    let left = |id| live.load().peek(&user(id)).next().expect("a rule").remaining();
    let shared: Vec<u64> = (0..20).filter(|&id| left(id) < 9).collect();
    let before = left(shared[0]);
    assert!(shared.len() > 5, "{shared:?} have no entry");
    reload(&live, [each(1_000, "10/3000s")]);
    // 2,900 seconds after the permits were spent, and 3,800 after the carry-over.
    clock.advance(secs(3_800));
    for id in shared {
        assert!(
            left(id) <= before,
            "user {id} has {} left, {before} before",
            left(id)
        );
    }
}

/// Debt is limited by every window of the state, so that the sum of a window does not wrap around.
#[test]
fn debt_is_limited_by_the_longest_window() {
    let cost = by_cost();
    let (rules, clock) = by_hand([rule("both", "10/1s").also(quota("100/60s")).cost(&cost)]);
    let [first, second] = [(); 2].map(|()| rules.reserve(&user(1)).expect("capacity"));
    let forgiven = |settled| {
        if let Settled::Forgiven(permits) = settled {
            permits
        } else {
            0
        }
    };
    // As many permits as the words can hold.
    assert!(forgiven(rules.settle(first, &cost, u64::MAX)) > 0);
    // The short window is empty again, and the long one is not.
    clock.advance(secs(5));
    assert_eq!(forgiven(rules.settle(second, &cost, 4)), 3);
    assert!(rules.check(&user(1)).is_err());
    clock.advance(secs(40));
    assert!(rules.check(&user(1)).is_err());
}

/// Two rules of one state get states of their own. Debt is charged to both, and the one that can hold less decides what is forgiven.
#[test]
fn the_least_that_a_successor_was_charged_is_reported() {
    let cost = by_cost();
    let [first, second] = ["first", "second"].map(|name| rule(name, "10/10s").cost(&cost));
    // The words of a ring of two windows hold fewer permits than the word of a bucket.
    let small = first.clone().also(quota("100/60s"));
    let large = rule("second", "1000000000/10s")
        .cost(&cost)
        .algorithm(RuleAlgorithm::Gcra);
    let debt = 10_000_000_000_000_000;
    for small_first in [true, false] {
        let both = |[first, second]: [&Rule<Request>; 2]| match small_first {
            true => set([first.clone(), second.clone()]),
            false => set([second.clone(), first.clone()]),
        };
        let (live, _) = live([first.clone()]);
        assert_eq!(
            live.store(&both([&first, &second])).expect("valid rules"),
            Reloaded::Done
        );
        assert_eq!(live.load().states(), 1);
        let reservation = live.load().reserve(&user(1)).expect("the first");
        assert_eq!(
            live.store(&both([&small, &large])).expect("valid rules"),
            Reloaded::Done
        );
        assert_eq!(live.load().states(), 2);
        let settled = live.load().settle(reservation, &cost, debt);
        assert!(
            matches!(settled, Settled::Forgiven(permits) if permits > debt / 2),
            "{settled:?}"
        );
    }
}

/// A rule with another key begins empty, even if both keys of a request have the same hash.
#[test]
fn a_rule_with_another_key_is_no_successor() {
    let request = user(1).address(1);
    for window in ["10s", "20s"] {
        let (live, _) = live([rule("a", "10/10s").by(&by_user())]);
        assert_eq!(admissions(&live, &request, 20), 10);
        // A key with the same name is the same.
        reload(&live, [rule("a", "10/10s").by(&by_user())]);
        assert_eq!(admissions(&live, &request, 20), 0);
        reload(&live, [rule("a", &format!("10/{window}")).by(&by_address())]);
        assert_eq!(admissions(&live, &request, 20), 10, "{window}");
        reload(&live, [rule("a", &format!("10/{window}"))]);
        assert_eq!(admissions(&live, &request, 20), 10, "no key");
    }
}

/// Permits that a log could not hold are added to those that it has admitted since.
#[test]
fn permits_of_a_retained_state_are_added() {
    let log = |text| rule("log", text).algorithm(RuleAlgorithm::Log);
    let (live, clock) = live([log("20/60s")]);
    assert_eq!(admissions(&live, &user(1), 10), 10);
    reload(&live, [log("3/1s")]);
    clock.advance(secs(2));
    assert_eq!(admissions(&live, &user(1), 10), 3);
    reload(&live, [log("20/60s")]);
    assert_eq!(admissions(&live, &user(1), 100), 7);
}

/// A log that is reused for two rules forgets permits of its own for those of the other one. The other state is retained, so no permit
/// is lost when the limit is raised.
#[test]
fn permits_that_a_reused_log_forgets_for_another_rule_count() {
    let log = |name, text| rule(name, text).algorithm(RuleAlgorithm::Log);
    let (live, _) = live([log("x", "3/60s")]);
    assert_eq!(admissions(&live, &user(1), 2), 2);
    reload(&live, [log("x", "3/60s").when(&login()), log("a", "3/60s")]);
    assert_eq!(admissions(&live, &user(1), 2), 2);
    reload(&live, [log("x", "3/60s").renamed_from("a")]);
    assert_eq!(admissions(&live, &user(1), 1), 0);
    reload(&live, [log("x", "20/60s")]);
    assert!(4 + admissions(&live, &user(1), 20) <= 20);
}

/// An entry is evicted by callers of the old and of the new rules, so both must know the longest burst of its words.
#[test]
fn a_bucket_keeps_its_words_unless_its_burst_becomes_much_longer() {
    let key = by_user();
    let bucket = |text, burst| {
        let rule = rule("a", text).algorithm(RuleAlgorithm::Gcra).burst(burst);
        rule.by(&key).capacity(100)
    };
    for (before, after, pending) in [
        (("10/s", 1), ("10/s", 10), false),
        (("10/s", 10), ("11/s", 11), false),
        (("10/s", 10), ("1000/s", 1_000), false),
        (("10/s", 10), ("3/s", 3), false),
        (("10/s", 21), ("10/s", 39), false),
        (("10/s", 20), ("15/s", 30), false),
        (("10/s", 39), ("10/s", 21), false),
        (("10/s", 10), ("10/s", 20), true),
        (("10/s", 39), ("10/s", 40), true),
    ] {
        let (live, _) = live([bucket(before.0, before.1)]);
        assert_eq!(admissions(&live, &user(1), 1), 1);
        let held = live.load();
        let expected = if pending {
            Reloaded::Pending(1)
        } else {
            Reloaded::Done
        };
        let stored = live.store(&set([bucket(after.0, after.1)]));
        assert_eq!(stored.expect("valid rules"), expected, "{before:?} to {after:?}");
        drop(held);
        assert_eq!(live.finish(), Reloaded::Done);
        // The permit counts in either case. After the reload it may count as several, since they take less time.
        assert!(
            admissions(&live, &user(1), 2_000) < after.1,
            "{before:?} to {after:?}"
        );
    }
}

/// A refund lowers the words of a bucket, except in a table that forgets keys, whose entries are reused while they count. So a table of
/// buckets gets new words if it forgets keys from now on.
#[test]
fn a_bucket_keeps_its_words_unless_keys_are_forgotten_now() {
    for (algorithm, pending) in [(RuleAlgorithm::Gcra, true), (RuleAlgorithm::Counter, false)] {
        let of = |on_full| {
            rule("a", "10/s")
                .algorithm(algorithm)
                .by(&by_user())
                .on_full(on_full)
        };
        let (live, _) = live([of(OnFull::Share)]);
        let held = live.load();
        let expected = match pending {
            true => Reloaded::Pending(1),
            false => Reloaded::Done,
        };
        let stored = live.store(&set([of(OnFull::Forget)]));
        assert_eq!(stored.expect("valid rules"), expected);
        drop(held);
    }
}
