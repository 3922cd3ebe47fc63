//! The scripts decide as the store in memory and a limiter of one process do, at equal times: permits left and waits too.

use alloc::sync::Arc;
use core::time::Duration;

use ringgate::rules::Block;
use ringgate::shared::{CheckResult, CounterRequest, CounterStore, Counting, MemoryStore};
use ringgate::{ManualClock, Nanos, Quota};

use crate::equal_histories::{CASES, Step, follow};
use crate::random::Random;
use crate::scripts::{FAR_AHEAD, ScriptRequest, Scripts};

const SECOND: u64 = 1_000_000;

/// 1,500 steps of each counter, or as many as `RINGGATE_STEPS` says: a million takes minutes.
#[test]
fn scripts_decide_as_one_process_does() {
    let steps = std::env::var("RINGGATE_STEPS").ok();
    let steps = steps.map_or(1_500, |steps| steps.parse().expect("RINGGATE_STEPS is a number"));
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    for (seed, &case) in (1..).zip(CASES) {
        let (counting, limit, window) = case;
        let key = format!("equal-{seed}");
        let part = match counting {
            Counting::Cells(cells) => ScriptRequest::cells(&key, limit, cells, window / cells),
            Counting::Gcra(burst) => ScriptRequest::gcra(&key, limit, burst, window),
            _ => ScriptRequest::log(&key, limit, window),
        };
        let mut receipt = (0, 0);
        follow(case, seed, steps, |now, step| {
            let now = FAR_AHEAD + now;
            match step {
                Step::Take(permits) => {
                    let (admitted, found) = scripts.charge(now, &part.clone().of(permits));
                    if admitted {
                        receipt = found[0].receipt;
                    }
                    let wait = u64::try_from(found[0].wait).ok();
                    Some((admitted, found[0].remaining, wait))
                }
                Step::Refund(permits) => {
                    let given = scripts.refund(now, &part.clone().of(permits).with_receipt(receipt))[0];
                    Some((given == permits, 0, None))
                }
            }
        });
    }
}

/// An admitted request: its time, permits and limit, and the answers of the script and of the store in memory.
type Admission = (u64, u64, u64, Vec<(u64, u64)>, CheckResult);

