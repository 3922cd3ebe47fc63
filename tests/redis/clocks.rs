//! A server clock that goes back. The stored state is then newer than TIME, and is repaired so that limits become
//! stricter.

use core::slice::from_ref;

use ringgate::shared::{Counting, OnError, SharedLimiter};

use crate::scripts::{FAR_AHEAD, ScriptRequest, decide_script, refund_script, renew_script};
use crate::server::Server;

const SECOND: u64 = 1_000_000;

fn both(limit: u64) -> [ScriptRequest; 2] {
    // A window of ten seconds.
    [
        ScriptRequest::log("log", limit, 10 * SECOND),
        ScriptRequest::cells("cells", limit, 5, 2 * SECOND),
    ]
}

/// Permits that were spent before the clock went back count for a whole window afterwards, and for at most a window
/// and a cell.
#[test]
fn charges_ahead_of_the_clock_count_from_now() {
    let Some(server) = Server::start() else { return };
    let (decide, mut client) = (decide_script(), server.client());
    let late = FAR_AHEAD;
    let early = late - 3600 * SECOND;
    for asked in both(5) {
        for _ in 0..5 {
            assert!(decide.decide(&mut client, late, "charge", from_ref(&asked)).0);
        }
        // `peek` does not repair the state, but its answer is that of the repaired state.
        let (_, looked) = decide.decide(&mut client, early, "peek", from_ref(&asked));
        assert_eq!(looked[0].remaining, 0);
        let (admitted, refused) = decide.decide(&mut client, early, "charge", from_ref(&asked));
        assert!(!admitted);
        assert_eq!(refused, looked, "{asked:?}");
        let wait = u64::try_from(refused[0].wait).expect("a wait");
        assert!((10 * SECOND..=12 * SECOND).contains(&wait), "{wait}");
        // The permits expire neither earlier nor later.
        assert!(
            !decide
                .decide(&mut client, early + wait - 1, "charge", from_ref(&asked))
                .0
        );
        let (admitted, found) = decide.decide(&mut client, early + wait, "charge", from_ref(&asked));
        assert!(admitted);
        assert_eq!(found[0].remaining, 4);
        // No permit ahead of the current time is left.
        let all: Vec<String> = match asked.key.as_str() {
            "log" => redis::cmd("ZRANGEBYSCORE")
                .arg("log")
                .arg(early + wait + 1)
                .arg("+inf")
                .query(&mut client),
            _ => redis::cmd("HKEYS").arg("cells").query(&mut client),
        }
        .expect("an answer");
        let ahead = all.iter().filter_map(|field| field.parse::<u64>().ok());
        assert_eq!(
            ahead.filter(|&cell| cell > (early + wait) / (2 * SECOND)).count(),
            0,
            "{all:?}"
        );
    }
}

/// A flood of denials does not move the permits ahead of the clock.
#[test]
fn denials_do_not_prolong_repaired_charges() {
    let Some(server) = Server::start() else { return };
    let (decide, mut client) = (decide_script(), server.client());
    let late = FAR_AHEAD;
    let early = late - 3600 * SECOND;
    for asked in both(3) {
        for _ in 0..3 {
            assert!(decide.decide(&mut client, late, "charge", from_ref(&asked)).0);
        }
        let tenths = 0..200;
        let first = tenths
            .map(|tenth| early + tenth * SECOND / 10)
            .find(|&now| decide.decide(&mut client, now, "charge", from_ref(&asked)).0);
        let waited = first.expect("in twenty seconds") - early;
        assert!((10 * SECOND..=12 * SECOND).contains(&waited), "{waited}");
    }
}

