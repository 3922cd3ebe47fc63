//! Rules that many machines share, and the store that keeps their counts.

use core::num::NonZeroU32;

use super::server::{Server, patient, ready};
use super::*;
use metrics_exporter_prometheus::PrometheusBuilder;
use ringgate::redis::RedisStore;
use ringgate::shared::supervision::{BreakerState, Health, StoreObserver};
use ringgate::shared::{
    CheckResult, CounterRequest, CounterStatus, CounterStore, LeaseObserver, MemoryStore, Mode, OnError,
    SharedLimiter, SharedRules, StoreError, StoreErrorKind, StoreFuture,
};

/// A store that answers requests for at most this number of permits, and is unavailable for larger ones.
#[derive(Debug)]
struct SmallRequests(u64);

impl CounterStore for SmallRequests {
    fn decide<'a>(&'a self, parts: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        let found = |part: &CounterRequest| match part.limit() {
            // Other nodes have spent the permits.
            7 => CounterStatus::without_room(0, Some(Duration::from_secs(1))),
            limit => CounterStatus::with_room(limit),
        };
        let answer = if parts.iter().all(|part| part.permits() <= self.0) {
            let found: Vec<CounterStatus> = parts.iter().map(found).collect();
            let denied = parts.iter().zip(&found);
            let denied = denied.filter(|(part, found)| part.is_enforced() && !found.has_room);
            Ok(match denied.count() {
                0 => CheckResult::admitted(0, found),
                _ => CheckResult::denied(0, found),
            })
        } else {
            Err(StoreError::new(StoreErrorKind::Down, "the request is too large"))
        };
        Box::pin(async { answer })
    }

    fn peek<'a>(&'a self, parts: &'a [CounterRequest]) -> StoreFuture<'a, CheckResult> {
        self.decide(parts)
    }

    fn charge<'a>(&'a self, _: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn refund<'a>(&'a self, _: &'a [CounterRequest], _: &'a CheckResult) -> StoreFuture<'a, u64> {
        Box::pin(async { Ok(0) })
    }

    fn reset<'a>(&'a self, _: &'a [CounterRequest]) -> StoreFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    forward!(keeps);
}

/// A key that nodes share.
fn user() -> Key<Request> {
    super::requests::user().shared_as(|request, parts| {
        parts.part(request.user.to_le_bytes());
    })
}

fn cost() -> ringgate::rules::Cost<Request> {
    ringgate::rules::Cost::new("cost", |request: &Request| request.cost)
}

/// Returns a limiter over such a store.
fn limiter(name: &str, quota: &str, on_error: OnError) -> Result<SharedLimiter, Box<dyn Error>> {
    let builder = SharedLimiter::builder(name.to_owned(), quota.parse()?);
    Ok(builder.on_error(on_error).build(Arc::new(SmallRequests(1)))?)
}

fn series(values: &super::recorders::Values, rule: &str) -> BTreeMap<String, u64> {
    let of = values.iter().filter(|((_, name, _), _)| name == rule);
    of.map(|((_, _, outcome), &value)| (outcome.clone(), value))
        .collect()
}

