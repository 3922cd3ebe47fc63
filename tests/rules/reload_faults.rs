//! Regressions of reloads, each named after the fault.

use super::*;

/// The clock stands still. With 1,000 of 1,000 a minute spent, no permit is left, whatever the limit and the window were in between.
#[test]
fn a_limit_that_is_lowered_and_raised_again_gives_a_fresh_budget() {
    use RuleAlgorithm::{Classic, Counter, Fixed, Gcra, Log};
    for algorithm in [Counter, Classic, Fixed, Log, Gcra] {
        for is_keyed in [false, true] {
            for lowered in ["5/min", "5/10s"] {
                let rule = |text| keyed(rule("all", text).algorithm(algorithm), is_keyed);
                let (live, _) = live([rule("1000/min")]);
                assert_eq!(admissions(&live, &user(1), 1000), 1000);
                reload(&live, [rule(lowered)]);
                assert_eq!(admissions(&live, &user(1), 5), 0);
                reload(&live, [rule("1000/min")]);
                let more = admissions(&live, &user(1), 1000);
                assert_eq!(more, 0, "{algorithm:?}, keyed {is_keyed}, {lowered}");
            }
        }
    }
}

/// One key has spent more than the words of the lower limit can hold, so the old state is retained. Further reloads of the same rules
/// charge nothing again.
#[test]
fn a_retained_state_is_not_charged_twice() {
    let rule = |text| rule("each", text).by(&by_user());
    let (live, clock) = live([rule("1000/min")]);
    assert_eq!(admissions(&live, &user(1), 1000), 1000);
    assert_eq!(admissions(&live, &user(2), 10), 10);
    for _ in 0..5 {
        reload(&live, [rule("50/min")]);
    }
    assert_eq!(admissions(&live, &user(2), 50), 40);
    assert_eq!(admissions(&live, &user(1), 50), 0);
    // The retained state expires with the window.
    clock.advance(secs(120));
    reload(&live, [rule("1000/min")]);
    assert_eq!(admissions(&live, &user(1), 1000), 1000);
}

/// The settling thread has loaded the set in which both states are enforced. The reload has read the words of the old one meanwhile.
#[test]
fn debt_beside_a_carry_over_counts_in_the_new_state() {
    let cost = by_cost();
    for is_keyed in [false, true] {
        for (from, to) in [("100/10s", "100/20s"), ("100/10s", "50/30s")] {
            let rule = |text| keyed(rule("all", text).cost(&cost), is_keyed);
            let (live, _) = live([rule(from)]);
            let old = live.load();
            let reservation = old.reserve(&user(1)).expect("the first");
            reload_beside(&live, [rule(to)]);
            let both = live.load();
            drop(old);
            assert_eq!(live.finish(), Reloaded::Done);
            assert_eq!(both.settle(reservation, &cost, 41), Settled::Exact);
            let remaining = live.load().peek(&user(1)).next().map(|peek| peek.remaining());
            assert_eq!(remaining, Some(quota(to).limit() - 41), "{from} {to} {is_keyed}");
        }
    }
}

/// More rules than the states that are retained for one of them.
#[test]
fn each_of_many_rules_retains_its_state() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    // Each log has a state of its own. Tables of few keys have few pages to clear: a log of a key has 1000 slots.
    let rules = |text| {
        names.map(|name| {
            rule(name, text)
                .by(&by_user())
                .algorithm(RuleAlgorithm::Log)
                .capacity(100)
        })
    };
    let (live, _) = live(rules("1000/min"));
    assert_eq!(admissions(&live, &user(1), 1000), 1000);
    reload(&live, rules("50/min"));
    reload(&live, rules("1000/min"));
    for peek in live.load().peek(&user(1)) {
        assert_eq!(peek.remaining(), 0, "{}", peek.rule());
    }
}

