//! Each kind of reload: no key gets a fresh budget.

use super::*;

/// The most permits that a rule of 10 per window admits at once. For an even rule it is the share of a cell.
fn at_once(algorithm: RuleAlgorithm, limit: u64) -> u64 {
    if algorithm == RuleAlgorithm::Even {
        limit / 5
    } else {
        limit
    }
}

fn spent(live: &Live, request: &Request) -> Vec<u64> {
    live.load().peek(request).map(|peek| peek.spent()).collect()
}

/// Each algorithm, without and with a key.
fn both(case: impl Fn(RuleAlgorithm, &dyn Fn(Rule<Request>) -> Rule<Request>)) {
    let key = by_user();
    for algorithm in algorithms() {
        case(algorithm, &|rule| rule.algorithm(algorithm));
        case(algorithm, &|rule| {
            rule.algorithm(algorithm).by(&key).capacity(100)
        });
    }
}

#[test]
fn a_raised_limit_keeps_the_counts() {
    both(|algorithm, with| {
        let (live, _) = live([with(rule("a", "5/10s"))]);
        assert_eq!(admissions(&live, &user(1), 100), at_once(algorithm, 5));
        let held = live.load();
        let is_word = held
            .algorithms()
            .any(|(_, _, it)| algorithm == RuleAlgorithm::SlidingWindow && it.cells_and_unit().is_some());
        let stored = live.store(&set([with(rule("a", "10/10s"))]));
        // A log with another limit has other words, as has a word with another unit.
        let is_pending = algorithm == RuleAlgorithm::Log || is_word;
        let expected = if is_pending {
            Reloaded::Pending(1)
        } else {
            Reloaded::Done
        };
        assert_eq!(stored.expect("valid rules"), expected, "{algorithm:?}");
        drop(held);
        assert_eq!(live.finish(), Reloaded::Done);
        // The word of a bucket is a time. It has the same meaning at the higher rate if the burst grows with the
        // rate.
        let more = if algorithm == RuleAlgorithm::Gcra {
            0
        } else {
            at_once(algorithm, 5)
        };
        assert_eq!(admissions(&live, &user(1), 100), more, "{algorithm:?}");
    });
}

#[test]
fn a_lowered_limit_holds_from_the_next_decision_on() {
    both(|algorithm, with| {
        let (live, clock) = live([with(rule("a", "20/10s"))]);
        assert_eq!(admissions(&live, &user(1), 100), at_once(algorithm, 20));
        reload(&live, [with(rule("a", "10/10s"))]);
        assert_eq!(admissions(&live, &user(1), 100), 0, "{algorithm:?}");
        clock.advance(secs(30));
        let all = at_once(algorithm, 10);
        assert_eq!(admissions(&live, &user(1), 100), all, "{algorithm:?}");
    });
}

#[test]
fn a_longer_window_begins_with_the_counts_of_the_old_one() {
    both(|algorithm, with| {
        let (live, clock) = live([with(rule("a", "10/10s"))]);
        let all = at_once(algorithm, 10);
        assert_eq!(admissions(&live, &user(1), 100), all);
        reload(&live, [with(rule("a", "10/40s"))]);
        // The permits count as if they were spent at the reload. For an even rule, they are in the sum of the window.
        assert_eq!(spent(&live, &user(1)), [all], "{algorithm:?}");
        if algorithm != RuleAlgorithm::Even {
            assert_eq!(admissions(&live, &user(1), 100), 0);
        }
        if matches!(
            algorithm,
            RuleAlgorithm::SlidingWindow | RuleAlgorithm::Counter | RuleAlgorithm::Log
        ) {
            clock.advance(millis(39_999));
            assert_eq!(admissions(&live, &user(1), 100), 0);
        }
        clock.advance(secs(60));
        assert_eq!(spent(&live, &user(1)), [0]);
        assert_eq!(admissions(&live, &user(1), 100), all);
    });
}

#[test]
fn a_shorter_window_begins_with_the_counts_of_the_old_one() {
    both(|algorithm, with| {
        let (live, clock) = live([with(rule("a", "10/40s"))]);
        let all = at_once(algorithm, 10);
        assert_eq!(admissions(&live, &user(1), 100), all);
        // The charge still counts just before the end of the longer window. For a bucket, a part of it counts.
        clock.advance(secs(7));
        let before = spent(&live, &user(1));
        reload(&live, [with(rule("a", "10/10s"))]);
        assert_eq!(spent(&live, &user(1)), before);
    });
}

