//! What broke over a reload, each under its name: somebody got a fresh budget, or what should have held did not.

use ringgate::{Reloaded, RuleAlgorithm};

use super::*;

/// One instant, so that everything is in one window: with 1,000 spent of 1,000 in a minute nothing is left of them,
/// whatever the limit was in between.
#[test]
fn a_limit_that_is_lowered_and_raised_again_gives_a_fresh_budget() {
    use RuleAlgorithm::{Classic, Counter, Fixed, Gcra, Log};
    let (key, mut fresh) = (by_user(), Vec::new());
    for algorithm in [Counter, Classic, Fixed, Log, Gcra] {
        for keyed in [false, true] {
            let rule = |text| {
                let rule = rule("all", text).algorithm(algorithm);
                if keyed { rule.by(&key).capacity(100) } else { rule }
            };
            let (live, _) = live([rule("1000/min")]);
            assert_eq!(passed(&live, &user(1), 1000), 1000);
            assert_eq!(live.store(&set([rule("5/min")])), Ok(Reloaded::Done));
            assert_eq!(passed(&live, &user(1), 5), 0);
            assert_eq!(live.store(&set([rule("1000/min")])), Ok(Reloaded::Done));
            let more = passed(&live, &user(1), 1000);
            if more > 0 {
                fresh.push((algorithm, keyed, more));
            }
        }
    }
    assert_eq!(fresh, []);
}

/// "No window admits more than the bound of the more generous of the rules that were in force in it": here 1,010, the
/// burst and the limit of the last.
#[test]
fn a_bucket_that_is_shrunk_and_then_stretched_admits_more_than_any_of_them() {
    let bucket = |text, burst| rule("all", text).algorithm(RuleAlgorithm::Gcra).burst(burst);
    let (live, _) = live([bucket("100/s", 100)]);
    let mut all = passed(&live, &user(1), 2_000);
    for next in [bucket("10/s", 10), bucket("10/s", 1_000)] {
        assert_eq!(live.store(&set([next])), Ok(Reloaded::Done));
        all += passed(&live, &user(1), 2_000);
    }
    assert!(all <= 1_010, "{all} at one instant");
}

/// What still counts is charged in full, also where a cell has a share.
#[test]
fn an_even_rule_of_keys_inherits_no_more_than_a_share() {
    let key = by_user();
    for keyed in [false, true] {
        let by = |rule: Rule<Request>| if keyed { rule.by(&key).capacity(100) } else { rule };
        let (live, clock) = live([by(rule("all", "30/10s"))]);
        let mut all = passed(&live, &user(1), 30);
        let even = by(rule("all", "30/10s").algorithm(RuleAlgorithm::Even));
        assert_eq!(live.store(&set([even])), Ok(Reloaded::Done));
        for _ in 0..10 {
            all += passed(&live, &user(1), 30);
            clock.advance(millis(999));
        }
        // The bound of the even rule; the strict one's is 30.
        assert!(all <= 36, "keyed {keyed}: {all} in ten seconds");
    }
}

/// Time does not run backwards for a rule, not over a reload either.
#[test]
fn a_reload_while_the_clock_is_behind_gives_a_fresh_budget() {
    let key = by_user();
    for keyed in [false, true] {
        let rule = |text| {
            let rule = rule("all", text);
            if keyed { rule.by(&key).capacity(100) } else { rule }
        };
        let (live, clock) = live([rule("10/10s")]);
        let ahead = clock.now().saturating_add(secs(1_000));
        clock.set(ahead);
        assert_eq!(passed(&live, &user(1), 20), 10);
        clock.set(Nanos::new(ahead.get() - 900_000_000_000));
        assert_eq!(live.store(&set([rule("10/20s")])), Ok(Reloaded::Done));
        clock.set(ahead);
        assert_eq!(
            passed(&live, &user(1), 20),
            0,
            "keyed {keyed}, by the same reading"
        );
    }
}

