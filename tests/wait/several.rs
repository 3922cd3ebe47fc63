//! Lines of keys, and of rules.

use alloc::sync::Arc;
use core::hash::Hash;
use core::time::Duration;

use ringgate::{
    AnyKey, Condition, Cost, Fair, Key, KeyedRateLimiter, LiveRules, Rule, RuleAlgorithm, RuleSet,
    RuleSetBuilder, TierOf, TimestampRing, TokioClock, TurnError, WaitError,
};
use tokio::time::Instant;

use super::{ms, poll, settle};

#[tokio::test(start_paused = true)]
async fn each_key_has_a_line_of_its_own() {
    let ring = TimestampRing::new("1/1s".parse().unwrap()).unwrap();
    let limiter = KeyedRateLimiter::builder(ring)
        .capacity(100)
        .build_with(TokioClock::new(), AnyKey::with_seeds([1, 2, 3, 4]))
        .unwrap();
    let limiter = Arc::new(Fair::new(limiter));
    for _ in 0..3 {
        limiter.until_ready(&1_u32).within(Duration::ZERO).await.ok();
    }
    let began = Instant::now();
    let mut tasks = Vec::new();
    for (number, key) in [1_u32, 1, 2, 2, 1, 2].into_iter().enumerate() {
        let limiter = Arc::clone(&limiter);
        tasks.push(tokio::spawn(async move {
            limiter.until_ready(&key).await.unwrap();
            (number, began.elapsed().as_millis())
        }));
        settle().await;
    }
    assert_eq!(limiter.waiting(), 5);
    // Of a key that nobody waits for, nobody is in the way.
    assert!(limiter.check(&3_u32).is_ok());
    assert_eq!(limiter.check(&2_u32), Err(TurnError::Queued));
    let mut served = Vec::new();
    for task in tasks {
        served.push(task.await.unwrap());
    }
    assert_eq!(
        served,
        [(0, 1000), (1, 2000), (2, 0), (3, 1000), (4, 3000), (5, 2000)]
    );
    // Nor is anybody in the way of a key that was waited for, when others wait for another.
    tokio::time::sleep(ms(1000)).await;
    assert!(limiter.check(&3_u32).is_ok());
    let mut other = limiter.acquire(&3_u32, 1);
    assert!(poll(&mut other).is_pending());
    assert!(limiter.check(&1_u32).is_ok());
    drop(other);
    let owned = Arc::clone(&limiter)
        .acquire_owned(String::from("somebody"), 1)
        .await
        .unwrap();
    assert_eq!(owned.permits(), 1);
    // The same key, borrowed.
    assert_eq!(limiter.acquire("somebody", 2).await, Err(WaitError::Never));
    assert!(matches!(
        limiter.check("somebody"),
        Err(TurnError::Denied(Some(_)))
    ));
}

/// A user, and what it costs everybody.
#[derive(Clone, Copy)]
struct Request(u32, u64);

fn rules(user: &str, all: &str) -> RuleSetBuilder<Request> {
    let key = Key::new("user", |request: &Request, key| request.0.hash(key));
    let cost = Cost::new("cost", |request: &Request| request.1);
    let log = |name, quota: &str| Rule::new(name, quota.parse().unwrap()).algorithm(RuleAlgorithm::Log);
    RuleSetBuilder::new()
        .rule(log("user", user).by(&key).capacity(10_000))
        .rule(log("all", all).cost(&cost))
}

type Rules = Arc<Fair<RuleSet<Request, TokioClock>>>;

fn fair(user: &str, all: &str) -> Rules {
    let rules = rules(user, all)
        .build_with(TokioClock::new(), [1, 2, 3, 4])
        .unwrap();
    Arc::new(Fair::new(rules))
}