/// A permit from before a repair is not refunded after it, since its cell may hold permits of other requests.
#[test]
fn a_repaired_charge_is_not_refunded() {
    let Some(server) = Server::start() else { return };
    let (decide, refund, mut client) = (decide_script(), refund_script(), server.client());
    let late = FAR_AHEAD;
    for asked in both(5) {
        let (_, found) = decide.decide(&mut client, late, "charge", from_ref(&asked));
        let receipt = ScriptRequest {
            receipt: found[0].receipt,
            ..asked.clone()
        };
        let early = late - 3600 * SECOND;
        assert!(decide.decide(&mut client, early, "charge", from_ref(&asked)).0);
        assert_eq!(refund.refund(&mut client, early, from_ref(&receipt)), [0]);
        assert_eq!(
            decide.decide(&mut client, early, "peek", from_ref(&asked)).1[0].remaining,
            3
        );
        if matches!(asked.counting, Counting::Cells(_)) {
            // Also not when the clock has reached that cell again, and another request was charged to it.
            assert!(decide.decide(&mut client, late, "charge", from_ref(&asked)).0);
            assert_eq!(refund.refund(&mut client, late, from_ref(&receipt)), [0]);
        }
    }
}

/// The server's own clock goes back: a time that is an hour ahead is stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_stored_time_ahead_is_repaired_by_the_real_clock() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let limiter = SharedLimiter::builder("ahead", "3/500ms".parse().expect("a quota"))
        .log()
        .on_error(OnError::Deny)
        .build(store)
        .expect("a limiter");
    let first = limiter
        .check("alice")
        .await
        .expect("room")
        .store_time()
        .expect("a stamp");
    let mut client = server.client();
    let names: Vec<String> = redis::cmd("KEYS").arg("*").query(&mut client).expect("names");
    let ahead = first + 3600 * SECOND;
    for sequence in 0..2 {
        let member = format!("{ahead}:{sequence:09}");
        let added: u64 = redis::cmd("ZADD")
            .arg(&names[0])
            .arg(ahead)
            .arg(member)
            .query(&mut client)
            .expect("added");
        assert_eq!(added, 1);
    }
    let _: () = redis::cmd("PERSIST")
        .arg(&names[0])
        .query(&mut client)
        .expect("an answer");
    let refused = limiter.check("alice").await;
    // The first may have left its window meanwhile, but not the two others.
    let stamp = match &refused {
        Ok(passed) => passed.store_time(),
        Err(refused) => refused.store_time(),
    };
    let stamp = stamp.expect("the store has decided");
    let newest: Vec<(String, u64)> = redis::cmd("ZRANGE")
        .arg(&names[0])
        .arg(0)
        .arg(-1)
        .arg("WITHSCORES")
        .query(&mut client)
        .expect("members");
    assert!(newest.iter().all(|&(_, at)| at <= stamp), "{newest:?} at {stamp}");
    assert!(
        newest.iter().filter(|&&(_, at)| at == stamp).count() >= 2,
        "{newest:?} at {stamp}"
    );
    crate::server::until("the key is gone", || {
        redis::cmd("DBSIZE").query::<u64>(&mut client).expect("a size") == 0
    })
    .await;
}

/// Registered permits that end at once when the clock has gone back leave no key without an expiry.
#[test]
fn a_step_back_leaves_no_lease_without_an_expiry() {
    let Some(server) = Server::start() else { return };
    let (renew, decide, mut client) = (renew_script(), decide_script(), server.client());
    let part = ScriptRequest::log("short", 10, 100);
    let none = ScriptRequest {
        permits: 0,
        ..part.clone()
    };
    let late = FAR_AHEAD;
    // The first request begins the time since which the server has forgotten nothing.
    renew.renew(&mut client, late, &none, (1, [1, 1, 4, 4, 50]));
    let late = late + 2_000_000;
    let granted = renew.renew(&mut client, late, &none, (2, [1, 1, 4, 4, 50]));
    assert_eq!(granted, Some(4));
    // The year 2020 has passed, so the permits have ended when the server sets the expiry.
    let early = 1_577_836_800_000_000;
    decide.decide(&mut client, early, "charge", from_ref(&part));
    let left: i64 = redis::cmd("PTTL")
        .arg("short:leases")
        .query(&mut client)
        .expect("a time");
    assert_eq!(left, -2, "the hash has ended");
}
