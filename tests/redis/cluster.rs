//! Three nodes, and requests over several of their slots.

use alloc::sync::Arc;
use core::time::Duration;
use std::collections::HashSet;

use ringgate::redis::{RedisStore, RedisStoreBuilder};
use ringgate::rules::{Block, RuleAlgorithm};
use ringgate::shared::{
    CheckResult, CounterRequest, CounterStatus, CounterStore, Counting, OnError, SharedLimiter, SharedRules,
};
use ringgate::{Rule, Settled};

use crate::faults::comes_back;
use crate::load::{Load, most_by_calls, most_by_stamps};
use crate::rules::{Request, by_address, by_user, quota};
use crate::server::{PATIENCE, Server, ask, patient, patient_calls, ready, until};

const SLOTS: u16 = 16384;

/// A time that no answer of a node takes, and that a test can wait for.
const SLOW: Duration = Duration::from_secs(1);

pub(crate) struct Cluster {
    nodes: Vec<Server>,
}

impl Cluster {
    /// Three primaries, each with a third of the slots.
    pub(crate) async fn start() -> Option<Self> {
        let mut nodes = Vec::new();
        for _ in 0..3 {
            nodes.push(Server::node()?);
            let newest = &nodes[nodes.len() - 1];
            let first = SLOTS / 3 * (u16::try_from(nodes.len()).expect("three") - 1);
            let last = if nodes.len() == 3 {
                SLOTS - 1
            } else {
                first + SLOTS / 3 - 1
            };
            let _: () = newest.ask(&format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
            let meet = format!("CLUSTER MEET 127.0.0.1 {} {}", newest.port(), newest.bus());
            nodes.iter().for_each(|other| other.ask(&meet));
        }
        let cluster = Self { nodes };
        until("the cluster is up", || {
            cluster.nodes.iter().all(|node| {
                let info: String = node.ask("CLUSTER INFO");
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            })
        })
        .await;
        Some(cluster)
    }

    pub(crate) fn builder(&self) -> RedisStoreBuilder {
        let urls: Vec<String> = self.nodes.iter().map(Server::url).collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        RedisStore::cluster(&urls)
    }

    async fn store(&self) -> Arc<RedisStore> {
        ready(patient(self.builder())).await
    }

    pub(crate) fn names(&self) -> Vec<(usize, String)> {
        let names = |node: &Server| node.ask::<Vec<String>>("KEYS *");
        let nodes = self.nodes.iter().enumerate();
        nodes
            .flat_map(|(at, node)| names(node).into_iter().map(move |name| (at, name)))
            .collect()
    }

    /// The number of changes in all nodes.
    fn changes(&self) -> u64 {
        let changes = |node: &Server| -> u64 {
            let info: String = node.ask("INFO persistence");
            let line = info
                .lines()
                .find_map(|line| line.strip_prefix("rdb_changes_since_last_save:"));
            line.and_then(|changes| changes.parse().ok()).expect("a number")
        };
        self.nodes.iter().map(changes).sum()
    }

    /// Moves the slot of a name from one node to another.
    pub(crate) fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.move_keys(slot, from, to);
        for at in [to, from, 3 - to - from] {
            self.set_slot(slot, at, "NODE", to);
        }
    }

    fn set_slot(&self, slot: u16, at: usize, state: &str, node: usize) {
        let id: String = self.nodes[node].ask("CLUSTER MYID");
        let _: () = self.nodes[at].ask(&format!("CLUSTER SETSLOT {slot} {state} {id}"));
    }

    /// Begins to move a slot, and moves its keys. Then the first node answers `ASK`.
    fn move_keys(&self, slot: u16, from: usize, to: usize) {
        self.set_slot(slot, to, "IMPORTING", from);
        self.set_slot(slot, from, "MIGRATING", to);
        let mut source = self.nodes[from].client();
        loop {
            let keys: Vec<String> = ask(&mut source, &format!("CLUSTER GETKEYSINSLOT {slot} 10"));
            if keys.is_empty() {
                break;
            }
            let mut migrate = redis::cmd("MIGRATE");
            migrate
                .arg("127.0.0.1")
                .arg(self.nodes[to].port())
                .arg("")
                .arg(0)
                .arg(5000)
                .arg("KEYS");
            let _: String = migrate.arg(keys).query(&mut source).expect("moved, or gone");
        }
    }

    pub(crate) fn slot(&self, name: &str) -> u16 {
        self.nodes[0].ask(&format!("CLUSTER KEYSLOT {name}"))
    }
}