/// `was` need not be repeated at the next reload.
#[test]
fn a_rename_is_forgotten_while_a_reload_is_pending() {
    let (live, _) = live([rule("a", "10/10s")]);
    assert_eq!(passed(&live, &user(1), 20), 10);
    let held = live.load();
    let stored = live.store(&set([rule("x", "10/20s").renamed_from("a")]));
    assert_eq!(stored, Ok(Reloaded::Pending(1)));
    assert_eq!(passed(&live, &user(1), 20), 0);
    assert_eq!(live.store(&set([rule("x", "10/20s")])), Ok(Reloaded::Pending(1)));
    assert_eq!(passed(&live, &user(1), 20), 0);
    drop(held);
    assert_eq!(live.finish(), Reloaded::Done);
    assert_eq!(passed(&live, &user(1), 20), 0);
}

/// A rule that takes the place of two has what either has counted, its own first of all.
#[test]
fn a_rule_that_was_another_loses_its_own_counts_or_the_other_s() {
    let mut fresh = Vec::new();
    for names in [["a", "x"], ["x", "a"]] {
        for drained in ["a", "x"] {
            let of = |name| {
                let rule = rule(name, "10/10s");
                if name == drained {
                    rule
                } else {
                    rule.when(&login())
                }
            };
            let (live, _) = live(names.map(of));
            assert_eq!(passed(&live, &user(1), 20), 10);
            let stored = live.store(&set([rule("x", "10/10s").renamed_from("a")]));
            assert_eq!(stored, Ok(Reloaded::Done));
            let more = passed(&live, &user(1), 20);
            if more > 0 {
                fresh.push((names, drained, more));
            }
        }
    }
    assert_eq!(fresh, []);
}

/// What the old rule has counted and what the new one has are of different requests where the two differ in what they
/// are about, or in what it costs: the sum counts, not the larger of them.
#[test]
fn a_pending_reload_of_another_condition_or_cost_counts_the_larger_only() {
    let logs_in = Request {
        login: true,
        ..user(1)
    };
    let free = Request { cost: 0, ..user(1) };
    for (old, first, second) in [
        (rule("all", "10/10s").when(&login()), logs_in, user(1)),
        (rule("all", "10/10s").cost(&by_cost()), user(1), free),
    ] {
        let (live, _) = live([old]);
        let mut all = passed(&live, &first, 8);
        let held = live.load();
        let stored = live.store(&set([rule("all", "10/20s")]));
        assert_eq!(stored, Ok(Reloaded::Pending(1)));
        all += passed(&live, &second, 8);
        drop(held);
        assert_eq!(live.finish(), Reloaded::Done);
        all += passed(&live, &first, 20);
        assert!(all <= 10, "{all}");
    }
}

/// A reload that is taken back before it was finished: what only the rule in between was about counts too.
#[test]
fn a_pending_reload_that_is_taken_back_forgets_what_was_admitted_meanwhile() {
    let old = || rule("all", "10/10s").when(&login());
    let (live, _) = live([old()]);
    let held = live.load();
    assert_eq!(
        live.store(&set([rule("all", "10/20s")])),
        Ok(Reloaded::Pending(1))
    );
    let mut all = passed(&live, &user(1), 20);
    let _ = live.store(&set([rule("all", "10/10s")]));
    all += passed(&live, &user(1), 20);
    assert!(all <= 10, "{all}");
    drop(held);
    let _ = live.finish();
    all += passed(&live, &user(1), 20);
    assert!(all <= 10, "{all}");
}

/// The words that a pending reload comes back to may never have been charged what was spent before it.
#[test]
fn pending_reloads_that_come_back_to_a_window_give_a_fresh_budget() {
    let rule = |window| Rule::new("all", Quota::new(10, secs(window)).expect("a quota"));
    let (live, _) = live([rule(10)]);
    let mut all = passed(&live, &user(1), 20);
    let held = live.load();
    for window in [20, 30, 10, 20] {
        live.store(&set([rule(window)])).expect("rules");
        all += passed(&live, &user(1), 20);
    }
    drop(held);
    assert_eq!(live.finish(), Reloaded::Done);
    all += passed(&live, &user(1), 20);
    assert_eq!(all, 10);
}

