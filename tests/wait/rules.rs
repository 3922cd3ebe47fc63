//! Queues of rules, and requests that need several states.

use core::hash::Hash;

use super::*;
use ringgate::rules::{Block, TierOf};

/// A user, and the cost of the request in the rule that all users share.
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
    fair_rules(rules(user, all))
}

/// Rules of one rule.
fn of_one(rule: Rule<Request>) -> Rules {
    fair_rules(RuleSetBuilder::new().rule(rule))
}

/// Waits for another permit of the shared rule again and again, each time as another user, or as this one.
fn stream(rules: &Rules, users: impl Iterator<Item = u32> + Send + 'static) -> tokio::task::JoinHandle<()> {
    let rules = Arc::clone(rules);
    tokio::spawn(async move {
        for user in users {
            drop(rules.acquire(&Request(user, 1)).await.unwrap());
        }
    })
}

/// Waits, and returns the duration of the wait in milliseconds.
fn timed(rules: &Rules, request: Request) -> tokio::task::JoinHandle<u128> {
    let rules = Arc::clone(rules);
    tokio::spawn(async move {
        let began = Instant::now();
        drop(rules.acquire(&request).await.unwrap());
        began.elapsed().as_millis()
    })
}

#[tokio::test(start_paused = true)]
async fn waiting_for_one_rule_does_not_delay_others() {
    let rules = fair("1/10s", "100/1s");
    assert!(rules.check(Request(1, 1)).is_ok());
    let waits = timed(&rules, Request(1, 1));
    settle().await;
    assert_eq!(rules.waiting(), 1);
    assert_eq!(rules.check(Request(1, 1)), Err(CheckError::Queued));
    for user in 2..50 {
        assert!(rules.check(Request(user, 1)).is_ok());
    }
    assert_eq!(waits.await.unwrap(), 10_000);
}

/// A year is an hour from its end. Then a request waits for the next year, by one timer.
#[tokio::test(start_paused = true)]
async fn a_request_waits_for_the_next_period_of_a_calendar() {
    let hour = Duration::from_secs(3600);
    let rules = RuleSetBuilder::new()
        .rule(Rule::calendar("year", "2/year".parse().unwrap()))
        .rule(Rule::new("rate", "100/s".parse().unwrap()))
        .origin(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_798_758_000));
    let rules = fair_rules(rules);
    for _ in 0..2 {
        drop(rules.acquire(&Request(1, 1)).await.unwrap());
    }
    let allowed = hour - Duration::from_secs(1);
    let hasty = rules.acquire(&Request(1, 1)).within(allowed).await;
    assert_eq!(hasty.map(drop), Err(too_late(hour, allowed)));
    let waits: Vec<_> = (0..4).map(|user| timed(&rules, Request(user, 1))).collect();
    settle().await;
    assert_eq!(rules.waiting(), 4);
    // Two in the year 2027, and two in 2028.
    let year = 3_600_000 + 365 * 86_400_000;
    for (wait, expected) in waits.into_iter().zip([3_600_000, 3_600_000, year, year]) {
        assert_eq!(wait.await.unwrap(), expected);
    }
}

/// Even if another request waits for the shared rule when it joins.
#[tokio::test(start_paused = true)]
async fn a_request_waits_in_the_slowest_queue_only() {
    let rules = fair("1/10s", "100/1s");
    assert!(rules.check(Request(1, 100)).is_ok());
    let shared = timed(&rules, Request(2, 1));
    settle().await;
    // The deadline is compared with the slower state.
    let hasty = rules.acquire(&Request(1, 1)).within(ms(5000)).await;
    assert_eq!(hasty.map(drop), Err(too_late(ms(10_000), ms(5000))));
    let own = timed(&rules, Request(1, 1));
    settle().await;
    assert_eq!(shared.await.unwrap(), 1000);
    assert!(rules.check(Request(3, 99)).is_ok());
    assert_eq!(own.await.unwrap(), 10_000);
}

/// A request for fifty permits of the shared rule, beside a stream of requests for one.
#[tokio::test(start_paused = true)]
async fn a_large_request_is_not_starved_by_other_users() {
    let rules = fair("1000/1s", "100/1s");
    assert!(rules.check(Request(1, 100)).is_ok());
    let streams: Vec<_> = (10..30)
        .map(|user| stream(&rules, core::iter::repeat(user)))
        .collect();
    settle().await;
    let large = timed(&rules, Request(2, 50));
    // All fifty are due when the first hundred leave the window.
    assert_eq!(large.await.unwrap(), 1000);
    streams.iter().for_each(|stream| stream.abort());
}

