//! The limiters of a node, which decide when the server does not answer, and the permits that they count.

use alloc::sync::Arc;
use core::num::NonZeroU32;
use core::time::Duration;

use ringgate::Rule;
use ringgate::redis::RedisStore;
use ringgate::rules::RuleAlgorithm;
use ringgate::shared::{DecidedBy, OnError, Reason, SharedLimiter, SharedRules, StoreErrorKind};

use crate::load::{Load, end_all, most_by_calls, most_by_stamps};
use crate::proxy::{Proxy, Route};
use crate::rules::{Request, by_address, by_user, quota};
use crate::server::{Server, patient, ready, ready_or_not, until, without_breaker};

fn nodes(nodes: u32) -> NonZeroU32 {
    NonZeroU32::new(nodes).expect("not zero")
}

/// A server that does not answer any more, and a store that has noticed it.
async fn lost(server: &mut Server, store: &Arc<RedisStore>) {
    server.kill();
    // The end of a connection is noticed when data is sent.
    until("the loss is noticed", || !store.health().connected).await;
}

async fn passes(limiter: &SharedLimiter, key: &str, by: DecidedBy) -> u32 {
    let mut passed = 0;
    for _ in 0..100 {
        match limiter.check(key).await {
            Ok(answer) => {
                assert_eq!(answer.decided_by(), by);
                passed += 1;
            }
            Err(refused) => assert_eq!(refused.decided_by(), by),
        }
    }
    passed
}

/// Each `OnError`, with and without earlier admissions by the server, which the limiters of the node count at once.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_server_a_node_decides_by_its_own_counts() {
    let Some(mut server) = Server::start() else { return };
    let store = ready(patient(RedisStore::builder(&server.url()))).await;
    let choices = [OnError::Local, OnError::Share, OnError::Deny, OnError::Admit];
    for log in [true, false] {
        let limiters: Vec<_> = choices
            .into_iter()
            .map(|choice| {
                let builder = SharedLimiter::builder(format!("{choice:?}{log}"), quota("20/h"));
                let builder = builder.on_error(choice).nodes(nodes(4));
                let builder = if log { builder.log() } else { builder };
                builder.build(store.clone()).expect("a limiter")
            })
            .collect();
        for limiter in &limiters {
            for _ in 0..3 {
                let passed = limiter.check("known").await.expect("room");
                assert_eq!(passed.decided_by(), DecidedBy::Store);
            }
            limiter.check_n("busy", 12).await.expect("room");
        }
        // The end of the old connection.
        server.kill();
        let _ = limiters[0].check("other").await;
        lost(&mut server, &store).await;
        for (limiter, [known, busy, new]) in limiters.iter().zip([
            [17, 8, 20],
            // A quarter of the limit is five. A user with more charged permits than that gets none.
            [2, 0, 5],
            [0, 0, 0],
            [100, 100, 100],
        ]) {
            assert_eq!(
                passes(limiter, "known", DecidedBy::Fallback).await,
                known,
                "{limiter:?}"
            );
            assert_eq!(passes(limiter, "busy", DecidedBy::Fallback).await, busy);
            assert_eq!(passes(limiter, "new", DecidedBy::Fallback).await, new);
        }
        server.restart();
        until("there is a connection", || store.health().connected).await;
        for limiter in &limiters {
            // The server has no state.
            assert_eq!(passes(limiter, "new", DecidedBy::Store).await, 20);
        }
    }
}