/// A key that the old catch-all has admitted, and that got an entry in the new table before the reload was finished.
#[test]
fn a_key_of_the_old_catch_all_enters_the_new_table_while_a_reload_is_pending() {
    let key = by_user();
    let rule = |keys| rule("each", "10/10s").by(&key).capacity(keys);
    let (live, _) = live([rule(1)]);
    let overflowed = || live.load().counts().next().expect("a rule").1.overflowed;
    for other in 1_000.. {
        assert_eq!(passed(&live, &user(other), 1), 1);
        if overflowed() > 0 {
            break;
        }
    }
    let mut all = passed(&live, &user(1), 5);
    assert_eq!((all, overflowed()), (5, 6));
    let held = live.load();
    assert_eq!(live.store(&set([rule(1_000)])), Ok(Reloaded::Pending(1)));
    all += passed(&live, &user(1), 1);
    drop(held);
    assert_eq!(live.finish(), Reloaded::Done);
    all += passed(&live, &user(1), 20);
    assert!(all <= 10, "{all}");
}

/// Keys that find no entry in the new table are charged to its catch-all; each of them is marked for it, also when
/// another has filled that before.
#[test]
fn a_key_without_an_entry_in_the_new_table_is_not_marked() {
    let key = by_user();
    let rule = |keys| rule("each", "10/10s").by(&key).capacity(keys);
    let (live, clock) = live([rule(20)]);
    let mut all = [1, 2].map(|id| passed(&live, &user(id), 1));
    assert_eq!(all, [1, 1]);
    let held = live.load();
    assert_eq!(live.store(&set([rule(1)])), Ok(Reloaded::Pending(1)));
    // A table for one key has twelve entries.
    for other in 1_000..1_012 {
        assert_eq!(passed(&live, &user(other), 1), 1);
    }
    clock.advance(secs(11));
    for (id, all) in (1..).zip(&mut all) {
        // By the old rules, which are held.
        *all = (0..9).filter(|_| held.check(&user(id)).is_ok()).count() as u64;
    }
    drop(held);
    assert_eq!(live.finish(), Reloaded::Done);
    // The others' entries are idle, and these have spent nine a second ago.
    clock.advance(secs(1));
    for (id, all) in (1..).zip(&mut all) {
        *all += passed(&live, &user(id), 20);
    }
    assert!(all.iter().all(|&all| all <= 10), "{all:?} in one second");
}

/// "A rule that is removed no longer holds from the next decision on", also when it was decided in one step with one
/// that stays.
#[test]
fn a_rule_that_is_removed_holds_while_a_reload_is_pending() {
    let (live, _) = live([rule("stays", "100/s"), rule("goes", "10/min")]);
    assert_eq!((live.load().states(), passed(&live, &user(1), 20)), (1, 10));
    let held = live.load();
    assert_eq!(
        live.store(&set([rule("stays", "100/s")])),
        Ok(Reloaded::Pending(1))
    );
    assert_eq!(passed(&live, &user(1), 5), 5);
    drop(held);
}

/// More than 64 states may change at once; nobody is in the middle of a decision.
#[test]
fn a_reload_of_many_windows_is_refused_for_ever() {
    for states in [64, 65, 200] {
        let named = |text: &str| {
            let quota = quota(text);
            (0..states)
                .map(move |number| Rule::new(format!("rule {number}"), quota).algorithm(RuleAlgorithm::Gcra))
        };
        let (live, _) = live(named("10/s"));
        assert_eq!(
            live.store(&set(named("10/2s"))),
            Ok(Reloaded::Done),
            "{states} states"
        );
    }
}