/// A log of three slots holds the last three admissions. Permits that it had to forget for others are retained.
#[test]
fn a_log_that_overwrites_its_slots_gives_a_fresh_budget() {
    let log = |text| rule("all", text).algorithm(RuleAlgorithm::Log);
    let (live, clock) = live([log("20/60s")]);
    assert_eq!(admissions(&live, &user(1), 7), 7);
    clock.advance(secs(10));
    assert_eq!(admissions(&live, &user(1), 3), 3);
    reload(&live, [log("3/1s")]);
    // The seven have expired, and the three have not.
    clock.advance(Duration::from_millis(50_400));
    let more = admissions(&live, &user(1), 3);
    reload(&live, [log("3/1s")]);
    reload(&live, [log("20/60s")]);
    // The last window holds the three of the tenth second, and these.
    assert!(3 + more + admissions(&live, &user(1), 20) <= 20);
}

/// No window exceeds the highest bound of the rules in force in it. The last burst of the first case is much longer, and the
/// last rate of the second case is below the highest one.
#[test]
fn a_bucket_that_is_shrunk_and_then_stretched_admits_more_than_any_of_them() {
    let bucket = |text, burst| rule("all", text).algorithm(RuleAlgorithm::Gcra).burst(burst);
    for (first, next, bound) in [
        (("100/s", 100), [("10/s", 10), ("10/s", 1_000)], 1_010),
        (("100/s", 410), [("50/s", 50), ("50/s", 390)], 509),
    ] {
        let (live, _) = live([bucket(first.0, first.1)]);
        let mut all = admissions(&live, &user(1), 2_000);
        for (text, burst) in next {
            reload(&live, [bucket(text, burst)]);
            all += admissions(&live, &user(1), 2_000);
        }
        assert!(all <= bound, "{all} at one instant");
    }
}

/// All permits that still count are charged, although a cell of an even rule has a share.
#[test]
fn an_even_rule_is_charged_no_more_than_a_share() {
    for is_keyed in [false, true] {
        let by = |rule| keyed(rule, is_keyed);
        let (live, clock) = live([by(rule("all", "30/10s"))]);
        let mut all = admissions(&live, &user(1), 30);
        let even = by(rule("all", "30/10s").algorithm(RuleAlgorithm::Even));
        reload(&live, [even]);
        for _ in 0..10 {
            all += admissions(&live, &user(1), 30);
            clock.advance(millis(999));
        }
        // The bound of the even rule. The bound of the strict rule is 30.
        assert!(all <= 36, "keyed {is_keyed}: {all} in ten seconds");
    }
}

/// Time does not run backwards over a reload.
#[test]
fn a_reload_while_the_clock_is_behind_gives_a_fresh_budget() {
    for is_keyed in [false, true] {
        let rule = |text| keyed(rule("all", text), is_keyed);
        let (live, clock) = live([rule("10/10s")]);
        let ahead = clock.now().saturating_add(secs(1_000));
        clock.set(ahead);
        assert_eq!(admissions(&live, &user(1), 20), 10);
        clock.set(Nanos::new(ahead.get() - 900_000_000_000));
        reload(&live, [rule("10/20s")]);
        clock.set(ahead);
        assert_eq!(admissions(&live, &user(1), 20), 0, "keyed {is_keyed}");
    }
}

/// The next reload need not repeat `renamed_from`.
#[test]
fn a_rename_is_forgotten_while_a_reload_is_pending() {
    let (live, _) = live([rule("a", "10/10s")]);
    assert_eq!(admissions(&live, &user(1), 20), 10);
    let held = live.load();
    reload_beside(&live, [rule("x", "10/20s").renamed_from("a")]);
    assert_eq!(admissions(&live, &user(1), 20), 0);
    reload_beside(&live, [rule("x", "10/20s")]);
    assert_eq!(admissions(&live, &user(1), 20), 0);
    drop(held);
    assert_eq!(live.finish(), Reloaded::Done);
    assert_eq!(admissions(&live, &user(1), 20), 0);
}