/// Sends the same random requests to the script and to a store in memory at the same times, and asserts equal results. Returns
/// the blocks that began, the denials and the refunds. Each request names a log with a block, a counter of cells, a bucket and
/// a log in the shadow. The limits of the first log and of the cells differ from request to request.
async fn compare(scripts: &mut Scripts, seed: u64) -> [u64; 3] {
    let mut random = Random::new(seed);
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
    let counters = |permits: u64, limit: u64, reserve: u64| {
        let key = |name: &str| format!("{seed}:{name}");
        let numbered = |part: ScriptRequest, rule| ScriptRequest {
            rule,
            reserve,
            ..part.of(permits)
        };
        let parts = [
            numbered(ScriptRequest::log(&key("strict"), limit, 3 * SECOND), 1),
            numbered(ScriptRequest::cells(&key("cells"), limit + 1, 6, SECOND / 2), 2),
            numbered(ScriptRequest::gcra(&key("bucket"), 9, 4, 9 * SECOND), 3),
            numbered(ScriptRequest::log(&key("shadow"), 2, 3 * SECOND), -4),
        ];
        let counter = |name: &str, counting, limit, seconds| {
            let window = Duration::from_secs(seconds);
            let request = CounterRequest::new(name, seed.into(), counting, limit, window);
            request.with_permits(permits).with_reserve(reserve)
        };
        let requests = [
            counter("strict", Counting::Log, limit, 3),
            counter("cells", Counting::Cells(6), limit + 1, 3),
            counter("bucket", Counting::Gcra(4), 9, 9),
            counter("shadow", Counting::Log, 2, 3).with_enforced(false),
        ];
        (parts, requests)
    };
    let (mut now, mut seen) = (0, [0; 3]);
    let mut held: Vec<Admission> = Vec::new();
    for turn in 0..300 {
        now += random.below(1_500_000);
        clock.set(Nanos::new((now + 1_000 * SECOND) * 1_000));
        if random.one_in(6) && !held.is_empty() {
            let (since, permits, limit, receipts, charged) =
                held.remove(held.len().saturating_sub(1 + random.index(3)));
            let (parts, requests) = counters(permits, limit, 0);
            let lost = store.refund(&requests, &charged).await.expect("an answer");
            let parts = parts
                .into_iter()
                .zip(receipts)
                .map(|(part, it)| part.with_receipt(it));
            let parts = parts
                .zip(&charged.statuses)
                .filter(|(_, status)| status.is_charged);
            let parts: Vec<ScriptRequest> = parts.map(|(part, _)| part).collect();
            let given: u64 = scripts.refund(FAR_AHEAD + now, &parts).iter().sum();
            // A charge that has left its window may be stored still, and counts nowhere.
            let context = format!("seed {seed}, turn {turn}: {given} of {parts:?}, {lost} lost");
            assert!(
                now - since >= 2 * SECOND || given + lost == permits * parts.len() as u64,
                "{context}"
            );
            seen[2] += given;
            continue;
        }
        let (permits, limit) = (1 + random.below(3), random.one_of(&[3, 3, 3, 5, 2]));
        let reserve = random.one_of(&[0, 0, 1, 2]);
        let (parts, requests) = counters(permits, limit, reserve);
        let counts_violation = u64::from(random.below(5) > 0);
        let violation = ScriptRequest::block(&format!("{seed}:block"), violations, window, numbers);
        let parts: Vec<_> = parts
            .into_iter()
            .chain([violation.of(counts_violation)])
            .collect();
        let violation = CounterRequest::new(
            "strict",
            seed.into(),
            Counting::Violations,
            violations,
            micros(window),
        );
        let violation = violation.with_permits(counts_violation).with_block(block.clone());
        let requests: Vec<_> = requests.into_iter().chain([violation]).collect();
        let peeks = random.one_in(10);
        let ((admitted, statuses), expected) = match peeks {
            true => (scripts.peek(FAR_AHEAD + now, &parts), store.peek(&requests).await),
            false => (
                scripts.charge(FAR_AHEAD + now, &parts),
                store.decide(&requests).await,
            ),
        };
        let expected = expected.expect("an answer");
        let context = format!("seed {seed}, turn {turn}: {statuses:?}, {expected:?}");
        assert_eq!(admitted, expected.is_admitted, "{context}");
        for (found, expected) in statuses.iter().zip(&expected.statuses) {
            assert_eq!(found.room, expected.has_room, "{context}");
            let wait = expected.retry_after.map(|wait| wait.as_nanos().div_ceil(1_000));
            assert_eq!(u128::try_from(found.wait).ok(), wait, "{context}");
        }
        for (found, expected) in statuses[..4].iter().zip(&expected.statuses) {
            assert_eq!(found.remaining, expected.remaining, "{context}");
        }
        assert_eq!(statuses[4].receipt, expected.statuses[4].receipt, "{context}");
        seen[0] += statuses[4].receipt.0;
        seen[1] += u64::from(!admitted);
        if admitted && !peeks {
            let receipts = statuses[..4].iter().map(|status| status.receipt).collect();
            let charged = CheckResult::admitted(expected.at, expected.statuses[..4].to_vec());
            held.push((now, permits, limit, receipts, charged));
        }
    }
    seen
}

#[tokio::test]
async fn the_script_decides_several_counters_and_blocks_as_the_store_in_memory() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let mut all = [0; 3];
    for seed in 0..60 {
        let seen = compare(&mut scripts, seed).await;
        all.iter_mut().zip(seen).for_each(|(all, seen)| *all += seen);
    }
    let [blocks, denials, refunded] = all;
    assert!(blocks > 300 && denials > 3_000 && refunded > 300, "{all:?}");
}

