//! Limits of requests in flight: every slot is released once, whatever ends its request.

use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};

use super::*;
use ringgate::rules::kind::InFlight;

type Held = Reservation<Request>;

fn slots(name: &'static str, limit: u64) -> Rule<Request, InFlight> {
    Rule::in_flight(name, limit)
}

/// The slots of the request's key that can be held in addition.
fn free(rules: &ByHand, request: &Request) -> usize {
    let held: Vec<Held> = core::iter::from_fn(|| rules.reserve(request).ok()).collect();
    held.len()
}

#[test]
fn a_check_looks_for_a_free_slot_and_holds_none() {
    // The state is alone, and beside another.
    let (slots, rate) = (slots("a", 1).into_any(), rule("rate", "100/s").into_any());
    for rules in [vec![slots.clone()], vec![slots, rate]] {
        let (rules, _) = by_hand(rules);
        for _ in 0..5 {
            assert!(rules.check(&user(1)).is_ok());
        }
        let held = rules.reserve(&user(1)).expect("a slot");
        assert!(rules.check(&user(1)).is_err());
        drop(held);
        assert!(rules.check(&user(1)).is_ok());
        assert_eq!(spent(&rules, &user(1))[0], 0);
    }
}

#[test]
fn a_denial_says_that_no_time_frees_a_slot() {
    let (rules, _) = by_hand([slots("exports", 1)]);
    let one = user(1);
    let held = rules.reserve(&one).expect("a slot");
    let denied = rules.reserve(&one).expect_err("one slot");
    assert_eq!(denied.retry_after(), None);
    let text = "rate limit reached: exports (0 of 1 in flight left); try again when a request has ended";
    assert_eq!(denied.to_string(), text);
    let peek = denied.violations().next().expect("a violation");
    let found = (peek.quota.to_string(), peek.quota.window(), peek.limit);
    assert_eq!(found, ("1 in flight".into(), Duration::ZERO, 1));
    assert_eq!(peek.reset_after, None);
    drop(held);
    let found = rules.check(&user(1)).map(|admitted| admitted.is_limited()).ok();
    assert_eq!(found, Some(false));
}

/// A quota that was read from such a rule builds no limiter, and is no quota of a rate.
#[test]
fn a_limit_in_flight_is_no_quota_of_a_window() {
    for limit in [1, 2, (1 << 20) - 1] {
        let rule = slots("a", limit).into_any();
        let view = rule.view();
        assert_eq!((view.in_flight, view.algorithm), (Some(limit), None));
        assert!(view.quotas.is_empty());
        let (rules, one) = (by_hand([rule]).0, user(1));
        let quota = rules.peek(&one).next().expect("a limit").status().quota;
        for &(name, algorithm) in RuleAlgorithm::NAMES {
            for rate in [Rule::new("b", quota), self::rule("b", "1/s").also(quota)] {
                let rate = rate.algorithm(algorithm);
                assert!(rate.algorithm_for(quota).is_err(), "{name}");
                assert_eq!(refused([rate]).error.field, "window", "{name}");
            }
        }
        assert!(ringgate::CounterRing::new(quota).is_err() && ringgate::TimestampRing::new(quota).is_err());
        assert!(ringgate::Gcra::new(quota).is_err() && ringgate::CounterRing::fixed_window(quota).is_err());
    }
}

#[test]
fn tiers_lists_and_lower_limits_apply() {
    let tiered = slots("a", 3).by(&by_user()).tier_of(&by_plan());
    let tiered = tiered.tier("paid", 5).tier("free", 1);
    let limited = tiered.limit_by(|request: &Request| request.limit);
    let (rules, _) = by_hand([limited.allow(7_u64).deny(8_u64)]);
    let of = |id, plan, limit| user(id).plan(plan).limit(limit);
    for (request, limit) in [
        (of(1, None, None), 3),
        (of(1, Some("paid"), None), 5),
        (of(1, Some("free"), None), 1),
        (of(1, Some("paid"), Some(2)), 2),
        (of(1, None, Some(100)), 3),
        (of(1, None, Some(0)), 0),
        (of(8, None, None), 0),
    ] {
        assert_eq!(free(&rules, &request), limit, "{request:?}");
    }
    // The slots of all tiers are the same ones.
    let held = rules.reserve(&of(1, Some("paid"), None)).expect("a slot");
    assert!(rules.reserve(&of(1, Some("free"), None)).is_err());
    assert_eq!(free(&rules, &of(1, None, None)), 2);
    drop(held);
    let allowed: Vec<Held> = (0..9).filter_map(|_| rules.reserve(&user(7)).ok()).collect();
    assert!(allowed.len() == 9 && allowed.iter().all(|held| !held.holds_slots()));
}

