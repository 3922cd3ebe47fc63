//! Blocks over a real server: by the script at given times, and by nodes. `equal` compares random histories with the store in
//! memory.

use core::time::Duration;
use std::time::SystemTime;

use ringgate::Rule;
use ringgate::rules::{Block, RuleAlgorithm};
use ringgate::shared::SharedRules;

use crate::rules::{Request, by_user, quota};
use crate::scripts::{FAR_AHEAD, ScriptRequest, Scripts};
use crate::server::Server;

const SECOND: u64 = 1_000_000;
const TICK: u64 = 10_000;

/// More permits than a rule has, so that the request violates it.
fn spent() -> ScriptRequest {
    ScriptRequest::log("rule", 1, SECOND).of(2)
}

/// Violates the rule of a block.
fn violate(scripts: &mut Scripts, now: u64, block: ScriptRequest) {
    assert!(!scripts.charge(now, &[spent(), block]).0);
}

/// The server keeps the violations of a key until they can no longer affect a decision.
#[test]
fn the_violations_of_a_key_expire() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let expiry_of = |scripts: &mut Scripts, now, numbers| -> u64 {
        violate(
            scripts,
            now,
            ScriptRequest::block("block", 2, 60 * SECOND, numbers),
        );
        scripts.ask("PEXPIRETIME block")
    };
    let once = [10 * SECOND, 10 * SECOND, 0, 0, 1];
    assert_eq!(
        expiry_of(&mut scripts, FAR_AHEAD, once),
        (FAR_AHEAD + 60 * SECOND) / 1_000
    );
    let blocked = expiry_of(&mut scripts, FAR_AHEAD + SECOND, once);
    assert_eq!(blocked, (FAR_AHEAD + 11 * SECOND + TICK) / 1_000);
    let _: () = scripts.ask("DEL block");
    let repeated = [10 * SECOND, 100 * SECOND, 3600 * SECOND, 0, 2];
    expiry_of(&mut scripts, FAR_AHEAD, repeated);
    assert_eq!(
        expiry_of(&mut scripts, FAR_AHEAD, repeated),
        (FAR_AHEAD + 3610 * SECOND) / 1_000
    );
}

/// The clock goes back by an hour. The block lasts no longer than the longest one from then on.
#[test]
fn a_block_ahead_of_the_clock_ends_in_time() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let early = FAR_AHEAD - 3600 * SECOND;
    let block = ScriptRequest::block("block", 1, SECOND, [10 * SECOND, 20 * SECOND, 0, 0, 2]);
    let blocked = |scripts: &mut Scripts, now| scripts.peek(now, &block).1[0].wait;
    violate(&mut scripts, FAR_AHEAD, block.clone());
    assert_eq!(blocked(&mut scripts, FAR_AHEAD), 10_000_000);
    violate(&mut scripts, early, block.clone());
    assert_eq!(blocked(&mut scripts, early + SECOND), 19_000_000);
    assert_eq!(blocked(&mut scripts, early + 20 * SECOND - 1), 1);
    assert_eq!(blocked(&mut scripts, early + 20 * SECOND), 0);
}

/// Nodes of two versions have different blocks. A request of one changes no block that the other has begun.
#[test]
fn a_block_lasts_as_long_as_it_began() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let of = |length| ScriptRequest::block("block", 1, SECOND, [length, length, 0, 0, 1]);
    violate(&mut scripts, FAR_AHEAD, of(600 * SECOND));
    let (_, statuses) = scripts.charge(FAR_AHEAD + SECOND, &[spent(), of(10 * SECOND)]);
    assert_eq!(statuses[1].wait, 599_000_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_key_is_blocked_at_all_nodes() {
    let Some(server) = Server::start() else { return };
    let block = Block::new("3/min".parse().expect("a quota"), Duration::from_secs(600));
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
        let after = denied.retry_after().expect("a block ends").as_secs();
        assert!((500..=601).contains(&after), "{after}");
        assert!(node.check(&Request::of("bob", 1)).await.is_ok());
        let statuses = node.peek(&alice).await.expect("an answer");
        assert_eq!(statuses.iter().filter(|status| status.is_block()).count(), 1);
    }
    nodes[1].unblock(&alice).await.expect("an answer");
    nodes[0].check(&alice).await.expect("a permit");
}

/// The counter of a period has a name of its own. Its denials are violations of its rule, in every period.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_of_periods_blocks_its_keys() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let fixed = |name: &'static str| Rule::new(name, quota("2/h")).algorithm(RuleAlgorithm::Fixed);
    for rule in [
        fixed("fixed"),
        fixed("twice").also(quota("9/d")),
        Rule::calendar("days", "2/day".parse().expect("a quota")),
        Rule::new("log", quota("2/h")).algorithm(RuleAlgorithm::Log),
    ] {
        let name = rule.name().to_owned();
        let block = Block::new(quota("3/min"), Duration::from_secs(600));
        let rule = rule.by(&by_user()).block(block);
        // Each node lives in a day of its own.
        let nodes = [20_000, 20_001, 20_002].map(|day| {
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(day * 86_400);
            let rules = SharedRules::builder().rule(rule.clone()).wall_clock(move || now);
            rules.build(store.clone()).expect("rules")
        });
        let alice = Request::of("alice", 1);
        let mut blocks = Vec::new();
        for node in &nodes[..2] {
            for _ in 0..4 {
                if let Err(denied) = node.check(&alice).await {
                    blocks.push(denied.violations().filter(|status| status.is_block()).count());
                }
            }
        }
        assert_eq!(blocks[..3], [0, 0, 1], "{name}");
        for node in &nodes {
            assert!(node.check(&alice).await.is_err(), "{name}");
        }
        assert!(nodes[2].check(&Request::of("bob", 1)).await.is_ok(), "{name}");
        nodes[0].unblock(&alice).await.expect("an answer");
        let admitted = nodes[2].check(&alice).await.is_ok();
        assert_eq!(admitted, name != "log", "{name}");
    }
}

/// The documented memory of a key with violations.
#[test]
fn a_key_with_violations_takes_up_to_200_bytes() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let key = "ringgate:{0123456789abcdef0123456789abcdef}:logins:0:block";
    let block = ScriptRequest::block(key, 60_000, SECOND, [SECOND, SECOND, 3600 * SECOND, 0, 1]);
    for _ in 0..100 {
        violate(&mut scripts, FAR_AHEAD, block.clone());
    }
    let bytes: u64 = scripts.ask(&format!("MEMORY USAGE {key}"));
    assert!((100..=200).contains(&bytes), "{bytes} bytes");
}
