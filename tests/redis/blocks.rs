//! Blocks over a real server: by the script at given times, and by nodes.

use alloc::sync::Arc;
use core::time::Duration;

use ringgate::rules::Block;
use ringgate::shared::{CounterRequest, CounterStore, Counting, MemoryStore, SharedRules};
use ringgate::{ManualClock, Nanos, Quota, Rule};

use crate::random::Random;
use crate::rules::{Request, by_user};
use crate::scripts::{FAR_AHEAD, ScriptRequest, decide_script};
use crate::server::Server;

const SECOND: u64 = 1_000_000;
const TICK: u64 = 10_000;

/// Sends the same random requests to the script and to a store in memory at the same times, and asserts equal results. Returns the
/// number of blocks that began. Each request names a rule with a block, one without, and
/// one that is in the shadow.
async fn compare(server: &Server, seed: u64) -> u64 {
    let mut random = Random::new(seed);
    let (decide, mut client) = (decide_script(), server.client());
    let violations = 1 + random.below(4);
    let window = (1 + random.below(15)) * SECOND + random.below(3) * 3_000;
    let first = SECOND + random.below(6 * SECOND);
    let ceiling = first * (1 + random.below(20));
    let forgive = random.below(40 * SECOND);
    let (factor, extends) = (2 + random.below(3) as u32, random.one_in(2));
    let micros = Duration::from_micros;
    let after = Quota::new(violations, micros(window)).expect("a quota");
    let mut block = Block::new(after, micros(first)).escalate(factor, micros(ceiling), micros(forgive));
    if extends {
        block = block.extend_on_retry();
    }
    let numbers = [first, ceiling, forgive, u64::from(extends), u64::from(factor)];
    let clock = Arc::new(ManualClock::new());
    let store = MemoryStore::with_clock(Arc::clone(&clock));
    let (mut now, mut blocks) = (FAR_AHEAD, 0);
    for turn in 0..300 {
        now += random.below(1_500_000);
        clock.set(Nanos::new(now * 1_000));
        let (cost, counts_violation) = (1 + random.below(3), u64::from(random.below(5) > 0));
        let key = |name: &str| format!("{seed}:{name}");
        let log = |name: &str, limit, rule| ScriptRequest {
            permits: cost,
            rule,
            ..ScriptRequest::log(&key(name), limit, 3 * SECOND)
        };
        let script = [
            log("strict", 3, 1),
            log("other", 2, 2),
            log("shadow", 2, -3),
            ScriptRequest {
                permits: counts_violation,
                ..ScriptRequest::block(&key("block"), violations, window, numbers)
            },
        ];
        let counter = |name: &str, limit| {
            CounterRequest::new(name, seed.into(), Counting::Log, limit, micros(3 * SECOND))
                .with_permits(cost)
        };
        let memory = [
            counter("strict", 3),
            counter("other", 2),
            counter("shadow", 2).with_enforced(false),
            CounterRequest::new(
                "strict",
                seed.into(),
                Counting::Violations,
                violations,
                micros(window),
            )
            .with_permits(counts_violation)
            .with_block(block.clone()),
        ];
        let verb = if random.one_in(10) { "peek" } else { "charge" };
        let (admitted, statuses) = decide.decide(&mut client, now, verb, &script);
        let expected = match verb {
            "peek" => store.peek(&memory).await,
            _ => store.decide(&memory).await,
        };
        let expected = expected.expect("an answer");
        let context = format!("seed {seed}, turn {turn}: {statuses:?}, {expected:?}");
        assert_eq!(admitted, expected.is_admitted(), "{context}");
        let (status, expected) = (statuses[3], expected.statuses()[3]);
        assert_eq!(status.room, expected.has_room(), "{context}");
        let wait = expected.retry_after().expect("a block ends").as_micros();
        assert_eq!(u128::try_from(status.wait).expect("a wait"), wait, "{context}");
        assert_eq!(status.receipt, expected.receipt(), "{context}");
        blocks += status.receipt.0;
    }
    blocks
}

#[tokio::test]
async fn the_script_blocks_like_the_store_in_memory() {
    let Some(server) = Server::start() else { return };
    let mut blocks = 0;
    for seed in 0..60 {
        blocks += compare(&server, seed).await;
    }
    assert!(blocks > 300, "{blocks} blocks");
}

/// The server keeps the violations of a key until they can no longer affect a decision.
#[test]
fn the_violations_of_a_key_expire() {
    let Some(server) = Server::start() else { return };
    let (decide, mut client) = (decide_script(), server.client());
    let spent = ScriptRequest {
        permits: 2,
        ..ScriptRequest::log("rule", 1, 3600 * SECOND)
    };
    let expiry = |client: &mut redis::Connection| -> u64 {
        redis::cmd("PEXPIRETIME")
            .arg("block")
            .query(client)
            .expect("an answer")
    };
    let violate = |client: &mut redis::Connection, now, numbers| {
        let block = ScriptRequest::block("block", 2, 60 * SECOND, numbers);
        assert!(!decide.decide(client, now, "charge", &[spent.clone(), block]).0);
    };
    let once = [10 * SECOND, 10 * SECOND, 0, 0, 1];
    violate(&mut client, FAR_AHEAD, once);
    assert_eq!(expiry(&mut client), (FAR_AHEAD + 60 * SECOND) / 1_000);
    violate(&mut client, FAR_AHEAD + SECOND, once);
    assert_eq!(expiry(&mut client), (FAR_AHEAD + 11 * SECOND + TICK) / 1_000);
    let _: () = redis::cmd("DEL")
        .arg("block")
        .query(&mut client)
        .expect("an answer");
    let repeated = [10 * SECOND, 100 * SECOND, 3600 * SECOND, 0, 2];
    violate(&mut client, FAR_AHEAD, repeated);
    violate(&mut client, FAR_AHEAD, repeated);
    assert_eq!(expiry(&mut client), (FAR_AHEAD + 3610 * SECOND) / 1_000);
}