#[test]
fn a_rule_in_the_shadow_holds_and_counts_but_does_not_deny() {
    let (rules, _) = by_hand([slots("a", 1).shadow()]);
    let held: Vec<Held> = (0..3)
        .map(|_| rules.reserve(&user(1)).expect("a shadow"))
        .collect();
    assert_eq!(held.iter().filter(|held| held.holds_slots()).count(), 1);
    assert_eq!(counts(&rules, "a").shadow_denied, 2);
    // A check counts as a reservation does.
    assert!(rules.check(&user(1)).is_ok());
    assert_eq!(counts(&rules, "a").shadow_denied, 3);
    drop(held);
    assert!(rules.check(&user(1)).is_ok());
    assert_eq!(spent(&rules, &user(1)), [0]);
    assert_eq!(counts(&rules, "a").shadow_denied, 3);
}

#[test]
fn a_request_without_the_key_holds_a_slot_as_the_rule_says() {
    for (on_missing, expected) in [
        (OnMissingKey::Skip, 5),
        (OnMissingKey::Share, 2),
        (OnMissingKey::Deny, 0),
    ] {
        let (rules, _) = by_hand([slots("a", 2).by(&by_some_user(on_missing))]);
        let held: Vec<Held> = (0..5).filter_map(|_| rules.reserve(&user(0)).ok()).collect();
        assert_eq!(held.len(), expected, "{on_missing:?}");
    }
}

/// The two rules have the same key and no algorithm. Their states differ.
#[test]
fn slots_share_no_state_with_a_quota_or_with_other_slots() {
    let key = by_user();
    let (rules, _) = by_hand([
        rule("rate", "9/s").by(&key).into_any(),
        slots("a", 1).by(&key).into_any(),
        slots("b", 2).by(&key).into_any(),
    ]);
    assert_eq!(rules.states(), 3);
    let held = rules.reserve(&user(1)).expect("a slot of both");
    assert_eq!(spent(&rules, &user(1)), [1, 1, 1]);
    drop(held);
    assert_eq!(spent(&rules, &user(1)), [1, 0, 0]);
}

#[test]
fn a_reset_frees_slots_and_their_release_frees_no_other() {
    let (rules, _) = by_hand([slots("a", 2).by(&by_user()).capacity(1)]);
    let two = || [(); 2].map(|()| rules.reserve(&user(1)).expect("a slot"));
    let lost = two();
    core::mem::forget(rules.reserve(&user(2)).expect("a slot that is leaked"));
    assert_eq!([1, 2, 3].map(|id| rules.reset(&user(id))), [1, 1, 0]);
    let held = two();
    drop(lost);
    assert!(rules.reserve(&user(1)).is_err());
    drop(held);
    assert_eq!((free(&rules, &user(1)), free(&rules, &user(2))), (2, 2));
}

/// A limit of requests in flight may change over a restart, because nothing of it is saved.
#[test]
fn slots_are_not_saved() {
    let rules = |limit| {
        let rate = rule("rate", "9/h").by(&by_user()).into_any();
        set([slots("a", limit).by(&by_user()).into_any(), rate])
    };
    let before = rules(2).build_with(ManualClock::new(), [1; 4]).expect("rules");
    let held = before.reserve(&user(1)).expect("a slot");
    let file = saved(&before);
    drop(held);
    for limit in [2, 1] {
        let after = rules(limit).restore_with(ManualClock::new(), &*file, Duration::ZERO);
        assert_eq!(spent(&after.expect("the file"), &user(1)), [0, 1]);
    }
}

