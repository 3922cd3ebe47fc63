//! Errors of the builder, and their messages.

use core::time::Duration;

use ringgate::redis::RedisStore;
use ringgate::shared::StoreErrorKind;
use ringgate::shared::supervision::SupervisorSettings;

/// An address without a server.
const NOWHERE: &str = "redis://127.0.0.1:1";
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

type Change = fn(&mut SupervisorSettings);

#[tokio::test]
async fn a_wrong_setting_is_named() {
    let builder = || RedisStore::builder(NOWHERE);
    let prefix = builder().prefix("a{b}").build().expect_err("braces");
    assert_eq!(prefix.field, "prefix");
    let wrong: [(Change, &str); 13] = [
        (|all| all.connect_timeout = Duration::ZERO, "connect_timeout"),
        (|all| all.response_timeout = MINUTE + SECOND, "response_timeout"),
        (|all| all.call_timeout = Duration::from_millis(99), "call_timeout"),
        (|all| all.reconnect_after = Duration::ZERO, "reconnect_after"),
        (|all| all.heartbeat = Duration::ZERO, "heartbeat"),
        (|all| all.failures = 0, "failures"),
        (|all| all.max_in_flight = 0, "max_in_flight"),
        (|all| all.max_in_flight = 1_000_001, "max_in_flight"),
        (|all| all.breaker.percent = 0, "breaker.percent"),
        (|all| all.breaker.percent = 101, "breaker.percent"),
        (|all| all.breaker.calls = 0, "breaker.calls"),
        (|all| all.breaker.over = MINUTE + SECOND, "breaker.over"),
        (|all| all.breaker.rest = Duration::ZERO, "breaker.rest"),
    ];
    for (change, field) in wrong {
        let built = builder().supervision(change).build();
        assert_eq!(built.expect_err(field).field, field);
    }
    for url in [
        "",
        "redis",
        "http://127.0.0.1:1",
        "rediss://:secret@127.0.0.1:1/#insecure",
    ] {
        let error = RedisStore::builder(url).build().expect_err(url);
        assert_eq!(error.field, "url");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[test]
fn a_store_needs_a_runtime() {
    assert_eq!(
        RedisStore::builder(NOWHERE).build().expect_err("none").field,
        "runtime"
    );
}

#[tokio::test]
async fn debug_output_contains_no_password() {
    let builder = RedisStore::builder("redis://user:secret@127.0.0.1:1/0");
    let shown = format!("{builder:?}");
    let store = builder.build().expect("a store");
    let error = store
        .ready(Duration::from_millis(50))
        .await
        .expect_err("no server");
    assert_eq!(error.kind(), StoreErrorKind::Down);
    let shown = format!("{shown} {store:?} {error} {error:?}");
    assert!(!shown.contains("secret"), "{shown}");
}
