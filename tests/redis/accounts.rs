//! Accounts of one node: what it decides by itself, what it asks for, and what it gives back.

use alloc::sync::Arc;
use core::time::Duration;
use std::time::Instant;

use ringgate::redis::{DecidedBy, SharedLimiter, SharedLimiterBuilder};

use crate::server::{PATIENCE, Server, until};

/// A limiter whose holds are granted soon after the server was started.
fn limiter(name: &str, quota: &str) -> SharedLimiterBuilder {
    SharedLimiter::builder(name, quota.parse().expect("a quota"))
        .term(Duration::from_millis(400))
        .period(Duration::from_millis(20))
}

/// Asks until accounts decide; says how many were admitted by the store.
async fn warmed(limiter: &SharedLimiter, key: &str) -> u64 {
    let (began, mut admitted) = (Instant::now(), 0);
    loop {
        match limiter.check(key).await {
            Ok(passed) if passed.decided_by() == DecidedBy::Account => return admitted + 1,
            Ok(_) => admitted += 1,
            Err(refused) => panic!("{refused}"),
        }
        assert!(began.elapsed() < PATIENCE, "no account decides");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hot_key_is_decided_on_the_node() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let limiter = limiter("hot", "1000000/s")
        .lease(1000)
        .build(store.clone())
        .expect("a limiter");
    warmed(&limiter, "key").await;
    let calls = store.health().calls;
    let (mut by_account, mut by_store) = (0, 0);
    for _ in 0..2000 {
        let passed = limiter.check("key").await.expect("room");
        match passed.decided_by() {
            DecidedBy::Account => by_account += 1,
            _ => by_store += 1,
        }
    }
    println!(
        "{by_account} {by_store} {} {:?}",
        store.health().calls - calls,
        limiter.standing()
    );
    assert!(by_account > by_store);
    limiter.flush().await.expect("the store answers");
    println!("{:?}", limiter.standing());
    until("nothing is held", || limiter.standing().held == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_pushed() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let limiter = limiter("sync", "1000/s")
        .sync(Duration::from_millis(20), 100)
        .build(store.clone())
        .expect("a limiter");
    let limiter = Arc::new(limiter);
    let mut admitted = 0;
    for _ in 0..3000 {
        let answer = limiter.check("key").await;
        match answer {
            Ok(passed) => {
                assert_eq!(passed.decided_by(), DecidedBy::Account);
                admitted += 1;
            }
            Err(refused) => println!("{refused} {:?}", limiter.standing()),
        }
    }
    println!("{admitted} {} {:?}", store.health().calls, limiter.standing());
}
