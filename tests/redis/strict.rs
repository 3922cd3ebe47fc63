//! The bound, with many concurrent clients and the server's own clock.

use alloc::sync::Arc;
use core::time::Duration;

use ringgate::Settled;
use ringgate::redis::RedisStore;
use ringgate::shared::{OnError, SharedLimiter, SharedLimiterBuilder};

use crate::load::{Load, most_by_stamps};
use crate::server::{Server, patient, ready};

fn kinds(text: &str) -> [SharedLimiterBuilder; 3] {
    let builder = |name: &'static str| {
        SharedLimiter::builder(name, text.parse().expect("a quota")).on_error(OnError::Deny)
    };
    [
        builder("log").log(),
        builder("cells").cells(4),
        builder("cell").cells(1),
    ]
}

/// A thousand concurrent calls from eight clients: exactly the limit is admitted.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_at_once() {
    let Some(server) = Server::start() else { return };
    for kind in 0..3 {
        let mut clients = Vec::new();
        for client in 0..8 {
            // Over both kinds of connections.
            let url = if client % 2 == 0 {
                server.url()
            } else {
                server.socket_url()
            };
            let store = ready(patient(RedisStore::builder(&url))).await;
            let limiter = kinds("250/h").into_iter().nth(kind).expect("one of three");
            clients.push(Arc::new(limiter.build(store).expect("a limiter")));
        }
        let calls = (0..1000).map(|call| {
            let client = Arc::clone(&clients[call % 8]);
            tokio::spawn(async move {
                client
                    .check("key")
                    .await
                    .ok()
                    .and_then(|passed| passed.store_time())
            })
        });
        let mut passed = 0;
        for call in calls.collect::<Vec<_>>() {
            passed += u64::from(call.await.expect("no panic").is_some());
        }
        assert_eq!(passed, 250);
    }
}

/// In each window, as many requests as possible. No window holds more than the limit, and a log wastes no permit.
#[tokio::test(flavor = "multi_thread")]
async fn no_window_holds_more_than_the_limit() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let window = Duration::from_millis(200);
    for limiter in kinds("50/200ms") {
        let limiter = Arc::new(limiter.build(store.clone()).expect("a limiter"));
        let load = Load::new(16, &limiter);
        tokio::time::sleep(8 * window).await;
        let calls = load.end().await;
        assert!(
            calls.iter().all(|call| call.at.is_some()),
            "the server decides all"
        );
        assert_eq!(most_by_stamps(&calls, window), 50);
    }
}

/// Refunded permits are admitted again, and no more than these, by the stamps of all charges that were kept.
#[tokio::test(flavor = "multi_thread")]
async fn refunds_are_exact() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    for limiter in kinds("20/h") {
        let limiter = Arc::new(limiter.build(store.clone()).expect("a limiter"));
        let tasks = (0..8).map(|_| {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move {
                for _ in 0..50 {
                    if let Ok(passed) = limiter.check_n("key", 3).await {
                        assert_eq!(limiter.rules().refund(passed).await, Ok(Settled::Exact));
                    }
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("no panic");
        }
        let mut kept = 0;
        while limiter.check("key").await.is_ok() {
            kept += 1;
        }
        assert_eq!(kept, 20);
    }
}

/// A new limit of a bucket applies to what was charged at the old rate, also if two limits alternate, as during a deployment.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_rate_keeps_what_a_bucket_was_charged() {
    let Some(server) = Server::start() else { return };
    let store = ready(patient(RedisStore::builder(&server.url()))).await;
    let limiter = |text: &str, burst| {
        let builder = SharedLimiter::builder("bucket", text.parse().expect("a quota"));
        let builder = builder.on_error(OnError::Deny).gcra(burst);
        builder.build(store.clone()).expect("a limiter")
    };
    for (number, (before, after, first, second)) in [
        ((20, 20), (50, 50), 20, 30),
        ((50, 50), (40, 40), 30, 10),
        ((50, 50), (10, 10), 30, 0),
        ((50, 20), (100, 20), 20, 0),
        ((50, 20), (50, 30), 20, 10),
    ]
    .into_iter()
    .enumerate()
    {
        let key = number.to_le_bytes();
        let [before, after] = [before, after].map(|(limit, burst)| limiter(&format!("{limit}/h"), burst));
        for _ in 0..first {
            before.check(key).await.expect("room");
        }
        for _ in 0..second {
            after.check(key).await.expect("room");
        }
        let denied = after.check(key).await.expect_err("no room");
        assert!(
            denied.error().is_none() && denied.retry_after().is_some(),
            "{denied:?}"
        );
    }
    let versions = [limiter("100/h", 100), limiter("99/h", 99)];
    let mut admitted = 0;
    for request in 0..300 {
        admitted += u64::from(versions[request % 2].check("both").await.is_ok());
    }
    assert_eq!(admitted, 100);
}
