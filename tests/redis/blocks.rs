//! Blocks over a real server, by the script at given times. `equal` compares random histories with the store in memory.

use crate::scripts::{FAR_AHEAD, ScriptRequest, Scripts};

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
