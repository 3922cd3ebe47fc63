//! The histories of `tests/origins.rs` that are usually implemented in Redis, under the same numbers.

use core::time::Duration;
use std::collections::HashSet;

use ringgate::shared::{OnError, SharedLimiter, SharedLimiterBuilder};

use crate::rules::{Request, by_address, by_user, shared};
use crate::scripts::{FAR_AHEAD, ScriptRequest, Scripts};
use crate::server::{Server, ask, until};

/// Both representations. Without an answer of the server, requests are denied.
fn both(quota: &str) -> [SharedLimiterBuilder; 2] {
    let builder =
        || SharedLimiter::builder("origin", quota.parse().expect("a quota")).on_error(OnError::Deny);
    [builder().log(), builder().cells(5)]
}

/// 15 calls at once, with 10 per 3 s. Calls 0 to 9 are admitted, and 10 to 14 are denied. After a pause of 4 s the
/// next call is admitted.
#[test]
fn o1_sorted_set_log() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    for asked in [
        ScriptRequest::log("log", 10, 3_000_000),
        ScriptRequest::cells("cells", 10, 5, 600_000),
    ] {
        for call in 0..15 {
            assert_eq!(scripts.charge(FAR_AHEAD, &asked).0, call < 10, "call {call}");
        }
        assert!(scripts.charge(FAR_AHEAD + 4_000_000, &asked).0);
    }
}

/// A thousand calls of eight clients, all with the time of the same microsecond: exactly the limit is admitted, and no two
/// admissions count as one. `strict::a_thousand_calls_at_once` shows it by the server's clock.
#[test]
fn o2_atomic_script_in_one_instant() {
    let Some(scripts) = Scripts::start() else { return };
    for asked in [
        ScriptRequest::log("log", 100, 60_000_000),
        ScriptRequest::cells("cells", 100, 5, 12_000_000),
    ] {
        let receipts: Vec<_> = std::thread::scope(|scope| {
            let clients = [(); 8].map(|()| {
                let (mut scripts, asked) = (scripts.again(), &asked);
                scope.spawn(move || {
                    let calls = (0..125).map(|_| scripts.charge(FAR_AHEAD, asked));
                    let passed = calls.filter(|(admitted, _)| *admitted);
                    passed.map(|(_, found)| found[0].receipt).collect::<Vec<_>>()
                })
            });
            let joined = clients
                .into_iter()
                .flat_map(|client| client.join().expect("no panic"));
            joined.collect()
        });
        assert_eq!(receipts.len(), 100);
        if asked.key == "log" {
            let names: HashSet<_> = receipts.iter().collect();
            assert_eq!(names.len(), 100, "each has a name");
        }
    }
}

/// A user is limited to 2 per second, on an endpoint limited to 50 per 10 s and 100 per 60 s. The third call in a
/// second is denied, and charged to no rule.
#[tokio::test(flavor = "multi_thread")]
async fn o4_several_rules_in_one_script() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    for log in [false, true] {
        let rules = shared(log, "2/s", &by_user(), &["50/10s", "100/60s"])
            .build(store.clone())
            .expect("rules");
        let alice = Request::of("alice", if log { 1 } else { 2 });
        // Within a second of the server's time, however slow this machine is.
        let refused = loop {
            rules.reset(&alice).await.expect("the store answers");
            let first = rules.check(&alice).await.expect("the first");
            rules.check(&alice).await.expect("the second");
            match rules.check(&alice).await {
                Err(refused) => break refused,
                Ok(third) => assert!(third.at() >= first.at().map(|at| at + 1_000_000)),
            }
        };
        for _ in 0..20 {
            // The request is denied, or the second has passed.
            let _ = rules.check(&alice).await;
        }
        let violated: Vec<_> = refused.violations().map(|violation| violation.rule()).collect();
        assert_eq!(violated, ["user"]);
        assert!(
            refused
                .retry_after()
                .is_some_and(|after| !after.is_zero() && after <= Duration::from_secs(2))
        );
        assert!(
            refused
                .to_string()
                .starts_with("rate limit reached: user (0 of 2 per 1s left); try again in ")
        );
        let passed = rules
            .counts()
            .find(|(rule, _)| *rule == "endpoint")
            .expect("a rule")
            .1
            .admitted;
        let looks = rules.peek(&alice).await.expect("the store answers");
        let spent: Vec<_> = looks.iter().filter(|look| look.rule() == "endpoint").collect();
        assert_eq!(spent.len(), 2);
        for look in spent {
            // The requests admitted since the last reset, and no others.
            assert!(look.limit() - look.remaining() <= passed);
            if passed == 2 {
                assert_eq!(look.limit() - look.remaining(), 2);
            }
        }
        // Another user has a separate limit.
        assert!(rules.check(&Request { user: "bob", ..alice }).await.is_ok());
    }
}

