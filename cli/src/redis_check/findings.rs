//! The states of a server and of a cluster.

use super::connection::Address;
use super::facts::Facts;
use super::finding::Finding;
use super::finding::Level::{Ok, Problem, Warning};

/// Advice for errors of the server whose message does not say what to do.
const ADVICE: [(&str, &str); 10] = [
    ("NOPERM", "Type the command of the finding about rights."),
    ("READONLY", "Use the address of the primary."),
    ("OOM", "CONFIG SET maxmemory with a larger size, or free memory."),
    ("MISCONF", "See the server's log for why it cannot write to disk."),
    (
        "NOREPLICAS",
        "Restore replicas, or CONFIG SET min-replicas-to-write 0.",
    ),
    (
        "DBINDEX",
        "Use a number in the address that is less than that of CONFIG GET databases.",
    ),
    (
        "SELECTISNOTALLOWED",
        "Leave the number of a database out of the address: a cluster has one.",
    ),
    ("CLUSTERDOWN", "See the finding about the cluster."),
    (
        "CROSSSLOT",
        "Connect by RedisStore::cluster, and check the address of a node instead of a proxy.",
    ),
    (
        "SAMESLOT",
        "Connect by RedisStore::cluster, and check the address of a node instead of a proxy.",
    ),
];

/// The meaning of an error in answer to every call.
const ERRORS: &str = "Every call is an error, and OnError decides.";

/// The finding about an error that is not a missing right.
pub(super) fn of_error(check: &'static str, found: String, error: &str) -> Finding {
    // The client changes the spelling of some codes.
    let error = error.to_uppercase().replace(' ', "");
    let advice = ADVICE.iter().find(|(code, _)| error.contains(code));
    let advice = advice.map_or("See the server's log.", |(_, advice)| advice);
    Finding::new(check, Problem, found, ERRORS).advice(advice)
}

/// The finding about an error in answer to the first call; `None` if the error concerns a right only.
pub(super) fn of_login(user: &str, error: &str) -> Option<Finding> {
    Some(match error.split(' ').next()? {
        "NOPERM" => return None,
        "WRONGPASS" => {
            let found = format!("wrong password for the user {user:?}");
            let advice = "Use the password of ACL SETUSER or requirepass; write @ : / ? # % as %40 and so on. A user that is \
                          unknown or off has the same answer.";
            Finding::new("login", Problem, found, ERRORS).advice(advice)
        }
        "NOAUTH" => {
            let found = "a password is required, and the address has none";
            let advice = "Use redis://user:password@host:port or redis://:password@host:port.";
            Finding::new("login", Problem, found, ERRORS).advice(advice)
        }
        _ => of_error("answers", format!("every answer is the error {error:?}"), error),
    })
}

/// The finding about scripts when rights are missing.
pub(super) fn scripts_not_tried() -> Finding {
    let means = "A script that stops in the middle could leave keys without an expiry.";
    Finding::new("scripts", Warning, "not tried: rights are missing", means)
        .advice("Type the command of the finding about rights, and check again.")
}

/// The finding about addresses that were not checked: those without an answer, and those after a server that is no node of a
/// cluster.
pub(super) fn of_addresses(silent: &[(String, String)], others: &[Address]) -> Option<Finding> {
    let silent = silent
        .iter()
        .map(|(place, reason)| format!("no answer from {place}: {reason}"));
    let others = others
        .iter()
        .map(|other| format!("{} is not part of a cluster with it", other.place()));
    let found: Vec<String> = silent.chain(others).collect();
    let means =
        "Only the server above was checked. Limiters with one of these addresses may not share its counts.";
    let advice = "Start the servers that do not answer. Check servers that are not one cluster one by one.";
    (!found.is_empty()).then(|| Finding::new("addresses", Warning, found.join("; "), means).advice(advice))
}