/// The counters of a rule over a store are those of a rule of one process, and a counter of decisions by the node alone.
#[tokio::test]
async fn shared_rules_are_counted() -> Result<(), Box<dyn Error>> {
    let unkeyed = Rule::new("spent", "7/s".parse()?).cost(&cost()).shadow();
    let rules = SharedRules::builder()
        .rule(
            Rule::new("wide", "100/h".parse()?)
                .cost(&cost())
                .on_error(OnError::Local),
        )
        .rule(unkeyed)
        .nodes(NonZeroU32::MIN)
        .build(Arc::new(SmallRequests(1)))?;
    for _ in 0..3 {
        assert!(rules.check(&request(1)).await.is_ok());
    }
    // 97 permits are left for the first of these requests, and 47 for the second.
    let large = Request { user: 1, cost: 50 };
    assert!(rules.check(&large).await.is_ok());
    assert!(rules.check(&large).await.is_err());

    let scraped = Scraped::new();
    let values = scraped.scrape_counts(rules.live_counts());
    let expect = |figures: [u64; 9]| -> BTreeMap<String, u64> {
        let names = "admitted begun by_node charged denied forfeited overflowed refunded shadow_denied";
        names.split(' ').map(str::to_owned).zip(figures).collect()
    };
    assert_eq!(series(&values, "wide"), expect([4, 0, 2, 53, 1, 0, 0, 0, 0]));
    // The store denies the requests of one permit, and the node denies both of 50 by the limit of 7: also the one that "wide" denies.
    assert_eq!(series(&values, "spent"), expect([0, 0, 2, 0, 0, 0, 0, 0, 5]));
    let counts: BTreeMap<_, _> = rules.counts().collect();
    assert_eq!(counts["wide"].by_node, 2);
    for (key, unit, help, _) in scraped.recorder.snapshotter().snapshot().into_vec() {
        assert_eq!(unit, Some(Unit::Count), "{key:?}");
        assert!(
            help.is_some_and(|help| ["by_node", "charged", "begun"]
                .iter()
                .any(|word| help.contains(word))),
            "{key:?}"
        );
    }
    Ok(())
}

/// Decisions without an answer of the store are counted as decisions of this node.
#[tokio::test]
async fn every_decision_without_the_store_is_counted() -> Result<(), Box<dyn Error>> {
    let scraped = Scraped::new();
    for (on_error, admitted) in [
        (OnError::Local, 2),
        (OnError::Share, 2),
        (OnError::Deny, 0),
        (OnError::Admit, 3),
    ] {
        let name = format!("{on_error:?}");
        let limiter = limiter(&name, "4/h", on_error)?;
        for _ in 0..3 {
            let _ = limiter.check_n("a", 2).await;
        }
        // The store decides.
        assert!(limiter.check("b").await.is_ok());
        let values = series(&scraped.scrape_counts(limiter.rules().live_counts()), &name);
        assert_eq!(values["by_node"], 3, "{name}");
        assert_eq!(values["admitted"], admitted + 1, "{name}");
        assert_eq!(values["denied"], 3 - admitted, "{name}");
    }
    Ok(())
}

/// A rule of this process has no series of decisions by the node. Rules with one name over both have one, and their counts
/// are added up.
#[tokio::test]
async fn shared_rules_and_others_are_one_rule_by_name() -> Result<(), Box<dyn Error>> {
    let scraped = Scraped::new();
    let alone = named(&["one", "other"]).build_with(ringgate::ManualClock::new(), [1, 2, 3, 4])?;
    let _ = alone.check(&request(1));
    assert_eq!(scraped.scrape(&alone).len(), 2 * 8);
    let shared = limiter("one", "100/h", OnError::Local)?;
    assert!(shared.check("a").await.is_ok());
    assert!(shared.check_n("a", 2).await.is_ok());
    let values = scraped.scrape_counts(shared.rules().live_counts());
    assert_eq!(values.len(), 9 + 8);
    assert_eq!(series(&values, "one")["admitted"], 3);
    assert_eq!(series(&values, "one")["by_node"], 1);
    // Shared rules are built anew when they change. The counts stay.
    drop(shared);
    let shared = limiter("one", "200/h", OnError::Local)?;
    assert!(shared.check_n("a", 2).await.is_ok());
    let values = scraped.scrape_counts(shared.rules().live_counts());
    assert_eq!(series(&values, "one")["admitted"], 4);
    assert_eq!(series(&values, "one")["by_node"], 2);
    Ok(())
}