/// It waits for the rule of its user first, then for the shared rule, where it precedes later requests.
#[tokio::test(start_paused = true)]
async fn a_request_that_needs_two_states_gets_both() {
    let rules = fair("1/10s", "100/1s");
    assert!(rules.check(Request(1, 1)).is_ok());
    tokio::time::sleep(ms(9_500)).await;
    assert!(rules.check(Request(2, 100)).is_ok());
    let both = timed(&rules, Request(1, 50));
    // Another user each time, so that only the shared rule delays it.
    let streams: Vec<_> = (0..40)
        .map(|user| stream(&rules, (1100 + user..).step_by(100)))
        .collect();
    let took = both.await.unwrap();
    assert!((990..=1510).contains(&took), "{took}");
    streams.iter().for_each(|stream| stream.abort());
}

/// It waits for the rule of its user, and then behind an earlier request for the shared rule, which has capacity for it but
/// not for the earlier one.
#[tokio::test(start_paused = true)]
async fn a_later_request_is_later_at_every_state() {
    let rules = fair("1/10s", "100/1s");
    assert!(rules.check(Request(1, 1)).is_ok());
    tokio::time::sleep(ms(8_800)).await;
    assert!(rules.check(Request(2, 60)).is_ok());
    let began = Instant::now();
    let mut large = Arc::clone(&rules).acquire_owned(Request(3, 60));
    assert!(poll(&mut large).is_pending());
    let small = timed(&rules, Request(1, 1));
    settle().await;
    assert_eq!(rules.waiting(), 2);
    // A call bypasses the queue when the large request is due.
    tokio::time::advance(ms(1000)).await;
    assert!(rules.limiter().check(&Request(4, 60)).is_ok());
    drop(large.await.unwrap());
    assert_eq!(began.elapsed(), ms(2000));
    let took = small.await.unwrap();
    assert!((2000..=2010).contains(&took), "{took}");
}

/// A notified request that finds another state exhausted moves to its queue, and reserves no permits.
#[tokio::test(start_paused = true)]
async fn a_request_that_moves_reserves_nothing() {
    let rules = fair("1/10s", "100/1s");
    assert!(rules.check(Request(2, 100)).is_ok());
    let elsewhere = timed(&rules, Request(1, 1));
    settle().await;
    let others: Vec<_> = (10..300).map(|user| timed(&rules, Request(user, 1))).collect();
    settle().await;
    // Exhausts the rule of the user at no cost of the shared rule.
    assert!(rules.limiter().check(&Request(1, 0)).is_ok());
    for (number, other) in others.into_iter().enumerate() {
        // A hundred per second. In the first, one was notified that found its own rule exhausted.
        let took = other.await.unwrap();
        let second = 1000 * (1 + number as u128 / 100);
        assert!((second..=second + 10).contains(&took), "{number}: {took}");
    }
    assert!(!elsewhere.is_finished());
    tokio::time::sleep(ms(1000)).await;
    assert_eq!(rules.waiting(), 1);
    assert!(rules.check(Request(9_999, 1)).is_ok());
    let took = elsewhere.await.unwrap();
    assert!((10_000..=10_010).contains(&took), "{took}");
}

/// A user whose own quota is exhausted for an hour sends many requests; other users get the shared rule.
#[tokio::test(start_paused = true)]
async fn an_exhausted_user_does_not_block_others() {
    for all in ["1/1s", "10/1s"] {
        let rules = fair("1/h", all);
        let limit = if all == "1/1s" { 1 } else { 10 };
        assert!(rules.check(Request(1, limit)).is_ok());
        for _ in 0..11 {
            drop(timed(&rules, Request(7, 1)));
        }
        tokio::time::sleep(ms(3000)).await;
        let other = tokio::time::timeout(ms(2000), rules.acquire(&Request(8, 1))).await;
        assert!(other.expect("blocked").is_ok());
        assert!(rules.check(Request(9, 1)).is_ok() || all == "1/1s");
    }
}

