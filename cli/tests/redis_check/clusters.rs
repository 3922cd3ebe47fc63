//! Clusters of two nodes.

use std::time::Instant;

use crate::server::{PATIENCE, Server};
use crate::servers::{names, order};
use crate::tool::Report;

/// Starts two primaries with half of the slots each.
fn two() -> Option<[Server; 2]> {
    let nodes = [Server::node()?, Server::node()?];
    order(&nodes[0], "CLUSTER ADDSLOTSRANGE 0 8191");
    order(&nodes[1], "CLUSTER ADDSLOTSRANGE 8192 16383");
    order(
        &nodes[0],
        &format!("CLUSTER MEET 127.0.0.1 {} {}", nodes[1].port(), nodes[1].bus()),
    );
    let began = Instant::now();
    for node in &nodes {
        let info = || -> String {
            let mut info = redis::cmd("CLUSTER");
            info.arg("INFO").query(&mut node.client()).expect("info")
        };
        while !info().contains("cluster_state:ok") {
            assert!(began.elapsed() < PATIENCE, "{}", info());
            std::thread::sleep(core::time::Duration::from_millis(5));
        }
    }
    Some(nodes)
}

#[test]
fn a_cluster() {
    let Some(nodes) = two() else { return };
    for node in &nodes {
        order(node, "CONFIG SET maxmemory 100mb");
    }
    let report = Report::to(&nodes[0].url());
    assert!(
        report.found("server").1.ends_with(", a node of a cluster"),
        "{report:?}"
    );
    for check in ["server", "rights", "replication", "scripts"] {
        assert_eq!(report.level(check), "ok", "{check}: {report:?}");
    }
    let (level, found) = report.found("cluster");
    let expected = "cluster_state ok, 16384 of 16384 slots served, primaries: 2";
    assert_eq!((level, found), ("ok", expected));
    for node in &nodes {
        assert_eq!(names(node).len(), 0);
    }

    // A problem of one node is a problem, and names the node.
    order(&nodes[1], "CONFIG SET maxmemory-policy allkeys-lru");
    order(&nodes[1], "ACL SETUSER default -zrem");
    let report = Report::to(&format!("{} {}", nodes[0].url(), nodes[1].url()));
    let problems: Vec<_> = report
        .findings()
        .iter()
        .filter(|finding| finding["level"] == "problem")
        .collect();
    let place = format!("127.0.0.1:{}", nodes[1].port());
    for check in ["eviction", "rights"] {
        let of: Vec<_> = problems
            .iter()
            .filter(|finding| finding["check"] == check)
            .collect();
        assert_eq!(of.len(), 1, "{report:?}");
        assert_eq!(of[0]["nodes"], serde_json::json!([place]), "{report:?}");
    }
}

#[test]
fn a_cluster_without_some_slots() {
    let Some(nodes) = two() else { return };
    order(&nodes[1], "CLUSTER DELSLOTSRANGE 16000 16383");
    let began = Instant::now();
    let report = loop {
        let report = Report::to(&nodes[1].url());
        if report.found("cluster").1.starts_with("cluster_state fail") {
            break report;
        }
        assert!(began.elapsed() < PATIENCE, "{report:?}");
    };
    assert_eq!((report.level("cluster"), report.status), ("problem", Some(1)));
    assert!(
        report.found("cluster").1.contains("16000 of 16384 slots"),
        "{report:?}"
    );
}

/// A cluster of one node, which a program may take for a single server.
#[test]
fn a_cluster_of_one_node_names_the_constructor() {
    let Some(node) = Server::node() else { return };
    order(&node, "CLUSTER ADDSLOTSRANGE 0 16383");
    let began = Instant::now();
    let report = loop {
        let report = Report::to(&node.url());
        if report.found("cluster").1.starts_with("cluster_state ok") {
            break report;
        }
        assert!(began.elapsed() < PATIENCE, "{report:?}");
    };
    assert_eq!((report.level("cluster"), report.status), ("warning", Some(0)));
    assert!(
        report.advice("cluster").contains("RedisStore::cluster"),
        "{report:?}"
    );
    for check in ["server", "rights", "scripts"] {
        assert_eq!(report.level(check), "ok", "{check}: {report:?}");
    }
    let other = Report::to(&format!("{}/3", node.url()));
    assert!(
        other.advice("answers").starts_with("Leave the number"),
        "{other:?}"
    );
}
