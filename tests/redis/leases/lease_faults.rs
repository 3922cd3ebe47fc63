//! Faults of servers and networks while nodes decide by themselves. Decisions continue, no call hangs, nothing
//! panics, and no window exceeds the documented bound.

use alloc::sync::Arc;
use core::time::Duration;
use std::time::Instant;

use ringgate::redis::RedisStore;
use ringgate::shared::{
    CounterRequest, CounterStore, Counting, DecidedBy, LeaseRequest, OnError, SharedLimiter,
    SharedLimiterBuilder, StoreErrorKind,
};

use crate::dropped::age;
use crate::load::{Call, Load, end_all, most_by_calls};
use crate::proxy::{Proxy, Route};
use crate::server::{PATIENCE, Server, patient, ready, until, without_breaker};

const WINDOW: Duration = Duration::from_millis(500);
const LIMIT: usize = 400;
const NODES: usize = 3;
const PENDING: usize = 30;

fn builder(sync: bool, quota: &str) -> SharedLimiterBuilder {
    let builder = SharedLimiter::builder("faults", quota.parse().expect("a quota"));
    let builder = builder
        .log()
        .on_error(OnError::Deny)
        .term(Duration::from_millis(300));
    let period = Duration::from_millis(10);
    match sync {
        true => builder.sync(period, PENDING as u64),
        false => builder.lease(LIMIT as u64 / 2).period(period),
    }
}

/// Nodes under load.
struct Crew {
    sync: bool,
    stores: Vec<Arc<RedisStore>>,
    loads: Vec<Load>,
}

impl Crew {
    /// With the default timeouts, each node with a separate connection, and leases that decide.
    async fn new(sync: bool, urls: &[String]) -> Self {
        let mut stores = Vec::new();
        for url in urls {
            stores.push(ready(RedisStore::builder(url)).await);
        }
        Self::over(sync, stores).await
    }

    async fn over(sync: bool, stores: Vec<Arc<RedisStore>>) -> Self {
        let limiters = stores
            .iter()
            .map(|store| builder(sync, "400/500ms").build(store.clone()));
        let limiters: Vec<_> = limiters
            .map(|limiter| Arc::new(limiter.expect("a limiter")))
            .collect();
        let loads = limiters.iter().map(|limiter| Load::new(2, limiter)).collect();
        let crew = Self { sync, stores, loads };
        crew.decides().await;
        crew
    }

    /// Waits until each node has admitted a request by itself.
    async fn decides(&self) {
        for load in &self.loads {
            let before = load.here();
            until("nodes decide", || load.here() > before + 10).await;
        }
    }

    /// Ends the load and checks it, including the calls between `began` and `ended`.
    async fn judge(self, what: &str, (began, ended): (Instant, Instant), losses: usize) {
        self.decides().await;
        let calls = end_all(self.loads).await;
        let beyond = if self.sync { (NODES - 1) * PENDING } else { 0 };
        let bound = (LIMIT + beyond) * (1 + losses);
        let most = most_by_calls(&calls, WINDOW);
        let during = |call: &&Call| call.ended >= began && call.began <= ended;
        let admitted = |calls: &[&Call], by| calls.iter().filter(|it| it.admitted && it.by == by).count();
        let (with, without): (Vec<&Call>, Vec<&Call>) = calls.iter().partition(during);
        let mode = if self.sync { "sync" } else { "lease" };
        println!(
            "{what} ({mode}): worst window {most}, of {bound} allowed; in {:?} of it {} calls, admitted {} by nodes and {} by \
             the server, decisions at once p99.9 {:?} ({:?} without), the longest call {:?}",
            ended - began,
            with.len(),
            admitted(&with, DecidedBy::Local),
            admitted(&with, DecidedBy::Store),
            slow(&with),
            slow(&without),
            with.iter()
                .map(|call| call.ended - call.began)
                .max()
                .unwrap_or_default(),
        );
        assert!(most <= bound, "{what} ({mode}): {most}");
        assert!(!with.is_empty(), "decisions keep coming");
    }
}

/// The duration that 99.9 % of the immediate decisions did not exceed.
fn slow(calls: &[&Call]) -> Duration {
    let at_once = calls.iter().filter(|call| call.at_once);
    let mut took: Vec<Duration> = at_once.map(|call| call.ended - call.began).collect();
    took.sort_unstable();
    took.get(took.len() * 999 / 1000).copied().unwrap_or_default()
}

