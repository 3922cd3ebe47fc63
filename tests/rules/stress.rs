//! Real threads and the real clock: rules by two keys and without a key, checked by the calls, and reloads under
//! load.

use core::sync::atomic::AtomicBool;

use super::*;
use ringgate::QuantaClock;
use ringgate::rules::ReloadError;

const THREADS: u64 = 4;

/// One admission: the request, and the times at which its call began and ended.
#[derive(Clone, Copy, Debug)]
struct Call {
    user: u64,
    address: u64,
    before: Nanos,
    after: Nanos,
}

/// The most calls that begin and end within an interval of this length.
fn worst(mut calls: Vec<Call>, interval: Duration) -> usize {
    calls.sort_unstable_by_key(|call| call.before);
    let inside = |(index, first): (usize, &Call)| {
        let end = first.before.saturating_add(interval);
        let within = calls[index..].iter().take_while(|call| call.before <= end);
        within.filter(|call| call.after <= end).count()
    };
    calls.iter().enumerate().map(inside).max().unwrap_or(0)
}

/// Runs the work on every thread, and collects the results.
fn on_threads<T: Send>(work: impl Fn(u64) -> Vec<T> + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("no panic"))
            .collect()
    })
}

/// One of three users and one of three addresses, in opposite orders.
fn pair(thread: u64, turn: u64) -> (u64, u64) {
    let turn = turn % 3;
    if thread.is_multiple_of(2) {
        (turn, turn)
    } else {
        (2 - turn, turn)
    }
}

#[test]
fn every_rule_keeps_its_bound() {
    use RuleAlgorithm::{Classic, Counter, Even, Fixed, Gcra, Log};
    let (by_user, by_address) = (by_user(), by_address());
    for [first, second, third] in [
        [Counter, Log, Gcra],
        [Gcra, Counter, Fixed],
        [Log, Classic, Counter],
        [Even, Gcra, Log],
    ] {
        let rules = set([
            rule("user", "8/2ms").by(&by_user).algorithm(first).capacity(100),
            rule("address", "9/3ms")
                .by(&by_address)
                .algorithm(second)
                .capacity(100),
            rule("all", "16/2ms")
                .also(quota("40/10ms"))
                .algorithm(if third == Even { Log } else { third }),
        ]);
        let rules = rules.build_with(QuantaClock::new(), [1, 2, 3, 4]).expect("rules");
        let end = rules.clock().now().saturating_add(millis(100));
        let calls = on_threads(|thread| {
            let mut calls = Vec::new();
            for turn in 0.. {
                let before = rules.clock().now();
                if turn > 0 && before >= end {
                    break;
                }
                let (id, address) = pair(thread, turn);
                if rules.check(&user(id).address(address)).is_ok() {
                    let (user, after) = (id, rules.clock().now());
                    calls.push(Call {
                        user,
                        address,
                        before,
                        after,
                    });
                }
            }
            calls
        });
        assert!(!calls.is_empty());
        // For the check by calls, the interval is shorter by the error of the clock at both ends.
        let error = 2 * rules.clock().error(Duration::ZERO) + Duration::from_nanos(1);
        let bound = |algorithm, limit: u64| match algorithm {
            Counter | Log => limit,
            Even => limit + limit.div_ceil(5),
            _ => 2 * limit,
        } as usize;
        for id in 0..3 {
            let of_user: Vec<_> = calls.iter().copied().filter(|call| call.user == id).collect();
            assert!(worst(of_user, millis(2) - error) <= bound(first, 8), "{first:?}");
            let of_address: Vec<_> = calls.iter().copied().filter(|call| call.address == id).collect();
            assert!(
                worst(of_address, millis(3) - error) <= bound(second, 9),
                "{second:?}"
            );
        }
        assert!(
            worst(calls.clone(), millis(2) - error) <= bound(third, 16),
            "{third:?}"
        );
        assert!(
            worst(calls.clone(), millis(10) - error) <= bound(third, 40),
            "{third:?}"
        );
        let (name, counts) = rules.counts().next().expect("a rule");
        assert_eq!((name, counts.admitted), ("user", calls.len() as u64));
    }
}