/// Random requests of more keys than the table has entries, compared with a count for each key. A request ends by a drop, a
/// refund, a settlement or a panic.
#[test]
fn held_slots_are_those_of_an_exact_count() {
    for seed in 1..=20 {
        let mut random = Random::new(seed);
        let key = by_user();
        let (rules, clock) = by_hand([
            slots("user", 3).by(&key).capacity(1).into_any(),
            slots("all", 20).into_any(),
            rule("rate", "90/s").into_any(),
        ]);
        let (mut held, mut of_user) = (Vec::<(u64, Held)>::new(), HashMap::<u64, u64>::new());
        let mut denied_without_entry = 0;
        for _ in 0..if cfg!(miri) { 50 } else { 5_000 } {
            clock.advance(Duration::from_millis(random.below(30)));
            if random.below(5) < 3 {
                let id = random.below(40);
                let mine = of_user.get(&id).copied().unwrap_or(0);
                let request = user(id);
                let rate = rules.peek(&request).find(|peek| peek.rule() == "rate");
                let rate = rate.expect("a rate").remaining();
                let fits = mine < 3 && held.len() < 20 && rate > 0;
                match rules.reserve(&user(id)) {
                    Ok(new) => {
                        assert!(fits, "{mine} slots of {id}, {} of all", held.len());
                        held.push((id, new));
                        *of_user.entry(id).or_default() += 1;
                    }
                    // A key that holds nothing may find the table full of slots that others hold.
                    Err(_) if fits => {
                        let others = of_user.values().filter(|&&held| held > 0).count();
                        assert!(mine == 0 && others >= 12, "{mine} slots, {others} other keys");
                        denied_without_entry += 1;
                    }
                    Err(_) => {}
                }
            } else if !held.is_empty() {
                let at = random.index(held.len());
                let (id, ended) = held.swap_remove(at);
                *of_user.entry(id).or_default() -= 1;
                match random.below(4) {
                    0 => drop(ended),
                    1 => {
                        let settled = rules.refund(ended);
                        assert!(matches!(settled, Settled::Exact | Settled::Forfeited(_)));
                    }
                    2 => assert_eq!(rules.settle(ended, &by_cost(), 1), Settled::Exact),
                    _ => {
                        let work = AssertUnwindSafe(move || {
                            let _held = ended;
                            resume_unwind(Box::new(()));
                        });
                        assert!(catch_unwind(work).is_err());
                    }
                }
            }
            let zero = user(0);
            let all = rules.peek(&zero).find(|peek| peek.rule() == "all").expect("all");
            assert_eq!(all.spent(), held.len() as u64);
        }
        assert!(cfg!(miri) || denied_without_entry > 0);
        held.clear();
        for id in 0..40 {
            clock.advance(secs(10));
            assert_eq!(free(&rules, &user(id)), 3, "{id}");
        }
        assert_eq!(spent(&rules, &user(0))[..2], [0, 0]);
    }
}

/// Threads hold slots of few keys in a table of few entries, and drop them by panics too. No more than the limit is ever held,
/// and none is lost.
#[test]
fn threads_neither_exceed_a_limit_nor_lose_a_slot() {
    let turns = if cfg!(miri) { 20 } else { 20_000 };
    let (rules, _) = by_hand([slots("user", 2).by(&by_user()).capacity(1), slots("all", 3)]);
    let held: Vec<AtomicU64> = (0..16).map(|_| AtomicU64::new(0)).collect();
    thread::scope(|scope| {
        for seed in 1..=4 {
            let (rules, held) = (&rules, &held);
            let mut random = Random::new(seed);
            scope.spawn(move || {
                for _ in 0..turns {
                    let id = random.below(16);
                    let Ok(slot) = rules.reserve(&user(id)) else {
                        continue;
                    };
                    let count = &held[id as usize];
                    // The count is raised after the slot is held, and lowered before it is released.
                    assert!(count.fetch_add(1, Ordering::SeqCst) < 2);
                    let fails = random.one_in(8);
                    let work = AssertUnwindSafe(move || {
                        let _slot = slot;
                        count.fetch_sub(1, Ordering::SeqCst);
                        if fails {
                            resume_unwind(Box::new(()));
                        }
                    });
                    assert_eq!(catch_unwind(work).is_err(), fails);
                }
            });
        }
    });
    for id in 0..16 {
        assert_eq!(free(&rules, &user(id)), 2);
        assert_eq!(spent(&rules, &user(id)), [0, 0]);
    }
}

#[test]
fn keys_without_an_entry_are_denied_or_not_limited() {
    let slots = slots("a", 1).by(&by_user()).capacity(1);
    for (rule, extra) in [(slots.clone(), 0), (slots.admit_on_full(), 5)] {
        let (rules, _) = by_hand([rule]);
        let reserved = (0..1_000).map_while(|id| rules.reserve(&user(id)).ok());
        let held: Vec<Held> = reserved.take(12).collect();
        assert_eq!(held.len(), 12);
        let more: Vec<Held> = (0..5).filter_map(|_| rules.reserve(&user(5_000)).ok()).collect();
        assert_eq!(more.len(), extra);
        assert!(counts(&rules, "a").overflowed >= 5);
        drop((held, more));
        assert_eq!(free(&rules, &user(5_000)), 1);
    }
}