/// A shared rule has the gauges of this node: the slots that its requests hold, wherever they are counted, and the keys of its limiter.
#[tokio::test]
async fn shared_rules_have_gauges_of_this_node() -> Result<(), Box<dyn Error>> {
    let user = user();
    let strict = Rule::in_flight("strict", 9).by(&user);
    let local = Rule::in_flight("local", 9).by(&user).mode(Mode::Local);
    let total = Rule::in_flight("total", 9);
    let rate = Rule::new("rate", "100/h".parse()?)
        .by(&user)
        .on_error(OnError::Local);
    let builder = SharedRules::builder()
        .rule(strict)
        .rule(local)
        .rule(total)
        .rule(rate);
    let rules = builder.build(Arc::new(MemoryStore::new()))?;
    let scraped = Scraped::new();
    let assert_gauges = |in_flight: f64, users: f64| {
        let gauges = scraped.gauges_of(rules.live_counts());
        let of = |gauge: &str, rule: &str| gauges.get(&(gauge.to_owned(), rule.to_owned())).copied();
        for rule in ["strict", "local", "total"] {
            assert_eq!(of("ringgate_in_flight", rule), Some(in_flight), "{rule}");
        }
        assert_eq!(of("ringgate_in_flight", "rate"), None);
        assert_eq!(of("ringgate_tracked_keys", "total"), None);
        for rule in ["local", "rate"] {
            assert_eq!(of("ringgate_tracked_keys", rule), Some(users), "{rule}");
        }
    };
    assert_gauges(0.0, 0.0);
    let mut held = Vec::new();
    for (user, slots, users) in [(1, 1.0, 1.0), (2, 2.0, 2.0), (1, 3.0, 2.0), (3, 4.0, 3.0)] {
        held.push(rules.check(&request(user)).await.expect("a slot"));
        assert_gauges(slots, users);
    }
    drop(held.pop());
    assert_gauges(3.0, 3.0);
    // A refund releases slots, too.
    rules.refund(held.remove(0)).await?;
    assert_gauges(2.0, 3.0);
    held.clear();
    assert_gauges(0.0, 3.0);
    Ok(())
}

/// Returns the values of a store by name, and by the label other than `store`, if there is one.
fn shown(recorder: &DebuggingRecorder, name: &str) -> BTreeMap<String, f64> {
    let snapshot = recorder.snapshotter().snapshot().into_vec();
    let values = snapshot.into_iter().map(|(key, unit, help, value)| {
        assert!(
            unit.is_some() && help.is_some_and(|help| help.len() > 20),
            "{key:?}"
        );
        let key = key.key();
        let mut called = key.name().to_owned();
        for label in key.labels() {
            match label.key() {
                "store" => assert_eq!(label.value(), name),
                _ => called = format!("{called} {}={}", label.key(), label.value()),
            }
        }
        let value = match value {
            #[expect(clippy::cast_precision_loss, reason = "a few calls")]
            DebugValue::Counter(value) => value as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(_) => panic!("{called} is a histogram"),
        };
        (called, value)
    });
    values.collect()
}

/// The expected metrics, except the age of the last answer.
#[expect(clippy::cast_precision_loss, reason = "a few calls")]
fn expected(health: &Health) -> BTreeMap<String, f64> {
    let outcome = |outcome: &str| format!("ringgate_store_outcomes_total outcome={outcome}");
    let state = |state: &str| format!("ringgate_store_breaker state={state}");
    let is = |state: BreakerState| f64::from(health.breaker == state);
    BTreeMap::from([
        ("ringgate_store_calls_total".into(), health.calls as f64),
        (outcome("answered"), health.answered as f64),
        (outcome("timed_out"), health.timed_out as f64),
        (outcome("disconnected"), health.disconnected as f64),
        (outcome("refused"), health.refused as f64),
        (outcome("unexpected_reply"), health.unexpected_replies as f64),
        (outcome("unsent"), health.unsent as f64),
        (
            "ringgate_store_connections_total".into(),
            health.connections as f64,
        ),
        ("ringgate_store_connected".into(), f64::from(health.connected)),
        ("ringgate_store_in_flight".into(), health.in_flight as f64),
        (state("closed"), is(BreakerState::Closed)),
        (state("open"), is(BreakerState::Open)),
        (state("probing"), is(BreakerState::Probing)),
    ])
}

const STALE: &str = "ringgate_store_stale_seconds";

async fn show(observer: &StoreObserver, recorder: &DebuggingRecorder, store: &RedisStore) -> f64 {
    metrics::with_local_recorder(recorder, || observer.publish(store.live_health()));
    let mut values = shown(recorder, "main");
    let stale = values.remove(STALE).expect("the age of the last answer");
    assert_eq!(values, expected(&store.health()));
    stale
}