/// In windows that do not end, a state holds the admitted and the forfeited permits.
#[test]
fn a_state_holds_only_admitted_and_forfeited_permits() {
    use RuleAlgorithm::{Classic, Counter, Fixed, Log};
    let (by_user, by_address, cost) = (by_user(), by_address(), by_cost());
    let mut lost_races = 0;
    for [first, second, third] in [
        [Counter, Counter, Counter],
        [Log, Log, Log],
        [Fixed, Classic, Log],
        [Log, Counter, Fixed],
    ] {
        let rules = set([
            rule("user", "900/366d")
                .by(&by_user)
                .algorithm(first)
                .cost(&cost)
                .capacity(100),
            rule("address", "901/365d")
                .by(&by_address)
                .algorithm(second)
                .cost(&cost)
                .capacity(100),
            rule("all", "2400/364d").algorithm(third).cost(&cost),
        ]);
        let rules = rules.build_with(QuantaClock::new(), [1, 2, 3, 4]).expect("rules");
        let admitted = on_threads(|thread| {
            let mut random = Random::new(thread);
            let ask = |turn| {
                let (id, address) = pair(thread, turn);
                let cost = random.below(4);
                let request = user(id).address(address).cost(cost);
                match rules.check(&request) {
                    Ok(_) => Some((id, address, cost)),
                    Err(_) => None,
                }
            };
            (0..3_000).filter_map(ask).collect()
        });
        let sum = |of: &dyn Fn(&(u64, u64, u64)) -> bool| -> u64 {
            admitted.iter().filter(|call| of(call)).map(|call| call.2).sum()
        };
        let held = |name: &str, id: u64| {
            let request = user(id).address(id);
            let spent = rules
                .peek(&request)
                .find(|peek| peek.rule() == name)
                .map(|peek| peek.spent());
            spent.expect("a rule")
        };
        for (name, counts) in rules.counts() {
            let all: u64 = match name {
                "all" => held(name, 0),
                name => (0..3).map(|id| held(name, id)).sum(),
            };
            assert_eq!(counts.admitted, admitted.len() as u64, "{name}");
            assert_eq!(counts.charged, sum(&|_| true), "{name}");
            assert_eq!(all, counts.charged + counts.forfeited, "{name} {counts:?}");
            lost_races += counts.forfeited;
        }
        for id in 0..3 {
            assert!(held("user", id) >= sum(&|call| call.0 == id));
            assert!(held("user", id) <= 900 && held("address", id) <= 901);
        }
        // No request was denied while all its rules had capacity, so for each denied request one rule is used up.
        assert!(held("all", 0) <= 2_400);
    }
    // Most runs forfeit some permits, but a run without any is valid.
    println!("{lost_races} permits forfeited");
}

/// Repeats `decide` on threads until `reload` has ended, and collects the results.
fn beside<T: Send>(decide: impl Fn(u64, &AtomicBool) -> T + Sync, reload: impl FnOnce()) -> Vec<T> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (decide, done) = (&decide, &done);
        let threads: Vec<_> = (0..THREADS - 1)
            .map(|thread| scope.spawn(move || decide(thread, done)))
            .collect();
        let end = End(done);
        reload();
        drop(end);
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    })
}

/// Stops the threads, even if an assertion fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A version of a rule set. All versions have the same limits. `longer` is added to the windows, in minutes.
fn version(keys: &[Key<Request>; 2], number: u64, longer: u64) -> RuleSetBuilder<Request> {
    let [by_user, by_address] = keys;
    let (days, cells, capacity) = [
        (300, 5, 100),
        (200, 5, 100),
        (300, 6, 100),
        (200, 6, 1_000),
        (360, 60, 50),
    ][number as usize % 5];
    let window = secs(60 * (24 * 60 * days + longer));
    let quota = |limit| Quota::new(limit, window).expect("a quota");
    let shape = |rule: Rule<Request>| match number / 5 % 2 {
        0 => rule.cells(cells),
        _ => rule.algorithm(RuleAlgorithm::Log),
    };
    let each = shape(Rule::new("each", quota(1_000)).by(by_user).capacity(capacity));
    let all = shape(Rule::new("all", quota(5_000)));
    let added = shape(Rule::new("address", quota(10_000)).by(by_address).capacity(20)).on_full(OnFull::Deny);
    set([each, all]
        .into_iter()
        .chain((number / 10 % 2 == 1).then_some(added)))
}