/// The findings about one server.
pub(super) fn of_server(facts: &Facts) -> Vec<Finding> {
    let others = [eviction(facts), persistence(facts), replication(facts)];
    let others = others.into_iter().flatten();
    core::iter::once(server(facts))
        .chain(others.filter(|_| !facts.is_sentinel()))
        .collect()
}

fn server(facts: &Facts) -> Finding {
    let Some((product, version)) = facts.product() else {
        let means = "Eviction, persistence and replication are not checked.";
        return Finding::new("server", Warning, "unknown: the user may not run INFO", means)
            .advice("Check again with a user that has the right +info.");
    };
    let kind = match facts {
        _ if facts.is_sentinel() => "a Sentinel",
        _ if facts.is_cluster() => "a node of a cluster",
        _ => "a single server",
    };
    let major = version.split('.').next().and_then(|major| major.parse().ok());
    let (level, means, advice) = if facts.is_sentinel() {
        (
            Problem,
            "A Sentinel keeps no counts: every call is an error.",
            "SENTINEL GET-MASTER-ADDR-BY-NAME prints the address to use.",
        )
    } else if major.is_some_and(|major: u32| major >= 7) {
        (Ok, "The scripts are tested with Redis 7.0 and Valkey 8.0.", "")
    } else {
        (
            Warning,
            "The scripts are tested with Redis 7.0 and Valkey 8.0 only.",
            "Use Redis or Valkey of version 7 or later.",
        )
    };
    Finding::new("server", level, format!("{product} {version}, {kind}"), means).advice(advice)
}

/// Whether counts may be evicted.
fn eviction(facts: &Facts) -> Option<Finding> {
    let policy = facts.get("maxmemory_policy")?;
    let maxmemory = facts.number("maxmemory");
    let (level, means, advice) = match (policy, maxmemory) {
        ("noeviction", 0) => (
            Ok,
            "No count is evicted. The machine may kill the server when it has no memory left.",
            "",
        ),
        ("noeviction", _) => (
            Ok,
            "No count is evicted. When memory is full, every call is an error, and OnError decides.",
            "",
        ),
        (_, 0) => (
            Warning,
            "No count is evicted as long as there is no maxmemory.",
            "CONFIG SET maxmemory-policy noeviction, before maxmemory is set.",
        ),
        _ => (
            Problem,
            "For each evicted key, up to L more are admitted in a window, in every mode.",
            "CONFIG SET maxmemory-policy noeviction, or use a server for limits alone.",
        ),
    };
    let found = match maxmemory {
        0 => format!("maxmemory-policy {policy}, no maxmemory"),
        bytes => format!("maxmemory-policy {policy}, maxmemory {} MiB", bytes >> 20),
    };
    Some(Finding::new("eviction", level, found, means).advice(advice))
}

/// Counts that a restart loses.
fn persistence(facts: &Facts) -> Option<Finding> {
    let appends = facts.get("aof_enabled")? == "1";
    let sync = facts.get("appendfsync").unwrap_or("unknown");
    if !appends {
        let means = "A restart loses the counts since the last snapshot, or all without one: up to L more are admitted in a window.";
        return Some(
            Finding::new("persistence", Warning, "appendonly no", means)
                .advice("CONFIG SET appendonly yes, unless windows are shorter than a restart."),
        );
    }
    if facts
        .get("aof_last_write_status")
        .is_some_and(|status| status != "ok")
    {
        let found = "the last write of the append-only file failed";
        let means = "A restart loses the counts that were not written. Writes may be refused (MISCONF).";
        return Some(
            Finding::new("persistence", Warning, found, means).advice("See the server's log for the cause."),
        );
    }
    let (level, means, advice) = match sync {
        "always" => (Ok, "A restart loses no count.", ""),
        "everysec" => (
            Ok,
            "A crash of the machine loses the counts of up to two seconds: up to L more are admitted in a window.",
            "",
        ),
        "unknown" => (
            Warning,
            "A crash of the machine may lose counts: up to L more are admitted in a window.",
            "Check again with a user that has the right +config|get.",
        ),
        _ => (
            Warning,
            "A crash of the machine loses the counts of half a minute or more: up to L more are admitted in a window.",
            "CONFIG SET appendfsync everysec.",
        ),
    };
    Some(Finding::new("persistence", level, format!("appendfsync {sync}"), means).advice(advice))
}