/// What is settled after a reload is settled with the rule that is in force, which has taken the charge over.
#[test]
fn debt_that_is_booked_after_a_reload_counts_nowhere() {
    let cost = by_cost();
    let rule = |text| rule("all", text).cost(&cost);
    let (live, _) = live([rule("10/10s")]);
    let reservation = live.load().reserve(&user(1)).expect("the first");
    assert_eq!(live.store(&set([rule("10/20s")])), Ok(Reloaded::Done));
    let _ = live.load().settle(reservation, &cost, 10);
    assert_eq!(passed(&live, &user(1), 20), 0);
}

/// "With another limit, the counts are kept as they are": what was spent before does not begin anew at the reload.
#[test]
fn a_lower_limit_counts_what_was_spent_as_if_it_were_spent_now() {
    let mut late = Vec::new();
    for (before, after) in [
        ("30/10s", "15/10s"),
        ("20/10s", "10/10s"),
        ("1000/10s", "10/10s"),
        ("10/10s", "20/10s"),
    ] {
        let (live, clock) = live([rule("all", before)]);
        assert!(passed(&live, &user(1), 1_000) >= 10);
        clock.advance(secs(8));
        assert_eq!(live.store(&set([rule("all", after)])), Ok(Reloaded::Done));
        // Twelve seconds after they were spent, the five cells of two and the present one are over.
        clock.advance(secs(4));
        if passed(&live, &user(1), 1) == 0 {
            late.push((before, after));
        }
    }
    assert_eq!(late, []);
}

/// A bucket that is slower and takes no longer to refill keeps its word, whether or not the window divides.
#[test]
fn a_bucket_is_charged_for_longer_because_its_permit_is_rounded() {
    for text in ["5/s", "4/s", "3/s", "7/s"] {
        let bucket = |text| rule("all", text).algorithm(RuleAlgorithm::Gcra);
        let (live, clock) = live([bucket("10/s")]);
        assert_eq!(passed(&live, &user(1), 20), 10);
        assert_eq!(live.store(&set([bucket(text)])), Ok(Reloaded::Done));
        // Full in a second, before as after.
        clock.advance(secs(1));
        assert_eq!(passed(&live, &user(1), 1), 1, "{text}");
    }
}

/// A window that is narrowed, with a lower limit, and widened again within an instant.
#[test]
fn a_window_that_is_narrowed_and_widened_again_gives_a_fresh_budget() {
    for by in [None, Some(by_user())] {
        let with = |quota| {
            let rule = rule("a", quota);
            match &by {
                Some(key) => rule.by(key).capacity(100),
                None => rule,
            }
        };
        let (live, _) = live([with("1000/min")]);
        assert_eq!(passed(&live, &user(1), 1_000), 1_000);
        for quota in ["5/10s", "1000/min"] {
            assert_eq!(live.store(&set([with(quota)])), Ok(Reloaded::Done));
        }
        assert_eq!(passed(&live, &user(1), 1_000), 0);
    }
}

/// A log that could not hold what was spent before it, and is renamed before its limit is raised again.
#[test]
fn what_a_log_could_not_hold_is_lost_by_a_rename() {
    let log = |name, text: &str| rule(name, text).algorithm(RuleAlgorithm::Log);
    let (live, _) = live([log("a", "1000/min")]);
    assert_eq!(passed(&live, &user(1), 1_000), 1_000);
    for rule in [
        log("a", "5/min"),
        log("b", "5/min").renamed_from("a"),
        log("b", "1000/min"),
    ] {
        assert_eq!(live.store(&set([rule])), Ok(Reloaded::Done));
    }
    assert_eq!(passed(&live, &user(1), 1_000), 0);
    // Without the rule, what it had is forgotten.
    for rule in [log("b", "5/min"), log("c", "5/min"), log("b", "1000/min")] {
        assert_eq!(live.store(&set([rule])), Ok(Reloaded::Done));
    }
    assert_eq!(passed(&live, &user(1), 1_000), 1_000);
}