/// Four nodes, each disconnected and reconnected again and again. No window holds more than the limit of the store
/// and the permits that the nodes may admit.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_without_the_server_keep_their_bound() {
    let Some(server) = Server::start() else { return };
    let window = Duration::from_millis(500);
    for (choice, bound) in [
        (OnError::Deny, 40),
        (OnError::Share, 40 + 4 * 10),
        (OnError::Local, 40 + 4 * 40),
    ] {
        let (mut proxies, mut stores, mut loads) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..4 {
            let proxy = Proxy::before(server.port()).await;
            let builder = RedisStore::builder(&proxy.url());
            let store = ready(without_breaker(builder, Duration::from_millis(10))).await;
            let limiter = SharedLimiter::builder(format!("{choice:?}"), quota("40/500ms"))
                .on_error(choice)
                .nodes(nodes(4))
                .build(store.clone())
                .expect("a limiter");
            loads.push(Load::new(4, &Arc::new(limiter)));
            proxies.push(proxy);
            stores.push(store);
        }
        for round in 0..3 {
            for (proxy, store) in proxies.iter().zip(&stores) {
                let way = if round == 1 {
                    Route::CutReplies
                } else {
                    Route::Swallow
                };
                proxy.go(way);
                until("the loss is noticed", || !store.health().connected).await;
            }
            tokio::time::sleep(window / 4).await;
            for (proxy, store) in proxies.iter().zip(&stores) {
                proxy.go(Route::Pass);
                until("there is a connection", || store.health().connected).await;
            }
            tokio::time::sleep(window / 4).await;
        }
        let calls = end_all(loads).await;
        let by = |by_store: bool| {
            calls
                .iter()
                .filter(|it| it.admitted && it.at.is_some() == by_store)
                .count()
        };
        assert!(by(true) > 0);
        assert_eq!(by(false) > 0, choice != OnError::Deny);
        assert!(most_by_stamps(&calls, window) <= 40);
        let most = most_by_calls(&calls, window);
        assert!(most <= bound, "{choice:?}: {most}");
    }
}

/// A denial states that the store did not answer, and the reason.
#[tokio::test(flavor = "multi_thread")]
async fn a_denial_has_its_reason() {
    let store = ready_or_not("redis://127.0.0.1:1");
    let rules = SharedRules::builder()
        .rule(
            Rule::new("user", quota("1/h"))
                .by(&by_user())
                .on_error(OnError::Local),
        )
        .rule(Rule::new("all", quota("5/h")).on_error(OnError::Deny))
        .build(store)
        .expect("rules");
    for _ in 0..3 {
        // The rule by user is charged nothing for the request, so it is not the rule that denies.
        let refused = rules
            .check(&Request::of("alice", 1))
            .await
            .expect_err("no server");
        assert_eq!(refused.reason(), Reason::Unavailable);
        assert_eq!(
            refused
                .violations()
                .map(|look| look.rule.to_string())
                .collect::<Vec<_>>(),
            ["all"]
        );
        assert_eq!(refused.retry_after(), None);
        assert_eq!(refused.error().expect("an error").kind(), StoreErrorKind::Down);
        assert_eq!(refused.to_string(), "store of the limits does not answer: all");
        let source = core::error::Error::source(&refused).expect("a source");
        assert_eq!(source.to_string(), "no connection to the store");
    }
    let denied = |name| {
        rules
            .counts()
            .find(|(rule, _)| *rule == name)
            .expect("a rule")
            .1
            .denied
    };
    assert_eq!((denied("user"), denied("all")), (0, 3));
}

/// The limiters of a node also charge all rules or none. Rules with `OnError::Admit` take no part.
#[tokio::test(flavor = "multi_thread")]
async fn the_node_charges_all_or_none() {
    let store = ready_or_not("redis://127.0.0.1:1");
    let rules = SharedRules::builder()
        .rule(
            Rule::new("user", quota("2/h"))
                .by(&by_user())
                .on_error(OnError::Local),
        )
        .rule(
            Rule::new("address", quota("3/h"))
                .also(quota("8/d"))
                .by(&by_address())
                .algorithm(RuleAlgorithm::Log)
                .on_error(OnError::Share),
        )
        .rule(Rule::new("all", quota("1/h")).on_error(OnError::Admit))
        .nodes(nodes(1))
        .build(store)
        .expect("rules");
    let check = async |user, address| -> Vec<String> {
        match rules.check(&Request::of(user, address)).await {
            Ok(passed) => {
                assert_eq!(passed.decided_by(), DecidedBy::Fallback);
                Vec::new()
            }
            Err(refused) => {
                assert_eq!(
                    (refused.reason(), refused.decided_by()),
                    (Reason::Spent, DecidedBy::Fallback)
                );
                assert!(refused.retry_after().is_some());
                let named = refused
                    .violations()
                    .map(|look| format!("{} {}", look.rule, look.limit));
                named.collect()
            }
        }
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(check("alice", 1).await, none);
    assert_eq!(check("alice", 1).await, none);
    for _ in 0..5 {
        assert_eq!(check("alice", 1).await, ["user 2"]);
    }
    assert_eq!(check("bob", 1).await, none);
    for _ in 0..5 {
        assert_eq!(check("bob", 1).await, ["address 3"]);
    }
    assert_eq!(check("alice", 1).await, ["user 2", "address 3"]);
    assert_eq!(check("bob", 2).await, none);
}