#[tokio::test(flavor = "multi_thread")]
async fn the_health_of_a_store_is_exported() -> Result<(), Box<dyn Error>> {
    let Some(mut server) = Server::start() else {
        return Ok(());
    };
    let (observer, recorder) = (StoreObserver::new("main"), DebuggingRecorder::new());
    // No heartbeat is sent during the test, and an open breaker stays open.
    let minute = Duration::from_secs(60);
    let builder = patient(RedisStore::builder(&server.url())).supervision(|settings| {
        settings.heartbeat = minute;
        settings.reconnect_after = minute;
        (
            settings.breaker.calls,
            settings.breaker.over,
            settings.breaker.rest,
        ) = (4, minute, minute);
    });
    let store = ready(builder).await;
    assert_eq!(show(&observer, &recorder, &store).await, f64::INFINITY);

    let limiter = SharedLimiter::builder("login", "100/h".parse()?)
        .on_error(OnError::Local)
        .build(store.clone())?;
    for _ in 0..5 {
        assert!(limiter.check("a").await.is_ok());
    }
    let stale = show(&observer, &recorder, &store).await;
    assert!(stale.is_finite() && stale >= 0.0, "{stale}");
    assert_eq!(store.health().answered, 5);

    // Replicas reject writes.
    let _: () = server.ask("REPLICAOF 127.0.0.1 1");
    assert!(limiter.check("a").await.is_ok());
    show(&observer, &recorder, &store).await;
    assert_eq!(store.health().refused, 1);

    server.kill();
    // The store notices the end of a connection when it sends a command.
    while store.health().connected {
        assert!(limiter.check("a").await.is_ok());
    }
    let unsent = store.health().unsent;
    for _ in 0..3 {
        assert!(limiter.check("a").await.is_ok());
    }
    let later = show(&observer, &recorder, &store).await;
    assert!(later > stale, "{later} after {stale}");
    let health = store.health();
    assert_eq!((health.connected, health.unsent), (false, unsent + 3));
    assert!(health.disconnected >= 1, "{health:?}");
    Ok(())
}

/// An open breaker and calls in flight are exported.
#[tokio::test(flavor = "multi_thread")]
async fn an_open_breaker_is_exported() -> Result<(), Box<dyn Error>> {
    let Some(server) = Server::start() else {
        return Ok(());
    };
    let (observer, recorder) = (StoreObserver::new("main"), DebuggingRecorder::new());
    let minute = Duration::from_secs(60);
    let builder = RedisStore::builder(&server.url()).supervision(|settings| {
        settings.connect_timeout = Duration::from_secs(20);
        settings.failures = 1000;
        settings.heartbeat = minute;
        (
            settings.breaker.calls,
            settings.breaker.over,
            settings.breaker.rest,
        ) = (4, minute, minute);
    });
    let store = ready(builder).await;
    server.signal("-STOP");
    let limiter = SharedLimiter::builder("login", "100/h".parse()?)
        .on_error(OnError::Local)
        .build(store.clone())?;
    let limiter = Arc::new(limiter);
    let asked: Vec<_> = (0..6)
        .map(|_| {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move { limiter.check("a").await.is_ok() })
        })
        .collect();
    for asked in asked {
        assert!(asked.await?);
    }
    show(&observer, &recorder, &store).await;
    let health = store.health();
    assert_eq!(health.breaker, BreakerState::Open);
    assert!(health.timed_out >= 4, "{health:?}");
    server.signal("-CONT");
    Ok(())
}

