//! Servers as they are deployed: with users, passwords, databases and protocols, and the errors that say what is missing.

use core::time::Duration;

use ringgate::redis::{RedisStore, RedisStoreBuilder};
use ringgate::shared::{DecidedBy, OnError, SharedLimiter, StoreErrorKind};

use crate::server::{Server, ask, patient, ready, until};

async fn decides(builder: RedisStoreBuilder) {
    let store = ready(patient(builder)).await;
    let limiter = SharedLimiter::builder("users", "2/60s".parse().expect("a quota"));
    let limiter = limiter
        .on_error(OnError::Deny)
        .log()
        .build(store)
        .expect("a limiter");
    for is_admitted in [true, true, false] {
        let answer = limiter.check("key").await;
        assert_eq!(answer.is_ok(), is_admitted, "{answer:?}");
        let decided_by = answer.map_or_else(|denied| denied.decided_by(), |admitted| admitted.decided_by());
        assert_eq!(decided_by, DecidedBy::Store);
    }
    limiter.reset("key").await.expect("an answer");
}

/// The reason why `ready` fails.
async fn reason(builder: RedisStoreBuilder) -> String {
    let store = patient(builder).build().expect("a store");
    until("an attempt has failed", || store.health().last_error.is_some()).await;
    let error = store
        .ready(Duration::from_millis(1))
        .await
        .expect_err("no connection");
    assert_eq!(error.kind(), StoreErrorKind::Down);
    error.to_string()
}

#[tokio::test]
async fn users_of_access_control_lists() {
    let Some(server) = Server::guarded("general") else {
        return;
    };
    let url = server.url();
    let mut client = redis::Client::open(format!("redis://:general@127.0.0.1:{}", server.port()))
        .and_then(|client| client.get_connection())
        .expect("a connection");
    // The rights that the documentation names, and a user without the right to read the role of the server.
    for (user, rights) in [("limits", "+info +role"), ("bare", "-@dangerous")] {
        let password = format!("{user}-password");
        let rule = format!("ACL SETUSER {user} on >{password} ~ringgate:* +@all -@admin {rights}");
        let _: () = ask(&mut client, &rule);
        let login = || {
            RedisStore::builder(&url)
                .username(user)
                .password(password.as_str())
        };
        decides(login()).await;
        decides(login().resp3()).await;
        let address = format!("redis://{user}:{password}@127.0.0.1:{}", server.port());
        decides(RedisStore::builder(&address)).await;
    }
    for (user, is_role_known) in [("limits", true), ("bare", false)] {
        let login = RedisStore::builder(&url).username(user);
        let store = ready(patient(login.password(format!("{user}-password").as_str()))).await;
        assert_eq!(store.health().role_error.is_none(), is_role_known, "{user}");
    }
    // The builder's user replaces that of the address, which is wrong.
    let wrong = format!("redis://stranger:nothing@127.0.0.1:{}", server.port());
    decides(
        RedisStore::builder(&wrong)
            .username("limits")
            .password("limits-password"),
    )
    .await;
    let error = reason(RedisStore::builder(&wrong)).await;
    assert!(error.contains("authentication failed"), "{error}");
    for builder in [RedisStore::builder(&url), RedisStore::builder(&url).resp3()] {
        let error = reason(builder).await;
        assert!(error.contains("NOAUTH"), "{error}");
    }
    let error = reason(RedisStore::builder(&url)).await;
    assert!(error.contains("none was given"), "{error}");
}

#[tokio::test]
async fn databases_and_protocols() {
    let Some(server) = Server::start() else { return };
    let mut client = server.client();
    let mut keys = |database: u8| -> u64 {
        let _: () = ask(&mut client, &format!("SELECT {database}"));
        ask(&mut client, "DBSIZE")
    };
    let charge = async |builder: RedisStoreBuilder| {
        let store = ready(patient(builder)).await;
        let limiter = SharedLimiter::builder("databases", "2/60s".parse().expect("a quota"));
        let limiter = limiter.build(store).expect("a limiter");
        limiter.check("key").await.expect("room");
    };
    charge(RedisStore::builder(&server.url()).database(3)).await;
    assert_eq!((keys(0), keys(3)), (0, 1));
    charge(RedisStore::builder(&format!("{}/3", server.url())).database(4)).await;
    assert_eq!((keys(3), keys(4)), (1, 1));
    decides(RedisStore::builder(&format!("{}?protocol=resp3", server.url()))).await;
    decides(RedisStore::builder(&server.url()).resp3()).await;
    decides(RedisStore::builder(&server.socket_url()).resp3()).await;
}

#[cfg(feature = "redis-client")]
#[tokio::test]
async fn a_client_that_exists() {
    let Some(server) = Server::guarded("general") else {
        return;
    };
    let url = format!("redis://:general@127.0.0.1:{}/2?protocol=resp3", server.port());
    let client = redis::Client::open(url).expect("an address");
    decides(RedisStore::client(&client)).await;
    let without = redis::Client::open(server.url()).expect("an address");
    let error = reason(RedisStore::client(&without)).await;
    assert!(error.contains("none was given"), "{error}");
    decides(RedisStore::client(&without).password("general")).await;
}

