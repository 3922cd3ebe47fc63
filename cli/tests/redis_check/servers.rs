//! Servers that answer, with good and with bad settings.

use crate::server::{PATIENCE, Server};
use crate::tool::{Report, run, run_with, stderr, stdout};

/// Sends a command of the test.
pub(crate) fn order(server: &Server, words: &str) {
    let mut command = redis::Cmd::new();
    for word in words.split(' ') {
        command.arg(word);
    }
    let () = command.query(&mut server.client()).expect("it is done");
}

pub(crate) fn names(server: &Server) -> Vec<String> {
    redis::cmd("KEYS")
        .arg("*")
        .query(&mut server.client())
        .expect("names")
}

/// A server without a finding above `ok`.
fn good() -> Option<Server> {
    Server::with(&[
        "--maxmemory",
        "100mb",
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
    ])
}

/// A field of INFO.
fn info(server: &Server, name: &str) -> Option<String> {
    let info: String = redis::cmd("INFO").query(&mut server.client()).expect("info");
    let mut lines = info.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(other, _)| *other == name)?;
    Some(value.to_owned())
}

/// The number of calls of a command.
fn calls(server: &Server, command: &str) -> u64 {
    let stats: String = redis::cmd("INFO")
        .arg("commandstats")
        .query(&mut server.client())
        .expect("info");
    let name = format!("cmdstat_{command}:calls=");
    let line = stats.lines().find_map(|line| line.strip_prefix(&name));
    line.and_then(|line| line.split(',').next()?.parse().ok())
        .unwrap_or(0)
}

/// The checks without the one of latency, which depends on what else the machine does.
const STEADY: [&str; 6] = [
    "server",
    "rights",
    "eviction",
    "persistence",
    "replication",
    "scripts",
];

#[test]
fn a_good_server() {
    let Some(server) = good() else { return };
    order(&server, "SET ringgate:other 1");
    let report = Report::to(&server.url());
    for check in STEADY {
        assert_eq!(report.level(check), "ok", "{check}: {report:?}");
    }
    let checks: Vec<&str> = report
        .findings()
        .iter()
        .filter_map(|finding| finding["check"].as_str())
        .collect();
    let expected = [
        "server",
        "eviction",
        "persistence",
        "replication",
        "rights",
        "scripts",
        "latency",
    ];
    assert_eq!(checks, expected);

    let (product, version) = match info(&server, "valkey_version") {
        Some(version) => ("Valkey", version),
        None => ("Redis", info(&server, "redis_version").expect("a version")),
    };
    let expected = format!("{product} {}, a single server", version.trim());
    assert_eq!(report.found("server"), ("ok", &*expected));
    assert_eq!(report.all["server"], server.url());
    // The check has made decisions, and has removed their keys.
    assert!(calls(&server, "evalsha") > 10 && calls(&server, "zadd") > 1 && calls(&server, "hincrby") > 1);
    assert_eq!(names(&server), ["ringgate:other"]);
}

/// The text form has the findings of the JSON form.
#[test]
fn text_and_json_agree() {
    let Some(server) = Server::start() else { return };
    let output = run(&format!("check --timeout 20000 {}", server.url()));
    assert_eq!(stderr(&output), "");
    let text = stdout(&output);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.starts_with(&format!("{}\n", server.url())), "{text}");
    let report = Report::to(&server.url());
    for check in STEADY {
        let (level, found) = report.found(check);
        assert!(
            words.contains(&format!("{level} {check}: {found}")),
            "{check}: {found} in {text}"
        );
    }
    assert!(
        words.contains(&format!("-> {}", report.advice("persistence"))),
        "{text}"
    );
    for line in ["ok       server: ", "problems: 0, warnings: "] {
        assert!(
            text.lines().any(|shown| shown.starts_with(line)),
            "{line} in {text}"
        );
    }
}

#[test]
fn a_server_that_evicts() {
    let Some(server) = good() else { return };
    for policy in ["allkeys-lru", "allkeys-random", "volatile-lru", "volatile-ttl"] {
        order(&server, &format!("CONFIG SET maxmemory-policy {policy}"));
        let report = Report::to(&server.url());
        let (level, found) = report.found("eviction");
        assert!(level == "problem" && found.contains(policy), "{found}");
        assert!(
            report.advice("eviction").contains("maxmemory-policy noeviction"),
            "{report:?}"
        );
        assert_eq!(report.status, Some(1));
    }
    // Without maxmemory, no key is evicted.
    order(&server, "CONFIG SET maxmemory 0");
    assert_eq!(Report::to(&server.url()).level("eviction"), "warning");
}

