//! The end of a lease's term, and the times at which no lease is granted.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::time::{Instant, SystemTime};

use ringgate::redis::RedisStore;
use ringgate::shared::{DecidedBy, Mode, OnError, SharedLimiter, SharedRules};
use ringgate::{Rule, Settled};

use crate::one_node::warm;
use crate::proxy::{LATE, Proxy, Route};
use crate::rules::{Request, by_address, by_user, quota};
use crate::server::{PATIENCE, Server, patient, ready, repeated, until};

/// A budget may be spent for a long time. When the mode changes from `Sync` to `Lease`, its term becomes that of a
/// lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_term_ends_with_its_key() {
    let Some(server) = Server::start() else { return };
    let store = ready(RedisStore::builder(&server.url())).await;
    let term = Duration::from_millis(200);
    let (period, pending) = (Duration::from_secs(5), 50);
    let rules = SharedRules::builder()
        .rule(
            Rule::new("budget", quota("1000/200ms"))
                .by(&by_address())
                .mode(Mode::Sync { period, pending })
                .cost(&ringgate::rules::Cost::new("of one", |asked: &Request| {
                    u64::from(asked.user == "budget")
                })),
        )
        .rule(
            Rule::new("hold", quota("1000/200ms"))
                .by(&by_user())
                .mode(Mode::Lease { permits: 500 })
                .on_error(OnError::Deny)
                .cost(&ringgate::rules::Cost::new("of the other", |asked: &Request| {
                    u64::from(asked.user != "budget")
                })),
        )
        .term(term)
        .period(Duration::from_millis(50))
        .leases(1)
        .build(store.clone())
        .expect("rules");
    // All leases are of the mode `Sync`, and all their permits are charged.
    for address in 0..8 {
        rules.check(&Request::of("budget", address)).await.expect("room");
    }
    rules.flush().await.expect("the server answers");
    // Requests continue until the server is stopped, so that there are always unspent permits.
    let (asks, here) = (AtomicBool::new(true), AtomicU64::new(0));
    let asking = async {
        while asks.load(Ordering::Relaxed) {
            let passed = rules.check(&Request::of("hold", 0)).await;
            let is_here = passed.is_ok_and(|passed| passed.decided_by() == DecidedBy::Local);
            here.fetch_add(u64::from(is_here), Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let stopping = async {
        until("a lease is spent", || here.load(Ordering::Relaxed) > 500).await;
        server.signal("-STOP");
        asks.store(false, Ordering::Relaxed);
    };
    tokio::join!(asking, stopping);
    until("the loss is noticed", || !store.health().connected).await;
    // The last grant was sent before.
    tokio::time::sleep(term).await;
    let stats = rules.lease_stats();
    let late = rules.check_now(&Request::of("hold", 0));
    server.signal("-CONT");
    println!("when the term was over: {stats:?}");
    assert!(!matches!(late, Some(Ok(_))), "the term is over: {late:?}");
}

/// A term begins when its report is sent, and not with the answer, which may be late.
#[tokio::test(flavor = "multi_thread")]
async fn a_term_begins_with_its_request() {
    let Some(server) = Server::start() else { return };
    let proxy = Proxy::before(server.port()).await;
    let store = ready(patient(RedisStore::builder(&proxy.url()))).await;
    let term = Duration::from_millis(800);
    let limiter = SharedLimiter::builder("late", quota("100000/100ms"))
        .lease(2000)
        .term(term)
        .period(term / 4)
        .on_error(OnError::Deny)
        .build(store)
        .expect("a limiter");
    // Requests continue until no data arrives, so that there are always unspent permits.
    let began = Instant::now();
    let mut here = 0;
    while here < 900 {
        if here == 100 {
            proxy.go(Route::DelayReplies);
        }
        here += u32::from(matches!(limiter.check_now("key"), Some(Ok(_))));
        if here < 100 {
            here += u32::from(
                limiter
                    .check("key")
                    .await
                    .is_ok_and(|it| it.decided_by() == DecidedBy::Local),
            );
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(
            began.elapsed() < PATIENCE,
            "no lease is granted: {:?}",
            limiter.rules().lease_stats()
        );
    }
    proxy.go(Route::Swallow);
    // Earlier reports may be answered, but later ones are not.
    let cut = Instant::now();
    while cut.elapsed() < term {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    println!("when the term was over: {:?}", limiter.rules().lease_stats());
    while cut.elapsed() < term + 2 * LATE {
        let late = limiter.check_now("key");
        assert!(
            !matches!(late, Some(Ok(_))),
            "{:?} later: {late:?}",
            cut.elapsed()
        );
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// After a restart without state, the server grants no lease before all forgotten permits have left every window.
#[tokio::test(flavor = "multi_thread")]
async fn no_lease_is_granted_soon_after_a_restart() {
    let Some(mut server) = Server::start() else { return };
    let (term, window) = (Duration::from_millis(100), Duration::from_millis(900));
    let store = server.store().await;
    let limiter = SharedLimiter::builder("restart", quota("1000000/900ms"))
        .lease(1000)
        .term(term)
        .period(Duration::from_millis(5))
        .on_error(OnError::Deny)
        .build(store.clone())
        .expect("a limiter");
    for part in [900, 300] {
        warm(&limiter, "key").await;
        // Servers know their start time in whole seconds.
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .expect("after 1970");
        let wait = (1000 + part - since.subsec_millis()) % 1000;
        tokio::time::sleep(Duration::from_millis(wait.into())).await;
        server.kill();
        let began = Instant::now();
        server.restart();
        // Permits of earlier leases may be spent for this long.
        tokio::time::sleep(term).await;
        warm(&limiter, "key").await;
        let waited = began.elapsed();
        println!("a lease is granted {waited:?} after a restart");
        assert!(waited >= term + window, "{waited:?}");
    }
}

/// After a failover, too, no lease is granted early: the replica has run for long, and may not have received all
/// writes.
#[tokio::test(flavor = "multi_thread")]
async fn no_lease_is_granted_soon_after_a_failover() {
    let (Some(mut primary), Some(replica)) = (Server::start(), Server::start()) else {
        return;
    };
    let (term, window) = (Duration::from_millis(100), Duration::from_millis(900));
    let at = async |server: &Server| {
        SharedLimiter::builder("failover", quota("1000000/900ms"))
            .lease(1000)
            .term(term)
            .period(Duration::from_millis(5))
            .on_error(OnError::Deny)
            .build(server.store().await)
            .expect("a limiter")
    };
    let _: () = replica.ask(&format!("REPLICAOF 127.0.0.1 {}", primary.port()));
    let limiter = at(&primary).await;
    warm(&limiter, "key").await;
    // The replica has received the note of the era, as all earlier writes.
    until("the note has come over", || {
        replica.ask::<Vec<String>>("KEYS *:era").len() == 1
    })
    .await;
    primary.kill();
    let began = Instant::now();
    let _: () = replica.ask(concat!("REPLICAOF NO", " ONE"));
    warm(&at(&replica).await, "key").await;
    let waited = began.elapsed();
    println!("a lease is granted {waited:?} after a failover");
    assert!(waited >= term + window, "{waited:?}");
}

/// A refund returns only unreported permits, and none that other requests have spent since.
#[tokio::test(flavor = "multi_thread")]
async fn charged_permits_are_not_returned() {
    let Some(server) = Server::start() else { return };
    // A period lasts longer than a few calls on a busy machine. Otherwise a period demands too little for a lease.
    let period = Duration::from_millis(250);
    let sync = Mode::Sync { period, pending: 100 };
    for (mode, number) in [(Mode::Lease { permits: 100 }, 0), (sync, 1)] {
        let limiter = SharedLimiter::builder(format!("refunds{number}"), quota("1000/1s"))
            .mode(mode)
            .term(Duration::from_secs(1))
            .period(period)
            .on_error(OnError::Deny)
            .build(server.store().await)
            .expect("a limiter");
        let began = Instant::now();
        let (mut exact, mut forfeited) = (0, 0);
        while exact == 0 || forfeited < 3 {
            assert!(began.elapsed() < PATIENCE, "{:?}", limiter.rules().lease_stats());
            let Ok(passed) = limiter.check("key").await else {
                continue;
            };
            if passed.decided_by() != DecidedBy::Local {
                continue;
            }
            if exact == 0 {
                exact += u32::from(limiter.rules().refund(passed).await == Ok(Settled::Exact));
                continue;
            }
            until("it is charged", || limiter.rules().lease_stats().uncharged == 0).await;
            // Another request spends as many permits.
            if !matches!(limiter.check_now("key"), Some(Ok(_))) {
                continue;
            }
            assert_eq!(limiter.rules().refund(passed).await, Ok(Settled::Forfeited(1)));
            forfeited += 1;
        }
    }
}

fn sync() -> Mode {
    let period = Duration::from_millis(25);
    Mode::Sync { period, pending: 100 }
}

/// Ends, resets and requests run concurrently, while a server stops. Each call ends, and at the end nothing is
/// leased.
#[tokio::test(flavor = "multi_thread")]
async fn ends_do_not_wait_for_one_another() {
    let Some(server) = Server::start() else { return };
    for mode in [Mode::Lease { permits: 100 }, sync()] {
        let limiter = SharedLimiter::builder("ends", quota("1000000/100ms"))
            .mode(mode)
            .term(Duration::from_millis(100))
            .period(Duration::from_millis(5))
            .on_error(OnError::Deny)
            .build(ready(RedisStore::builder(&server.url())).await)
            .expect("a limiter");
        let stop = AtomicBool::new(false);
        let (mut failed, mut ended, mut admitted) = (0, 0, 0);
        let asks = async {
            while !stop.load(Ordering::Relaxed) {
                let passed = tokio::time::timeout(PATIENCE, limiter.check("key")).await;
                admitted += u64::from(passed.expect("no call hangs").is_ok());
                tokio::task::yield_now().await;
            }
        };
        let flushes = async {
            while !stop.load(Ordering::Relaxed) {
                let flushed = tokio::time::timeout(PATIENCE, limiter.rules().flush()).await;
                ended += 1;
                failed += u64::from(flushed.expect("no flush hangs").is_err());
                tokio::task::yield_now().await;
            }
        };
        let resets = async {
            while !stop.load(Ordering::Relaxed) {
                let reset = tokio::time::timeout(PATIENCE, limiter.reset("key")).await;
                let _ = reset.expect("no reset hangs");
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let stops = async {
            tokio::time::sleep(Duration::from_millis(600)).await;
            server.signal("-STOP");
            tokio::time::sleep(Duration::from_millis(500)).await;
            server.signal("-CONT");
            tokio::time::sleep(Duration::from_millis(400)).await;
            stop.store(true, Ordering::Relaxed);
        };
        tokio::join!(asks, flushes, resets, stops);
        println!("{mode:?}: {admitted} admitted beside {ended} ends, of which {failed} failed");
        assert!(admitted > 0 && ended > 0);
        repeated("a flush succeeds", async || limiter.rules().flush().await.ok()).await;
        assert_eq!(
            (
                limiter.rules().lease_stats().uncharged,
                limiter.rules().lease_stats().held
            ),
            (0, 0)
        );
    }
}
