//! Faults of servers and networks, while callers continue. No call hangs, nothing panics, and no window exceeds the
//! documented bound.

use alloc::sync::Arc;
use core::time::Duration;

use ringgate::redis::{RedisStore, RedisStoreBuilder};
use ringgate::shared::supervision::{BreakerSettings, BreakerState};
use ringgate::shared::{OnError, SharedLimiter, StoreErrorKind};

use crate::load::{Call, Load, call, most_by_calls, most_by_stamps};
use crate::proxy::{Proxy, Route};
use crate::rules::{Request, by_user, shared};
use crate::server::{Server, ask, patient, ready, repeated, until, without_breaker};

const WINDOW: Duration = Duration::from_millis(500);
const LIMIT: usize = 40;

fn limiter(store: Arc<RedisStore>, log: bool) -> Arc<SharedLimiter> {
    let builder = SharedLimiter::builder("faults", "40/500ms".parse().expect("a quota"));
    let builder = builder.on_error(OnError::Deny);
    let builder = if log { builder.log() } else { builder };
    Arc::new(builder.build(store).expect("a limiter"))
}

/// With the default timeouts.
fn store(url: &str) -> RedisStoreBuilder {
    RedisStore::builder(url)
}

/// With long timeouts, where time does not matter.
fn calm(url: &str) -> RedisStoreBuilder {
    patient(store(url))
}

/// Waits until the server decides calls again.
pub(crate) async fn comes_back(limiter: &SharedLimiter) {
    repeated("the server decides", async || call(limiter).await.at).await;
}