/// Waits, and says how long that took, in milliseconds.
fn timed(rules: &Rules, request: Request) -> tokio::task::JoinHandle<u128> {
    let rules = Arc::clone(rules);
    tokio::spawn(async move {
        let began = Instant::now();
        rules.until_ready(&request).await.unwrap();
        began.elapsed().as_millis()
    })
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_its_own_rule_holds_up_nobody_else() {
    let rules = fair("1/10s", "100/1s");
    assert!(rules.check(&Request(1, 1)).is_ok());
    let waits = timed(&rules, Request(1, 1));
    settle().await;
    assert_eq!(rules.waiting(), 1);
    assert_eq!(rules.check(&Request(1, 1)), Err(TurnError::Queued));
    for user in 2..50 {
        assert!(rules.check(&Request(user, 1)).is_ok());
    }
    assert_eq!(waits.await.unwrap(), 10_000);
}

/// Even if somebody waits for what everybody shares when it comes.
#[tokio::test(start_paused = true)]
async fn who_waits_for_its_own_rule_stands_in_no_other_line() {
    let rules = fair("1/10s", "100/1s");
    assert!(rules.check(&Request(1, 100)).is_ok());
    let shared = timed(&rules, Request(2, 1));
    settle().await;
    // The slower state is what a deadline is measured by.
    let hasty = rules.until_ready(&Request(1, 1)).within(ms(5000)).await;
    let (needed, allowed) = (ms(10_000), ms(5000));
    assert_eq!(hasty, Err(WaitError::TooLate { needed, allowed }));
    let own = timed(&rules, Request(1, 1));
    settle().await;
    assert_eq!(shared.await.unwrap(), 1000);
    assert!(rules.check(&Request(3, 99)).is_ok());
    assert_eq!(own.await.unwrap(), 10_000);
}

/// Fifty of what everybody shares, beside a stream of ones.
#[tokio::test(start_paused = true)]
async fn a_large_request_is_not_starved_by_small_ones_of_others() {
    let rules = fair("1000/1s", "100/1s");
    assert!(rules.check(&Request(1, 100)).is_ok());
    let mut streams = Vec::new();
    for user in 10..30 {
        let rules = Arc::clone(&rules);
        streams.push(tokio::spawn(async move {
            loop {
                rules.until_ready(&Request(user, 1)).await.unwrap();
            }
        }));
    }
    settle().await;
    let large = timed(&rules, Request(2, 50));
    // All of it is due when the first hundred leave the window.
    assert_eq!(large.await.unwrap(), 1000);
    for stream in streams {
        stream.abort();
    }
}

/// It waits for its own rule first, and when that has room for everybody's: from then on others are behind it there.
#[tokio::test(start_paused = true)]
async fn a_request_that_needs_two_states_gets_both() {
    let rules = fair("1/10s", "100/1s");
    assert!(rules.check(&Request(1, 1)).is_ok());
    tokio::time::sleep(ms(9_500)).await;
    assert!(rules.check(&Request(2, 100)).is_ok());
    let both = timed(&rules, Request(1, 50));
    let mut streams = Vec::new();
    for user in 0..40 {
        let rules = Arc::clone(&rules);
        streams.push(tokio::spawn(async move {
            let mut number = 0;
            loop {
                // Each time another user, so that only what everybody shares is in the way.
                number += 1;
                rules
                    .until_ready(&Request(1000 + 100 * number + user, 1))
                    .await
                    .unwrap();
            }
        }));
    }
    let took = both.await.unwrap();
    assert!((990..=1510).contains(&took), "{took}");
    for stream in streams {
        stream.abort();
    }
}

/// It waits for its own rule, and comes after another at what they share, where there is room for it and not for the other.
#[tokio::test(start_paused = true)]
async fn who_came_later_is_later_at_every_state() {
    let rules = fair("1/10s", "100/1s");
    assert!(rules.check(&Request(1, 1)).is_ok());
    tokio::time::sleep(ms(8_800)).await;
    assert!(rules.check(&Request(2, 60)).is_ok());
    let began = Instant::now();
    let mut large = Arc::clone(&rules).until_ready_owned(Request(3, 60));
    assert!(poll(&mut large).is_pending());
    let small = timed(&rules, Request(1, 1));
    settle().await;
    assert_eq!(rules.waiting(), 2);
    // When the large one might be served somebody takes past the line.
    tokio::time::advance(ms(1000)).await;
    assert!(rules.limiter().check(&Request(4, 60)).is_ok());
    large.await.unwrap();
    assert_eq!(began.elapsed(), ms(2000));
    let took = small.await.unwrap();
    assert!((2000..=2010).contains(&took), "{took}");
}

/// Whoever finds another state exhausted when its turn has come waits for that one, and keeps nothing from others.
#[tokio::test(start_paused = true)]
async fn who_waits_elsewhere_holds_up_nobody() {
    let rules = fair("1/10s", "100/1s");
    assert!(rules.check(&Request(2, 100)).is_ok());
    let elsewhere = timed(&rules, Request(1, 1));
    settle().await;
    let others: Vec<_> = (10..300).map(|user| timed(&rules, Request(user, 1))).collect();
    settle().await;
    // It costs what everybody shares nothing.
    assert!(rules.limiter().check(&Request(1, 0)).is_ok());
    for (number, other) in others.into_iter().enumerate() {
        // A hundred a second, of which one was told first, and has found no room at its own rule.
        let took = other.await.unwrap();
        let second = 1000 * (1 + number as u128 / 100);
        assert!((second..=second + 10).contains(&took), "{number}: {took}");
    }
    assert!(!elsewhere.is_finished());
    tokio::time::sleep(ms(1000)).await;
    assert_eq!(rules.waiting(), 1);
    assert!(rules.check(&Request(9_999, 1)).is_ok());
    let took = elsewhere.await.unwrap();
    assert!((10_000..=10_010).contains(&took), "{took}");
}

/// However many one user sends, whose own quota is spent for an hour: others have what everybody shares.
#[tokio::test(start_paused = true)]
async fn an_exhausted_user_locks_nobody_out() {
    for all in ["1/1s", "10/1s"] {
        let rules = fair("1/h", all);
        let limit = if all == "1/1s" { 1 } else { 10 };
        assert!(rules.check(&Request(1, limit)).is_ok());
        for _ in 0..11 {
            drop(timed(&rules, Request(7, 1)));
        }
        tokio::time::sleep(ms(3000)).await;
        let other = tokio::time::timeout(ms(2000), rules.until_ready(&Request(8, 1))).await;
        assert!(other.expect("locked out").is_ok());
        assert!(rules.check(&Request(9, 1)).is_ok() || all == "1/1s");
    }
}

struct Sided {
    x: bool,
    y: bool,
    z: bool,
}

fn sided(quotas: [&str; 3]) -> Arc<Fair<RuleSet<Sided, TokioClock>>> {
    let conditions = [
        Condition::new("x", |request: &Sided| request.x),
        Condition::new("y", |request: &Sided| request.y),
        Condition::new("z", |request: &Sided| request.z),
    ];
    let mut rules = RuleSetBuilder::new();
    for (quota, condition) in quotas.iter().zip(&conditions) {
        let rule = Rule::new(condition.name(), quota.parse().unwrap());
        rules = rules.rule(rule.algorithm(RuleAlgorithm::Log).when(condition));
    }
    Arc::new(Fair::new(
        rules.build_with(TokioClock::new(), [1, 2, 3, 4]).unwrap(),
    ))
}

/// One stands in the line of one state and then of the other, and another the other way round.
#[tokio::test(start_paused = true)]
async fn two_who_need_the_same_two_states_do_not_wait_for_each_other() {
    let rules = sided(["1/10s", "1/15s", "1/1s"]);
    let only = |x, y| Sided { x, y, z: false };
    assert!(rules.check(&only(false, true)).is_ok());
    tokio::time::sleep(ms(10_000)).await;
    assert!(rules.check(&only(true, false)).is_ok());
    let begin = |x, y| {
        let own = Arc::clone(&rules);
        tokio::spawn(async move { own.until_ready(&only(x, y)).await.is_ok() })
    };
    let first = begin(true, true);
    settle().await;
    let one = begin(true, true);
    settle().await;
    let dropped = begin(false, true);
    settle().await;
    let other = begin(true, true);
    settle().await;
    dropped.abort();
    assert!(first.await.unwrap());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(one.is_finished() && other.is_finished());
    assert_eq!(rules.waiting(), 0);
}

/// Three states, many requests for some of them, of which some give up: all others are served, in as much time as a window each.
#[test]
fn nobody_is_forgotten_between_states() {
    for seed in 0..400_u64 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut random = seed;
            let mut next = |below: u64| {
                // Knuth's MMIX.
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) % below
            };
            let quotas: Vec<_> = (0..3)
                .map(|_| format!("{}/{}s", 1 + next(3), 1 + next(4)))
                .collect();
            let rules = sided([&quotas[0], &quotas[1], &quotas[2]]);
            let mut tasks = Vec::new();
            for _ in 0..24 {
                let sides = 1 + next(7);
                let request = Sided {
                    x: sides & 1 > 0,
                    y: sides & 2 > 0,
                    z: sides & 4 > 0,
                };
                let own = Arc::clone(&rules);
                tasks.push(tokio::spawn(
                    async move { own.until_ready(&request).await.is_ok() },
                ));
                tokio::time::sleep(ms(next(700))).await;
                if next(4) == 0 {
                    let place = usize::try_from(next(tasks.len() as u64)).unwrap();
                    tasks.swap_remove(place).abort();
                }
            }
            for task in tasks {
                let served = tokio::time::timeout(Duration::from_secs(24 * 5), task).await;
                assert!(served.expect("forgotten").unwrap(), "seed {seed}");
            }
            // The last that was dropped may not have been seen to.
            settle().await;
            assert_eq!(rules.waiting(), 0);
        });
    }
}