/// In either mode.
async fn both(what: &str, losses: usize, fault: impl AsyncFn(&mut Server, &Crew)) {
    let one = async |sync| {
        let Some(mut server) = Server::start() else { return };
        let crew = Crew::new(sync, &vec![server.url(); NODES]).await;
        tokio::time::sleep(WINDOW).await;
        let began = Instant::now();
        fault(&mut server, &crew).await;
        let ended = Instant::now();
        tokio::time::sleep(WINDOW).await;
        crew.judge(what, (began, ended), losses).await;
    };
    tokio::join!(one(false), one(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_killed_and_comes_back_empty() {
    both("killed, and back empty", 1, async |server, crew| {
        server.kill();
        server.restart();
        for store in &crew.stores {
            until("there is a connection", || store.health().connected).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_stopped_for_five_seconds() {
    both("stopped for five seconds", 0, async |server, _| {
        server.signal("-STOP");
        tokio::time::sleep(Duration::from_secs(5)).await;
        server.signal("-CONT");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_paused() {
    both("clients are paused", 0, async |server, crew| {
        for way in ["WRITE", "ALL"] {
            let _: () = server.ask(&format!("CLIENT PAUSE 600 {way}"));
            tokio::time::sleep(Duration::from_millis(600)).await;
            crew.decides().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_are_flushed() {
    both("scripts are flushed", 0, async |server, crew| {
        for _ in 0..4 {
            let _: () = server.ask("SCRIPT FLUSH");
            crew.decides().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_replica() {
    both("a read-only replica", 0, async |server, _| {
        let _: () = server.ask("REPLICAOF 127.0.0.1 1");
        tokio::time::sleep(Duration::from_millis(900)).await;
        let _: () = server.ask(concat!("REPLICAOF NO", " ONE"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn out_of_memory() {
    both("out of memory", 0, async |server, _| {
        let _: () = server.ask("CONFIG SET maxmemory 1");
        tokio::time::sleep(Duration::from_millis(900)).await;
        let _: () = server.ask("CONFIG SET maxmemory 0");
    })
    .await;
}

/// Each connection to the server in turn is cut within replies, or discards all data.
#[tokio::test(flavor = "multi_thread")]
async fn connections_are_cut() {
    let one = async |sync| {
        let Some(server) = Server::start() else { return };
        let (mut proxies, mut urls) = (Vec::new(), Vec::new());
        for _ in 0..NODES {
            let proxy = Proxy::before(server.port()).await;
            urls.push(proxy.url());
            proxies.push(proxy);
        }
        let crew = Crew::new(sync, &urls).await;
        let began = Instant::now();
        for round in 0..4 {
            for proxy in &proxies {
                proxy.go(if round % 2 == 0 {
                    Route::CutReplies
                } else {
                    Route::Swallow
                });
                tokio::time::sleep(Duration::from_millis(50)).await;
                proxy.go(Route::Pass);
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let ended = Instant::now();
        crew.judge("connections are cut", (began, ended), 0).await;
    };
    tokio::join!(one(false), one(true));
}

/// A report that was executed and not answered is sent again, and charged once. The server has counted exactly the
/// admitted permits.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_request_counts_once() {
    let one = async |sync| {
        let Some(server) = Server::start() else { return };
        // Until the server has run long enough to grant leases.
        tokio::time::sleep(Duration::from_millis(3400)).await;
        let proxy = Proxy::before(server.port()).await;
        let store = patient(RedisStore::builder(&proxy.url()));
        let store = ready(without_breaker(store, Duration::from_millis(5))).await;
        let limiter = builder(sync, "100000/2s")
            .build(store.clone())
            .expect("a limiter");
        let (mut admitted, mut here, began) = (0, 0, Instant::now());
        while here < 10 {
            let passed = limiter.check("key").await.expect("room");
            admitted += 1;
            here += u64::from(passed.decided_by() == DecidedBy::Local);
            assert!(
                began.elapsed() < PATIENCE,
                "it never decides: {:?}",
                limiter.rules().lease_stats()
            );
        }
        for _ in 0..10 {
            let cut = proxy.cut();
            proxy.go(Route::CutReplies);
            until("a reply is cut", || {
                admitted += u64::from(matches!(limiter.check_now("key"), Some(Ok(_))));
                proxy.cut() > cut
            })
            .await;
            proxy.go(Route::Pass);
            let before = admitted;
            until("it goes on", || {
                admitted += u64::from(matches!(limiter.check_now("key"), Some(Ok(_))));
                admitted > before + 5
            })
            .await;
        }
        until("there is a connection", || store.health().connected).await;
        limiter.rules().flush().await.expect("an answer");
        let charged = crate::watch::counted(&mut server.client(), "*");
        println!("replies were cut ten times: {admitted} admitted, {charged} charged");
        if began.elapsed() < Duration::from_secs(2) {
            assert_eq!(charged, admitted);
        } else {
            println!("not judged: the machine is too busy to do that within a window");
        }
    };
    tokio::join!(one(false), one(true));
}

/// Nodes are disconnected in turn, and decide by themselves when their leases are spent. No window holds more than
/// the bound of the mode and the permits that nodes may admit without the store.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_decide_for_themselves() {
    let one = async |sync, choice, alone: usize| {
        let Some(server) = Server::start() else { return };
        let (mut proxies, mut stores, mut loads) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..NODES {
            let proxy = Proxy::before(server.port()).await;
            let store = RedisStore::builder(&proxy.url());
            let store = ready(without_breaker(store, Duration::from_millis(10))).await;
            let limiter = builder(sync, "120/500ms").on_error(choice);
            let limiter = limiter.nodes(core::num::NonZeroU32::new(3).expect("three"));
            loads.push(Load::new(
                2,
                &Arc::new(limiter.build(store.clone()).expect("a limiter")),
            ));
            proxies.push(proxy);
            stores.push(store);
        }
        for load in &loads {
            until("nodes decide", || load.here() > 10).await;
        }
        for round in 0..2 {
            for (proxy, store) in proxies.iter().zip(&stores) {
                proxy.go(if round == 1 {
                    Route::CutReplies
                } else {
                    Route::Swallow
                });
                until("the loss is noticed", || !store.health().connected).await;
            }
            tokio::time::sleep(WINDOW / 2).await;
            for (proxy, store) in proxies.iter().zip(&stores) {
                proxy.go(Route::Pass);
                until("there is a connection", || store.health().connected).await;
            }
            tokio::time::sleep(WINDOW / 2).await;
        }
        let calls = end_all(loads).await;
        let by = |by| calls.iter().filter(|it| it.admitted && it.by == by).count();
        let (by_nodes, by_leases) = (by(DecidedBy::Fallback), by(DecidedBy::Local));
        let beyond = if sync { (NODES - 1) * PENDING } else { 0 };
        let (most, bound) = (most_by_calls(&calls, WINDOW), 120 + beyond + NODES * alone);
        let mode = if sync { "sync" } else { "lease" };
        println!(
            "cut off, {choice:?} ({mode}): worst window {most}, of {bound} allowed; admitted by leases {by_leases}, \
             without the store {by_nodes}"
        );
        assert!(by_nodes > 0 && by_leases > 0);
        assert!(most <= bound, "{choice:?} ({mode}): {most}");
    };
    tokio::join!(
        one(false, OnError::Share, 40),
        one(true, OnError::Share, 40),
        one(false, OnError::Local, 120),
        one(true, OnError::Local, 120),
    );
}

/// A slot moves to another node and back while callers continue. The leases in it move, too.
#[cfg(feature = "redis-cluster")]
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_moves() {
    use crate::cluster::Cluster;
    use crate::server::patient_calls;

    for sync in [false, true] {
        let Some(cluster) = Cluster::start().await else {
            return;
        };
        let mut stores = Vec::new();
        for _ in 0..NODES {
            stores.push(ready(patient_calls(cluster.builder())).await);
        }
        let crew = Crew::over(sync, stores).await;
        let (mut at, name) = cluster.names().last().expect("a name").clone();
        let slot = cluster.slot(&name);
        let began = Instant::now();
        for _ in 0..2 {
            let to = (at + 1) % 3;
            cluster.move_slot(slot, at, to);
            at = to;
            crew.decides().await;
        }
        crew.judge("a slot moves", (began, Instant::now()), 0).await;
    }
}

/// A key that another program has written fails the lease of its counter, and no other lease of the same call.
#[tokio::test(flavor = "multi_thread")]
async fn foreign_data_fails_only_its_own_lease() {
    let Some(server) = Server::start() else { return };
    age(&server, "foreign");
    let store = ready(patient(RedisStore::builder(&server.url()).prefix("foreign"))).await;
    let leases = store.leases().expect("leases");
    let term = Duration::from_secs(10);
    let mut key = 0;
    for counting in [Counting::Log, Counting::Cells(5), Counting::Gcra(1_000)] {
        // A list in the place of a counter, of its registered permits or of a lease, and fields beside their own data.
        for (ending, words) in [
            ("", "LPUSH NAME x"),
            (":leases", "LPUSH NAME x"),
            (":leases", "HSET NAME other x"),
            (":lease:", "LPUSH NAME x"),
            ("", "HSET NAME other x"),
        ] {
            key += 10;
            let requests: Vec<LeaseRequest> = (key..key + 3)
                .map(|key| CounterRequest::new("rule", key, counting, 1_000, term))
                .map(|counter| LeaseRequest::first(counter, key, 4, term))
                .collect();
            let mut name = store.name_of(&requests[1].counter) + ending;
            if ending == ":lease:" {
                name += &format!("{key:032x}");
            }
            let _: u64 = server.ask(&words.replace("NAME", &name));
            let answers = leases.renew(&requests).await;
            let case = format!("{counting:?} {name}: {answers:?}");
            assert_eq!(answers.len(), 3);
            for own in [&answers[0], &answers[2]] {
                let granted = own.as_ref().ok().and_then(|grant| grant.permits);
                assert!(granted.is_some_and(|permits| permits > 0), "{case}");
            }
            let error = answers[1].as_ref().expect_err(&case);
            assert_eq!(error.kind(), StoreErrorKind::UnexpectedReply, "{case}");
            let counter = store.name_of(&requests[1].counter);
            assert!(error.to_string().contains(&counter), "{case}");
            let last = store.health().last_error.expect("it was noted");
            assert_eq!(last.to_string(), error.to_string());
        }
    }
    // A server without memory fails all of them.
    let _: () = server.ask("CONFIG SET maxmemory 1");
    let requests: Vec<LeaseRequest> = (1_000..1_003)
        .map(|key| CounterRequest::new("rule", key, Counting::Cells(5), 1_000, term))
        .map(|counter| LeaseRequest::first(counter, 7, 4, term))
        .collect();
    for answer in leases.renew(&requests).await {
        let error = answer.expect_err("no memory");
        assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
    }
}