/// A rule that continues two rules has the counts of both, at the later of their times if the clock is behind one.
#[test]
fn a_renamed_rule_loses_its_own_counts_or_the_other_ones() {
    for (names, next) in [
        (["a", "x"], "10/10s"),
        (["x", "a"], "10/10s"),
        (["a", "x"], "10/20s"),
        (["x", "a"], "10/20s"),
    ] {
        for drained in ["a", "x"] {
            let of = |name| match rule(name, "10/10s") {
                rule if name == drained => rule,
                rule => rule.when(&login()),
            };
            let (live, clock) = live(names.map(of));
            let ahead = clock.now().saturating_add(secs(1_000));
            clock.set(ahead);
            assert_eq!(admissions(&live, &user(1), 20), 10);
            clock.set(Nanos::new(ahead.get() - 900_000_000_000));
            reload(&live, [rule("x", next).renamed_from("a")]);
            clock.set(ahead);
            assert_eq!(admissions(&live, &user(1), 20), 0, "{names:?}, {next}, {drained}");
        }
    }
}

/// Rules with another condition or cost have counted different requests, so the sum of their counts is charged, and
/// not the larger count.
#[test]
fn a_pending_reload_of_another_condition_or_cost_counts_the_larger_only() {
    let logs_in = user(1).login();
    let free = user(1).cost(0);
    for (old, first, second) in [
        (rule("all", "10/10s").when(&login()), logs_in, user(1)),
        (rule("all", "10/10s").cost(&by_cost()), user(1), free),
    ] {
        let (live, _) = live([old]);
        let mut all = admissions(&live, &first, 8);
        let held = live.load();
        reload_beside(&live, [rule("all", "10/20s")]);
        all += admissions(&live, &second, 8);
        drop(held);
        assert_eq!(live.finish(), Reloaded::Done);
        all += admissions(&live, &first, 20);
        assert!(all <= 10, "{all}");
    }
}

/// The permits that a rule has counted before it applied to other requests, or had another cost, are charged once.
#[test]
fn permits_count_once_if_the_condition_or_cost_changes_too() {
    let logs_in = user(1).login();
    let (plain, new) = (rule("all", "10/10s"), rule("all", "10/20s"));
    for is_keyed in [false, true] {
        for old in [
            plain.clone().when(&login()),
            plain.clone().cost(&by_cost()),
            plain.clone().when(&login()).cost(&by_cost()),
        ] {
            for (old, new) in [(&old, &new), (&new, &old)] {
                let (live, _) = live([keyed(old.clone(), is_keyed)]);
                assert_eq!(admissions(&live, &logs_in, 4), 4);
                reload(&live, [keyed(new.clone(), is_keyed)]);
                assert_eq!(admissions(&live, &logs_in, 20), 6);
            }
        }
    }
}

/// A reload is undone while it is pending. Requests to which only the rule in between applied count, too.
#[test]
fn a_pending_reload_that_is_undone_forgets_requests_admitted_meanwhile() {
    let old = || rule("all", "10/10s").when(&login());
    let (live, _) = live([old()]);
    let held = live.load();
    reload_beside(&live, [rule("all", "10/20s")]);
    let mut all = admissions(&live, &user(1), 20);
    let _ = live.store(&set([rule("all", "10/10s")]));
    all += admissions(&live, &user(1), 20);
    assert!(all <= 10, "{all}");
    drop(held);
    let _ = live.finish();
    all += admissions(&live, &user(1), 20);
    assert!(all <= 10, "{all}");
}

/// A pending reload returns to words that were never charged the earlier permits.
#[test]
fn pending_reloads_that_come_back_to_a_window_give_a_fresh_budget() {
    let rule = |window| Rule::new("all", Quota::new(10, secs(window)).expect("a quota"));
    let (live, _) = live([rule(10)]);
    let mut all = admissions(&live, &user(1), 20);
    let held = live.load();
    for window in [20, 30, 10, 20] {
        live.store(&set([rule(window)])).expect("rules");
        all += admissions(&live, &user(1), 20);
    }
    drop(held);
    assert_eq!(live.finish(), Reloaded::Done);
    all += admissions(&live, &user(1), 20);
    assert_eq!(all, 10);
}