/// The state of one key is in one slot, and keys are spread over the nodes.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_one_slot() {
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let store = cluster.store().await;
    let rule = |name: &'static str| Rule::new(name, quota("10/min")).by(&by_address());
    let rules = SharedRules::builder()
        .rule(rule("often").also(quota("100/h")))
        .rule(rule("log").algorithm(RuleAlgorithm::Log))
        .build(store)
        .expect("rules");
    for address in 0..50 {
        let passed = rules.check(&Request::of("alice", address)).await.expect("room");
        assert_eq!(passed.statuses().count(), 3);
        // The answers of one script have one time.
        assert_eq!(rules.refund(passed).await.expect("an answer"), Settled::Exact);
        rules.check(&Request::of("alice", address)).await.expect("room");
    }
    let names = cluster.names();
    assert_eq!(names.len(), 150);
    let slots: HashSet<u16> = names.iter().map(|(_, name)| cluster.slot(name)).collect();
    assert!((40..=50).contains(&slots.len()), "{}", slots.len());
    let nodes: HashSet<usize> = names.iter().map(|(node, _)| *node).collect();
    assert_eq!(nodes.len(), 3);
}

/// Rules by several keys, in several slots. A request that one rule denies is charged to none, and all violated rules
/// are named.
#[tokio::test(flavor = "multi_thread")]
async fn several_slots_are_all_or_nothing() {
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let store = cluster.store().await;
    for by in [RuleAlgorithm::Log, RuleAlgorithm::Counter] {
        let name = |rule: &str| format!("{rule} {by:?}");
        let rule = |rule: &str, text| Rule::new(name(rule), quota(text)).algorithm(by);
        let rules = SharedRules::builder()
            .rule(rule("user", "3/h").by(&by_user()))
            .rule(rule("address", "20/h").by(&by_address()))
            .rule(rule("shadow", "1/h").by(&by_address()).shadow())
            .rule(rule("all", "10/d"))
            .build(store.clone())
            .expect("rules");
        let spent = async |user, address| -> Vec<u64> {
            let looks = rules.peek(&Request::of(user, address)).await.expect("an answer");
            looks.iter().map(|look| look.limit - look.remaining).collect()
        };
        for _ in 0..3 {
            rules.check(&Request::of("alice", 1)).await.expect("room");
        }
        let changes = cluster.changes();
        for _ in 0..20 {
            let refused = rules
                .check(&Request::of("alice", 2))
                .await
                .expect_err("three an hour");
            let named: Vec<_> = refused.violations().map(|look| look.rule.to_string()).collect();
            assert_eq!(named, [name("user")]);
        }
        assert_eq!(cluster.changes(), changes, "a refusal writes nothing");
        assert_eq!(spent("alice", 1).await, [3, 3, 1, 3]);
        assert_eq!(spent("alice", 2).await, [3, 0, 0, 3]);
        for user in ["bob", "bob", "bob", "carol", "carol", "carol"] {
            rules.check(&Request::of(user, 2)).await.expect("room");
        }
        let passed = rules.check(&Request::of("dave", 3)).await.expect("the tenth");
        let refused = rules
            .check(&Request::of("alice", 1))
            .await
            .expect_err("ten a day");
        let named: Vec<_> = refused.violations().map(|look| look.rule.to_string()).collect();
        assert_eq!(named, [name("user"), name("all")]);
        assert!(
            refused
                .retry_after()
                .is_some_and(|after| after > Duration::from_secs(20 * 3600))
        );
        assert_eq!(rules.refund(passed).await.expect("an answer"), Settled::Exact);
        assert_eq!(spent("dave", 3).await, [0, 0, 0, 9]);
        rules
            .check(&Request::of("dave", 3))
            .await
            .expect("the tenth once more");
        for user in ["alice", "bob", "carol", "dave"] {
            for address in 0..4 {
                rules.reset(&Request::of(user, address)).await.expect("an answer");
            }
        }
        assert_eq!(spent("alice", 1).await, [0, 0, 0, 0]);
    }
}

