//! Servers that answer and never decide: the wait for a store says so at the start, and names what mends it.

use alloc::sync::Arc;
use core::time::Duration;

use ringgate::Rule;
use ringgate::redis::{RedisStore, RedisStoreBuilder};
use ringgate::rules::{Mode, RuleAlgorithm};
use ringgate::shared::{DecidedBy, OnError, SharedLimiter, SharedRules, StoreErrorKind};

use crate::rules::{Request, by_address, by_user, quota};
use crate::server::{PATIENCE, Server, ask, patient, until};

/// A cluster of one node, which serves every slot.
async fn one_shard() -> Option<Server> {
    let server = Server::node()?;
    let _: redis::Value = server.ask("CLUSTER ADDSLOTSRANGE 0 16383");
    let is_up = || server.ask::<String>("CLUSTER INFO").contains("cluster_state:ok");
    until("the cluster is up", is_up).await;
    Some(server)
}

/// A store that may or may not decide.
fn built(builder: RedisStoreBuilder) -> Arc<RedisStore> {
    Arc::new(patient(builder).build().expect("a store"))
}

/// A rule by client and one by user.
fn two_keys(store: Arc<RedisStore>) -> SharedRules<Request> {
    SharedRules::builder()
        .rule(Rule::new("user", quota("10/min")).by(&by_user()))
        .rule(Rule::new("client", quota("100/min")).by(&by_address()))
        .build(store)
        .expect("rules")
}

#[tokio::test]
async fn one_shard_with_cluster_mode_names_the_constructor() {
    let Some(server) = one_shard().await else { return };
    let store = built(RedisStore::builder(&server.url()));
    let rules = two_keys(Arc::clone(&store));
    for ready in [store.ready(PATIENCE).await, rules.ready(PATIENCE).await] {
        let error = ready.expect_err("two keys have two slots");
        assert_eq!(error.kind(), StoreErrorKind::UnexpectedReply);
        assert!(error.to_string().contains("RedisStore::cluster"), "{error}");
    }
    // The error of a decision names it, too.
    let admitted = rules.check(&Request::of("alice", 1)).await.expect("by this node");
    assert_eq!(admitted.decided_by(), DecidedBy::Fallback);
    let error = admitted.error().expect("the reason").to_string();
    assert!(error.contains("RedisStore::cluster"), "{error}");
    // Rules of one key work here, unless they need leases: these share a key over all of them.
    let limiter = || SharedLimiter::builder("login", quota("10/min"));
    let strict = limiter().build(store.clone()).expect("a limiter");
    strict.rules().ready(PATIENCE).await.expect("one slot");
    let leased = limiter().lease(5).build(store.clone()).expect("a limiter");
    let error = leased.rules().ready(PATIENCE).await;
    let error = error.expect_err("leases have a slot of their own").to_string();
    assert!(error.contains("RedisStore::cluster"), "{error}");
}

#[cfg(feature = "redis-cluster")]
#[tokio::test]
async fn one_shard_serves_the_constructor_of_clusters() {
    let Some(server) = one_shard().await else { return };
    let store = built(RedisStore::cluster(&[&server.url()]));
    store.ready(PATIENCE).await.expect("one node is a cluster");
    two_keys(store)
        .ready(PATIENCE)
        .await
        .expect("one node is a cluster");
}

/// Rights that are missing, and what the error of the store or of the rules names.
#[tokio::test]
async fn a_missing_right_is_named() {
    let Some(server) = Server::start() else { return };
    let url = format!("redis://user:secret@127.0.0.1:{}", server.port());
    for (rights, of_store, of_rules) in [
        ("-evalsha", Some("+evalsha"), "+evalsha"),
        ("-eval", Some("+eval"), "+eval"),
        ("-evalsha -eval", Some("+evalsha"), "+evalsha"),
        ("-hgetall", Some("ACL SETUSER"), "ACL SETUSER"),
        ("-time", Some("ACL SETUSER"), "ACL SETUSER"),
        // These are rights to write, so only a decision shows that they are missing.
        ("-hincrby", None, "ACL SETUSER"),
        ("-hset", None, "ACL SETUSER"),
    ] {
        let _: redis::Value = server.ask("SCRIPT FLUSH");
        let _: redis::Value = server.ask("ACL SETUSER user reset on >secret ~ringgate:* +@all");
        let _: redis::Value = server.ask(&format!("ACL SETUSER user {rights}"));
        let store = built(RedisStore::builder(&url));
        match (store.ready(PATIENCE).await, of_store) {
            (Ok(()), None) => {}
            (Err(error), Some(remedy)) => {
                assert_eq!(error.kind(), StoreErrorKind::UnexpectedReply, "{rights}");
                assert!(error.to_string().contains(remedy), "{rights}: {error}");
                let shown = store.health().last_error.map(|error| error.to_string());
                assert_eq!(shown, Some(error.to_string()), "{rights}");
            }
            (ready, _) => panic!("{rights}: {ready:?}"),
        }
        let error = two_keys(store)
            .ready(PATIENCE)
            .await
            .expect_err(rights)
            .to_string();
        assert!(error.contains(of_rules), "{rights}: {error}");
    }
}

