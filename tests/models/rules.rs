//! Models of a request that several states decide, and of a reload.
//!
//! Each execution asserts:
//!
//! - *bound*: no interval of one window holds more permits of a rule than its limit;
//! - *sums*: at the end, the permits in the state of a rule are those that were admitted or forfeited.

use core::time::Duration;

use ringgate::rules::{Cost, Reloaded, Reservation, RuleAlgorithm, RuleSetBuilder};
use ringgate::{Key, LiveRules, ManualClock, Nanos, Quota, Rule, RuleSet};

#[cfg(not(ringgate_loom))]
use alloc::sync::Arc;
#[cfg(ringgate_loom)]
use loom::{sync::Arc, thread};
#[cfg(not(ringgate_loom))]
use std::thread;

use super::harness::{BOUNDED, FULL, Model};

/// Nanoseconds in a cell.
const W: u64 = 1_000;

/// The time of a request, and its cost for each rule.
type Call = (u64, [u64; 3]);

fn per(limit: u64, nanos: u64) -> Quota {
    Quota::new(limit, Duration::from_nanos(nanos)).unwrap()
}

/// A rule without a key, with one cell and one of the costs.
fn rule(name: &'static str, quota: Quota, which: usize) -> Rule<[u64; 3]> {
    Rule::new(name, quota)
        .cells(1)
        .cost(&Cost::new(name, move |costs: &[u64; 3]| costs[which]))
}