/// Fills a table, until the catch-all has admitted a key.
fn overflow(live: &Live) {
    for other in 1_000.. {
        assert_eq!(admissions(live, &user(other), 1), 1);
        if overflowed(live) > 0 {
            return;
        }
    }
}

fn overflowed(live: &Live) -> u64 {
    live.load().counts().next().expect("a rule").1.overflowed
}

/// A key that the old catch-all has admitted gets an entry in the new table while the reload is pending.
#[test]
fn a_key_of_the_old_catch_all_enters_the_new_table_while_a_reload_is_pending() {
    let key = by_user();
    let rule = |keys| rule("each", "10/10s").by(&key).capacity(keys);
    let (live, _) = live([rule(1)]);
    overflow(&live);
    let mut all = admissions(&live, &user(1), 5);
    assert_eq!((all, overflowed(&live)), (5, 6));
    let held = live.load();
    reload_beside(&live, [rule(1_000)]);
    all += admissions(&live, &user(1), 1);
    drop(held);
    assert_eq!(live.finish(), Reloaded::Done);
    all += admissions(&live, &user(1), 20);
    assert!(all <= 10, "{all}");
}

/// The permits that the catch-all of a bucket has admitted count until it is full again, here for 10 s.
#[test]
fn a_bucket_that_has_overflowed_bars_keys_for_366_days() {
    let key = by_user();
    let bucket = |keys| {
        let rule = rule("each", "10/10s").algorithm(RuleAlgorithm::Gcra);
        rule.by(&key).capacity(keys)
    };
    let (live, clock) = live([bucket(1)]);
    overflow(&live);
    assert!((1..=5).all(|other| admissions(&live, &user(other), 1) == 1));
    assert_eq!(overflowed(&live), 6);
    reload(&live, [bucket(1_000)]);
    clock.advance(secs(11));
    assert!((1..=5).all(|other| admissions(&live, &user(other), 20) == 10));
}

/// Keys without an entry in the new table are charged to its catch-all, and barred, even if another key has filled
/// the catch-all.
#[test]
fn a_key_without_an_entry_in_the_new_table_is_not_barred() {
    let key = by_user();
    let rule = |keys| rule("each", "10/10s").by(&key).capacity(keys);
    let (live, clock) = live([rule(20)]);
    let mut all = [1, 2].map(|id| admissions(&live, &user(id), 1));
    assert_eq!(all, [1, 1]);
    let held = live.load();
    reload_beside(&live, [rule(1)]);
    // A table for one key has twelve entries.
    for other in 1_000..1_012 {
        assert_eq!(admissions(&live, &user(other), 1), 1);
    }
    clock.advance(secs(11));
    for (id, all) in (1..).zip(&mut all) {
        // The charges are by the old rules, which are held.
        *all = (0..9).filter(|_| held.check(&user(id)).is_ok()).count() as u64;
    }
    drop(held);
    assert_eq!(live.finish(), Reloaded::Done);
    // The entries of the other keys are idle. These keys have spent nine permits a second ago.
    clock.advance(secs(1));
    for (id, all) in (1..).zip(&mut all) {
        *all += admissions(&live, &user(id), 20);
    }
    assert!(all.iter().all(|&all| all <= 10), "{all:?} in one second");
}

/// A removed rule ends with the next decision, even if it shared a state with a rule that stays.
#[test]
fn a_removed_rule_is_enforced_while_a_reload_is_pending() {
    let (live, _) = live([rule("stays", "100/s"), rule("goes", "10/min")]);
    assert_eq!((live.load().states(), admissions(&live, &user(1), 20)), (1, 10));
    let held = live.load();
    reload_beside(&live, [rule("stays", "100/s")]);
    assert_eq!(admissions(&live, &user(1), 5), 5);
    drop(held);
}

/// More than 64 states change in one reload, with no decision in progress.
#[test]
fn a_reload_of_many_windows_always_fails() {
    for states in [64, 65, 200] {
        let named = |text: &str| {
            let quota = quota(text);
            (0..states)
                .map(move |number| Rule::new(format!("rule {number}"), quota).algorithm(RuleAlgorithm::Gcra))
        };
        let (live, _) = live(named("10/s"));
        reload(&live, named("10/2s"));
    }
}