/// A new store with the name of an old one continues its counters.
#[tokio::test(flavor = "multi_thread")]
async fn counters_outlive_a_store() -> Result<(), Box<dyn Error>> {
    let Some(server) = Server::start() else {
        return Ok(());
    };
    let (observer, recorder) = (StoreObserver::new("main"), CheckedRecorder::default());
    let mut answered = 0;
    for calls in [5, 3, 9] {
        let store = server.store().await;
        let limiter = SharedLimiter::builder("login", "100/h".parse()?).build(store.clone())?;
        for round in 0..2 {
            for _ in 0..calls {
                assert!(limiter.check("a").await.is_ok());
            }
            // The last calls of an old store were not published. The next reader finds them while the store exists.
            if round == 0 {
                metrics::with_local_recorder(&recorder, || observer.publish(store.live_health()));
            }
        }
        answered += 2 * calls;
        let next = server.store().await;
        metrics::with_local_recorder(&recorder, || observer.publish(next.live_health()));
        assert_eq!(recorder.value("main", "answered"), answered);
    }
    assert_eq!(recorder.counters.lock().expect("counters").len(), 8);
    assert_eq!(recorder.described.into_inner(), 3);
    Ok(())
}

/// A scrape has all metrics.
#[tokio::test(flavor = "multi_thread")]
async fn a_scrape_has_all_metrics() -> Result<(), Box<dyn Error>> {
    let Some(server) = Server::start() else {
        return Ok(());
    };
    let recorder = PrometheusBuilder::new().build_recorder();
    let store = server.store().await;
    let user = user();
    let rules = SharedRules::builder()
        .rule(Rule::new("user", "2/h".parse()?).by(&user))
        .build(store.clone())?;
    for _ in 0..5 {
        let _ = rules.check(&request(1)).await;
    }
    let (observer, health) = (Observer::new(), StoreObserver::new("main"));
    metrics::with_local_recorder(&recorder, || {
        observer.publish_counts(rules.live_counts());
        health.publish(store.live_health());
    });
    let text = recorder.handle().render();
    for line in [
        r#"ringgate_decisions_total{rule="user",outcome="admitted"} 2"#,
        r#"ringgate_decisions_total{rule="user",outcome="denied"} 3"#,
        r#"ringgate_decisions_total{rule="user",outcome="by_node"} 0"#,
        r#"ringgate_store_calls_total{store="main"} 5"#,
        r#"ringgate_store_outcomes_total{store="main",outcome="answered"} 5"#,
        r#"ringgate_store_outcomes_total{store="main",outcome="timed_out"} 0"#,
        r#"ringgate_store_connections_total{store="main"} 1"#,
        r#"ringgate_store_connected{store="main"} 1"#,
        r#"ringgate_store_breaker{store="main",state="closed"} 1"#,
        r#"ringgate_store_in_flight{store="main"} 0"#,
        "# TYPE ringgate_store_stale_seconds gauge",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
    Ok(())
}

/// The metrics of leases equal their statistics.
#[tokio::test(flavor = "multi_thread")]
async fn leases_are_exported() -> Result<(), Box<dyn Error>> {
    let Some(server) = Server::start() else {
        return Ok(());
    };
    let recorder = PrometheusBuilder::new().build_recorder();
    let store = server.store().await;
    let limiter = SharedLimiter::builder("login", "1000/h".parse()?)
        .lease(100)
        .build(store)?;
    let observer = LeaseObserver::new("logins");
    for _ in 0..50 {
        assert!(limiter.check("a").await.is_ok());
    }
    limiter.rules().flush().await?;
    metrics::with_local_recorder(&recorder, || observer.publish(limiter.rules()));
    let (stats, text) = (limiter.rules().lease_stats(), recorder.handle().render());
    for (name, value) in [
        ("denied_total", stats.denied),
        ("remote_total", stats.remote),
        ("capacity", stats.capacity),
        ("in_use", stats.leases),
        ("uncharged_permits", stats.uncharged),
        ("held_permits", stats.held),
    ] {
        let line = format!("ringgate_leases_{name}{{rules=\"logins\"}} {value}");
        assert!(text.lines().any(|shown| shown == line), "{line}\n{text}");
    }
    assert!(stats.remote > 0 && stats.capacity > 0, "{stats:?}");
    assert!(
        text.contains("# TYPE ringgate_leases_stale_seconds gauge"),
        "{text}"
    );
    // Rules without leases export none.
    let strict = SharedLimiter::builder("strict", "1000/h".parse()?).build(server.store().await)?;
    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || LeaseObserver::new("strict").publish(strict.rules()));
    assert_eq!(recorder.handle().render(), "");
    Ok(())
}