#[test]
fn another_algorithm_begins_with_the_counts_of_the_old_one() {
    for from in algorithms() {
        for to in algorithms() {
            for is_keyed in [false, true] {
                let by_it = |rule| keyed(rule, is_keyed);
                let rule = |algorithm| by_it(rule("a", "10/10s").algorithm(algorithm));
                let (live, _) = live([rule(from)]);
                let all = admissions(&live, &user(1), 100);
                reload(&live, [rule(to)]);
                let case = format!("{from:?} to {to:?}, keyed {is_keyed}");
                assert_eq!(spent(&live, &user(1)), [all], "{case}");
                assert!(all + admissions(&live, &user(1), 100) <= 10, "{case}");
            }
        }
    }
}

#[test]
fn other_cells_begin_with_the_counts_of_the_old_ones() {
    for algorithm in [RuleAlgorithm::Counter, RuleAlgorithm::Classic] {
        for (from, to) in [(5, 6), (1, 60), (60, 1), (1000, 3)] {
            for is_keyed in [false, true] {
                let by_it = |rule| keyed(rule, is_keyed);
                let rule = |cells| by_it(rule("a", "10/10s").algorithm(algorithm).cells(cells));
                let (live, _) = live([rule(from)]);
                assert_eq!(admissions(&live, &user(1), 7), 7);
                reload(&live, [rule(to)]);
                assert_eq!(admissions(&live, &user(1), 100), 3, "{from} to {to} cells");
            }
        }
    }
}

/// However often a window is changed within it, one state decides, its counts can be saved, and the permits still count.
#[test]
fn a_day_of_reloads_leaves_one_state() {
    both(|algorithm, with| {
        let (live, clock) = live([with(rule("a", "10/24h"))]);
        let all = admissions(&live, &user(1), 100);
        for reload in 0..200 {
            let text = if reload % 2 == 0 { "10/48h" } else { "10/24h" };
            let new = set([with(rule("a", text))]);
            assert_eq!(
                live.store(&new).expect("valid rules"),
                Reloaded::Done,
                "{algorithm:?}"
            );
            assert_eq!(live.load().states(), 1, "{algorithm:?}");
            let restored = restored(&new, &saved(&live.load()), Duration::ZERO).expect("the same rules");
            let spent: u64 = restored.peek(&user(1)).map(|peek| peek.spent()).sum();
            assert!(spent > 0, "{algorithm:?}");
            clock.advance(millis(1_000));
        }
        // A bucket is refilled meanwhile, and an even ring admits more in the next cell.
        let more = admissions(&live, &user(1), 100);
        if !matches!(algorithm, RuleAlgorithm::Even | RuleAlgorithm::Gcra) {
            assert_eq!((all, more), (10, 0), "{algorithm:?}");
        }
    });
}

/// Forty keys in tables of several sizes. Each key has spent its limit, or shares the catch-all.
#[test]
fn another_capacity_or_window_gives_no_key_a_fresh_budget() {
    let key = by_user();
    for algorithm in algorithms() {
        for (from, to, window) in [
            (1, 1000, 10),
            (1000, 1, 10),
            (1, 2, 10),
            (1, 1, 20),
            (50, 1, 20),
            (1, 50, 5),
        ] {
            let rule = |keys, window| {
                let quota = Quota::new(10, secs(window)).expect("a quota");
                Rule::new("a", quota).algorithm(algorithm).by(&key).capacity(keys)
            };
            let (live, clock) = live([rule(from, 10)]);
            let mut all: Vec<u64> = (0..40).map(|id| admissions(&live, &user(id), 3)).collect();
            reload(&live, [rule(to, window)]);
            for (id, &before) in (0..40).zip(&all) {
                let after = spent(&live, &user(id))[0];
                // A barred key has no state to peek at.
                let barred = live.load().peek(&user(id)).next().expect("a rule").remaining() == 0;
                assert!(
                    after >= before || barred,
                    "{algorithm:?}: {before} before, {after} after"
                );
            }
            for _ in 0..10 {
                for (id, all) in (0..).zip(&mut all) {
                    *all += admissions(&live, &user(id), 20);
                }
                clock.advance(millis(window * 99));
            }
            // Within the shorter window. A bucket and an even ring may admit more.
            let bound = match algorithm {
                RuleAlgorithm::SlidingWindow | RuleAlgorithm::Counter | RuleAlgorithm::Log => 10,
                RuleAlgorithm::Even => 12,
                _ => 20,
            };
            let case = format!("{algorithm:?}, {from} to {to}: {all:?}");
            assert!(all.iter().all(|&all| all <= bound), "{case}");
        }
    }
}

