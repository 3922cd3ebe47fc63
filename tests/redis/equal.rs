//! The scripts decide as the store in memory and a limiter of one process do, at equal times: permits left and waits too.

use core::slice::from_ref;

use ringgate::shared::Counting;

use crate::equal_histories::{CASES, Step, follow};
use crate::scripts::{FAR_AHEAD, ScriptRequest, decide_script, refund_script};
use crate::server::Server;

/// 1,500 steps of each counter, or as many as `RINGGATE_STEPS` says: a million takes minutes.
#[test]
fn scripts_decide_as_one_process_does() {
    let steps = std::env::var("RINGGATE_STEPS").ok();
    let steps = steps.map_or(1_500, |steps| steps.parse().expect("RINGGATE_STEPS is a number"));
    let Some(server) = Server::start() else { return };
    let (decide, refund, mut client) = (decide_script(), refund_script(), server.client());
    let origin = FAR_AHEAD;
    for (seed, &case) in (1..).zip(CASES) {
        let (counting, limit, window) = case;
        let key = format!("equal {seed}");
        let part = match counting {
            Counting::Cells(cells) => ScriptRequest::cells(&key, limit, cells, window / cells),
            Counting::Gcra(burst) => ScriptRequest::gcra(&key, limit, burst, window),
            _ => ScriptRequest::log(&key, limit, window),
        };
        let mut receipt = (0, 0);
        follow(case, seed, steps, |now, step| {
            let now = origin + now;
            match step {
                Step::Take(permits) => {
                    let asked = ScriptRequest {
                        permits,
                        ..part.clone()
                    };
                    let (admitted, found) = decide.decide(&mut client, now, "charge", from_ref(&asked));
                    if admitted {
                        receipt = found[0].receipt;
                    }
                    let wait = u64::try_from(found[0].wait).ok();
                    Some((admitted, found[0].remaining, wait))
                }
                Step::Refund(permits) => {
                    let asked = ScriptRequest {
                        permits,
                        receipt,
                        ..part.clone()
                    };
                    let given = refund.refund(&mut client, now, from_ref(&asked))[0];
                    Some((given == permits, 0, None))
                }
            }
        });
    }
}

/// A clock that goes back makes a bucket stricter for as long as its burst is refilled, and no longer.
#[test]
fn a_bucket_that_is_ahead_is_full_from_now() {
    let Some(server) = Server::start() else { return };
    let (decide, refund, mut client) = (decide_script(), refund_script(), server.client());
    let late = FAR_AHEAD;
    let early = late - 3_600_000_000;
    // Ten permits in ten seconds.
    let part = ScriptRequest::gcra("ahead", 10, 10, 10_000_000);
    let all = ScriptRequest {
        permits: 10,
        ..part.clone()
    };
    let (admitted, found) = decide.decide(&mut client, late, "charge", from_ref(&all));
    assert!(admitted);
    let receipt = ScriptRequest {
        receipt: found[0].receipt,
        ..all.clone()
    };
    let (_, looked) = decide.decide(&mut client, early, "peek", from_ref(&all));
    let (admitted, refused) = decide.decide(&mut client, early, "charge", from_ref(&all));
    assert!(!admitted);
    assert_eq!((looked[0].remaining, refused[0].remaining), (0, 0));
    assert_eq!((looked[0].wait, refused[0].wait), (10_000_000, 10_000_000));
    assert_eq!(refund.refund(&mut client, early, from_ref(&receipt)), [0]);
    assert!(
        !decide
            .decide(&mut client, early + 9_999_999, "charge", from_ref(&all))
            .0
    );
    assert!(
        decide
            .decide(&mut client, early + 10_000_000, "charge", from_ref(&all))
            .0
    );
}

/// A charge after a reset may lead to the arrival time of one before it. A refund tells the two apart.
#[test]
fn a_bucket_refunds_nothing_across_a_reset() {
    let Some(server) = Server::start() else { return };
    let (decide, refund, mut client) = (decide_script(), refund_script(), server.client());
    let now = FAR_AHEAD;
    // A permit each second.
    let one = ScriptRequest::gcra("reset", 10, 10, 10_000_000);
    let mut two = ScriptRequest {
        permits: 2,
        ..one.clone()
    };
    let (_, before) = decide.decide(&mut client, now, "charge", from_ref(&two));
    two.receipt = before[0].receipt;
    let _: u64 = redis::cmd("DEL").arg("reset").query(&mut client).expect("OK");
    let (admitted, after) = decide.decide(&mut client, now + 1_000_000, "charge", from_ref(&one));
    assert!(admitted);
    assert_eq!(
        before[0].receipt.0, after[0].receipt.0,
        "the arrival times are equal"
    );
    assert_eq!(refund.refund(&mut client, now + 1_000_000, from_ref(&two)), [0]);
    let own = ScriptRequest {
        receipt: after[0].receipt,
        ..one
    };
    assert_eq!(refund.refund(&mut client, now + 1_000_000, from_ref(&own)), [1]);
}