#[test]
fn a_server_that_is_full() {
    let Some(server) = good() else { return };
    order(&server, "CONFIG SET maxmemory 1");
    let report = Report::to(&server.url());
    let (level, found) = report.found("scripts");
    assert!(level == "problem" && found.contains("OOM"), "{found}");
    assert_eq!(
        report.advice("scripts"),
        "CONFIG SET maxmemory with a larger size, or free memory."
    );
    // The finding about rights does not depend on memory.
    assert_eq!(report.level("rights"), "ok");
    assert_eq!(names(&server).len(), 0);
}

#[test]
fn persistence_settings() {
    let Some(server) = Server::start() else { return };
    let persistence = || {
        let report = Report::to(&server.url());
        let (level, found) = report.found("persistence");
        (level.to_owned(), found.to_owned())
    };
    let is = |level: &str, found: &str| (level.to_owned(), found.to_owned());
    assert_eq!(persistence(), is("warning", "appendonly no"));
    order(&server, "CONFIG SET appendonly yes");
    assert_eq!(persistence(), is("ok", "appendfsync everysec"));
    order(&server, "CONFIG SET appendfsync no");
    assert_eq!(persistence(), is("warning", "appendfsync no"));
}

#[test]
fn a_replica_and_its_primary() {
    let (Some(primary), Some(replica)) = (good(), good()) else {
        return;
    };
    order(&replica, &format!("REPLICAOF 127.0.0.1 {}", primary.port()));
    let began = std::time::Instant::now();
    while info(&replica, "master_link_status").as_deref() != Some("up") {
        assert!(began.elapsed() < PATIENCE, "the replica does not follow");
        std::thread::sleep(core::time::Duration::from_millis(5));
    }
    let report = Report::to(&replica.url());
    let of = format!("a replica of 127.0.0.1:{}", primary.port());
    assert_eq!(report.found("replication"), ("problem", &*of));
    assert!(
        report
            .advice("replication")
            .contains(&format!("127.0.0.1:{}", primary.port()))
    );
    assert_eq!(report.level("scripts"), "problem");
    assert_eq!(report.advice("scripts"), "Use the address of the primary.");

    order(&replica, "CONFIG SET replica-read-only no");
    let report = Report::to(&replica.url());
    assert_eq!(report.found("replication"), ("problem", &*of));
    assert_eq!(report.level("scripts"), "ok");

    let report = Report::to(&primary.url());
    let replicas = "a primary, replicas: 1";
    assert_eq!(report.found("replication"), ("warning", replicas));
    let advice = report.advice("replication");
    let command = advice.split('.').next().expect("a command");
    order(&primary, command);
    assert_eq!(Report::to(&primary.url()).found("replication"), ("ok", replicas));

    // With too few replicas, no key is written.
    order(&primary, "CONFIG SET min-replicas-to-write 2");
    let report = Report::to(&primary.url());
    let (level, found) = report.found("scripts");
    assert!(level == "problem" && found.contains("NOREPLICAS"), "{found}");
    assert_eq!((names(&primary).len(), names(&replica).len()), (0, 0));
}

#[test]
fn other_addresses() {
    let Some(server) = good() else { return };
    let socket = server.socket_url();
    let report = Report::to(&socket);
    assert_eq!(report.all["server"], socket);
    assert_eq!(report.level("scripts"), "ok");
    // Another database.
    let report = Report::to(&format!("{}/3", server.url()));
    assert_eq!(report.all["server"], format!("{}/3", server.url()));
    assert_eq!(report.level("scripts"), "ok");
    let other = Report::to(&format!("{}/99", server.url()));
    assert_eq!(other.level("answers"), "problem");
    assert!(
        other.advice("answers").contains("CONFIG GET databases"),
        "{other:?}"
    );
    // From standard input.
    let output = run_with("check --json --timeout 20000 -", &format!("\n{socket}\n"));
    assert_eq!(Report::by(&output).all["server"], socket);
    assert!(report.of("addresses").is_none(), "{report:?}");
    // The first server that answers is checked, and the report names the others.
    let report = Report::to(&format!(
        "redis://127.0.0.1:1 {} redis://localhost:2",
        server.url()
    ));
    assert_eq!(
        (&report.all["server"], report.level("scripts")),
        (&server.url().into(), "ok")
    );
    let (level, found) = report.found("addresses");
    assert!(
        level == "warning" && found.contains("127.0.0.1:1") && found.contains("localhost:2"),
        "{found}"
    );
}