/// Waiters of a higher tier are served sooner, so the estimate does not divide their permits by the limit of this tier.
#[tokio::test(start_paused = true)]
async fn a_deadline_behind_a_higher_tier_can_be_met() {
    let plan = TierOf::new("plan", |request: &Request| (request.0 == 1).then_some("pro"));
    let cost = Cost::new("cost", |request: &Request| request.1);
    let rule = Rule::new("all", "2/1s".parse().unwrap()).cost(&cost);
    let rules = of_one(rule.tier_of(&plan).tier("pro", 100));
    assert!(rules.check(Request(1, 100)).is_ok());
    let before = timed(&rules, Request(1, 90));
    settle().await;
    let hasty = rules
        .acquire(&Request(2, 1))
        .within(Duration::from_secs(10))
        .await;
    assert!(hasty.is_ok());
    before.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn rules_that_never_admit_fail_at_once() {
    let rules = fair("2/1s", "5/1s");
    let found = rules.acquire(&Request(1, 6)).await.map(drop);
    assert_eq!(found, Err(WaitError::Never));
    assert!(rules.check(Request(1, 5)).is_ok());
    let hasty = rules.acquire(&Request(2, 1)).within(ms(999)).await;
    assert_eq!(hasty.map(drop), Err(too_late(ms(1000), ms(999))));
    // Rules that apply to no request admit it.
    let no_rules = fair_rules(RuleSetBuilder::<Request>::new());
    assert!(!no_rules.acquire(&Request(1, 1)).await.unwrap().is_limited());
}

/// A wait for a slot in flight, which no time frees, lasts until its deadline.
#[tokio::test(start_paused = true)]
async fn a_late_wait_for_a_slot_needs_no_time() {
    let slots = fair_rules(RuleSetBuilder::<Request>::new().rule(Rule::in_flight("slots", 1)));
    let held = slots.acquire(&Request(1, 1)).await.unwrap();
    let late = slots.acquire(&Request(2, 1)).within(ms(100)).await.map(drop);
    assert_eq!(late, Err(too_late(Duration::ZERO, Duration::ZERO)));
    slots.refund(held);
}

/// No request waits for a shadow rule, and a denied key does not wait at all.
#[tokio::test(start_paused = true)]
async fn shadow_rules_and_denied_keys_do_not_wait() {
    let key = Key::value("user", |request: &Request| Some(request.0));
    let user = Rule::new("user", "5/h".parse().unwrap()).by(&key);
    let rules = RuleSetBuilder::new()
        .rule(Rule::new("shadow", "1/h".parse().unwrap()).shadow())
        .rule(user.capacity(100).deny(7_u32));
    let rules = fair_rules(rules);
    let denied = async || {
        assert_eq!(
            rules.acquire(&Request(7, 1)).await.map(drop),
            Err(WaitError::Never)
        )
    };
    for _ in 0..5 {
        assert!(rules.acquire(&Request(1, 1)).within(Duration::ZERO).await.is_ok());
    }
    denied().await;
    // Also behind other waiters.
    let mut before = Arc::clone(&rules).acquire_owned(Request(1, 1));
    assert!(poll(&mut before).is_pending());
    denied().await;
    assert!(rules.acquire(&Request(2, 1)).within(Duration::ZERO).await.is_ok());
}

/// Permits that are refunded through the `Fair` go to the waiter at once.
#[tokio::test(start_paused = true)]
async fn acquired_permits_can_be_refunded() {
    let cost = Cost::new("cost", |request: &Request| request.1);
    let rules = of_one(Rule::new("all", "10/h".parse().unwrap()).cost(&cost));
    let request = Request(1, 10);
    for half in [false, true] {
        let reserved = Arc::clone(&rules).acquire_owned(request).await.unwrap();
        let waits = timed(&rules, Request(2, 5));
        settle().await;
        let settled = match half {
            true => rules.settle(reserved, (&cost, 5)),
            false => rules.refund(reserved),
        };
        assert_eq!(settled, ringgate::Settled::Exact);
        assert_eq!(waits.await.unwrap(), 0);
        tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    }
}

/// A reload to a lower limit, for which one waiter keeps waiting, and which never admits another.
#[tokio::test(start_paused = true)]
async fn waiters_survive_a_reload() {
    let before = rules("100/1s", "10/1s").build_with(TokioClock::new(), [1, 2, 3, 4]);
    let live = Arc::new(Fair::new(LiveRules::new(before.unwrap())));
    assert!(live.check(Request(1, 10)).is_ok());
    let wait = |cost| {
        let live = Arc::clone(&live);
        tokio::spawn(async move {
            let began = Instant::now();
            let is_served = live.acquire(&Request(2, cost)).await.is_ok();
            (is_served, began.elapsed().as_millis())
        })
    };
    let (large, small) = (wait(8), wait(4));
    settle().await;
    assert_eq!(live.waiting(), 2);
    tokio::time::sleep(ms(500)).await;
    live.limiter().store(&rules("100/1s", "5/1s")).unwrap();
    // Found when the timer fires. Earlier charges count from the reload on, in the new log.
    assert_eq!(large.await.unwrap(), (false, 1000));
    let (served, took) = small.await.unwrap();
    assert!(served && (1490..=1510).contains(&took), "{took}");
}

/// A request that waits violates no rule. The requests of a blocked key wait for the end of the block, and others do not.
#[tokio::test(start_paused = true)]
async fn a_blocked_key_waits_for_the_end_of_its_block() {
    let key = Key::new("user", |request: &Request, key| request.0.hash(key));
    let block = Block::new("1/min".parse().unwrap(), Duration::from_secs(60));
    let rule = Rule::new("user", "1/10s".parse().unwrap()).algorithm(RuleAlgorithm::Log);
    let rules = of_one(rule.by(&key).block(block));
    assert!(rules.check(Request(1, 1)).is_ok() && rules.check(Request(2, 1)).is_ok());
    // Two waits, none of which is a violation.
    let waits = [timed(&rules, Request(1, 1)), timed(&rules, Request(1, 1))];
    for (wait, expected) in waits.into_iter().zip([10_000, 20_000]) {
        assert_eq!(wait.await.unwrap(), expected);
    }
    assert_eq!(rules.limiter().blocked().next(), Some(("user", 0)));
    // A call that does not wait is denied, and blocks the user.
    assert!(rules.check(Request(1, 1)).is_err());
    assert_eq!(rules.limiter().blocked().next(), Some(("user", 1)));
    let blocked = timed(&rules, Request(1, 1));
    settle().await;
    assert_eq!(timed(&rules, Request(2, 1)).await.unwrap(), 0);
    assert_eq!(blocked.await.unwrap(), 60_000);
}

struct Sided {
    x: bool,
    y: bool,
    z: bool,
}

fn sided(quotas: [&str; 3]) -> Arc<Fair<RuleSet<Sided, TokioClock>>> {
    type Applies = fn(&Sided) -> bool;
    let conditions: [(_, Applies); 3] = [("x", |it| it.x), ("y", |it| it.y), ("z", |it| it.z)];
    let mut rules = RuleSetBuilder::new();
    for (quota, (name, condition)) in quotas.iter().zip(conditions) {
        let rule = Rule::new(name, quota.parse().unwrap()).algorithm(RuleAlgorithm::Log);
        rules = rules.rule(rule.when(&Condition::new(name, condition)));
    }
    fair_rules(rules)
}

/// One request waits for one state and then for the other, and another request the other way round.
#[tokio::test(start_paused = true)]
async fn two_requests_for_the_same_two_states_do_not_deadlock() {
    let rules = sided(["1/10s", "1/15s", "1/1s"]);
    let only = |x, y| Sided { x, y, z: false };
    assert!(rules.check(only(false, true)).is_ok());
    tokio::time::sleep(ms(10_000)).await;
    assert!(rules.check(only(true, false)).is_ok());
    let begin = |x, y| {
        let own = Arc::clone(&rules);
        tokio::spawn(async move { own.acquire(&only(x, y)).await.is_ok() })
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

/// Many requests need some of three states, and some of them are dropped. All others are served within one window each.
#[test]
fn no_waiter_is_forgotten_between_states() {
    for seed in 0..400_u64 {
        let runtime = super::paused();
        runtime.block_on(async {
            let mut random = Random::new(seed);
            let mut next = |end| random.below(end);
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
                tasks.push(tokio::spawn(async move { own.acquire(&request).await.is_ok() }));
                tokio::time::sleep(ms(next(700))).await;
                if next(4) == 0 {
                    let place = usize::try_from(next(tasks.len() as u64)).unwrap();
                    tasks.swap_remove(place).abort();
                }
            }
            for task in tasks {
                let served = tokio::time::timeout(Duration::from_secs(24 * 5), task).await;
                assert!(served.expect("never served").unwrap(), "seed {seed}");
            }
            // The task that was aborted last may not have been dropped yet.
            settle().await;
            assert_eq!(rules.waiting(), 0);
        });
    }
}

/// A request with a higher limit waits behind one with a lower limit, which has no capacity for another hour once it is served.
#[tokio::test(start_paused = true)]
async fn a_waiter_of_a_higher_tier_has_its_own_timer() {
    let plan = TierOf::new("plan", |request: &Request| (request.0 == 1).then_some("pro"));
    let limited = |quota: &str| Rule::new("all", quota.parse().unwrap()).algorithm(RuleAlgorithm::Fixed);
    for rule in [
        limited("1/1h").tier_of(&plan).tier("pro", 100),
        limited("100/1h").limit_by(|request: &Request| (request.0 == 2).then_some(1)),
    ] {
        let rules = of_one(rule);
        let (free, pro) = (Request(2, 1), Request(1, 1));
        assert!(rules.check(free).is_ok());
        let first = timed(&rules, free);
        settle().await;
        let second = timed(&rules, pro);
        let (first, second) = (first.await.unwrap(), second.await.unwrap());
        assert!(
            first > 3_500_000 && second.abs_diff(first) < 1000,
            "{first} {second}"
        );
    }
}