fn errors(calls: &[Call], kind: StoreErrorKind) -> usize {
    calls.iter().filter(|call| call.error == Some(kind)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_are_flushed() {
    let Some(server) = Server::start() else { return };
    for log in [true, false] {
        let store = server.store().await;
        let limiter = limiter(store.clone(), log);
        let load = Load::new(8, &limiter);
        for _ in 0..50 {
            let calls = store.health().answered;
            let _: () = server.ask("SCRIPT FLUSH");
            until("calls go on", || store.health().answered > calls + 10).await;
        }
        let calls = load.end().await;
        assert!(
            calls.iter().all(|call| call.error.is_none()),
            "the failure is not noticed"
        );
        assert!(most_by_stamps(&calls, WINDOW) <= LIMIT as u64);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_killed_and_comes_back_empty() {
    let Some(mut server) = Server::start() else { return };
    let store = ready(store(&server.url())).await;
    let limiter = limiter(store.clone(), true);
    let load = Load::new(8, &limiter);
    for _ in 0..3 {
        comes_back(&limiter).await;
        server.kill();
        until("the loss is noticed", || !store.health().connected).await;
        let unsent = store.health().unsent;
        until("calls fail at once", || store.health().unsent > unsent + 10).await;
        server.restart();
    }
    comes_back(&limiter).await;
    let calls = load.end().await;
    assert!(errors(&calls, StoreErrorKind::Down) > 0);
    // The server lost its state up to three times. In each run in between, the limit holds.
    assert!(most_by_calls(&calls, WINDOW) <= 4 * LIMIT);
    assert!(store.health().connections >= 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_stopped_for_five_seconds() {
    let Some(server) = Server::start() else { return };
    let store = ready(store(&server.url())).await;
    let limiter = limiter(store.clone(), false);
    let load = Load::new(8, &limiter);
    comes_back(&limiter).await;
    server.signal("-STOP");
    until("the loss is noticed", || !store.health().connected).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let health = store.health();
    assert!(!health.connected, "half a connection is none: {health:?}");
    assert!(health.in_flight <= 9);
    server.signal("-CONT");
    comes_back(&limiter).await;
    let calls = load.end().await;
    assert!(
        errors(&calls, StoreErrorKind::TimedOut) >= 3,
        "as many as it takes"
    );
    assert!(errors(&calls, StoreErrorKind::Down) > 100, "and then none waits");
    assert!(most_by_stamps(&calls, WINDOW) <= LIMIT as u64);
    assert!(most_by_calls(&calls, WINDOW) <= LIMIT);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_replica() {
    let Some(server) = Server::start() else { return };
    let store = ready(calm(&server.url())).await;
    let rules = shared(false, "5/h", &by_user(), &["10/h"])
        .build(store.clone())
        .expect("rules");
    let request = Request::of("alice", 1);
    rules.check(&request).await.expect("room");
    // A replica without a primary still serves stale data.
    let _: () = server.ask("REPLICAOF 127.0.0.1 1");
    let mut refused = 0;
    for _ in 0..50 {
        let error = rules.check(&request).await.expect_err("a replica does not write");
        refused += u32::from(error.error().expect("an error").kind() == StoreErrorKind::Refused);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(refused >= 3, "it says so, until it is left alone: {refused}");
    let _: () = server.ask(concat!("REPLICAOF NO", " ONE"));
    until("it is asked again", || {
        store.health().breaker != BreakerState::Open
    })
    .await;
    let passed = repeated("it writes", async || rules.check(&request).await.ok()).await;
    // Charged twice in total, and not by the calls in between.
    assert_eq!(
        passed.statuses().map(|look| look.remaining).collect::<Vec<_>>(),
        [3, 8]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn out_of_memory() {
    let Some(server) = Server::start() else { return };
    for log in [false, true] {
        // Another breaker, and the same counts.
        let store = ready(without_breaker(calm(&server.url()), Duration::from_millis(60))).await;
        let rules = shared(log, "5/h", &by_user(), &["10/h", "20/d"])
            .build(store.clone())
            .expect("rules");
        let request = Request::of("alice", 1);
        rules.check(&request).await.expect("room");
        let _: () = server.ask("CONFIG SET maxmemory 1");
        for _ in 0..50 {
            let refused = rules.check(&request).await.expect_err("no memory");
            assert_eq!(refused.error().expect("an error").kind(), StoreErrorKind::Refused);
        }
        assert!(store.health().connected, "another connection would not help");
        assert_eq!(store.health().connections, 1);
        let _: () = server.ask("CONFIG SET maxmemory 0");
        let passed = rules.check(&request).await.expect("room");
        assert_eq!(
            passed.statuses().map(|look| look.remaining).collect::<Vec<_>>(),
            [3, 8, 18]
        );
    }
}

/// The connection is cut after half of a reply. The call was executed once, and returns an error.
#[tokio::test(flavor = "multi_thread")]
async fn the_connection_is_cut_within_a_reply() {
    let Some(server) = Server::start() else { return };
    let proxy = Proxy::before(server.port()).await;
    let builder = || without_breaker(calm(&proxy.url()), Duration::from_millis(5));
    let store = ready(builder()).await;
    let limiter = SharedLimiter::builder("cut", "1000/h".parse().expect("a quota"))
        .log()
        .on_error(OnError::Deny)
        .build(store.clone())
        .expect("a limiter");
    let (mut sent, mut passed) = (0, 0);
    for _ in 0..20 {
        until("there is a connection", || store.health().connected).await;
        passed += u64::from(limiter.check("key").await.is_ok());
        sent += 1;
        let cut = proxy.cut();
        proxy.go(Route::CutReplies);
        let refused = limiter.check("key").await.expect_err("half an answer");
        sent += 1;
        assert_eq!(
            refused.error().expect("an error").kind(),
            StoreErrorKind::Disconnected
        );
        assert!(proxy.cut() > cut);
        proxy.go(Route::Pass);
    }
    assert_eq!(passed, 20);
    until("there is a connection", || store.health().connected).await;
    let look = limiter.peek("key").await.expect("an answer");
    assert_eq!(look[0].limit - look[0].remaining, sent, "each is executed once");
}

/// The store notices the loss of an idle connection, and its return, before a request needs the connection.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_is_lost() {
    let Some(mut server) = Server::start() else { return };
    let proxy = Proxy::before(server.port()).await;
    let builder = store(&proxy.url());
    let store = ready(builder.supervision(|settings| settings.heartbeat = Duration::from_millis(20))).await;
    let connected = async |is: bool| until("a heartbeat", || store.health().connected == is).await;
    proxy.go(Route::Swallow);
    connected(false).await;
    proxy.go(Route::Pass);
    connected(true).await;
    proxy.end_all();
    connected(false).await;
    connected(true).await;
    server.kill();
    connected(false).await;
    server.restart();
    connected(true).await;
    assert_eq!(store.health().calls, 0);
}

/// A script of another client does not end.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_busy() {
    let Some(server) = Server::with(&["--busy-reply-threshold", "20"]) else {
        return;
    };
    let store = ready(calm(&server.url())).await;
    let limiter = limiter(store.clone(), false);
    comes_back(&limiter).await;
    let mut other = server.client();
    let endless = std::thread::spawn(move || {
        let script = redis::Script::new("while true do end");
        script.invoke::<()>(&mut other)
    });
    let refused = async || (call(&limiter).await.error == Some(StoreErrorKind::Refused)).then_some(());
    repeated("it refuses calls", refused).await;
    let _: () = server.ask("SCRIPT KILL");
    assert!(endless.join().expect("no panic").is_err());
    comes_back(&limiter).await;
}

/// The server restarts with its data, and replies that it is loading until it has read it.
#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_loading() {
    let Some(mut server) = Server::start() else { return };
    let store = ready(calm(&server.url())).await;
    let limiter = SharedLimiter::builder("kept", "10/h".parse().expect("a quota"))
        .on_error(OnError::Deny)
        .build(store.clone())
        .expect("a limiter");
    for _ in 0..4 {
        limiter.check("key").await.expect("room");
    }
    for number in 0..200 {
        let _: () = server.ask(&format!("SET {number} {}", "x".repeat(4096)));
    }
    let _: () = server.ask("SAVE");
    server.restart_slowly(&[
        "--key-load-delay",
        "10000",
        "--loading-process-events-interval-bytes",
        "1024",
    ]);
    let mut refused = 0;
    let passed = repeated("it has read its data", async || {
        let answer = limiter.check("key").await;
        let error = answer
            .as_ref()
            .err()
            .map(|denied| denied.error().expect("an error"));
        refused += u32::from(error.is_some_and(|error| error.kind() == StoreErrorKind::Refused));
        answer.ok()
    })
    .await;
    assert!(refused > 0, "it says that it is loading: {:?}", store.health());
    assert_eq!(
        passed.statuses().next().expect("a rule").remaining,
        5,
        "what was spent is kept"
    );
}

/// A store that is dropped ends its connection, and the task that opens connections.
#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_store_leaves_nothing() {
    let Some(server) = Server::start() else { return };
    let mut client = server.client();
    let mut others = || ask::<String>(&mut client, "CLIENT LIST").lines().count() - 1;
    let store = ready(calm(&server.url())).await;
    let limiter = limiter(store.clone(), false);
    comes_back(&limiter).await;
    assert_eq!(others(), 1);
    drop(limiter);
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    drop(store);
    until("the connection ends", || others() == 0).await;
    until("its tasks end", || {
        tokio::runtime::Handle::current().metrics().num_alive_tasks() + 2 <= tasks
    })
    .await;
}

/// The rest of the breaker is longer than the test.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_connection_ends_the_rest_of_the_breaker() {
    let Some(server) = Server::start() else { return };
    let minute = Duration::from_secs(60);
    let builder = store(&server.url()).supervision(|settings| {
        settings.breaker = BreakerSettings {
            percent: 1,
            calls: 1,
            over: minute,
            rest: minute,
        };
        settings.heartbeat = Duration::from_millis(10);
    });
    let store = ready(builder).await;
    let limiter = limiter(store.clone(), false);
    server.signal("-STOP");
    call(&limiter).await;
    assert_eq!(store.health().breaker, BreakerState::Open);
    until("the loss is noticed", || !store.health().connected).await;
    server.signal("-CONT");
    comes_back(&limiter).await;
    assert!(store.health().connections >= 2);
}

/// Another program keeps other data under the name. That is an error of this key only. It opens no breaker and ends
/// no connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_taken() {
    let Some(server) = Server::start() else { return };
    let store = ready(calm(&server.url())).await;
    let limiter = limiter(store.clone(), false);
    limiter.check("mine").await.expect("room");
    let name = server.ask::<Vec<String>>("KEYS *").remove(0);
    for other in ["SET NAME other", "HSET NAME field other"] {
        let _: () = server.ask(&format!("DEL {name}"));
        let _: () = server.ask(&other.replace("NAME", &name));
        for _ in 0..50 {
            let refused = limiter.check("mine").await.expect_err("taken");
            assert_eq!(
                refused.error().expect("an error").kind(),
                StoreErrorKind::UnexpectedReply
            );
        }
        limiter.check("yours").await.expect("room");
    }
    assert_eq!(store.health().connections, 1);
    limiter.reset("mine").await.expect("an answer");
    limiter.check("mine").await.expect("room");
}