#[test]
fn an_added_rule_begins_empty_and_a_removed_one_ends() {
    both(|algorithm, with| {
        let first = || with(rule("a", "10/10s"));
        // With other cells, so that they do not share a state.
        let second = || rule("b", "3/10s").algorithm(RuleAlgorithm::Log);
        let (live, _) = live([first()]);
        let mut all = admissions(&live, &user(1), 1);
        reload(&live, [first(), second()]);
        let by_second = admissions(&live, &user(1), 100);
        assert_eq!(by_second, 3.min(at_once(algorithm, 10) - 1));
        all += by_second;
        reload(&live, [first()]);
        all += admissions(&live, &user(1), 100);
        assert_eq!(all, at_once(algorithm, 10), "{algorithm:?}");
        // The removed rule comes back empty.
        reload(&live, [first(), second()]);
        assert_eq!(spent(&live, &user(1))[1], 0);
        reload(&live, [second()]);
        assert_eq!(admissions(&live, &user(1), 100), 3);
        reload::<AnyKind>(&live, []);
        assert_eq!(admissions(&live, &user(1), 100), 100);
    });
}

#[test]
fn a_renamed_rule_keeps_its_counts() {
    both(|algorithm, with| {
        for window in ["10s", "20s"] {
            let (live, _) = live([with(rule("a", "10/10s"))]);
            let all = admissions(&live, &user(1), 100);
            let renamed = with(Rule::new("b", quota(&format!("10/{window}"))).renamed_from("a"));
            reload(&live, [renamed]);
            assert_eq!(spent(&live, &user(1)), [all]);
            assert_eq!(counts(&live.load(), "b").admitted, all);
            // The next reload can leave out the old name.
            let plain = with(Rule::new("b", quota(&format!("10/{window}"))));
            reload(&live, [plain]);
            assert_eq!(spent(&live, &user(1)), [all]);
            // Without `renamed_from` it is another rule.
            reload(&live, [with(rule("c", "10/10s"))]);
            assert_eq!(admissions(&live, &user(1), 100), at_once(algorithm, 10));
        }
    });
}

#[test]
fn quotas_can_be_added_and_removed() {
    let one = || rule("a", "10/10s");
    both(|algorithm, with| {
        if algorithm == RuleAlgorithm::Even {
            return;
        }
        let (live, _) = live([with(one())]);
        assert_eq!(admissions(&live, &user(1), 7), 7);
        let two = || with(one().also(quota("12/1min")));
        reload(&live, [two()]);
        let in_one = matches!(
            algorithm,
            RuleAlgorithm::SlidingWindow
                | RuleAlgorithm::Counter
                | RuleAlgorithm::Classic
                | RuleAlgorithm::Fixed
        );
        assert_eq!(live.load().states(), if in_one { 1 } else { 2 });
        assert_eq!(spent(&live, &user(1))[0], 7);
        assert_eq!(admissions(&live, &user(1), 100), 3, "{algorithm:?}");
        reload(&live, [with(one())]);
        assert_eq!(admissions(&live, &user(1), 100), 0, "{algorithm:?}");
        // Only the longer window is left.
        reload(&live, [two()]);
        reload(&live, [with(rule("a", "12/1min"))]);
        assert!(admissions(&live, &user(1), 100) <= 2, "{algorithm:?}");
    });
}

#[test]
fn rules_that_begin_or_cease_to_share_a_state_keep_their_counts() {
    let key = by_user();
    let (other, apart) = (by_user(), 7);
    for cells in [5, 60] {
        let a = || rule("a", "10/10s").by(&key).capacity(100).cells(cells);
        let b = |key, cells: u64| rule("b", "8/1min").by(key).capacity(100).cells(cells);
        let (live, _) = live([a(), b(&other, apart)]);
        assert_eq!((live.load().states(), admissions(&live, &user(1), 5)), (2, 5));
        reload(&live, [a(), b(&key, cells)]);
        assert_eq!((live.load().states(), admissions(&live, &user(1), 2)), (1, 2));
        reload(&live, [a(), b(&other, apart)]);
        assert_eq!((live.load().states(), admissions(&live, &user(1), 100)), (2, 1));
        assert_eq!(admissions(&live, &user(2), 100), 8);
    }
}