/// Many requests at the same time, over slots that deny each other. No rule admits more than its limit, lost races
/// are refunded, and at the end no permit is missing.
#[tokio::test(flavor = "multi_thread")]
async fn charges_of_lost_races_are_refunded() {
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let store = cluster.store().await;
    for by in [RuleAlgorithm::Log, RuleAlgorithm::Counter] {
        for round in 0..30 {
            let rule = |name: &str| Rule::new(format!("{name} {by:?} {round}"), quota("1/h")).algorithm(by);
            let rules = SharedRules::builder()
                .rule(rule("user").by(&by_user()))
                .rule(rule("address").by(&by_address()))
                .build(store.clone())
                .expect("rules");
            let rules = Arc::new(rules);
            let users = ["alice", "bob", "carol", "dave"];
            let tasks = users
                .into_iter()
                .flat_map(|user| (0..2).map(move |address| (user, address)));
            let tasks = tasks.map(|(user, address)| {
                let rules = Arc::clone(&rules);
                tokio::spawn(async move {
                    let passed = rules.check(&Request::of(user, address)).await.is_ok();
                    (user, address, passed)
                })
            });
            let mut passed = Vec::new();
            for task in tasks.collect::<Vec<_>>() {
                let (user, address, is) = task.await.expect("no panic");
                passed.extend(is.then_some((user, address)));
            }
            for user in users {
                let by_user = passed.iter().filter(|it| it.0 == user).count();
                for address in 0..2 {
                    let by_address = passed.iter().filter(|it| it.1 == address).count();
                    assert!(by_user <= 1 && by_address <= 1);
                    let looks = rules.peek(&Request::of(user, address)).await.expect("an answer");
                    let spent: Vec<_> = looks.iter().map(|look| look.limit - look.remaining).collect();
                    assert_eq!(
                        spent,
                        [by_user as u64, by_address as u64],
                        "nothing stays charged"
                    );
                }
            }
        }
    }
}

/// A slot moves to another node and back while callers continue. No window exceeds the limit, and charges move with
/// the slot.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_moves_under_load() {
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let store = ready(patient_calls(cluster.builder())).await;
    let window = Duration::from_millis(500);
    for log in [true, false] {
        let builder = SharedLimiter::builder("moves", quota("60/500ms")).on_error(OnError::Deny);
        let builder = if log { builder.log() } else { builder };
        let limiter = Arc::new(builder.build(store.clone()).expect("a limiter"));
        limiter.check("key").await.expect("room");
        let names = cluster.names();
        let (mut at, name) = names.last().expect("a name").clone();
        let slot = cluster.slot(&name);
        let load = Load::new(8, &limiter);
        for _ in 0..6 {
            let to = (at + 1) % 3;
            cluster.move_slot(slot, at, to);
            at = to;
            let answered = store.health().answered;
            until("calls go on", || store.health().answered > answered + 50).await;
        }
        let calls = load.end().await;
        let errors: Vec<_> = calls.iter().filter_map(|call| call.error).collect();
        assert!(
            errors.is_empty(),
            "redirections are followed: {errors:?}, {:?}",
            store.health()
        );
        assert!(most_by_stamps(&calls, window) <= 60);
        assert!(most_by_calls(&calls, window) <= 60);
        limiter.reset("key").await.expect("an answer");
    }
}

/// While a slot moves, the node that serves its keys is asked by many calls at once, over one connection.
#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_are_served_while_their_slot_moves() {
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let store = cluster.store().await;
    let builder = SharedLimiter::builder("moves", quota("1000/h")).on_error(OnError::Deny);
    let limiter = Arc::new(builder.build(store).expect("a limiter"));
    limiter.check("key").await.expect("room");
    let (at, name) = cluster.names().last().expect("a name").clone();
    cluster.move_keys(cluster.slot(&name), at, (at + 1) % 3);
    let calls = (0..500).map(|_| {
        let limiter = Arc::clone(&limiter);
        tokio::spawn(async move { limiter.check("key").await })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.expect("no panic").expect("room");
    }
    let left = limiter.peek("key").await.expect("an answer")[0].remaining;
    assert_eq!(left, 1000 - 501, "each is charged once");
}

/// A node is lost with its slots. Calls to it end with an error, and succeed again when it is back.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_lost() {
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let store = ready(cluster.builder()).await;
    let builder = SharedLimiter::builder("lost", quota("60/500ms")).on_error(OnError::Deny);
    let limiter = Arc::new(builder.build(store.clone()).expect("a limiter"));
    limiter.check("key").await.expect("room");
    let at = cluster.names()[0].0;
    let load = Load::new(4, &limiter);
    cluster.nodes[at].kill();
    let failed = |store: &RedisStore| {
        let health = store.health();
        health.timed_out + health.disconnected + health.refused + health.unsent
    };
    let before = failed(&store);
    until("calls fail", || failed(&store) > before + 20).await;
    cluster.nodes[at].restart();
    comes_back(&limiter).await;
    let calls = load.end().await;
    // The permits of this node were lost with it.
    assert!(most_by_calls(&calls, Duration::from_millis(500)) <= 120);
}