/// In windows that do not end, a thousand reloads grant nothing: each user gets the limit once, and so do all users
/// together.
fn a_thousand_reloads(longer: impl Fn(u64) -> u64) {
    let keys = [by_user(), by_address()];
    let rules = version(&keys, 0, 0)
        .build_with(QuantaClock::new(), [1, 2, 3, 4])
        .expect("rules");
    let live = LiveRules::new(rules);
    let asked = AtomicU64::new(0);
    let decide = |thread: u64, done: &AtomicBool| {
        let mut random = Random::new(thread);
        let mut admitted = [0_u64; 8];
        while !done.load(Ordering::Relaxed) {
            let id = random.below(8);
            let request = user(id).address(id);
            let rules = live.load();
            let first = rules.check(&request).is_ok();
            // Some threads hold the rules for longer, and decide twice.
            let second = random.one_in(50) && {
                thread::yield_now();
                rules.check(&request).is_ok()
            };
            admitted[id as usize] += u64::from(first) + u64::from(second);
            asked.fetch_add(1, Ordering::Relaxed);
        }
        admitted
    };
    let all = beside(decide, || {
        let mut random = Random::new(99);
        for reload in 0..1_000 {
            let next = version(&keys, random.below(20), longer(reload));
            // A thread that is not scheduled may hold old rules for long.
            while let Err(error) = live.store(&next) {
                assert!(matches!(error, ReloadError::Pending(_)), "{reload}: {error}");
                thread::yield_now();
            }
            // A few decisions by these rules, so that permits are spent under each version.
            let seen = asked.load(Ordering::Relaxed);
            while asked.load(Ordering::Relaxed) < seen + random.below(20) {
                thread::yield_now();
            }
        }
    });
    let admitted: [u64; 8] = core::array::from_fn(|id| all.iter().map(|admitted| admitted[id]).sum());
    assert_eq!(live.finish(), Reloaded::Done);
    assert!(admitted.iter().all(|&all| all <= 1_000), "{admitted:?}");
    assert!(admitted.iter().sum::<u64>() <= 5_000, "{admitted:?}");
    for id in 0..8 {
        let (loaded, request) = (live.load(), user(id));
        let each = loaded.peek(&request).find(|peek| peek.rule() == "each");
        let spent = each.expect("a rule").spent();
        assert!(
            spent >= admitted[id as usize],
            "user {id}: {spent} of {admitted:?}"
        );
    }
}

/// Twenty versions that alternate.
#[test]
fn a_thousand_reloads_of_twenty_versions_grant_no_fresh_budget() {
    a_thousand_reloads(|_| 0);
}

/// A thousand different windows.
#[test]
fn a_thousand_reloads_of_different_windows_grant_no_fresh_budget() {
    a_thousand_reloads(|reload| reload);
}

/// With windows that end, checked by calls: an interval of the shortest window holds at most the highest limit.
#[test]
fn windows_hold_during_reloads() {
    let key = by_user();
    let version = |limit: u64, window: u64, cells, capacity| {
        let quota = |limit| Quota::new(limit, millis(window)).expect("a quota");
        set([
            Rule::new("each", quota(limit))
                .by(&key)
                .cells(cells)
                .capacity(capacity),
            Rule::new("all", quota(3 * limit)).cells(cells),
        ])
    };
    let versions = [
        version(20, 2, 5, 100),
        version(16, 2, 5, 100),
        version(20, 2, 6, 100),
        version(18, 3, 5, 100),
        version(20, 2, 5, 1_000),
        version(14, 4, 7, 50),
    ];
    let rules = versions[0]
        .build_with(QuantaClock::new(), [1, 2, 3, 4])
        .expect("rules");
    let live = LiveRules::new(rules);
    let decide = |thread: u64, done: &AtomicBool| {
        let (mut random, mut calls) = (Random::new(thread), Vec::new());
        while !done.load(Ordering::Relaxed) {
            let (id, rules) = (random.below(2), live.load());
            let before = rules.clock().now();
            if rules.check(&user(id)).is_ok() {
                let (user, address, after) = (id, 0, rules.clock().now());
                calls.push(Call {
                    user,
                    address,
                    before,
                    after,
                });
            }
        }
        calls
    };
    let calls = beside(decide, || {
        let mut random = Random::new(99);
        for _ in 0..400 {
            let stored = live.store(&versions[random.index(versions.len())]);
            assert!(
                matches!(stored, Ok(_) | Err(ReloadError::Pending(_))),
                "{stored:?}"
            );
            thread::yield_now();
        }
    });
    let calls = calls.concat();
    let error = 2 * live.load().clock().error(Duration::ZERO) + Duration::from_nanos(1);
    for id in 0..2 {
        let of_user: Vec<_> = calls.iter().copied().filter(|call| call.user == id).collect();
        let most = worst(of_user, millis(2) - error);
        assert!(most <= 20, "{most} of user {id}, of {} calls", calls.len());
    }
    assert!(worst(calls, millis(2) - error) <= 60);
}