/// The role of the server, and counts that a failover loses.
fn replication(facts: &Facts) -> Option<Finding> {
    if facts.get("role")? == "slave" {
        let value = |name| facts.get(name).unwrap_or("?");
        let primary = format!("{}:{}", value("master_host"), value("master_port"));
        let means =
            "Admissions are errors. If the replica is writable, the next synchronization erases its counts.";
        return Some(
            Finding::new("replication", Problem, format!("a replica of {primary}"), means)
                .advice(format!("Use the address of the primary, {primary}.")),
        );
    }
    let replicas = facts.number("connected_slaves");
    // INFO has this field if min-replicas-to-write is set.
    let is_bounded = facts.get("min_slaves_good_slaves").is_some();
    let (level, means, advice) = match replicas {
        _ if is_bounded => (
            Ok,
            "A failover loses the counts of about min-replicas-max-lag at most. Without a replica, calls are errors.",
            "",
        ),
        0 => (
            Ok,
            "No failover can lose counts. While the server is down, OnError decides.",
            "",
        ),
        _ => (
            Warning,
            "A failover may lose the last counts, without a bound: up to L more are admitted in a window.",
            "CONFIG SET min-replicas-to-write 1. Without a replica, every call is then an error.",
        ),
    };
    let found = format!("a primary, replicas: {replicas}");
    Some(Finding::new("replication", level, found, means).advice(advice))
}