/// A store whose calls and connections take long, on a machine with other work.
fn slow(builder: RedisStoreBuilder) -> RedisStoreBuilder {
    builder.supervision(|settings| {
        settings.connect_timeout = SLOW;
        settings.response_timeout = SLOW;
        settings.call_timeout = SLOW;
    })
}

/// An address of a node that is gone, or a node that accepts connections and answers nothing, costs time only.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_answer_keeps_no_cluster_from_being_connected_to() {
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    for node in &cluster.nodes {
        // Otherwise the other nodes answer nothing after a while.
        let _: () = node.ask("CONFIG SET cluster-node-timeout 600000");
    }
    // It accepts connections to its queue, and answers nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent = format!("redis://{}", silent.local_addr().expect("an address"));
    let live: Vec<String> = cluster.nodes.iter().map(Server::url).collect();
    let refused = "redis://127.0.0.1:1".to_owned();
    for urls in [
        vec![&silent, &live[0]],
        vec![&live[0], &silent],
        vec![&live[0], &live[1], &live[2], &silent],
        vec![&silent, &refused, &live[2]],
        vec![&refused, &live[1]],
    ] {
        let urls: Vec<&str> = urls.into_iter().map(String::as_str).collect();
        slow(RedisStore::cluster(&urls))
            .build()
            .expect("a store")
            .ready(PATIENCE)
            .await
            .expect("a connection");
    }
    let is_connected_to = async |cluster: &Cluster| {
        let store = slow(cluster.builder()).build().expect("a store");
        until("it is connected", || store.health().connections > 0).await;
    };
    for at in 0..3 {
        cluster.nodes[at].signal("-STOP");
        is_connected_to(&cluster).await;
        cluster.nodes[at].signal("-CONT");
    }
    // The last one is lost.
    cluster.nodes[2].kill();
    is_connected_to(&cluster).await;
}

/// The settings of a cluster are checked as they were given, and not as they are used.
#[tokio::test]
async fn times_of_a_cluster_have_the_ranges_of_other_stores() {
    let with = |connect: u64, call: u64| {
        let store = RedisStore::cluster(&["redis://127.0.0.1:1"]).supervision(|settings| {
            settings.connect_timeout = Duration::from_millis(connect);
            settings.call_timeout = Duration::from_millis(call);
        });
        store.build().map(drop).map_err(|error| error.to_string())
    };
    for (connect, call) in [(1, 100), (200, 150), (20_000, 20_000), (60_000, 60_000)] {
        assert_eq!(with(connect, call), Ok(()), "{connect} {call}");
    }
    for connect in [0, 60_001, 300_000] {
        let given = Duration::from_millis(connect);
        let expected = format!("invalid connect_timeout: {given:?} (expected 1ms to 60s)");
        assert_eq!(with(connect, 150), Err(expected));
    }
}

/// The node of a slot is lost. Its keys fail, and the keys of the other nodes are charged, renewed, refunded and reset, in whatever
/// order they are named.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_node_fails_only_its_own_keys() {
    let hour = Duration::from_secs(3600);
    for lost in 0..3 {
        let Some(mut cluster) = Cluster::start().await else {
            return;
        };
        for node in &cluster.nodes {
            // Otherwise the other nodes answer nothing after a while.
            let _: () = node.ask("CONFIG SET cluster-node-timeout 600000");
        }
        let builder = cluster.builder().supervision(|settings| {
            settings.connect_timeout = SLOW;
            settings.response_timeout = 5 * SLOW;
            settings.call_timeout = 5 * SLOW;
        });
        let store = ready(builder).await;
        let requests: Vec<CounterRequest> = (0..30)
            .map(|key| {
                let counting = [Counting::Log, Counting::Cells(5), Counting::Slots][usize::from(key % 3_u8)];
                CounterRequest::new("lost", u128::from(key), counting, 9, hour).with_slot((1, 1))
            })
            .collect();
        let charged = store.decide(&requests).await.expect("room");
        assert!(charged.is_admitted);
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        for (node, name) in cluster.names() {
            let at = requests.iter().position(|request| store.name_of(request) == name);
            if let Some(at) = at {
                if node == lost { &mut gone } else { &mut kept }.push(at);
            }
        }
        assert_eq!(gone.len() + kept.len(), requests.len());
        assert!(gone.len() > 3 && kept.len() > 3, "{gone:?}");
        // The keys of the lost node come first, last, and in between.
        let in_order = |at: &[usize]| at.iter().map(|&at| requests[at].clone()).collect::<Vec<_>>();
        let orders = [
            in_order(&[&*gone, &kept].concat()),
            in_order(&[&*kept, &gone].concat()),
            requests.clone(),
        ];
        cluster.nodes[lost].kill();
        let left = async |at: usize| {
            let peeked = store
                .peek(core::slice::from_ref(&requests[at]))
                .await
                .expect("an answer");
            peeked.statuses[0].remaining
        };
        let connected = async || until("it is connected", || store.health().connected).await;
        for requests in &orders {
            connected().await;
            assert!(store.reset(requests).await.is_err());
            connected().await;
            for &at in &kept {
                assert_eq!(left(at).await, 9, "reset");
            }
            assert!(store.charge(requests).await.is_err());
            connected().await;
            for &at in &kept {
                assert_eq!(left(at).await, 8, "charged");
            }
        }
        let statuses: Vec<CounterStatus> = orders[0].iter().map(|_| CounterStatus::with_room(0)).collect();
        // Only slots are released without a receipt.
        assert!(
            store
                .refund(&orders[0], &CheckResult::admitted(0, statuses))
                .await
                .is_err()
        );
        connected().await;
        for &at in &kept {
            let is_slot = requests[at].counting() == Counting::Slots;
            assert_eq!(left(at).await, if is_slot { 9 } else { 8 }, "refunded");
        }
    }
}