#[test]
fn the_counts_of_a_shadow_rule_hold_when_it_is_enforced() {
    both(|algorithm, with| {
        let (live, _) = live([with(rule("a", "10/10s").shadow())]);
        assert_eq!(admissions(&live, &user(1), 100), 100);
        for window in ["10s", "20s"] {
            let enforced = with(Rule::new("a", quota(&format!("10/{window}"))));
            reload(&live, [enforced]);
            assert_eq!(spent(&live, &user(1)), [at_once(algorithm, 10)]);
            if window == "10s" || algorithm != RuleAlgorithm::Even {
                assert_eq!(admissions(&live, &user(1), 100), 0, "{algorithm:?}");
            }
        }
    });
}

#[test]
fn the_overflow_policy_can_be_changed() {
    let key = by_user();
    let rule = |on_full| rule("a", "10/10s").by(&key).capacity(1).on_full(on_full);
    for from in [OnFull::Share, OnFull::Deny, OnFull::Admit, OnFull::Forget] {
        let (live, _) = live([rule(from)]);
        let all: u64 = (0..12).map(|id| admissions(&live, &user(id), 100)).sum();
        assert_eq!(all, 120);
        for to in [OnFull::Share, OnFull::Deny, OnFull::Admit, OnFull::Forget] {
            reload(&live, [rule(to)]);
            // A key with an entry keeps it, and its counts.
            assert!((0..12).all(|id| admissions(&live, &user(id), 1) == 0));
            let strangers = admissions(&live, &user(100), 1);
            assert!(to != OnFull::Deny || strangers == 0);
            assert!(to != OnFull::Admit || strangers == 1);
            if to == OnFull::Forget {
                break;
            }
        }
    }
}

/// A key that the catch-all has admitted gets no entry while that counts, even if one is idle before. A policy that denies
/// it states the later of the two times.
#[test]
fn a_key_that_the_former_policy_admitted_is_told_when_it_gets_an_entry() {
    let key = by_user();
    let rule = |on_full| rule("a", "10/10s").by(&key).capacity(1).on_full(on_full);
    let (live, clock) = live([rule(OnFull::Share)]);
    assert!((0..12).all(|id| admissions(&live, &user(id), 1) == 1));
    clock.advance(Duration::from_secs(5));
    assert_eq!(admissions(&live, &user(100), 1), 1);
    reload(&live, [rule(OnFull::Deny)]);
    let wait = |id| {
        let (loaded, request) = (live.load(), user(id));
        let denied = loaded.check(&request).expect_err("every entry is in use");
        denied.retry_after().expect("time does not end before")
    };
    assert!(wait(100) > wait(101) + Duration::from_secs(4));
    clock.advance(wait(100));
    assert_eq!(admissions(&live, &user(100), 1), 1);
}

#[test]
fn held_rules_stay_in_force_beside_the_new_ones() {
    both(|algorithm, with| {
        let (live, clock) = live([with(rule("a", "10/10s"))]);
        let all = at_once(algorithm, 10);
        let held = live.load();
        reload_beside(&live, [with(rule("a", "100/30s"))]);
        // The old rule is also enforced, under the name of the new rule.
        assert_eq!(admissions(&live, &user(1), 100), all);
        let (loaded, request) = (live.load(), user(1));
        let denied = loaded.check(&request).expect_err("the old one is empty");
        let named: Vec<_> = denied
            .violations()
            .map(|it| (it.rule.to_string(), it.limit))
            .collect();
        assert_eq!(named, [("a".to_owned(), 10)], "{algorithm:?}");
        drop(denied);
        drop(loaded);
        // A denial by both rules is counted once.
        assert_eq!(live.load().counts().next().expect("a rule").1.admitted, all);
        assert!(held.check(&user(1)).is_err());
        clock.advance(secs(20));
        // The request was charged by the old rules only. It counts in the new rules after the carry-over.
        let late = (0..100).filter(|_| held.check(&user(1)).is_ok()).count() as u64;
        assert_eq!(late, all);
        assert_eq!(live.finish(), Reloaded::Pending(1));
        drop(held);
        assert_eq!(live.finish(), Reloaded::Done);
        assert!(spent(&live, &user(1))[0] >= all, "{algorithm:?}");
        assert_eq!(live.load().states(), 1);
    });
}

