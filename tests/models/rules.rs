//! Models of several states judged as one, and of a reload.
//!
//! What is asserted of every execution:
//!
//! - *bound*: of no rule does an interval of one window hold more than the limit;
//! - *books*: what each rule's state holds in the end is what was admitted and what was forfeited, and nothing
//!   else.

use core::time::Duration;

use ringgate::{
    Cost, Key, LiveRules, ManualClock, Nanos, Quota, Reloaded, Rule, RuleAlgorithm, RuleSet, RuleSetBuilder,
};

#[cfg(not(ringgate_loom))]
use alloc::sync::Arc;
#[cfg(ringgate_loom)]
use loom::{sync::Arc, thread};
#[cfg(not(ringgate_loom))]
use std::thread;

use super::harness::{BOUNDED, FULL, Model};

/// Nanoseconds in a cell.
const W: u64 = 1_000;

/// When, and what it costs each rule.
type Call = (u64, [u64; 3]);

fn per(limit: u64, nanos: u64) -> Quota {
    Quota::new(limit, Duration::from_nanos(nanos)).unwrap()
}

/// A rule about everybody, with one cell, that charges one of the costs.
fn rule(name: &'static str, quota: Quota, which: usize) -> Rule<[u64; 3]> {
    Rule::new(name, quota)
        .cells(1)
        .cost(&Cost::new(name, move |costs: &[u64; 3]| costs[which]))
}

/// Rules, the calls of each thread, and the last time that is looked at.
struct Scene {
    rules: RuleSetBuilder<[u64; 3]>,
    threads: [&'static [Call]; 2],
    last: u64,
}

impl Scene {
    /// Gives the judge how many permits of each rule were admitted.
    fn run(self, model: Model, judge: impl Fn(&[bool], &[u64]) + Send + Sync + 'static) {
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
                assert!(admitted <= peek.limit(), "{answers:?}");
                assert_eq!(
                    peek.spent(),
                    admitted + forfeited[which],
                    "{}: {answers:?}",
                    peek.rule()
                );
                assert_eq!(counts[which].charged, admitted);
            }
            judge(&answers, &forfeited);
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

/// Each thread takes first what the other takes last, and there is room for one of them.
#[test]
fn rules_opposite_orders() {
    let threads: [&[Call]; 2] = [&[(W, [2, 1, 0])], &[(W, [1, 2, 0])]];
    let rules = two();
    let last = W;
    Scene { rules, threads, last }.run(FULL, |_, forfeited| {
        // In one cell everything can be given back.
        assert_eq!(forfeited, [0, 0]);
    });
}

/// One thread takes the first and then finds the second full; meanwhile the first has moved on to a later cell, so nothing
/// can be given back.
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

/// Three states of three kinds, one of which never gives back.
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
        assert_eq!(forfeited[0], 0, "a ring gives back in its cell");
    });
}

/// Rules of one cost are the windows of one ring: nothing has to be given back.
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

/// Two rule sets, one from before a reload and one from after, over the states of two keys: each thread decides by one of
/// them, and takes first what the other takes last.
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
        // Both keys have their entries, so that the threads meet in the states.
        assert!(before.check(&[1, 1, 7]).is_ok());
        assert_eq!(live.store(&of(3)), Ok(Reloaded::Done));
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

/// A rule's key in a table, or everybody.
fn reloaded(limit: u64, window: u64, keyed: bool) -> RuleSetBuilder<u64> {
    let rule = Rule::new("a", per(limit, window)).cells(1);
    let key = Key::new("key", |request: &u64, key| core::hash::Hash::hash(request, key));
    RuleSetBuilder::new().rule(if keyed { rule.by(&key).capacity(1) } else { rule })
}

/// Two permits in a short window become two in a long one, while somebody decides: never more than two pass.
fn reload(keyed: bool, before: u64, model: Model) {
    model.explore(move || {
        let clock = ManualClock::new();
        clock.set(Nanos::new(20 * W));
        let old = reloaded(2, W, keyed);
        let live = Arc::new(LiveRules::new(
            old.build_with(clock.clone(), [1, 2, 3, 4]).unwrap(),
        ));
        let mut passed = (0..before).filter(|_| live.load().check(&1).is_ok()).count();
        let decider = {
            let live = Arc::clone(&live);
            thread::spawn(move || usize::from(live.load().check(&1).is_ok()))
        };
        live.store(&reloaded(2, 10 * W, keyed)).unwrap();
        passed += usize::from(live.load().check(&1).is_ok());
        passed += decider.join().unwrap();
        assert_eq!(live.finish(), Reloaded::Done);
        // Within the long window, but the short one is over.
        clock.set(Nanos::new(22 * W));
        passed += (0..2).filter(|_| live.load().check(&1).is_ok()).count();
        // One at least, though what was charged to both states counts twice.
        assert!((1..=2).contains(&passed), "{passed}");
    });
}

/// Whoever decides by the old rules when the new ones are charged is waited for, and counted.
#[test]
fn rules_carry_over() {
    reload(false, 0, BOUNDED);
}

/// What was spent before, and what is spent by both rules while that is read.
#[test]
fn rules_carry_over_of_the_past() {
    reload(false, 1, BOUNDED);
}

/// The same for a key of a table.
#[test]
fn rules_carry_over_of_a_key() {
    reload(true, 1, BOUNDED.up_to(1));
}

/// A caller with a reading from before the reload does not find itself before what it has spent since.
#[test]
fn rules_carry_over_older_reading() {
    BOUNDED.up_to(2).explore(|| {
        let clock = ManualClock::new();
        clock.set(Nanos::new(20 * W));
        let old = reloaded(1, W, true);
        let live = Arc::new(LiveRules::new(
            old.build_with(clock.clone(), [1, 2, 3, 4]).unwrap(),
        ));
        assert!(live.load().check(&1).is_ok());
        // Its entry goes to another key, when it is idle in the short window.
        clock.set(Nanos::new(23 * W));
        let decider = {
            let live = Arc::clone(&live);
            thread::spawn(move || live.load().check(&2).is_ok())
        };
        live.store(&reloaded(1, 2 * W, true)).unwrap();
        decider.join().unwrap();
        assert_eq!(live.finish(), Reloaded::Done);
        // By its reading, the first admission is in the window.
        let rules = live.load();
        if rules.check_at(&1, Nanos::new(21 * W)).is_ok() {
            // It was charged to the cell of the reload, which counts for a window more, and not to its reading's.
            clock.set(Nanos::new(25 * W));
            assert_eq!(rules.peek(&1).map(|peek| peek.spent()).sum::<u64>(), 1);
        }
    });
}