/// A rule with a block and one without, by keys in different slots.
#[tokio::test(flavor = "multi_thread")]
async fn violations_count_in_a_request_of_several_slots() {
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    let block = Block::new("3/min".parse().expect("a quota"), Duration::from_secs(600));
    let rules = SharedRules::builder()
        .rule(Rule::new("user", quota("2/h")).by(&by_user()).block(block))
        .rule(Rule::new("address", quota("4/h")).by(&by_address()))
        .build(cluster.store().await)
        .expect("rules");
    // The address denies the third of these, which is no violation of the user.
    for (user, admits) in [
        ("alice", true),
        ("alice", true),
        ("bob", true),
        ("bob", true),
        ("carol", false),
    ] {
        assert_eq!(rules.check(&Request::of(user, 1)).await.is_ok(), admits, "{user}");
    }
    for violation in 1..=3 {
        let denied = rules
            .check(&Request::of("alice", 2))
            .await
            .expect_err("two an hour");
        let blocks = denied.violations().filter(|status| status.is_block).count();
        assert_eq!(blocks, usize::from(violation == 3));
    }
    rules.reset(&Request::of("alice", 2)).await.expect("an answer");
    assert!(rules.check(&Request::of("alice", 2)).await.is_err());
    rules.unblock(&Request::of("alice", 2)).await.expect("an answer");
    rules.check(&Request::of("alice", 2)).await.expect("a permit");
    let counts = rules.counts().map(|(_, counts)| counts.blocks);
    assert_eq!(counts.collect::<Vec<_>>(), [1, 0]);
}

/// A slot moves to a node that owns none, as when a cluster grows.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_moves_to_a_node_without_slots() {
    let Some(mut cluster) = Cluster::start().await else {
        return;
    };
    let store = cluster.store().await;
    let builder = SharedLimiter::builder("moves", quota("1000/h")).on_error(OnError::Deny);
    let limiter = builder.build(store).expect("a limiter");
    limiter.check("key").await.expect("room");
    let (at, name) = cluster.names().last().expect("a name").clone();
    let slot = cluster.slot(&name);
    cluster.nodes.push(Server::node().expect("one more server"));
    let newest = &cluster.nodes[3];
    let meet = format!("CLUSTER MEET 127.0.0.1 {} {}", newest.port(), newest.bus());
    let _: () = cluster.nodes[0].ask(&meet);
    until("all nodes know each other", || {
        cluster.nodes.iter().all(|node| {
            let info: String = node.ask("CLUSTER INFO");
            let parts = [
                "cluster_state:ok",
                "cluster_known_nodes:4",
                "cluster_slots_assigned:16384",
            ];
            parts.iter().all(|part| info.contains(part))
        })
    })
    .await;
    cluster.move_keys(slot, at, 3);
    for _ in 0..20 {
        limiter.check("key").await.expect("room");
    }
    for node in [3, at] {
        cluster.set_slot(slot, node, "NODE", 3);
    }
    for _ in 0..20 {
        limiter.check("key").await.expect("room");
    }
    let left = limiter.peek("key").await.expect("an answer")[0].remaining;
    assert_eq!(left, 1000 - 41, "each is charged once");
}