/// Rules, the calls of each thread, and the time of the final peek.
struct Scene {
    rules: RuleSetBuilder<[u64; 3]>,
    threads: [&'static [Call]; 2],
    last: u64,
}

impl Scene {
    /// Runs the threads, asserts the sums, and passes the answers and the forfeited permits to `check`.
    fn run(self, model: Model, check: impl Fn(&[bool], &[u64]) + Send + Sync + 'static) {
        let Self { rules, threads, last } = self;
        model.explore(move || {
            let set = Arc::new(rules.build_with(ManualClock::new(), [1, 2, 3, 4]).unwrap());
            let theirs = {
                let set = Arc::clone(&set);
                thread::spawn(move || play(&set, threads[0]))
            };
            let own = play(&set, threads[1]);
            let answers = [theirs.join().unwrap(), own].concat();

            let calls = threads.concat();
            set.clock().set(Nanos::new(last));
            let counts: Vec<_> = set.counts().map(|(_, counts)| counts).collect();
            let forfeited: Vec<u64> = counts.iter().map(|counts| counts.forfeited).collect();
            for (which, peek) in set.peek(&[1, 1, 1]).enumerate() {
                let admitted: u64 = calls
                    .iter()
                    .zip(&answers)
                    .filter(|&(_, admitted)| *admitted)
                    .map(|((_, costs), _)| costs[which])
                    .sum();
                assert!(admitted <= peek.status().limit, "{answers:?}");
                assert_eq!(
                    peek.spent(),
                    admitted + forfeited[which],
                    "{}: {answers:?}",
                    peek.rule()
                );
                assert_eq!(counts[which].charged, admitted);
            }
            check(&answers, &forfeited);
        });
    }
}

fn play(set: &RuleSet<[u64; 3], ManualClock>, calls: &[Call]) -> Vec<bool> {
    calls
        .iter()
        .map(|(now, costs)| set.check_at(costs, Nanos::new(*now)).is_ok())
        .collect()
}

fn two() -> RuleSetBuilder<[u64; 3]> {
    RuleSetBuilder::new()
        .rule(rule("a", per(2, W), 0))
        .rule(rule("b", per(2, W), 1))
}

/// The threads charge two states in opposite orders, with capacity for one of them.
#[test]
fn rules_opposite_orders() {
    let threads: [&[Call]; 2] = [&[(W, [2, 1, 0])], &[(W, [1, 2, 0])]];
    let rules = two();
    let last = W;
    Scene { rules, threads, last }.run(FULL, |_, forfeited| {
        // In a single cell, every charge can be refunded.
        assert_eq!(forfeited, [0, 0]);
    });
}

/// One thread charges the first state and is denied by the second. Meanwhile the first has entered a later cell, so the
/// charge cannot be refunded.
#[test]
fn rules_forfeited() {
    let threads: [&[Call]; 2] = [&[(W, [1, 1, 0])], &[(2 * W, [1, 0, 0]), (2 * W, [0, 3, 0])]];
    let rules = RuleSetBuilder::new()
        .rule(rule("a", per(2, W), 0))
        .rule(rule("b", per(3, W), 1));
    let last = 2 * W;
    Scene { rules, threads, last }.run(FULL, |answers, forfeited| {
        assert!(forfeited[0] <= u64::from(!answers[0]));
        assert_eq!(forfeited[1], 0);
    });
}

/// Three states of three algorithms, one of which never refunds.
#[test]
fn rules_three_states() {
    let rules = RuleSetBuilder::new()
        .rule(rule("a", per(2, W), 0))
        .rule(
            Rule::new("b", per(2, W))
                .algorithm(RuleAlgorithm::Log)
                .cost(&Cost::new("b", |costs: &[u64; 3]| costs[1])),
        )
        .rule(
            Rule::new("c", per(2, W))
                .algorithm(RuleAlgorithm::Gcra)
                .cost(&Cost::new("c", |costs: &[u64; 3]| costs[2])),
        );
    let threads: [&[Call]; 2] = [&[(W, [2, 1, 1])], &[(W, [1, 1, 2])]];
    let last = W;
    Scene { rules, threads, last }.run(BOUNDED, |_, forfeited| {
        assert_eq!(forfeited[0], 0, "a ring refunds within its cell");
    });
}

/// Rules with one cost are windows of one ring, so nothing has to be refunded.
#[test]
fn rules_of_one_state() {
    let rules = RuleSetBuilder::new()
        .rule(Rule::new("a", per(1, W)).cells(1))
        .rule(Rule::new("b", per(2, 3 * W)).cells(1));
    let threads: [&[Call]; 2] = [&[(3 * W, [1, 1, 1])], &[(3 * W, [1, 1, 1])]];
    let last = 3 * W;
    Scene { rules, threads, last }.run(BOUNDED, |answers, forfeited| {
        assert_eq!(answers.iter().filter(|admitted| **admitted).count(), 1);
        assert_eq!(forfeited, [0, 0]);
    });
}

/// The rule sets from before and after a reload, over the same states of two keys. Each thread uses one set, and they
/// charge the states in opposite orders.
#[test]
fn rules_two_sets() {
    let of = |limit| {
        let keyed = |name: &'static str, which| {
            let key = Key::new(name, move |costs: &[u64; 3], key| {
                core::hash::Hash::hash(&costs[2], key);
            });
            rule(name, per(limit, W), which).by(&key).capacity(1)
        };
        RuleSetBuilder::new().rule(keyed("a", 0)).rule(keyed("b", 1))
    };
    FULL.explore(move || {
        let clock = ManualClock::new();
        clock.set(Nanos::new(W));
        let live = LiveRules::new(of(3).build_with(clock, [1, 2, 3, 4]).unwrap());
        let before = live.load();
        // Both keys get their entries, so that the threads only contend for the states.
        assert!(before.check(&[1, 1, 7]).is_ok());
        assert_eq!(live.store(&of(3)).expect("valid rules"), Reloaded::Done);
        let after = live.load();
        assert!(!core::ptr::eq(&*before, &*after));
        let theirs = thread::spawn(move || before.check(&[2, 1, 7]).is_ok());
        let own = after.check(&[1, 2, 7]).is_ok();
        let theirs = theirs.join().unwrap();
        let rules = live.load();
        let spent: Vec<u64> = rules.peek(&[1, 1, 7]).map(|peek| peek.spent()).collect();
        let admitted = |own_cost, their_cost| 1 + own_cost * u64::from(own) + their_cost * u64::from(theirs);
        assert_eq!(spent, [admitted(1, 2), admitted(2, 1)], "{own} {theirs}");
        assert!(spent.iter().all(|&spent| spent <= 3), "{spent:?}");
        assert!(rules.counts().all(|(_, counts)| counts.forfeited == 0));
    });
}