/// The time stands still: a hundred requests are denied, and none is charged in any window.
#[test]
fn o4_a_denial_charges_no_rule() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let now = FAR_AHEAD;
    let logs = [
        ScriptRequest::log("log:user", 2, 1_000_000),
        ScriptRequest::log("log:endpoint:0", 50, 10_000_000),
        ScriptRequest::log("log:endpoint:1", 100, 60_000_000),
    ];
    let cells = [
        ScriptRequest::cells("cells:user", 2, 5, 200_000),
        ScriptRequest::cells("cells:endpoint:0", 50, 5, 2_000_000),
        ScriptRequest::cells("cells:endpoint:1", 100, 5, 12_000_000),
    ];
    for mut parts in [logs, cells] {
        for _ in 0..2 {
            for _ in 0..100 {
                let (admitted, found) = scripts.charge(now, &parts);
                let spent: Vec<_> = parts
                    .iter()
                    .zip(&found)
                    .map(|(part, found)| part.limit - found.remaining)
                    .collect();
                assert!(spent.iter().all(|&spent| spent <= 2), "{spent:?}");
                assert_eq!(admitted, found.iter().all(|found| found.room));
            }
            // In any order of the rules.
            parts.reverse();
        }
    }
}

/// Address: 100 per 50 s and 10 per 20 s; all: 1000 per 60 s.
#[tokio::test(flavor = "multi_thread")]
async fn o4_by_address_and_by_all() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let rules = ringgate::shared::SharedRules::builder()
        .rule(
            ringgate::Rule::new("address", "100/50s".parse().expect("a quota"))
                .also("10/20s".parse().expect("a quota"))
                .by(&by_address()),
        )
        .rule(ringgate::Rule::new("all", "1000/60s".parse().expect("a quota")))
        .build(store)
        .expect("rules");
    for address in 0..101 {
        let mut passed = 0;
        for _ in 0..11 {
            passed += u32::from(rules.check(&Request::of("alice", address)).await.is_ok());
        }
        assert_eq!(passed, if address < 100 { 10 } else { 0 }, "address {address}");
    }
    let violated = async |address| -> Vec<(String, u64)> {
        let refused = rules
            .check(&Request::of("alice", address))
            .await
            .expect_err("no room");
        // The window of a minute is the longest, and was used up just now.
        assert!(refused.retry_after() > Some(Duration::from_secs(20)));
        let violations = refused.violations().map(|it| (it.rule().to_owned(), it.limit()));
        violations.collect()
    };
    assert_eq!(violated(200).await, [("all".to_owned(), 1000)]);
    assert_eq!(
        violated(0).await,
        [("address".to_owned(), 10), ("all".to_owned(), 1000)]
    );
    for look in rules
        .peek(&Request::of("alice", 200))
        .await
        .expect("the store answers")
    {
        let spent = if look.rule() == "all" { 1000 } else { 0 };
        assert_eq!(look.limit() - look.remaining(), spent);
    }
}

/// 5 in 10 s. Requests arrive at 1.0 and 2.8 s, and three more before 8 s, which are admitted. A request at 8 s, and
/// 100 more before 11 s, are denied. A request at 11.1 s is admitted.
#[test]
fn o7_oldest_of_n() {
    let Some(mut scripts) = Scripts::start() else {
        return;
    };
    let origin = FAR_AHEAD;
    let five = [ScriptRequest::log("five", 5, 10_000_000)];
    let mut check = |milliseconds: u64| scripts.charge(origin + milliseconds * 1000, &five).0;
    for milliseconds in [1000, 2800, 5000, 6000, 7999] {
        assert!(check(milliseconds), "at {milliseconds} ms");
    }
    assert!(!check(8000));
    for call in 0..100 {
        assert!(!check(8000 + call * 29));
    }
    assert!(!check(10_999));
    assert!(check(11_100));
    assert!(!check(11_100));
}

/// The key expires after a window without calls, and not earlier.
#[tokio::test(flavor = "multi_thread")]
async fn o10_no_key_outlives_its_window() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let mut client = server.client();
    for (limiter, name, span) in both("5/500ms")
        .into_iter()
        .zip(["log", "cells"])
        .map(|(limiter, name)| {
            // After a window, and for cells up to one cell later.
            (
                limiter,
                name,
                if name == "log" {
                    500_000..=501_000
                } else {
                    500_000..=601_000
                },
            )
        })
    {
        let limiter = limiter.build(store.clone()).expect("a limiter");
        for call in 0..3 {
            let at = limiter
                .check(format!("{name}{call}"))
                .await
                .expect("room")
                .at()
                .expect("a stamp");
            let keys: Vec<String> = ask(&mut client, "KEYS ringgate:*");
            let expires = |key: &String| -> i64 { server.ask(&format!("PEXPIRETIME {key}")) };
            let last = keys.iter().map(expires).max().expect("a key");
            let lives = u64::try_from(last).expect("an expiry") * 1000 - at;
            assert!(span.contains(&lives), "{name}: {lives} µs");
        }
        until("every key is gone", || ask::<u64>(&mut client, "DBSIZE") == 0).await;
    }
}
