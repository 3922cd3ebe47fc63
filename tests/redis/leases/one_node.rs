//! The leases of one node: the requests that it decides, the permits that it requests, and the permits that it
//! returns.

use alloc::sync::Arc;
use core::time::Duration;
use std::time::Instant;

use ringgate::Rule;
use ringgate::shared::{
    DecidedBy, LeaseStats, Mode, OnError, Reason, SharedLimiter, SharedLimiterBuilder, SharedRules,
};

use crate::plain::Plain;
use crate::rules::{Request, by_address, by_user, quota};
use crate::server::{PATIENCE, Server, until};

/// With terms so short that a new server grants leases soon.
fn limiter(name: &str, quota: &str) -> SharedLimiterBuilder {
    SharedLimiter::builder(name, quota.parse().expect("a quota"))
        .term(Duration::from_millis(400))
        .period(Duration::from_millis(20))
        .on_error(OnError::Deny)
}

/// Makes requests until leases decide.
async fn warm(limiter: &SharedLimiter, key: &str) {
    let began = Instant::now();
    loop {
        match limiter.check(key).await {
            Ok(passed) if passed.decided_by() == DecidedBy::Local => return,
            Ok(_) => {}
            Err(refused) => panic!("{refused}"),
        }
        assert!(began.elapsed() < PATIENCE, "no lease decides");
    }
}

/// Waits until the leases are in this state.
async fn stands(limiter: &SharedLimiter, what: &str, is: impl Fn(&LeaseStats) -> bool) {
    until(what, || is(&limiter.rules().lease_stats())).await;
}

/// A hot key needs hardly any call. At the end, exactly the admitted permits are charged.
#[tokio::test(flavor = "multi_thread")]
async fn a_hot_key_is_decided_on_the_node() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let limiter = limiter("hot", "1000000/s")
        .lease(1000)
        .build(store.clone())
        .expect("a limiter");
    warm(&limiter, "key").await;
    limiter.rules().flush().await.expect("an answer");
    limiter.reset("key").await.expect("an answer");
    warm(&limiter, "key").await;
    let calls = store.health().calls;
    let (mut by_lease, mut by_store) = (1, 0);
    for _ in 0..2000 {
        match limiter.check("key").await.expect("room").decided_by() {
            DecidedBy::Local => by_lease += 1,
            _ => by_store += 1,
        }
    }
    assert!(
        by_lease >= 1000,
        "{by_lease} by the lease, {by_store} by the store"
    );
    assert!(store.health().calls - calls < 1000);
    let stats = limiter.rules().lease_stats();
    assert_eq!((stats.leases, stats.denied), (1, 0), "{stats:?}");
    limiter.rules().flush().await.expect("an answer");
    stands(&limiter, "nothing is held", |it| {
        it.held == 0 && it.uncharged == 0
    })
    .await;
}

/// A node gets a budget before it decides the first request, so the store decides no request.
#[tokio::test(flavor = "multi_thread")]
async fn a_budget_is_spent_to_the_last_permit() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let limiter = limiter("sync", "500/min")
        .sync(Duration::from_millis(20), 100)
        .build(store.clone())
        .expect("a limiter");
    let mut admitted = 0;
    for _ in 0..2000 {
        match limiter.check("key").await {
            Ok(passed) => {
                assert_eq!(passed.decided_by(), DecidedBy::Local);
                assert_eq!(passed.store_time(), None);
                admitted += 1;
            }
            Err(refused) => {
                assert_eq!(refused.decided_by(), DecidedBy::Local);
                assert_eq!(refused.reason(), Reason::Spent);
                let after = refused.retry_after().expect("some time");
                assert!(
                    after > Duration::from_secs(20) && after <= Duration::from_secs(73),
                    "{after:?}"
                );
            }
        }
    }
    assert_eq!(admitted, 500);
    let stats = limiter.rules().lease_stats();
    assert!(stats.denied >= 1000, "{stats:?}");
    assert!(store.health().calls < 500, "refusals do not reach the server");
    stands(&limiter, "all is charged", |it| it.uncharged == 0).await;
    let left = limiter.peek("key").await.expect("an answer");
    assert_eq!(left[0].remaining, 0);
    // More permits than a budget ever has, so the store decides.
    let refused = limiter
        .check_n("other", 501)
        .await
        .expect_err("more than the limit");
    assert_eq!(
        (refused.decided_by(), refused.retry_after()),
        (DecidedBy::Store, None)
    );
    assert_eq!(
        limiter.check_n("other", 300).await.expect("room").decided_by(),
        DecidedBy::Store
    );
}