/// A rule with a key, or without.
fn reloaded(limit: u64, window: u64, keyed: bool) -> RuleSetBuilder<u64> {
    let rule = Rule::new("a", per(limit, window)).cells(1);
    let key = Key::new("key", |request: &u64, key| core::hash::Hash::hash(request, key));
    RuleSetBuilder::new().rule(if keyed { rule.by(&key).capacity(1) } else { rule })
}

/// A reload during a decision replaces two permits in a short window by two in a long one. At most two are admitted.
fn reload(keyed: bool, before: u64, model: Model) {
    model.explore(move || {
        let clock = ManualClock::new();
        clock.set(Nanos::new(20 * W));
        let old = reloaded(2, W, keyed);
        let live = Arc::new(LiveRules::new(
            old.build_with(clock.clone(), [1, 2, 3, 4]).unwrap(),
        ));
        let mut admitted = (0..before).filter(|_| live.load().check(&1).is_ok()).count();
        let decider = {
            let live = Arc::clone(&live);
            thread::spawn(move || usize::from(live.load().check(&1).is_ok()))
        };
        live.store(&reloaded(2, 10 * W, keyed)).unwrap();
        admitted += usize::from(live.load().check(&1).is_ok());
        admitted += decider.join().unwrap();
        assert_eq!(live.finish(), Reloaded::Done);
        // This reading is within the long window, and after the short one.
        clock.set(Nanos::new(22 * W));
        admitted += (0..2).filter(|_| live.load().check(&1).is_ok()).count();
        // Permits that are charged to both states count twice, but at least one is admitted.
        assert!((1..=2).contains(&admitted), "{admitted}");
    });
}

/// The carry-over waits for a decision by the old rules, and includes it.
#[test]
fn rules_carry_over() {
    reload(false, 0, BOUNDED);
}

/// Permits spent before the reload, and permits spent by both rules during the carry-over.
#[test]
fn rules_carry_over_of_the_past() {
    reload(false, 1, BOUNDED);
}

/// A carry-over of a key in a table.
#[test]
fn rules_carry_over_of_a_key() {
    reload(true, 1, BOUNDED.up_to(2));
}

/// The old catch-all has admitted a key, which gets an entry in the larger table while the keys of the catch-all are barred there.
#[test]
fn rules_carry_over_of_the_catch_all() {
    BOUNDED.up_to(2).explore(|| {
        let of = |keys| {
            let key = Key::new("key", |request: &u64, key| core::hash::Hash::hash(request, key));
            let rule = Rule::new("a", per(2, W)).cells(1).by(&key).capacity(keys);
            RuleSetBuilder::<u64>::new().rule(rule)
        };
        let clock = ManualClock::new();
        clock.set(Nanos::new(20 * W));
        let live = Arc::new(LiveRules::new(
            of(1).build_with(clock.clone(), [1, 2, 3, 4]).unwrap(),
        ));
        // The only entry is that of another key.
        assert!(live.load().check(&5).is_ok());
        assert!(live.load().check(&1).is_ok());
        let decider = {
            let live = Arc::clone(&live);
            thread::spawn(move || usize::from(live.load().check(&1).is_ok()))
        };
        live.store(&of(2)).unwrap();
        let mut admitted = 1 + decider.join().unwrap();
        assert_eq!(live.finish(), Reloaded::Done);
        admitted += (0..2).filter(|_| live.load().check(&1).is_ok()).count();
        assert!(admitted <= 2, "{admitted}");
    });
}