/// Those in a higher tier are served sooner, so a deadline is not measured by the limit of whoever has it.
#[tokio::test(start_paused = true)]
async fn a_deadline_behind_a_higher_tier_can_be_met() {
    let plan = TierOf::new("plan", |request: &Request| (request.0 == 1).then_some("pro"));
    let cost = Cost::new("cost", |request: &Request| request.1);
    let rule = Rule::new("all", "2/1s".parse().unwrap()).cost(&cost);
    let rule = rule.tier_of(&plan).tier("pro", 100);
    let rules = RuleSetBuilder::new()
        .rule(rule)
        .build_with(TokioClock::new(), [1, 2, 3, 4]);
    let rules = Arc::new(Fair::new(rules.unwrap()));
    assert!(rules.check(&Request(1, 100)).is_ok());
    let before = timed(&rules, Request(1, 90));
    settle().await;
    let free = Request(2, 1);
    let hasty = rules.until_ready(&free).within(Duration::from_secs(10));
    assert!(hasty.await.is_ok());
    before.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn rules_that_never_admit_are_not_waited_for() {
    let rules = fair("2/1s", "5/1s");
    assert_eq!(rules.until_ready(&Request(1, 6)).await, Err(WaitError::Never));
    assert!(rules.check(&Request(1, 5)).is_ok());
    let hasty = rules.until_ready(&Request(2, 1)).within(ms(999)).await;
    assert_eq!(
        hasty,
        Err(WaitError::TooLate {
            needed: ms(1000),
            allowed: ms(999)
        })
    );
    // What is about nobody is admitted.
    let nobody = RuleSet::<Request>::builder()
        .build_with(TokioClock::new(), [1, 2, 3, 4])
        .unwrap();
    assert!(
        !Fair::new(nobody)
            .until_ready(&Request(1, 1))
            .await
            .unwrap()
            .is_limited()
    );
}

/// Nobody waits for a rule in the shadow, and a key that is always refused does not wait at all.
#[tokio::test(start_paused = true)]
async fn shadows_are_not_waited_for_and_denied_keys_do_not_wait() {
    let key = Key::new("user", |request: &Request, key| request.0.hash(key));
    let key = key.listed(|text, key| {
        let user: u32 = text.parse().map_err(|_| String::from("no number"))?;
        user.hash(key);
        Ok(())
    });
    let rules = RuleSetBuilder::new()
        .rule(Rule::new("shadow", "1/h".parse().unwrap()).shadow())
        .rule(
            Rule::new("user", "5/h".parse().unwrap())
                .by(&key)
                .capacity(100)
                .deny(7_u32),
        );
    let rules = rules.build_with(TokioClock::new(), [1, 2, 3, 4]).unwrap();
    let rules = Arc::new(Fair::new(rules));
    for _ in 0..5 {
        let served = rules.until_ready(&Request(1, 1)).within(Duration::ZERO).await;
        assert!(served.is_ok());
    }
    assert_eq!(rules.until_ready(&Request(7, 1)).await, Err(WaitError::Never));
    // Behind others, too.
    let mut before = Arc::clone(&rules).until_ready_owned(Request(1, 1));
    assert!(poll(&mut before).is_pending());
    assert_eq!(rules.until_ready(&Request(7, 1)).await, Err(WaitError::Never));
    assert!(
        rules
            .until_ready(&Request(2, 1))
            .within(Duration::ZERO)
            .await
            .is_ok()
    );
}

/// Reserved, and given back through the line: those in it have it at once.
#[tokio::test(start_paused = true)]
async fn what_was_waited_for_can_be_given_back() {
    let cost = Cost::new("cost", |request: &Request| request.1);
    let rule = Rule::<Request>::new("all", "10/h".parse().unwrap()).cost(&cost);
    let rules = RuleSetBuilder::new().rule(rule);
    let rules = Arc::new(Fair::new(
        rules.build_with(TokioClock::new(), [1, 2, 3, 4]).unwrap(),
    ));
    let request = Request(1, 10);
    for half in [false, true] {
        let reserved = Arc::clone(&rules).acquire_owned(request).await.unwrap();
        let waits = timed(&rules, Request(2, 5));
        settle().await;
        let settled = if half {
            rules.settle(reserved, &request, &cost, 5)
        } else {
            rules.refund(reserved, &request)
        };
        assert_eq!(settled, ringgate::Settled::Exact);
        assert_eq!(waits.await.unwrap(), 0);
        tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    }
    let ring = ringgate::CounterRing::new("1/h".parse().unwrap()).unwrap();
    let keyed = KeyedRateLimiter::builder(ring)
        .capacity(100)
        .build_with(TokioClock::new(), AnyKey::with_seeds([1, 2, 3, 4]))
        .unwrap();
    let keyed = Arc::new(Fair::new(keyed));
    let taken = keyed.acquire("key", 1).await.unwrap();
    let waits = tokio::spawn(Arc::clone(&keyed).acquire_owned(String::from("key"), 1));
    settle().await;
    let began = Instant::now();
    assert_eq!(keyed.refund("key", taken), ringgate::Settled::Exact);
    assert!(waits.await.unwrap().is_ok());
    assert_eq!(began.elapsed(), Duration::ZERO);
}

/// A reload while some wait: to a lower limit, which is waited for on; and to one that never admits the request.
#[tokio::test(start_paused = true)]
async fn rules_are_reloaded_while_some_wait() {
    let live = LiveRules::new(
        rules("100/1s", "10/1s")
            .build_with(TokioClock::new(), [1, 2, 3, 4])
            .unwrap(),
    );
    let live = Arc::new(Fair::new(live));
    assert!(live.check(&Request(1, 10)).is_ok());
    let wait = |cost| {
        let live = Arc::clone(&live);
        tokio::spawn(async move {
            let began = Instant::now();
            (
                live.until_ready(&Request(2, cost)).await.is_ok(),
                began.elapsed().as_millis(),
            )
        })
    };
    let (large, small) = (wait(8), wait(4));
    settle().await;
    assert_eq!(live.waiting(), 2);
    tokio::time::sleep(ms(500)).await;
    live.limiter().store(&rules("100/1s", "5/1s")).unwrap();
    // Found out when the alarm rings; what was spent counts from the reload on, in the new log.
    assert_eq!(large.await.unwrap(), (false, 1000));
    let (served, took) = small.await.unwrap();
    assert!(served && (1490..=1510).contains(&took), "{took}");
}
