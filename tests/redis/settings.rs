//! Errors of the builder, and their messages.

use core::time::Duration;

use ringgate::redis::RedisStore;
use ringgate::shared::StoreErrorKind;

/// An address without a server.
const NOWHERE: &str = "redis://127.0.0.1:1";

#[tokio::test]
async fn a_wrong_setting_is_named() {
    let second = Duration::from_secs(1);
    let builder = || RedisStore::builder(NOWHERE);
    let wrong = [
        (builder().prefix("a{b}"), "prefix"),
        (builder().connect_timeout(Duration::ZERO), "connect_timeout"),
        (builder().response_timeout(61 * second), "response_timeout"),
        (builder().call_timeout(Duration::from_millis(99)), "call_timeout"),
        (builder().reconnect_after(Duration::ZERO), "reconnect_after"),
        (builder().heartbeat(Duration::ZERO), "heartbeat"),
        (builder().failures(0), "failures"),
        (builder().max_in_flight(0), "max_in_flight"),
        (builder().max_in_flight(1_000_001), "max_in_flight"),
        (builder().breaker(0, 20, second, second), "breaker.percent"),
        (builder().breaker(101, 20, second, second), "breaker.percent"),
        (builder().breaker(50, 0, second, second), "breaker.calls"),
        (builder().breaker(50, 20, 61 * second, second), "breaker.over"),
        (builder().breaker(50, 20, second, Duration::ZERO), "breaker.rest"),
    ];
    for (builder, field) in wrong {
        assert_eq!(builder.build().expect_err(field).field, field);
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