/// A caller has a reading from before the reload. Its decision counts the earlier charges.
#[test]
fn rules_carry_over_older_reading() {
    BOUNDED.explore(|| {
        let clock = ManualClock::new();
        clock.set(Nanos::new(20 * W));
        let old = reloaded(1, W, true);
        let live = Arc::new(LiveRules::new(
            old.build_with(clock.clone(), [1, 2, 3, 4]).unwrap(),
        ));
        assert!(live.load().check(&1).is_ok());
        // The entry passes to another key when it is idle in the short window.
        clock.set(Nanos::new(23 * W));
        let decider = {
            let live = Arc::clone(&live);
            thread::spawn(move || live.load().check(&2).is_ok())
        };
        live.store(&reloaded(1, 2 * W, true)).unwrap();
        decider.join().unwrap();
        assert_eq!(live.finish(), Reloaded::Done);
        // At this reading, the first admission is still in the window.
        let rules = live.load();
        if rules.check_at(&1, Nanos::new(21 * W)).is_ok() {
            // The charge is in the cell of the reload, not in that of the reading, so it counts for another window.
            clock.set(Nanos::new(25 * W));
            assert_eq!(rules.peek(&1).map(|peek| peek.spent()).sum::<u64>(), 1);
        }
    });
}

/// A caller of the old rules evicts a refunded key that the new rules have charged with a longer burst. A decision about that
/// key is in progress meanwhile. The other key is charged up to the very word that the decision may have read. The old rules
/// evict no key before the longest burst that was refunded has passed.
#[test]
fn rules_reload_to_a_longer_burst() {
    let (before, longer) = (5, 7);
    let of = move |burst| {
        let key = Key::new("key", |request: &(u64, u64), key| {
            core::hash::Hash::hash(&request.0, key);
        });
        let rule = Rule::new("a", per(1, W)).algorithm(RuleAlgorithm::Gcra);
        let cost = Cost::new("permits", |request: &(u64, u64)| request.1);
        RuleSetBuilder::new().rule(rule.burst(burst).cost(&cost).by(&key).capacity(1))
    };
    BOUNDED.explore(move || {
        let clock = ManualClock::new();
        clock.set(Nanos::new(20 * W));
        let live = LiveRules::new(of(before).build_with(clock.clone(), [1, 2, 3, 4]).unwrap());
        let old = live.load();
        live.store(&of(longer)).unwrap();
        let new = live.load();
        let charge = new.reserve(&(1, longer)).unwrap();
        let decider = thread::spawn(move || new.check_at(&(1, 1), Nanos::new(21 * W)).is_ok());
        let _ = live.load().refund(charge);
        // At the second reading, the charge has one more permit to refill.
        let later = Nanos::new((20 + longer - 1) * W);
        let own = old.check_at(&(2, 1), later).is_ok();
        decider.join().unwrap();
        clock.set(later);
        let spent: Vec<u64> = live.load().peek(&(2, 1)).map(|peek| peek.spent()).collect();
        assert_eq!(spent, [u64::from(own)], "permits of the second key");
    });
}

/// One slot of each user in a table with one entry for each thread, so that users share entries.
fn slots(limit: u64) -> RuleSet<u64, ManualClock> {
    let key = Key::new("key", |request: &u64, key| core::hash::Hash::hash(request, key));
    let rule = Rule::in_flight("a", limit).by(&key).capacity(2);
    let rules = RuleSetBuilder::new().rule(rule);
    rules.build_with(ManualClock::new(), [1, 2, 3, 4]).unwrap()
}

/// A slot of a user. It is in a box, and the frame of the decision is not part of the caller's, because the stack of a thread of a model is
/// small.
#[inline(never)]
fn slot_of(rules: &RuleSet<u64, ManualClock>, user: u64) -> Option<alloc::boxed::Box<Reservation<u64>>> {
    rules.reserve(&user).ok().map(alloc::boxed::Box::new)
}

/// The slots of a user that are held.
#[inline(never)]
fn held(rules: &RuleSet<u64, ManualClock>, user: u64) -> u64 {
    rules.peek(&user).map(|peek| peek.spent()).sum()
}