/// The finding about a cluster, of which some primaries are not reachable from here.
pub(super) fn of_cluster(facts: &Facts, unreachable: &[String]) -> Finding {
    let Some(state) = facts.get("cluster_state").filter(|_| !facts.nodes.is_empty()) else {
        let found = "unknown: the user may not run CLUSTER INFO or CLUSTER NODES";
        return Finding::new("cluster", Warning, found, "Only this node is checked.")
            .advice("Check again with a user that has the rights +cluster|info +cluster|nodes.");
    };
    let slots = facts.number("cluster_slots_ok");
    let primaries = facts.nodes.iter().filter(|node| node.is_primary).count();
    let found = format!("cluster_state {state}, {slots} of 16384 slots served, primaries: {primaries}");
    let means = "Calls for keys of the missing slots are errors, and OnError decides.";
    if state != "ok" || slots != 16384 {
        let advice = "Restore the nodes or move their slots: redis-cli --cluster check, --cluster fix.";
        Finding::new("cluster", Problem, found, means).advice(advice)
    } else if primaries == 1 && unreachable.is_empty() {
        let means = "RedisStore::builder connects here as to a single server, but a request with two keys is an error (CROSSSLOT).";
        Finding::new("cluster", Warning, found, means)
            .advice("Connect by RedisStore::cluster, feature redis-cluster, although there is one node.")
    } else if unreachable.is_empty() {
        let means = "All slots are served to RedisStore::cluster; RedisStore::builder gets errors here. While a primary without \
                     a replica is down, OnError decides for its slots.";
        Finding::new("cluster", Ok, found, means)
    } else {
        let found = format!("{found}; unreachable: {}", unreachable.join(", "));
        let advice = "Allow connections to these addresses, or set cluster-announce-ip and -port.";
        Finding::new("cluster", Problem, found, means).advice(advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis_check::facts::parse_nodes;

    /// Lines of INFO and CONFIG, separated by spaces; the level, the check and its state.
    const STATES: &str = "\
        redis_version:6.2.7|Warning server Redis 6.2.7, a single server
        redis_version:10.0.0 cluster_enabled:1|Ok server Redis 10.0.0, a node of a cluster
        redis_version:7.2.4 valkey_version:8.0.1|Ok server Valkey 8.0.1, a single server
        redis_version:7.2.0 dragonfly_version:df-v1.20|Warning server Dragonfly df-v1.20, a single server
        redis_version:7.0.15 redis_mode:sentinel|Problem server Redis 7.0.15, a Sentinel
        |Warning server unknown: the user may not run INFO
        maxmemory_policy:noeviction|Ok eviction maxmemory-policy noeviction, no maxmemory
        maxmemory_policy:noeviction maxmemory:1048576|Ok eviction maxmemory-policy noeviction, maxmemory 1 MiB
        maxmemory_policy:allkeys-lru|Warning eviction maxmemory-policy allkeys-lru, no maxmemory
        maxmemory_policy:allkeys-lru maxmemory:1|Problem eviction maxmemory-policy allkeys-lru, maxmemory 0 MiB
        aof_enabled:1 appendfsync:always|Ok persistence appendfsync always
        aof_enabled:1 appendfsync:everysec|Ok persistence appendfsync everysec
        aof_enabled:1 appendfsync:no|Warning persistence appendfsync no
        aof_enabled:1|Warning persistence appendfsync unknown
        aof_enabled:1 appendfsync:always aof_last_write_status:err|Warning persistence the last write of the append-only file failed
        aof_enabled:0|Warning persistence appendonly no
        role:master connected_slaves:0|Ok replication a primary, replicas: 0
        role:master connected_slaves:2|Warning replication a primary, replicas: 2
        role:master connected_slaves:2 min_slaves_good_slaves:1|Ok replication a primary, replicas: 2
        role:slave master_host:h master_port:1|Problem replication a replica of h:1
        cluster_state:ok cluster_slots_ok:16384|Ok cluster cluster_state ok, 16384 of 16384 slots served, primaries: 2
        cluster_state:fail cluster_slots_ok:16384|Problem cluster cluster_state fail, 16384 of 16384 slots served, primaries: 2
        cluster_state:ok cluster_slots_ok:9|Problem cluster cluster_state ok, 9 of 16384 slots served, primaries: 2
        cluster_enabled:1|Warning cluster unknown: the user may not run CLUSTER INFO or CLUSTER NODES";

    const NODES: &str = "\
        a 10.0.0.1:6379@16379,name myself,master - 0 0 1 connected 0-8191\n\
        b 10.0.0.2:6379@16379 master - 0 0 2 connected 8192-16383\n\
        c ::1:6380@16380 slave a 0 0 1 connected\n\
        d :0@0 master,noaddr - 0 0 3 disconnected\n";

    fn facts(info: &str) -> Facts {
        let mut facts = Facts::default();
        facts.add(&info.replace(' ', "\r\n"));
        facts.nodes = parse_nodes(NODES);
        facts
    }

    #[test]
    fn each_state_has_its_level_and_advice() {
        for state in STATES.lines() {
            let (info, expected) = state.trim().split_once('|').expect(state);
            let facts = facts(info);
            let mut judged = [eviction(&facts), persistence(&facts), replication(&facts)]
                .into_iter()
                .flatten()
                .chain([server(&facts), of_cluster(&facts, &[])]);
            let finding = judged
                .find(|finding| expected.contains(&format!(" {} ", finding.check)))
                .expect(state);
            let line = format!("{:?} {} {}", finding.level, finding.check, finding.found);
            assert_eq!(line, expected);
            assert_eq!(finding.advice.is_empty(), finding.level == Ok, "{finding:?}");
        }
        let whole = facts("cluster_state:ok cluster_slots_ok:16384");
        let unreachable = of_cluster(&whole, &["b:1".to_owned()]);
        assert_eq!(unreachable.level, Problem);
        assert!(unreachable.found.ends_with("; unreachable: b:1"));
    }
}