/// A reservation that is settled after a reload is settled with the successor, which was charged the reserved amount.
#[test]
fn debt_that_is_charged_after_a_reload_counts_nowhere() {
    let cost = by_cost();
    let rule = |text| rule("all", text).cost(&cost);
    let (live, _) = live([rule("10/10s")]);
    let reservation = live.load().reserve(&user(1)).expect("the first");
    reload(&live, [rule("10/20s")]);
    let _ = live.load().settle(reservation, &cost, 10);
    assert_eq!(admissions(&live, &user(1), 20), 0);
}

/// With another limit the counts are reused unchanged, so permits do not count from the reload on again.
#[test]
fn a_lower_limit_counts_permits_as_if_spent_at_the_reload() {
    for (before, after) in [("30", "15"), ("20", "10"), ("1000", "10"), ("10", "20")] {
        let all = |limit| rule("all", &format!("{limit}/10s"));
        let (live, clock) = live([all(before)]);
        assert!(admissions(&live, &user(1), 1_000) >= 10);
        clock.advance(secs(8));
        reload(&live, [all(after)]);
        // Twelve seconds after the permits were spent, the five cells of two seconds and the current one have passed.
        clock.advance(secs(4));
        assert_eq!(admissions(&live, &user(1), 1), 1, "{before} to {after}");
    }
}

/// A slower bucket whose burst takes no longer to refill keeps its word, even if the time of a permit is rounded.
#[test]
fn a_bucket_is_charged_for_longer_because_its_permit_is_rounded() {
    for text in ["5/s", "4/s", "3/s", "7/s"] {
        let bucket = |text| rule("all", text).algorithm(RuleAlgorithm::Gcra);
        let (live, clock) = live([bucket("10/s")]);
        assert_eq!(admissions(&live, &user(1), 20), 10);
        reload(&live, [bucket(text)]);
        // Refilled in a second, before and after.
        clock.advance(secs(1));
        assert_eq!(admissions(&live, &user(1), 1), 1, "{text}");
    }
}

/// A log that could not hold the earlier permits is renamed before its limit is raised again.
#[test]
fn permits_that_a_log_could_not_hold_are_lost_by_a_rename() {
    let log = |name, text: &str| rule(name, text).algorithm(RuleAlgorithm::Log);
    let (live, _) = live([log("a", "1000/min")]);
    assert_eq!(admissions(&live, &user(1), 1_000), 1_000);
    for rule in [
        log("a", "5/min"),
        log("b", "5/min").renamed_from("a"),
        log("b", "1000/min"),
    ] {
        reload(&live, [rule]);
    }
    assert_eq!(admissions(&live, &user(1), 1_000), 0);
    // Without the rule, its counts are forgotten.
    for rule in [log("b", "5/min"), log("c", "5/min"), log("b", "1000/min")] {
        reload(&live, [rule]);
    }
    assert_eq!(admissions(&live, &user(1), 1_000), 1_000);
}

/// A word of a lower limit holds the permits when they are charged, and has no bits for all of them when its later cells begin.
#[test]
fn permits_that_a_word_forgets_in_its_next_cell_give_a_fresh_budget() {
    for (before, spent) in [(30, 20), (30, 30), (60, 17), (60, 40), (100, 23), (100, 64)] {
        for (lowered, cells) in [(3, 5), (1, 2), (5, 5), (2, 10), (7, 3)] {
            for waited in [0, 1_900, 3_700, 5_500, 7_900] {
                let raised = || rule("all", &format!("{before}/10s"));
                let (live, clock) = live([raised()]);
                assert_eq!(admissions(&live, &user(1), spent), spent);
                reload(&live, [rule("all", &format!("{lowered}/10s")).cells(cells)]);
                clock.advance(millis(waited));
                reload(&live, [raised()]);
                let all = spent + admissions(&live, &user(1), 100);
                assert!(all <= before, "{all} of {before}: {spent}, {cells}, {waited}");
            }
        }
    }
}