/// A change of the capacity keeps the table, and so do tiers, a new name, and another rule that is added or removed.
#[test]
fn slots_are_released_after_a_reload_that_keeps_the_table() {
    let key = by_user();
    let (live, _) = live([slots("a", 1).by(&key).capacity(9)]);
    let load = || live.load();
    let one = load().reserve(&user(1)).expect("a slot");
    let tiered = slots("a", 1).by(&key).tier_of(&by_plan());
    let tiered = tiered.tier("paid", 4).capacity(100);
    reload(&live, [rule("other", "9/s").into_any(), tiered.into_any()]);
    assert!(load().reserve(&user(1)).is_err());
    let paid = user(1).plan("paid");
    let many: Vec<Held> = (0..9).map_while(|_| load().reserve(&paid).ok()).collect();
    assert_eq!(many.len(), 3);
    // The new name continues the old one.
    reload(&live, [slots("b", 2).by(&key).renamed_from("a")]);
    drop(many);
    let two = load().reserve(&user(1)).expect("the second slot");
    assert!(load().reserve(&user(1)).is_err());
    drop((one, two));
    assert_eq!(free(&load(), &user(1)), 2);
}

#[test]
fn a_rule_that_was_removed_or_replaced_begins_with_free_slots() {
    let key = by_user();
    let with = || set([slots("a", 1).by(&key)]);
    let (live, _) = live([slots("a", 1).by(&key)]);
    for between in [
        RuleSetBuilder::new(),
        // Another key, and a quota of the same name. None of their counts is one of slots.
        set([slots("a", 1).by(&by_address())]),
        set([rule("a", "1/h").by(&key)]),
        set([slots("a", 1)]),
    ] {
        let before = live.load().reserve(&user(1)).expect("a slot");
        assert_eq!(live.store(&between).expect("valid rules"), Reloaded::Done);
        // A slot of the other rule, or none.
        let meanwhile = live.load().reserve(&user(1)).expect("admitted");
        assert_eq!(live.store(&with()).expect("valid rules"), Reloaded::Done);
        let after = live.load().reserve(&user(1)).expect("a new slot");
        assert!(live.load().reserve(&user(1)).is_err());
        // They release the slots of rules that are gone, and no other.
        drop((before, meanwhile));
        assert!(live.load().reserve(&user(1)).is_err());
        drop(after);
        assert_eq!(free(&live.load(), &user(1)), 1);
    }
}

/// Two rules become one: its slots are those of its own name, and those of the other are released where they were held.
#[test]
fn a_rule_that_is_renamed_onto_another_holds_nothing_for_ever() {
    let (live, _) = live([slots("a", 1), slots("b", 1)]);
    let held = live.load().reserve(&user(1)).expect("both");
    reload(&live, [slots("b", 2).renamed_from("a")]);
    assert_eq!(free(&live.load(), &user(1)), 1);
    drop(held);
    assert_eq!(free(&live.load(), &user(1)), 2);
}

/// Random reloads, with slots that are held over them, compared with an exact count.
#[test]
fn random_reloads_neither_lose_nor_double_a_slot() {
    let key = by_user();
    for seed in 1..=10 {
        let mut random = Random::new(seed);
        let (live, _) = live([slots("a", 2).by(&key)]);
        // The limit, and the slots of each user that the present words hold. A slot has the number of its words.
        let (mut limit, mut words) = (Some(2), 0);
        let mut held: Vec<(u64, u64, Held)> = Vec::new();
        for _ in 0..if cfg!(miri) { 20 } else { 2_000 } {
            match random.below(10) {
                0 => {
                    let next = random.below(5);
                    if limit.is_none() && next > 0 {
                        words += 1;
                    }
                    limit = (next > 0).then_some(next);
                    let rules = limit.map(|limit| slots("a", limit).by(&key));
                    reload(&live, rules);
                }
                1..6 => {
                    let id = random.below(3);
                    let mine = held.iter().filter(|(of, at, _)| (*of, *at) == (id, words));
                    let mine = mine.count() as u64;
                    let got = live.load().reserve(&user(id)).ok();
                    assert_eq!(got.is_some(), limit.is_none_or(|limit| mine < limit));
                    held.extend(got.filter(Held::holds_slots).map(|slot| (id, words, slot)));
                }
                _ if held.is_empty() => {}
                _ => {
                    let at = random.index(held.len());
                    drop(held.swap_remove(at));
                }
            }
        }
        held.clear();
        reload(&live, [slots("a", 4).by(&key)]);
        for id in 0..3 {
            assert_eq!(free(&live.load(), &user(id)), 4);
        }
    }
}
