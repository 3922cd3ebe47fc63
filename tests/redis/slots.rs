//! Requests in flight over a real server, by the script at given times.

use crate::scripts::{FAR_AHEAD, ScriptRequest, Scripts};

const SECOND: u64 = 1_000_000;

fn slot(number: u64) -> ScriptRequest {
    ScriptRequest::slot("slots", 2, 10 * SECOND, number)
}

/// The free slots at a time.
fn free_at(scripts: &mut Scripts, now: u64) -> u64 {
    scripts.peek(now, &slot(9)).1[0].remaining
}

#[test]
fn a_slot_ends_a_term_after_its_last_renewal() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let start = FAR_AHEAD;
    for number in [1, 2] {
        assert!(scripts.charge(start, &[slot(number)]).0);
    }
    let (admitted, denied) = scripts.charge(start, &[slot(3)]);
    assert_eq!((admitted, denied[0].remaining, denied[0].wait), (false, 0, -1));
    scripts.owe(start + 9 * SECOND, &[slot(1)]);
    assert_eq!(free_at(&mut scripts, start + 10 * SECOND - 1), 0);
    assert_eq!(free_at(&mut scripts, start + 10 * SECOND), 1);
    assert_eq!(free_at(&mut scripts, start + 19 * SECOND - 1), 1);
    assert_eq!(free_at(&mut scripts, start + 19 * SECOND), 2);
    // A slot that has ended is released already, and frees no other.
    assert!(scripts.charge(start + 19 * SECOND, &[slot(3)]).0);
    for _ in 0..2 {
        assert_eq!(scripts.refund(start + 19 * SECOND, &[slot(1)]), [1]);
        assert_eq!(free_at(&mut scripts, start + 19 * SECOND), 1);
    }
    assert_eq!(scripts.refund(start + 19 * SECOND, &[slot(3)]), [1]);
    let left: u64 = scripts.ask("DBSIZE");
    assert_eq!(left, 0);
}

/// Nodes have different terms while a deployment changes it. Each slot ends after the term of its node, whichever node is first.
#[test]
fn nodes_with_different_terms_share_the_slots() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    for (at, (short, long)) in [(10, 11), (10, 20), (10, 60), (1, 60), (59, 60)]
        .into_iter()
        .enumerate()
    {
        for short_first in [true, false] {
            let key = format!("{at}:{short_first}");
            let of = |term: u64, number| ScriptRequest::slot(&key, 2, term * SECOND, number);
            let free = |scripts: &mut Scripts, now, term| scripts.peek(now, &of(term, 9)).1[0].remaining;
            let mut order = [of(short, 1), of(long, 2)];
            if !short_first {
                order.reverse();
            }
            let start = FAR_AHEAD;
            for slot in order {
                assert!(scripts.charge(start, &slot).0, "{key}");
            }
            let expires: u64 = scripts.ask(&format!("PEXPIRETIME {key}"));
            assert_eq!(expires, (start + long * SECOND) / 1_000, "{key}");
            // A denial of the node with the short term, and one of the other.
            assert!(!scripts.charge(start, &of(short, 3)).0 && !scripts.charge(start, &of(long, 4)).0);
            for (after, left) in [
                (short * SECOND - 1, 0),
                (short * SECOND, 1),
                (long * SECOND - 1, 1),
            ] {
                for term in [short, long] {
                    assert_eq!(
                        free(&mut scripts, start + after, term),
                        left,
                        "{key}, after {after}"
                    );
                }
            }
            // The node with the short term returns, and releases its slot. The key stays while the other one is held.
            scripts.owe(start + (long - 1) * SECOND, &of(short, 1));
            assert_eq!(scripts.refund(start + (long - 1) * SECOND, &of(short, 1)), [1]);
            assert_eq!(free(&mut scripts, start + long * SECOND - 1, short), 1, "{key}");
            assert_eq!(free(&mut scripts, start + long * SECOND, short), 2, "{key}");
            scripts.owe(start + (long - 1) * SECOND, &of(short, 1));
            let expires: u64 = scripts.ask(&format!("PEXPIRETIME {key}"));
            let last = (long * SECOND).max((long - 1 + short) * SECOND);
            assert_eq!(expires, (start + last) / 1_000, "{key}");
        }
    }
}

/// The clock goes back by an hour. The slots of nodes that vanished end after the longest term of a node, and no slot ends early.
#[test]
fn slots_ahead_of_the_clock_end_a_term_from_now() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let early = FAR_AHEAD - 3600 * SECOND;
    for number in [1, 2] {
        assert!(scripts.charge(FAR_AHEAD, &[slot(number)]).0);
    }
    assert!(!scripts.charge(early, &[slot(3)]).0);
    assert_eq!(free_at(&mut scripts, early + 60 * SECOND - 1), 0);
    assert_eq!(free_at(&mut scripts, early + 60 * SECOND), 2);
}

/// The documented memory of a slot, in a key with few slots and in one with many.
#[test]
fn a_slot_takes_35_to_140_bytes() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    for slots in [10, 2_000] {
        for number in 0..slots {
            let slot = ScriptRequest::slot("many", slots, 10 * SECOND, (1 << 52) + number);
            assert!(scripts.charge(FAR_AHEAD, &slot).0);
        }
        let bytes: u64 = scripts.ask("MEMORY USAGE many SAMPLES 0");
        assert!(
            (35 * slots..=140 * slots).contains(&bytes),
            "{bytes} bytes for {slots} slots"
        );
    }
}