/// The clock goes back by an hour. The block lasts no longer than the longest one from then on.
#[test]
fn a_block_ahead_of_the_clock_ends_in_time() {
    let Some(server) = Server::start() else { return };
    let (decide, mut client) = (decide_script(), server.client());
    let early = FAR_AHEAD - 3600 * SECOND;
    let spent = ScriptRequest {
        permits: 2,
        ..ScriptRequest::log("rule", 1, SECOND)
    };
    let block = ScriptRequest::block("block", 1, SECOND, [10 * SECOND, 20 * SECOND, 0, 0, 2]);
    let request = [spent, block.clone()];
    let blocked = |client: &mut redis::Connection, now| {
        decide
            .decide(client, now, "peek", core::slice::from_ref(&block))
            .1[0]
            .wait
    };
    decide.decide(&mut client, FAR_AHEAD, "charge", &request);
    assert_eq!(blocked(&mut client, FAR_AHEAD), 10_000_000);
    decide.decide(&mut client, early, "charge", &request);
    assert_eq!(blocked(&mut client, early + SECOND), 19_000_000);
    assert_eq!(blocked(&mut client, early + 20 * SECOND - 1), 1);
    assert_eq!(blocked(&mut client, early + 20 * SECOND), 0);
}

/// Nodes of two versions have different blocks. A request of one changes no block that the other has begun.
#[test]
fn a_block_lasts_as_long_as_it_began() {
    let Some(server) = Server::start() else { return };
    let (decide, mut client) = (decide_script(), server.client());
    let spent = ScriptRequest {
        permits: 2,
        ..ScriptRequest::log("rule", 1, SECOND)
    };
    let of = |length| ScriptRequest::block("block", 1, SECOND, [length, length, 0, 0, 1]);
    decide.decide(
        &mut client,
        FAR_AHEAD,
        "charge",
        &[spent.clone(), of(600 * SECOND)],
    );
    let later = FAR_AHEAD + SECOND;
    let (_, statuses) = decide.decide(&mut client, later, "charge", &[spent, of(10 * SECOND)]);
    assert_eq!(statuses[1].wait, 599_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_key_is_blocked_at_all_nodes() {
    let Some(server) = Server::start() else { return };
    let after = "3/min".parse().expect("a quota");
    let block = Block::new(after, Duration::from_secs(600));
    let mut nodes = Vec::new();
    for _ in 0..2 {
        let rule = Rule::new("logins", "2/h".parse().expect("a quota")).by(&by_user());
        let rules = SharedRules::builder().rule(rule.block(block.clone()));
        nodes.push(rules.build(server.store().await).expect("rules"));
    }
    let alice = Request::of("alice", 1);
    for node in &nodes {
        node.check(&alice).await.expect("two permits");
    }
    for violation in 1..=3 {
        let denied = nodes[violation % 2]
            .check(&alice)
            .await
            .expect_err("no permit is left");
        let blocks = denied.violations().filter(|status| status.is_block()).count();
        assert_eq!(blocks, usize::from(violation == 3));
    }
    for node in &nodes {
        node.reset(&alice).await.expect("an answer");
        let denied = node.check(&alice).await.expect_err("the key is blocked");
        let after = denied.retry_after().expect("a block ends");
        assert!(
            after > Duration::from_secs(500) && after <= Duration::from_secs(601),
            "{after:?}"
        );
        assert!(node.check(&Request::of("bob", 1)).await.is_ok());
        let statuses = node.peek(&alice).await.expect("an answer");
        assert_eq!(statuses.iter().filter(|status| status.is_block()).count(), 1);
    }
    nodes[1].unblock(&alice).await.expect("an answer");
    nodes[0].check(&alice).await.expect("a permit");
}

/// The documented memory of a key with violations.
#[test]
fn a_key_with_violations_takes_up_to_200_bytes() {
    let Some(server) = Server::start() else { return };
    let (decide, mut client) = (decide_script(), server.client());
    let key = "ringgate:{0123456789abcdef0123456789abcdef}:logins:0:block";
    let spent = ScriptRequest {
        permits: 2,
        ..ScriptRequest::log("rule", 1, SECOND)
    };
    let block = ScriptRequest::block(key, 60_000, SECOND, [SECOND, SECOND, 3600 * SECOND, 0, 1]);
    for _ in 0..100 {
        decide.decide(&mut client, FAR_AHEAD, "charge", &[spent.clone(), block.clone()]);
    }
    let bytes: u64 = redis::cmd("MEMORY")
        .arg("USAGE")
        .arg(key)
        .query(&mut client)
        .expect("an answer");
    assert!((100..=200).contains(&bytes), "{bytes} bytes");
}