/// A lease without demand is given back.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_lease_is_given_back() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let limiter = limiter("idle", "10000/s")
        .lease(1000)
        .build(store.clone())
        .expect("a limiter");
    warm(&limiter, "key").await;
    for _ in 0..500 {
        limiter.check("key").await.expect("room");
    }
    assert!(limiter.rules().lease_stats().held > 0);
    stands(&limiter, "all was given back", |it| {
        it.held == 0 && it.uncharged == 0
    })
    .await;
    let left = limiter.peek("key").await.expect("an answer");
    assert!(left[0].remaining <= 10_000 - 500, "{left:?}");
    let calls = store.health().calls;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(store.health().calls - calls <= 1, "and it is renewed no more");
}

/// For requests that the store decides, the permits of a lease count as spent.
#[tokio::test(flavor = "multi_thread")]
async fn strict_requests_see_leases() {
    let Some(server) = Server::start() else { return };
    let builder = || limiter("both", "1000000/s").period(Duration::from_millis(100));
    let lease = builder()
        .lease(400)
        .build(server.store().await)
        .expect("a limiter");
    let strict = builder().build(server.store().await).expect("a limiter");
    warm(&lease, "key").await;
    loop {
        lease.rules().flush().await.expect("an answer");
        strict.reset("key").await.expect("an answer");
        let (began, mut admitted) = (Instant::now(), 0);
        while lease.rules().lease_stats().held < 20 {
            lease.check("key").await.expect("room");
            admitted += 1;
        }
        let before = lease.rules().lease_stats();
        let left = strict.peek("key").await.expect("an answer")[0].remaining;
        let after = lease.rules().lease_stats();
        // If no report was sent meanwhile, and no charge has left the window.
        if (before.held, before.uncharged) == (after.held, after.uncharged)
            && began.elapsed() < Duration::from_secs(1)
        {
            assert_eq!(
                left,
                1_000_000 - (admitted - before.uncharged) - before.held,
                "{before:?}"
            );
            return;
        }
    }
}

/// A request with several modes: if the server denies, the permits taken from leases are returned.
#[tokio::test(flavor = "multi_thread")]
async fn permits_taken_for_a_denied_request_are_returned() {
    let Some(server) = Server::start() else { return };
    let rules = SharedRules::builder()
        .rule(
            Rule::new("address", quota("100000/s"))
                .by(&by_address())
                // So long that no report is sent meanwhile.
                .mode(Mode::Sync {
                    period: Duration::from_secs(60),
                    pending: 1000,
                }),
        )
        .rule(Rule::new("here", quota("1000/h")).mode(Mode::Local))
        .rule(Rule::new("user", quota("50/h")).by(&by_user()))
        .build(server.store().await)
        .expect("rules");
    for _ in 0..50 {
        let passed = rules.check(&Request::of("alice", 1)).await.expect("room");
        assert_eq!(passed.decided_by(), DecidedBy::Store);
    }
    assert_eq!(rules.lease_stats().uncharged, 50);
    // So few that the node requests no larger lease.
    for _ in 0..300 {
        let refused = rules.check(&Request::of("alice", 1)).await.expect_err("spent");
        let named: Vec<_> = refused.violations().map(|look| look.rule.to_string()).collect();
        assert_eq!(named, ["user"]);
        assert_eq!(refused.decided_by(), DecidedBy::Store);
    }
    assert_eq!(rules.lease_stats().uncharged, 50);
    let charged = |name: &str| rules.counts().find(|it| it.0 == name).expect("a rule").1.charged;
    assert_eq!(
        (charged("address"), charged("here"), charged("user")),
        (50, 50, 50)
    );
    // The node has a thousand permits per window for itself, of which fifty are spent.
    for user in 0..19 {
        let user: &'static str = format!("user {user}").leak();
        for _ in 0..50 {
            rules.check(&Request::of(user, 1)).await.expect("room");
        }
    }
    let refused = rules.check(&Request::of("bob", 1)).await.expect_err("spent");
    assert_eq!(refused.decided_by(), DecidedBy::Local);
    let named: Vec<_> = refused.violations().map(|look| look.rule.to_string()).collect();
    assert_eq!(named, ["here"]);
    let looks = rules.peek(&Request::of("bob", 1)).await.expect("an answer");
    assert!(
        looks.iter().all(|look| *look.rule != *"here"),
        "which is no business of the store"
    );
}