/// Two threads enter one user and release its slots, while the entries pass from other users to it. No slot is lost, no more
/// than the limit is held, and at the end both are free.
#[test]
fn in_flight_release_while_entering() {
    // Only one preemption: both threads do the same, so it does not matter which one stalls.
    BOUNDED.up_to(1).explore(|| {
        let rules = Arc::new(slots(1));
        // The entries are idle, and were those of other users.
        for user in [5, 6, 7, 8] {
            drop(slot_of(&rules, user));
        }
        let theirs = {
            let rules = Arc::clone(&rules);
            thread::spawn(move || drop(slot_of(&rules, 1)))
        };
        // This slot is released while the other thread may still be entering the user.
        drop(slot_of(&rules, 1));
        theirs.join().unwrap();
        assert_eq!(held(&rules, 1), 0);
        let again = slot_of(&rules, 1).unwrap();
        assert!(slot_of(&rules, 1).is_none());
        drop(again);
    });
}

/// Two slots of one user are released at the same time.
#[test]
fn in_flight_release_of_two() {
    FULL.explore(|| {
        let rules = Arc::new(slots(2));
        let (one, two) = (slot_of(&rules, 1).unwrap(), slot_of(&rules, 1).unwrap());
        let theirs = thread::spawn(move || drop(one));
        drop(two);
        theirs.join().unwrap();
        assert_eq!(held(&rules, 1), 0);
    });
}

/// A slot is released while another user takes over idle entries. The slot of the other user is its own.
#[test]
fn in_flight_of_another_key() {
    BOUNDED.explore(|| {
        let rules = Arc::new(slots(1));
        let slot = slot_of(&rules, 1).unwrap();
        let theirs = {
            let rules = Arc::clone(&rules);
            thread::spawn(move || {
                let slots = [slot_of(&rules, 2), slot_of(&rules, 3)];
                for (user, slot) in [2, 3].into_iter().zip(&slots) {
                    assert_eq!(held(&rules, user), u64::from(slot.is_some()));
                }
                slots.iter().flatten().count()
            })
        };
        drop(slot);
        assert_eq!(held(&rules, 1), 0);
        assert!(theirs.join().unwrap() > 0);
        for user in [1, 2, 3] {
            assert_eq!(held(&rules, user), 0);
        }
        assert!(slot_of(&rules, 1).is_some());
    });
}

/// A slot is released while its user is reset and holds a new one. The new slot stays held.
#[test]
fn in_flight_release_after_a_reset() {
    BOUNDED.explore(|| {
        let rules = Arc::new(slots(1));
        let slot = slot_of(&rules, 1).unwrap();
        let theirs = {
            let rules = Arc::clone(&rules);
            thread::spawn(move || {
                rules.reset(&1);
                let new = slot_of(&rules, 1).unwrap();
                assert_eq!(held(&rules, 1), 1);
                assert!(slot_of(&rules, 1).is_none());
                drop(new);
            })
        };
        drop(slot);
        theirs.join().unwrap();
        assert_eq!(held(&rules, 1), 0);
        assert!(slot_of(&rules, 1).is_some());
    });
}

/// A slot is released while a reload lowers its limit. The new rules see it free.
#[test]
fn in_flight_release_during_a_reload() {
    BOUNDED.explore(|| {
        let of = |limit| RuleSetBuilder::<u64>::new().rule(Rule::in_flight("a", limit));
        let live = Arc::new(LiveRules::new(
            of(2).build_with(ManualClock::new(), [1, 2, 3, 4]).unwrap(),
        ));
        let slot = live.load().reserve(&1).unwrap();
        let theirs = {
            let live = Arc::clone(&live);
            thread::spawn(move || drop(live.load().reserve(&1).ok()))
        };
        assert_eq!(live.store(&of(1)).unwrap(), Reloaded::Done);
        drop(slot);
        theirs.join().unwrap();
        let rules = live.load();
        let slot = slot_of(&rules, 1).unwrap();
        assert!(slot_of(&rules, 1).is_none());
        drop(slot);
    });
}