/// The memory is bounded for any requests: a log has no more members than its limit, and a hash no more fields than
/// cells.
#[test]
fn the_stored_data_is_bounded() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    for (asked, command, most) in [
        (ScriptRequest::log("log", 8, 100), "ZCARD log", 8),
        (ScriptRequest::cells("cells", 8, 4, 25), "HLEN cells", 5),
    ] {
        for step in 0..3000 {
            scripts.charge(FAR_AHEAD + step * 7, &asked);
            let stored: u64 = scripts.ask(command);
            assert!(stored <= most, "{stored} in {}", asked.key);
        }
    }
}

/// A charge after a reset may lead to the arrival time of one before it. A refund tells the two apart.
#[test]
fn a_bucket_refunds_nothing_across_a_reset() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    // A permit each second.
    let one = ScriptRequest::gcra("reset", 10, 10, 10 * SECOND);
    let two = one.clone().of(2);
    let (_, before) = scripts.charge(FAR_AHEAD, &two);
    let _: u64 = scripts.ask("DEL reset");
    let now = FAR_AHEAD + SECOND;
    let (admitted, after) = scripts.charge(now, &one);
    assert!(admitted);
    assert_eq!(
        before[0].receipt.0, after[0].receipt.0,
        "the arrival times are equal"
    );
    assert_eq!(scripts.refund(now, &two.with_receipt(before[0].receipt)), [0]);
    assert_eq!(scripts.refund(now, &one.with_receipt(after[0].receipt)), [1]);
}

/// If a limit is changed, the permits of the bucket take another time, which is rounded up: here two of 142,857.143 µs.
#[test]
fn a_bucket_is_no_fuller_at_another_rate() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let bucket = |limit| ScriptRequest::gcra("rate", limit, 5, SECOND);
    assert!(scripts.charge(FAR_AHEAD, &bucket(3).of(2)).0);
    let (admitted, found) = scripts.peek(FAR_AHEAD, &bucket(7).of(5));
    assert_eq!((admitted, found[0].remaining, found[0].wait), (false, 2, 285_715));
}

/// A retry that would end a block earlier, because the rule has a shorter one by now, leaves it as it is.
#[test]
fn a_retry_shortens_no_block() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let mut wait = |second, length| {
        let numbers = [length * SECOND, length * SECOND, SECOND, 1, 1];
        let parts = [
            ScriptRequest::log("block", 1, SECOND).of(1),
            ScriptRequest::block("block:block", 1, SECOND, numbers).of(1),
        ];
        scripts.charge(FAR_AHEAD + second * SECOND, &parts).1[1].wait / 1_000_000
    };
    assert_eq!(
        [wait(0, 100), wait(0, 100), wait(5, 100), wait(9, 10)],
        [0, 100, 100, 96]
    );
}

/// A second refund of one charge gives back nothing, or the cell would have room for more than the limit.
#[test]
fn a_cell_gives_back_no_more_than_it_holds() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let cells = ScriptRequest::cells("cells", 9, 3, SECOND).of(5);
    let (_, found) = scripts.charge(FAR_AHEAD, &cells);
    let cells = cells.with_receipt(found[0].receipt);
    assert_eq!([(); 2].map(|()| scripts.refund(FAR_AHEAD, &cells)), [[5], [0]]);
    assert_eq!(scripts.peek(FAR_AHEAD, &cells).1[0].remaining, 9);
}

/// A refund of no permits, with the receipt of a request that was not charged, leaves no key.
#[test]
fn a_refund_of_nothing_writes_nothing() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    for none in [
        ScriptRequest::log("log", 8, 100),
        ScriptRequest::cells("cells", 8, 4, 25),
        ScriptRequest::gcra("bucket", 8, 8, 100),
    ] {
        assert_eq!(scripts.refund(FAR_AHEAD, &none.of(0).with_receipt((0, 0))), [0]);
    }
    let kept: Vec<String> = scripts.ask("KEYS *");
    assert!(kept.is_empty(), "{kept:?}");
}