/// A rule with several quotas has a lease for each, and checks all of them, although one state represents them.
#[tokio::test(flavor = "multi_thread")]
async fn every_quota_has_a_lease() {
    let Some(server) = Server::start() else { return };
    let limiter = limiter("quotas", "1000/s")
        .also("50/h".parse().expect("a quota"))
        .sync(Duration::from_secs(60), 100)
        .build(server.store().await)
        .expect("a limiter");
    let passed = limiter.check_n("key", 10).await.expect("room");
    assert_eq!(passed.decided_by(), DecidedBy::Local);
    assert_eq!(limiter.rules().lease_stats().leases, 2);
    let passed = limiter
        .check_n_now("key", 5)
        .expect("decided here")
        .expect("room");
    assert_eq!(passed.decided_by(), DecidedBy::Local);
    let nothing = limiter
        .check_n_now("key", 0)
        .expect("decided here")
        .expect("free");
    assert_eq!(nothing.decided_by(), DecidedBy::Rules);
    let mut admitted = 15;
    for _ in 0..100 {
        admitted += u64::from(limiter.check("key").await.is_ok());
    }
    assert_eq!(admitted, 50);
    limiter.rules().flush().await.expect("an answer");
    let left = limiter.peek("key").await.expect("an answer");
    assert_eq!(left[1].remaining, 0, "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_forgets_uncharged_permits() {
    let Some(server) = Server::start() else { return };
    let limiter = limiter("reset", "100/h")
        .sync(Duration::from_secs(60), 100)
        .build(server.store().await)
        .expect("a limiter");
    limiter.check_n("key", 60).await.expect("room");
    limiter.reset("key").await.expect("an answer");
    limiter.rules().flush().await.expect("an answer");
    let left = limiter.peek("key").await.expect("an answer");
    assert_eq!(left[0].remaining, 100);
}

/// More keys than leases. The store decides for keys without a lease, and no charge is lost.
#[tokio::test(flavor = "multi_thread")]
async fn more_keys_than_leases() {
    let Some(server) = Server::start() else { return };
    let limiter = limiter("many", "1000/h")
        .sync(Duration::from_millis(20), 10)
        .leases(8)
        .build(server.store().await)
        .expect("a limiter");
    for round in 0..5 {
        for key in 0..100 {
            limiter.check(format!("key {key}")).await.expect("room");
        }
        let stats = limiter.rules().lease_stats();
        assert_eq!(stats.capacity, 8);
        assert!(stats.leases <= 8, "{stats:?} in round {round}");
    }
    limiter.rules().flush().await.expect("an answer");
    for key in 0..100 {
        let left = limiter.peek(format!("key {key}")).await.expect("an answer");
        assert_eq!(left[0].remaining, 995, "key {key}");
    }
}

#[tokio::test]
async fn rules_that_cannot_have_a_lease_are_errors() {
    let field = |builder: SharedLimiterBuilder| {
        let error = builder.build(Arc::new(Plain::default())).expect_err("not built");
        (error.rule, error.error.field)
    };
    let named = |field| ("plain".to_owned(), field);
    let plain = || limiter("plain", "1/s");
    assert_eq!(field(plain().lease(5)), named("mode"));
    assert_eq!(field(plain().sync(Duration::from_secs(1), 5)), named("mode"));
    assert!(
        plain()
            .mode(Mode::Local)
            .build(Arc::new(Plain::default()))
            .is_ok()
    );
    assert_eq!(field(plain().lease(0)), named("permits"));
    assert_eq!(field(plain().lease(1_000_001)), named("permits"));
    assert_eq!(field(plain().sync(Duration::ZERO, 5)), named("period"));
    assert_eq!(field(plain().sync(Duration::from_secs(61), 5)), named("period"));
    assert_eq!(field(plain().sync(Duration::from_secs(1), 0)), named("pending"));
    assert_eq!(
        field(plain().lease(5).term(Duration::from_millis(9))),
        named("term")
    );
    assert_eq!(
        field(plain().lease(5).period(Duration::from_millis(101))),
        named("period")
    );
    assert_eq!(field(plain().lease(5).leases(0)), named("leases"));
}

#[test]
fn leases_need_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let store = runtime.block_on(async { crate::server::ready_or_not("redis://127.0.0.1:1") });
    let error = limiter("lease", "1/s")
        .lease(5)
        .build(store)
        .expect_err("no runtime");
    assert_eq!(error.error.field, "runtime");
}

/// A rules file sets the mode.
#[cfg(feature = "config")]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_sets_the_mode() {
    use ringgate::rules::{Extractors, FileFormat, RuleSetBuilder};

    let store = crate::server::ready_or_not("redis://127.0.0.1:1");
    let extractors = Extractors::new().key(by_user()).expect("a name of its own");
    for (mode, overshoot) in [
        ("'strict'", 0),
        ("'local'", 24),
        // Each node admits b + L − 1.
        ("'local'\nalgorithm = 'gcra'\nburst = 3", 4 * 10 - 8),
        ("{ lease = { permits = 5 } }", 0),
        ("{ sync = { period = '100ms', pending = 5 } }", 15),
    ] {
        let text = format!("[[rules]]\nname = 'user'\nquota = '8/h'\nkey = 'user'\nmode = {mode}");
        let rules = RuleSetBuilder::from_text(&text, FileFormat::Toml, &extractors).expect("a file");
        let rules = SharedRules::builder()
            .rules(rules)
            .build(store.clone())
            .expect("rules");
        assert_eq!(
            rules.max_overshoot(4).collect::<Vec<_>>(),
            [("user", Some(overshoot))],
            "{mode}"
        );
    }
}
