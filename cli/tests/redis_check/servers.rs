//! Servers that answer, with good and with bad settings.

use crate::server::{PATIENCE, Server};
use crate::tool::{Said, run, run_with, stderr, stdout};

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

#[test]
fn a_good_server() {
    let Some(server) = good() else { return };
    order(&server, "SET ringgate:other 1");
    let said = Said::to(&server.url());
    // Latency depends on what else the machine does.
    for check in [
        "server",
        "rights",
        "eviction",
        "persistence",
        "replication",
        "scripts",
    ] {
        assert_eq!(said.level(check), "ok", "{check}: {said:?}");
    }
    let checks: Vec<&str> = said
        .findings()
        .iter()
        .filter_map(|finding| finding["check"].as_str())
        .collect();
    let expected = [
        "server",
        "rights",
        "eviction",
        "persistence",
        "replication",
        "scripts",
        "latency",
    ];
    assert_eq!(checks, expected);

    let (kind, version) = match info(&server, "valkey_version") {
        Some(version) => ("Valkey", version),
        None => ("Redis", info(&server, "redis_version").expect("a version")),
    };
    assert_eq!(said.all["kind"], kind);
    assert_eq!(said.all["version"], version);
    assert_eq!(said.all["server"], server.url());

    let figures = said.all["latency"].as_array().expect("figures");
    let what: Vec<&str> = figures
        .iter()
        .filter_map(|figures| figures["what"].as_str())
        .collect();
    assert_eq!(what, ["PING", "strict, cells", "strict, log"]);
    for figures in figures {
        let number = |name: &str| figures[name].as_u64().expect("a number");
        assert!((1..=300).contains(&number("answers")), "{figures}");
        assert!(
            number("p50_us") > 0 && number("p50_us") <= number("p99_us"),
            "{figures}"
        );
        assert!(number("p99_us") <= number("max_us"), "{figures}");
    }
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
    let said = Said::to(&server.url());
    for check in [
        "server",
        "rights",
        "eviction",
        "persistence",
        "replication",
        "scripts",
    ] {
        let (level, found) = said.found(check);
        // The used memory changes between the runs.
        let found = found.split(',').next().expect("a part");
        assert!(
            words.contains(&format!("{level} {check} {found}")),
            "{check}: {found} in {text}"
        );
    }
    assert!(
        words.contains(&format!("-> {}", said.advice("persistence"))),
        "{text}"
    );
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    for line in ["ok       latency", "problem: "] {
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
        let said = Said::to(&server.url());
        let (level, found) = said.found("eviction");
        assert!(level == "problem" && found.contains(policy), "{found}");
        assert!(
            said.advice("eviction").contains("maxmemory-policy noeviction"),
            "{said:?}"
        );
        assert_eq!(said.status, Some(1));
    }
    // Without maxmemory, no key is evicted.
    order(&server, "CONFIG SET maxmemory 0");
    assert_eq!(Said::to(&server.url()).level("eviction"), "note");
}

#[test]
fn a_server_that_is_full() {
    let Some(server) = good() else { return };
    order(&server, "CONFIG SET maxmemory 1");
    let said = Said::to(&server.url());
    assert_eq!(said.level("eviction"), "warning");
    let (level, found) = said.found("scripts");
    assert!(level == "problem" && found.contains("OOM"), "{found}");
    assert_eq!(
        said.advice("scripts"),
        "CONFIG SET maxmemory with a larger size, or free memory."
    );
    // The finding about rights does not depend on memory.
    assert_eq!(said.level("rights"), "ok");
    assert_eq!(names(&server).len(), 0);
}

#[test]
fn persistence_settings() {
    let Some(server) = Server::start() else { return };
    let persistence = || {
        let said = Said::to(&server.url());
        let (level, found) = said.found("persistence");
        (level.to_owned(), found.to_owned())
    };
    let is = |level: &str, found: &str| (level.to_owned(), found.to_owned());
    assert_eq!(persistence(), is("warning", "appendonly no, no snapshots"));
    let mut save = redis::cmd("CONFIG");
    let () = save
        .arg("SET")
        .arg("save")
        .arg("3600 1")
        .query(&mut server.client())
        .expect("set");
    assert_eq!(persistence(), is("warning", "appendonly no, save 3600 1"));
    order(&server, "CONFIG SET appendonly yes");
    assert_eq!(
        persistence(),
        is("note", "appendonly yes, appendfsync everysec, save 3600 1")
    );
    order(&server, "CONFIG SET appendfsync no");
    assert_eq!(
        persistence(),
        is("warning", "appendonly yes, appendfsync no, save 3600 1")
    );
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
    let said = Said::to(&replica.url());
    let of = format!("a read-only replica of 127.0.0.1:{}", primary.port());
    assert_eq!(said.found("replication"), ("problem", &*of));
    assert!(
        said.advice("replication")
            .contains(&format!("127.0.0.1:{}", primary.port()))
    );
    assert_eq!(said.level("scripts"), "problem");
    assert_eq!(said.advice("scripts"), "Use the address of the primary.");

    order(&replica, "CONFIG SET replica-read-only no");
    let said = Said::to(&replica.url());
    let (level, found) = said.found("replication");
    assert!(
        level == "problem" && found.starts_with("a writable replica of "),
        "{found}"
    );
    assert_eq!(said.level("scripts"), "ok");

    let said = Said::to(&primary.url());
    let (level, found) = said.found("replication");
    assert!(
        level == "note" && found.starts_with("a primary with 1 replicas"),
        "{found}"
    );

    // With too few replicas, no key is written.
    order(&primary, "CONFIG SET min-replicas-to-write 2");
    let said = Said::to(&primary.url());
    let (level, found) = said.found("scripts");
    assert!(level == "problem" && found.contains("NOREPLICAS"), "{found}");
    assert_eq!((names(&primary).len(), names(&replica).len()), (0, 0));
}

#[test]
fn other_addresses() {
    let Some(server) = good() else { return };
    let socket = server.socket_url();
    let said = Said::to(&socket);
    assert_eq!(said.all["server"], socket);
    assert_eq!(said.level("scripts"), "ok");
    // Another database.
    let said = Said::to(&format!("{}/3", server.url()));
    assert_eq!(said.all["server"], format!("{}/3", server.url()));
    assert_eq!(said.level("scripts"), "ok");
    // From standard input.
    let output = run_with("check --json --timeout 20000 -", &format!("\n{socket}\n"));
    assert_eq!(Said::by(&output).all["server"], socket);
    assert!(said.of("addresses").is_none(), "{said:?}");
    // The first server that answers is checked, and the report names the others.
    let said = Said::to(&format!(
        "redis://127.0.0.1:1 {} redis://localhost:2",
        server.url()
    ));
    assert_eq!(
        (&said.all["server"], said.level("scripts")),
        (&server.url().into(), "ok")
    );
    let (level, found) = said.found("addresses");
    assert!(
        level == "warning" && found.contains("127.0.0.1:1") && found.contains("localhost:2"),
        "{found}"
    );
}