/// A right that the rules do not need may be missing.
#[tokio::test]
async fn a_right_is_needed_only_by_rules_that_use_it() {
    let Some(server) = Server::start() else { return };
    let url = format!("redis://user:secret@127.0.0.1:{}", server.port());
    let (cells, log) = (RuleAlgorithm::Counter, RuleAlgorithm::Log);
    let lease = Mode::Lease { permits: 5 };
    for (rights, algorithm, mode, remedy) in [
        ("-zadd -zrem -zcount -zrange", cells, Mode::Strict, None),
        ("-hincrby -hset", log, Mode::Strict, None),
        ("-zadd", log, Mode::Strict, Some("ACL SETUSER")),
        ("-get -set", cells, Mode::Strict, None),
        ("-get", cells, lease, Some("ACL SETUSER")),
        ("-get", RuleAlgorithm::Gcra, Mode::Strict, Some("ACL SETUSER")),
        ("-zadd -hincrby -evalsha", log, Mode::Local, None),
    ] {
        let _: redis::Value = server.ask("ACL SETUSER user reset on >secret ~ringgate:* +@all");
        let _: redis::Value = server.ask(&format!("ACL SETUSER user {rights}"));
        let store = built(RedisStore::builder(&url));
        let rule = Rule::new("user", quota("10/min")).by(&by_user());
        let rules = SharedRules::builder().rule(rule.algorithm(algorithm).mode(mode));
        let ready = rules.build(store).expect("rules").ready(PATIENCE).await;
        match (ready, remedy) {
            (Ok(()), None) => {}
            (Err(error), Some(remedy)) => assert!(error.to_string().contains(remedy), "{rights}: {error}"),
            (ready, _) => panic!("{rights}: {ready:?}"),
        }
    }
}

/// A server, or a proxy, that lacks a command of the scripts.
#[tokio::test]
async fn a_missing_command_is_named() {
    for (renamed, named) in [
        ("EVALSHA", Some("EVALSHA")),
        ("EVAL", Some("EVAL")),
        ("ZADD", None),
    ] {
        let Some(server) = Server::with(&["--rename-command", renamed, ""]) else {
            return;
        };
        let store = patient(RedisStore::builder(&server.url()))
            .build()
            .expect("a store");
        match (store.ready(PATIENCE).await, named) {
            (Ok(()), None) => {}
            (Err(error), Some(named)) => {
                let text = error.to_string();
                assert!(text.contains(&format!("does not have {named}: ")), "{error}");
                assert!(text.contains("rename-command"), "{error}");
            }
            (ready, _) => panic!("{renamed}: {ready:?}"),
        }
    }
}

/// A server that may write again later is waited for, and a decision about the rules is needed to see it.
#[tokio::test]
async fn a_server_that_refuses_writes_is_waited_for() {
    let Some(server) = Server::start() else { return };
    let store = built(RedisStore::builder(&server.url()));
    store.ready(PATIENCE).await.expect("a connection");
    let rules = Arc::new(two_keys(store));
    for (refuse, allow) in [
        ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
        (
            "CONFIG SET min-replicas-to-write 1",
            "CONFIG SET min-replicas-to-write 0",
        ),
        ("REPLICAOF 127.0.0.1 1", concat!("REPLICAOF NO", " ONE")),
    ] {
        let _: redis::Value = server.ask(refuse);
        let error = rules.ready(Duration::from_millis(200)).await.expect_err(refuse);
        assert_eq!(error.kind(), StoreErrorKind::Refused, "{refuse}: {error}");
        let waiting = Arc::clone(&rules);
        let waiting = tokio::spawn(async move { waiting.ready(PATIENCE).await });
        let _: redis::Value = server.ask(allow);
        waiting.await.expect("no panic").expect(allow);
    }
}

