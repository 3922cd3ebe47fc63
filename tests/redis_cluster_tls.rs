//! A cluster whose nodes speak TLS, with their clients and with each other.
//!
//! It is a test program of its own, because it installs a provider of cryptography for the whole process.
#![cfg(all(
    feature = "redis-cluster",
    feature = "redis-tls",
    unix,
    not(any(miri, ringgate_loom))
))]

extern crate alloc;

#[path = "redis/support/certificates.rs"]
mod certificates;
#[expect(dead_code, reason = "the tests of the store use the rest")]
#[path = "redis/support/server.rs"]
mod server;
#[path = "common/skipped.rs"]
mod skipped;

use ringgate::redis::{RedisStore, RedisStoreBuilder, install_tls_provider};
use ringgate::shared::{DecidedBy, OnError, SharedLimiter};

use self::certificates::{Certificates, EXPIRED, VALID};
use self::server::{Server, free_port, patient, ready, until};

/// A node, and its port for TLS.
type Node = (Server, u16);

/// Three primaries, each with a third of the slots.
async fn cluster(certificates: &Certificates, auth_clients: &str) -> Option<Vec<Node>> {
    let mut nodes: Vec<(Server, u16, u16)> = Vec::new();
    for slots in [(0, 5_460), (5_461, 10_921), (10_922, 16_383)] {
        let bus = free_port();
        let bus_text = bus.to_string();
        let mut settings = vec!["--cluster-enabled", "yes", "--cluster-node-timeout", "5000"];
        settings.extend(["--tls-cluster", "yes", "--cluster-port", &bus_text]);
        let (server, port) = certificates.serve(auth_clients, &settings)?;
        let mut add = redis::cmd("CLUSTER");
        add.arg("ADDSLOTSRANGE").arg(slots.0).arg(slots.1);
        let () = add.query(&mut server.client()).expect("slots");
        for (other, ..) in &nodes {
            let mut meet = redis::cmd("CLUSTER");
            meet.arg("MEET").arg("127.0.0.1").arg(port).arg(bus);
            let () = meet.query(&mut other.client()).expect("an answer");
        }
        nodes.push((server, port, bus));
    }
    until("the cluster is up", || {
        nodes.iter().all(|(node, ..)| {
            let mut info = redis::cmd("CLUSTER");
            let info: String = info.arg("INFO").query(&mut node.client()).expect("info");
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        })
    })
    .await;
    Some(
        nodes
            .into_iter()
            .map(|(server, port, _)| (server, port))
            .collect(),
    )
}

fn builder(certificates: &Certificates, nodes: &[Node], roots: &str) -> RedisStoreBuilder {
    let urls: Vec<String> = nodes
        .iter()
        .map(|(_, port)| format!("rediss://127.0.0.1:{port}"))
        .collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let roots = std::fs::read(certificates.path(roots)).expect("a file");
    patient(RedisStore::cluster(&urls)).tls_roots(roots)
}

/// Keys of all three nodes are decided.
async fn decides(nodes: &[Node], builder: RedisStoreBuilder) {
    let store = ready(builder).await;
    let limiter = SharedLimiter::builder("tls", "2/60s".parse().expect("a quota"));
    let limiter = limiter.on_error(OnError::Deny).build(store).expect("a limiter");
    for key in 0..30_u8 {
        for is_admitted in [true, true, false] {
            let answer = limiter.check([key]).await;
            assert_eq!(answer.is_ok(), is_admitted, "{answer:?}");
            let decided_by =
                answer.map_or_else(|denied| denied.decided_by(), |admitted| admitted.decided_by());
            assert_eq!(decided_by, DecidedBy::Store);
        }
    }
    let keys = nodes.iter().map(|(node, _)| {
        let keys = redis::cmd("DBSIZE").query::<u64>(&mut node.client());
        keys.expect("a number")
    });
    let keys: Vec<u64> = keys.collect();
    assert!(keys.iter().all(|&keys| keys > 0), "{keys:?}");
    assert_eq!(keys.iter().sum::<u64>(), 30);
}

/// The reason why there is no connection.
async fn reason(builder: RedisStoreBuilder) -> String {
    let store = builder.build().expect("a store");
    until("an attempt has failed", || store.health().last_error.is_some()).await;
    assert!(!store.health().connected);
    store.health().last_error.expect("an error").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn right_and_wrong_certificates() {
    let Some(certificates) = Certificates::new() else {
        return;
    };
    install_tls_provider().expect("a processor with a provider");
    let Some(nodes) = cluster(&certificates, "no").await else {
        return;
    };
    decides(&nodes, builder(&certificates, &nodes, "ours.pem")).await;
    let error = reason(builder(&certificates, &nodes, "other.pem")).await;
    assert!(error.contains("UnknownIssuer"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_of_clients() {
    let Some(certificates) = Certificates::new() else {
        return;
    };
    install_tls_provider().expect("a processor with a provider");
    let Some(nodes) = cluster(&certificates, "yes").await else {
        return;
    };
    let with = |name: &str| {
        let read = |ending| std::fs::read(certificates.path(&format!("{name}.{ending}"))).expect("a file");
        builder(&certificates, &nodes, "ours.pem").client_certificate(read("pem"), read("key"))
    };
    certificates.issue("ours", "client", "DNS:client", VALID);
    decides(&nodes, with("client")).await;
    certificates.issue("ours", "expired", "DNS:client", EXPIRED);
    for builder in [with("expired"), builder(&certificates, &nodes, "ours.pem")] {
        let error = reason(builder).await;
        assert!(error.contains("ertificate"), "{error}");
    }
}
