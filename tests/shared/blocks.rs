//! Blocks over many machines: the nodes together block the keys that one process would block.

use alloc::sync::Arc;
use core::hash::Hash;
use core::time::Duration;
use std::time::SystemTime;

use ringgate::rules::{Block, Cost, RuleAlgorithm, RuleCounts, RuleSetBuilder};
use ringgate::shared::{CounterStore, DecidedBy, MemoryStore, OnError, Reason, SharedRules};
use ringgate::{Clock, Key, ManualClock, Quota, Rule, RuleSet};
use tokio::time::advance;

use crate::memory;
use crate::random::Random;
use crate::slots::Connection;

/// A user, and the cost of the request.
type Request = (&'static str, u64);

fn user() -> Key<Request> {
    Key::new("user", |(user, _): &Request, key| user.hash(key)).shared_as(|(user, _), key| {
        key.part(user);
    })
}

fn logged(name: &'static str, quota: &str) -> Rule<Request> {
    let rule = Rule::new(name, quota.parse().expect("a quota")).by(&user());
    rule.capacity(10)
        .algorithm(RuleAlgorithm::Log)
        .cost(&Cost::new("permits", |&(_, permits): &Request| permits))
}

fn fixed(name: &'static str, quota: &str) -> Rule<Request> {
    logged(name, quota).algorithm(RuleAlgorithm::Fixed)
}

fn node(store: Arc<dyn CounterStore>, rules: &[Rule<Request>]) -> SharedRules<Request> {
    let rules = rules.iter().cloned();
    let builder = rules.fold(SharedRules::builder(), |builder, rule| builder.rule(rule));
    builder.build(store).expect("rules")
}

/// Three denials in a minute block a user for ten minutes.
fn block() -> Block {
    Block::new("3/min".parse().expect("a quota"), Duration::from_secs(600))
}

/// Sends the same random requests to three nodes and to the rule set of one process, and asserts equal results. Returns the number
/// of blocks that began.
async fn compare(seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let secs = Duration::from_secs;
    let after = Quota::new(1 + random.below(4), secs(1 + random.below(15))).expect("a quota");
    let first = 1 + random.below(6);
    let mut block = Block::new(after, secs(first));
    if random.one_in(2) {
        let ceiling = secs(first * (1 + random.below(20)));
        block = block.escalate(2 + random.below(3) as u32, ceiling, secs(random.below(40)));
    }
    if random.one_in(2) {
        block = block.extend_on_retry();
    }
    let rules = [
        logged("strict", "2/3s")
            .also("5/20s".parse().expect("a quota"))
            .block(block.clone()),
        logged("other", "4/5s"),
        logged("shadowed", "1/2s").block(block.clone()).shadow(),
        logged("lenient", "9/10s").block(block.clone()),
        fixed("fixed", "3/4s").block(block.clone()),
        fixed("fixed twice", "5/3s")
            .also("9/9s".parse().expect("a quota"))
            .block(block),
        fixed("fixed in the shadow", "2/3s")
            .also("4/9s".parse().expect("a quota"))
            .shadow(),
    ];
    let clock = Arc::new(ManualClock::new());
    let store = Arc::new(MemoryStore::with_clock(Arc::clone(&clock)));
    let nodes = [(); 3].map(|()| {
        let clock = Arc::clone(&clock);
        let wall = move || SystemTime::UNIX_EPOCH + Duration::from_nanos(clock.now().get());
        let builder = SharedRules::builder().wall_clock(wall);
        let builder = rules
            .iter()
            .cloned()
            .fold(builder, |builder, rule| builder.rule(rule));
        builder.build(store.clone()).expect("rules")
    });
    let builder = rules
        .into_iter()
        .fold(RuleSetBuilder::new(), RuleSetBuilder::rule);
    let process: RuleSet<Request, _> = builder
        .build_with(Arc::clone(&clock), [1, 2, 3, 4])
        .expect("rules");
    for turn in 0..400 {
        clock.advance(Duration::from_millis(random.below(1_500)));
        let request = (random.one_of(&["alice", "bob"]), random.below(4));
        let node = &nodes[random.index(3)];
        let context = format!("seed {seed}, turn {turn}, {request:?}");
        match random.below(40) {
            0 => {
                process.unblock(&request);
                node.unblock(&request).await.expect("an answer");
            }
            1 => {
                process.reset(&request);
                node.reset(&request).await.expect("an answer");
            }
            2..=4 => {
                let statuses = node.peek(&request).await.expect("an answer");
                let blocked = statuses.iter().filter(|status| status.is_block).count();
                let expected = process
                    .peek(&request)
                    .filter(|peek| peek.status().is_block)
                    .count();
                assert_eq!(blocked, expected, "{context}");
            }
            _ => {
                let expected = process.check(&request).map_err(|denied| denied.retry_after());
                let decided = node.check(&request).await.map_err(|denied| denied.retry_after());
                assert_eq!(decided.is_ok(), expected.is_ok(), "{context}");
                assert_eq!(decided.err(), expected.err(), "{context}");
            }
        }
    }
    let sum = |counts: &mut dyn Iterator<Item = (&str, RuleCounts)>| {
        counts.fold([0; 3], |[blocks, denied, in_shadow], (_, counts)| {
            [
                blocks + counts.blocks,
                denied + counts.denied,
                in_shadow + counts.shadow_denied,
            ]
        })
    };
    let counted = sum(&mut nodes.iter().flat_map(SharedRules::counts));
    let expected = sum(&mut process.counts());
    assert_eq!(counted, expected, "seed {seed}");
    expected[0]
}

#[tokio::test]
async fn nodes_block_the_keys_that_one_process_blocks() {
    let mut blocks = 0;
    for seed in 0..50 {
        blocks += compare(seed).await;
    }
    assert!(blocks > 1_000, "{blocks} blocks");
}

#[tokio::test(start_paused = true)]
async fn a_blocked_key_is_blocked_at_all_nodes() {
    let store = memory();
    let rules = [logged("logins", "2/s").block(block())];
    let [one, two] = [(); 2].map(|()| node(store.clone(), &rules));
    let alice = ("alice", 1);
    for node in [&one, &two] {
        node.check(&alice).await.expect("two permits");
    }
    for node in [&one, &two] {
        let denied = node.check(&alice).await.expect_err("no permit is left");
        assert_eq!(denied.retry_after(), Some(Duration::from_secs(1)));
    }
    let denied = two.check(&alice).await.expect_err("the third violation");
    let expected = "rate limit reached: logins (0 of 2 per 1s left), logins (blocked); try again in 600s";
    assert_eq!(denied.to_string(), expected);
    advance(Duration::from_secs(60)).await;
    let denied = one.check(&alice).await.expect_err("the key is blocked");
    let violation = denied.violations().next().expect("the block");
    assert!(violation.is_block && violation.is_enforced && violation.remaining == 0);
    assert_eq!(
        (denied.decided_by(), denied.reason()),
        (DecidedBy::Store, Reason::Spent)
    );
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(540)));
    assert_eq!(
        denied.to_string(),
        "rate limit reached: logins (blocked); try again in 540s"
    );
    // Other keys, and requests that cost nothing, are not blocked.
    assert!(one.check(&("bob", 1)).await.is_ok() && one.check(&("alice", 0)).await.is_ok());
    one.reset(&alice).await.expect("an answer");
    assert!(two.check(&alice).await.is_err(), "a reset keeps the block");
    one.unblock(&alice).await.expect("an answer");
    assert!(two.check(&alice).await.is_ok());
    let blocks = |node: &SharedRules<Request>| node.counts().map(|(_, counts)| counts.blocks).sum::<u64>();
    assert_eq!((blocks(&one), blocks(&two)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_refund_takes_back_no_violation_and_no_block() {
    let rules = [logged("logins", "2/s").block(block())];
    let one = node(memory(), &rules);
    let admitted = one.check(&("alice", 1)).await.expect("two permits");
    for _ in 0..2 {
        assert!(one.check(&("alice", 2)).await.is_err());
    }
    assert_eq!(one.refund(admitted).await, Ok(ringgate::Settled::Exact));
    assert!(one.check(&("alice", 3)).await.is_err(), "more than the limit");
    assert!(one.check(&("alice", 1)).await.is_err(), "three violations");
}

/// The rule of one node is enforced, and that of the other is in the shadow.
#[tokio::test(start_paused = true)]
async fn a_rule_in_the_shadow_blocks_no_key() {
    let store = memory();
    let rule = || logged("logins", "2/s").block(block());
    let (one, two) = (node(store.clone(), &[rule()]), node(store, &[rule().shadow()]));
    for _ in 0..3 {
        assert!(one.check(&("alice", 3)).await.is_err());
    }
    assert!(one.check(&("alice", 1)).await.is_err());
    assert!(two.check(&("alice", 1)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_settlement_does_not_concern_the_block() {
    let cost = Cost::new("permits", |&(_, permits): &Request| permits);
    let rule = Rule::new("logins", "9/h".parse().expect("a quota"))
        .by(&user())
        .cost(&cost)
        .block(block());
    let one = node(memory(), &[rule]);
    for (actual, left) in [(5, 4), (2, 7), (7, 2)] {
        let admitted = one.check(&("alice", 5)).await.expect("nine permits");
        let settled = one.settle(admitted, &("alice", 5), &cost, actual).await;
        assert_eq!(settled, Ok(ringgate::Settled::Exact));
        let statuses = one.peek(&("alice", 5)).await.expect("an answer");
        assert_eq!((statuses.len(), statuses[0].remaining), (1, left));
        one.reset(&("alice", 5)).await.expect("an answer");
    }
}

#[tokio::test(start_paused = true)]
async fn without_an_answer_no_key_is_blocked() {
    let connection = Connection::new(memory());
    let rules = [logged("logins", "1/s").block(block()).on_error(OnError::Admit)];
    let one = node(connection.clone(), &rules);
    let alice = ("alice", 1);
    one.check(&alice).await.expect("a permit");
    for _ in 0..3 {
        assert!(one.check(&alice).await.is_err());
    }
    advance(Duration::from_secs(5)).await;
    assert!(one.check(&alice).await.is_err());
    connection.cut(true);
    let admitted = one
        .check(&alice)
        .await
        .expect("the rule admits without an answer");
    assert_eq!(admitted.decided_by(), DecidedBy::Fallback);
    connection.cut(false);
    assert!(one.check(&alice).await.is_err());
}