/// The wait charges no key of a request, and leaves nothing that lasts.
#[tokio::test]
async fn a_wait_charges_no_key() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let names = || server.ask::<Vec<String>>("KEYS *");
    assert_eq!(names(), Vec::<String>::new(), "the store only reads");
    for algorithm in [RuleAlgorithm::Counter, RuleAlgorithm::Log, RuleAlgorithm::Gcra] {
        for mode in [
            Mode::Strict,
            Mode::Lease { permits: 5 },
            Mode::Sync {
                period: Duration::from_millis(100),
                pending: 5,
            },
        ] {
            let rule = Rule::new("one", quota("1/min"))
                .by(&by_user())
                .on_error(OnError::Deny);
            let rules = SharedRules::builder().rule(rule.algorithm(algorithm).mode(mode));
            let rules = rules.build(store.clone()).expect("rules");
            for _ in 0..3 {
                rules.ready(PATIENCE).await.expect("a decision");
            }
            let request = Request::of("alice", 1);
            rules.check(&request).await.expect("the first permit");
            assert!(rules.check(&request).await.is_err(), "{algorithm:?} {mode:?}");
            rules.flush().await.expect("an answer");
            rules.reset(&request).await.expect("an answer");
            for name in names() {
                let lasts: i64 = server.ask(&format!("PTTL {name}"));
                assert!(lasts != -1, "{name}");
            }
            let _: redis::Value = server.ask("FLUSHALL");
        }
    }
}

/// Every key that a script reads or writes is one of the keys that the call declares, since proxies and clusters refuse
/// others.
#[tokio::test]
async fn every_key_of_a_script_is_declared() {
    let Some(server) = Server::start() else { return };
    let store = server.store().await;
    let mut monitor = redis::Client::open(server.url())
        .and_then(|client| client.get_connection())
        .expect("a connection");
    let _: redis::Value = ask(&mut monitor, "MONITOR");
    let modes = [
        Mode::Strict,
        Mode::Lease { permits: 5 },
        Mode::Sync {
            period: Duration::from_millis(1),
            pending: 5,
        },
    ];
    for algorithm in [RuleAlgorithm::Counter, RuleAlgorithm::Log, RuleAlgorithm::Gcra] {
        for mode in modes {
            let name = format!("{algorithm:?}-{mode:?}").replace(' ', "");
            let rule = Rule::new(name, quota("20/min")).by(&by_user());
            let rules = SharedRules::builder().rule(rule.algorithm(algorithm).mode(mode));
            let rules = rules.build(store.clone()).expect("rules");
            rules.ready(PATIENCE).await.expect("a decision");
            let mut admitted = Vec::new();
            for _ in 0..30 {
                admitted.extend(rules.check(&Request::of("alice", 1)).await);
            }
            rules.peek(&Request::of("alice", 1)).await.expect("an answer");
            for admitted in admitted.into_iter().take(3) {
                rules.refund(admitted).await.expect("an answer");
            }
            rules.flush().await.expect("an answer");
        }
    }
    let in_flight = SharedRules::builder().rule(Rule::in_flight("slots", 3).by(&by_user()));
    let in_flight = in_flight.build(store.clone()).expect("rules");
    drop(in_flight.check(&Request::of("alice", 1)).await.expect("a slot"));
    in_flight.flush().await.expect("an answer");
    let _: redis::Value = server.ask("ECHO last");

    let (mut declared, mut calls) = (Vec::new(), 0);
    loop {
        let redis::Value::SimpleString(line) = monitor.recv_response().expect("a line") else {
            continue;
        };
        let mut words = line.split('"').skip(1).step_by(2).map(str::to_owned);
        let command = words.next().unwrap_or_default().to_uppercase();
        if command == "ECHO" {
            break;
        }
        if line.contains(" lua] ") {
            if command == "TIME" || command == "INFO" {
                continue;
            }
            let key = words.next().expect("a key");
            assert!(declared.contains(&key), "{line}: declared are {declared:?}");
            calls += 1;
        } else if command == "EVALSHA" || command == "EVAL" {
            // The text of a script contains quotes, which are escaped.
            let words: Vec<String> = arguments(&line);
            let count: usize = words[2].parse().expect("a number of keys");
            declared = words[3..3 + count].to_vec();
        }
    }
    assert!(calls > 500, "{calls} calls of scripts were seen");
}

/// The words of a line of MONITOR, each in quotes.
fn arguments(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_open, mut is_escaped) = (Vec::new(), String::new(), false, false);
    for letter in line.chars() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' if is_open => {
                words.push(core::mem::take(&mut word));
                is_open = false;
            }
            '"' => is_open = true,
            letter if is_open => word.push(letter),
            _ => {}
        }
    }
    words
}
