//! The histories of `tests/origins.rs` that are usually implemented in Redis, under the same numbers. The others are steps of the
//! histories in `equal`.

use std::collections::HashSet;

use ringgate::shared::{OnError, SharedLimiter, SharedLimiterBuilder};

use crate::scripts::{FAR_AHEAD, ScriptRequest, Scripts};
use crate::server::{Server, ask, until};

/// Both representations. Without an answer of the server, requests are denied.
fn both(quota: &str) -> [SharedLimiterBuilder; 2] {
    let builder =
        || SharedLimiter::builder("origin", quota.parse().expect("a quota")).on_error(OnError::Deny);
    [builder().log(), builder().cells(5)]
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
                .store_time()
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