/// A bucket whose rate is lowered pays the debt of the old rate at the old rate, also if it counts other units or has another
/// table: it is full again when the old bucket would have been, and no later than one window after the last admission.
#[test]
fn a_lowered_bucket_pays_its_debt_at_the_old_rate() {
    const MIB: u64 = 1 << 20;
    let bucket = |limit: u64, capacity: u64, is_keyed: bool, has_cost: bool| {
        let quota = Quota::new(limit, Duration::from_secs(1)).expect("a quota");
        let rule = Rule::new("bytes", quota).algorithm(RuleAlgorithm::Gcra);
        let rule = if has_cost { rule.cost(&by_cost()) } else { rule };
        if is_keyed {
            rule.by(&by_user()).capacity(capacity)
        } else {
            rule
        }
    };
    for (before, after, has_cost) in [
        (100 * MIB, MIB, true),
        (100 * MIB, 50 * MIB, true),
        (1024 * MIB, MIB, true),
        (37 * MIB, 1_000, true),
        (10_000, 1, false),
        (500, 499, false),
        (3 * MIB, 2 * MIB, true),
    ] {
        for is_keyed in [false, true] {
            for spent in [before, before / 2, 1.max(before / 7)] {
                let (live, clock) = live([bucket(before, 10, is_keyed, has_cost)]);
                let cost = |cost| user(1).cost(cost);
                let take = |permits: u64| {
                    if has_cost {
                        return u64::from(live.load().check(&cost(permits)).is_ok()) * permits;
                    }
                    admissions(&live, &cost(1), permits)
                };
                assert_eq!(take(spent), spent);
                let case = format!("{before} to {after}, {spent} spent, keyed {is_keyed}");
                reload(&live, [bucket(after, 20, is_keyed, has_cost)]);
                // The time per permit is rounded up, which lengthens the refill by less than a tenth.
                clock.advance(Duration::from_millis(1_100));
                assert_eq!(take(after), after, "{case}");
                assert_eq!(take(1), 0, "{case}: the burst of the new rate");
            }
        }
    }
}

/// A bucket with a much longer burst gets new words, because callers of the old rules would evict its key too early. While there are such
/// callers, the old burst limits a request, too.
#[test]
fn a_bucket_with_a_much_longer_burst_gets_new_words() {
    let bucket = |burst: u64| {
        let rule = rule("a", "1/1s").algorithm(RuleAlgorithm::Gcra);
        rule.burst(burst).cost(&by_cost()).by(&by_user())
    };
    for (before, after, has_new_words) in [(1, 3, true), (5, 7, false), (5, 5, false)] {
        let (live, _) = live([bucket(before)]);
        let old = live.load();
        live.store(&set([bucket(after)])).expect("rules");
        let all = user(1).cost(after);
        let found = live.load().check(&all).is_err();
        assert_eq!(found, has_new_words, "{before} to {after}");
        drop(old);
    }
}

/// A bucket whose burst takes longer to refill than before is charged the permits, so that no window holds more than its bound.
#[test]
fn a_lowered_bucket_with_a_longer_burst_keeps_its_permits() {
    let bucket = |limit: u64, burst: u64, capacity: u64| {
        let quota = Quota::new(limit, Duration::from_secs(1)).expect("a quota");
        Rule::new("all", quota)
            .algorithm(RuleAlgorithm::Gcra)
            .burst(burst)
            .by(&by_user())
            .capacity(capacity)
    };
    for (before, burst, after, new_burst) in
        [(100, 100, 1, 100), (100, 10, 50, 10), (9, 9, 3, 8), (8, 1, 2, 2)]
    {
        let (live, clock) = live([bucket(before, burst, 10)]);
        while live.load().check(&user(1)).is_ok() {}
        live.store(&set([bucket(after, new_burst, 20)])).expect("rules");
        let spent = live.load().peek(&user(1)).next().expect("a rule").spent();
        assert_eq!(spent, burst, "{before} to {after}");
        clock.advance(Duration::from_millis(1_000 * (burst + 1) / after));
        let admitted = admissions(&live, &user(1), new_burst + 1);
        assert_eq!(admitted, new_burst, "{before} to {after}");
    }
}