/// The error says which part is wrong or missing, and what to do.
#[tokio::test]
async fn missing_parts_are_named() {
    let cases = [
        (
            RedisStore::builder("redis+sentinel://:secret@host:26379"),
            "url",
            "RedisStore::sentinel",
        ),
        (
            RedisStore::builder("redis-sentinel://:secret@host:26379/shop"),
            "url",
            "RedisStore::sentinel",
        ),
        (
            RedisStore::builder("redis://user@host"),
            "url",
            "without a password",
        ),
        (
            RedisStore::builder("redis://host").username("user"),
            "password",
            "RedisStoreBuilder::password",
        ),
        (RedisStore::builder("redis://host").database(-1), "database", "-1"),
        (
            RedisStore::sentinel(&["redis://host:26379"], ""),
            "service",
            "the name of a service",
        ),
        (RedisStore::sentinel(&[], "shop"), "url", "at least one address"),
        (
            RedisStore::sentinel(&["http://:secret@host"], "shop"),
            "url",
            "redis://",
        ),
    ];
    for (builder, field, named) in cases {
        let error = builder.build().expect_err(named);
        assert_eq!(error.field, field, "{error}");
        let error = error.to_string();
        assert!(error.contains(named) && !error.contains("secret"), "{error}");
    }
    #[cfg(not(feature = "redis-tls"))]
    {
        let error = RedisStore::builder("rediss://host").build().expect_err("no TLS");
        assert!(error.to_string().contains("redis-tls"), "{error}");
    }
}

/// A server that does not tell when its run began cannot say whether it has forgotten leases, so it registers none.
#[tokio::test(flavor = "multi_thread")]
async fn leases_need_the_right_to_info() {
    let Some(server) = Server::start() else { return };
    let allow = |rule: &str| server.ask::<()>(&format!("ACL SETUSER default {rule}"));
    allow("-info");
    let store = server.store().await;
    let limiter = SharedLimiter::builder("info", "1000000/s".parse().expect("a quota"));
    let period = Duration::from_millis(10);
    let limiter = limiter
        .lease(100)
        .term(20 * period)
        .period(period)
        .on_error(OnError::Deny);
    let limiter = limiter.build(store.clone()).expect("a limiter");
    let check = async || limiter.check("key").await.expect("there is room").decided_by();
    while store.health().lease_error.is_none() {
        assert_eq!(check().await, DecidedBy::Store);
    }
    for _ in 0..100 {
        assert_eq!(check().await, DecidedBy::Store);
    }
    let error = store
        .health()
        .lease_error
        .expect("the store reports it")
        .to_string();
    assert!(error.contains("INFO") && error.contains("run_id"), "{error}");
    assert_eq!(store.health().unexpected_replies, 0);
    assert_eq!(limiter.rules().lease_stats().held, 0);
    // With the right, nodes decide again.
    allow("+info");
    while check().await == DecidedBy::Store {}
    assert!(store.health().lease_error.is_none());
}

/// A script that may not set an expiry would leave keys for ever, so such a user gets no connection.
#[tokio::test(flavor = "multi_thread")]
async fn no_key_is_left_without_an_expiry() {
    let Some(server) = Server::start() else { return };
    for (user, rule, keys, restored) in [
        ("forever", "-pexpireat", "~ringgate:*", "+pexpireat"),
        ("elsewhere", "-@admin", "~other:*", "~ringgate:*"),
    ] {
        let _: () = server.ask(&format!("ACL SETUSER {user} on >password +@all {rule} {keys}"));
        let login = || {
            RedisStore::builder(&server.url())
                .username(user)
                .password("password")
        };
        let error = reason(login()).await;
        assert!(
            error.contains("PEXPIREAT") && error.contains("+pexpireat"),
            "{error}"
        );
        // Servers spell their part of the message differently.
        let has_reason = error.to_lowercase().contains("no permissions");
        assert!(has_reason && error.contains("ringgate:*"), "{error}");
        let store = login().build().expect("a store");
        let store = alloc::sync::Arc::new(store);
        for algorithm in ["log", "cells", "gcra"] {
            let limiter = SharedLimiter::builder(algorithm, "2/60s".parse().expect("a quota"));
            let limiter = match algorithm {
                "log" => limiter.log(),
                "gcra" => limiter.gcra(2),
                _ => limiter,
            };
            let limiter = limiter.on_error(OnError::Deny).build(store.clone());
            let denied = limiter
                .expect("a limiter")
                .check("key")
                .await
                .expect_err("no connection");
            assert_eq!(denied.decided_by(), DecidedBy::Fallback);
        }
        assert_eq!(server.ask::<u64>("DBSIZE"), 0, "{user}");
        let _: () = server.ask(&format!("ACL SETUSER {user} {restored}"));
        decides(login()).await;
        let _: () = server.ask("FLUSHALL");
    }
}
