//! The states of a server and of a cluster; `findings.txt` says what each means, and what to type.

use super::connection::Address;
use super::facts::{Facts, Node};
use super::finding::{Finding, Level};

/// The meaning of a loss of counts.
const LOSS: &str = "; for each loss, up to L more are admitted in a window";

/// The finding about a state of `findings.txt`.
pub(super) fn finding(check: &'static str, state: &str, found: impl Into<String>) -> Finding {
    let (mut means, mut advice, mut level) = ("", "", None);
    for line in include_str!("findings.txt").lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            [_, _, _] if !line.starts_with([' ', '#']) && level.is_some() => break,
            [of, name, named] if of == check && name == state => level = Level::named(named),
            [of, ..] if !of.is_empty() => {}
            _ => match line.trim().strip_prefix("-> ") {
                Some(line) if level.is_some() => advice = line,
                None if !line.is_empty() => means = line.trim(),
                _ => {}
            },
        }
    }
    Finding {
        check,
        level: level.unwrap_or(Level::Problem),
        nodes: Vec::new(),
        found: found.into(),
        means: means.replace("{loss}", LOSS),
        advice: advice.to_owned(),
    }
}

/// The finding about an error that is not a missing right.
pub(super) fn of_error(check: &'static str, found: String, error: &str) -> Finding {
    // The client changes the spelling of some codes.
    let error = error.to_uppercase().replace(' ', "");
    let lines = include_str!("findings.txt").lines();
    let mut codes = lines.filter_map(|line| line.strip_prefix("error ")?.split(' ').next());
    let code = codes.find(|code| error.contains(code)).unwrap_or("other");
    Finding {
        check,
        ..finding("error", code, found)
    }
}

/// The finding about an error in answer to the first call; `None` if the error concerns a right only.
pub(super) fn of_login(user: &str, error: &str) -> Option<Finding> {
    Some(match error.split(' ').next()? {
        "NOPERM" => return None,
        "WRONGPASS" => finding(
            "login",
            "WRONGPASS",
            format!("wrong password for the user {user:?}"),
        ),
        "NOAUTH" => finding(
            "login",
            "NOAUTH",
            "a password is required, and the address has none",
        ),
        _ => of_error("answers", format!("every answer is the error {error:?}"), error),
    })
}

/// The findings about one server.
pub(super) fn of_server(facts: &Facts) -> Vec<Finding> {
    let server = server(facts);
    if facts.is_sentinel() || facts.product().is_none() {
        return vec![server];
    }
    let others = [eviction(facts), persistence(facts), replication(facts)];
    core::iter::once(server)
        .chain(others.into_iter().flatten())
        .collect()
}

fn server(facts: &Facts) -> Finding {
    let Some((product, version)) = facts.product() else {
        return finding("server", "unknown", "unknown: the user may not run INFO");
    };
    let major = version.split('.').next().and_then(|major| major.parse().ok());
    let (kind, state) = match (product, major.unwrap_or(0)) {
        _ if facts.is_sentinel() => ("a Sentinel", "sentinel"),
        ("Redis", 0..5) => ("a single server", "before-5"),
        ("Redis", 5..7) => ("a single server", "before-7"),
        ("Redis" | "Valkey", _) if facts.is_cluster() => ("a node of a cluster", "tested"),
        ("Redis" | "Valkey", _) => ("a single server", "tested"),
        _ => ("a single server", "other"),
    };
    finding("server", state, format!("{product} {version}, {kind}"))
}

/// Whether counts may be evicted.
fn eviction(facts: &Facts) -> Option<Finding> {
    let policy = facts.get("maxmemory_policy")?;
    let limit = facts.number("maxmemory");
    let percent = facts.number("used_memory").saturating_mul(100).checked_div(limit);
    let mut found = match percent {
        None => format!("maxmemory-policy {policy}, no maxmemory"),
        Some(percent) => {
            format!(
                "maxmemory-policy {policy}, maxmemory {} MiB, {percent} % used",
                limit >> 20
            )
        }
    };
    if facts.number("evicted_keys") > 0 {
        found += &format!(", {} keys evicted", facts.number("evicted_keys"));
    }
    let state = match (policy, percent) {
        ("noeviction", None) => "unlimited",
        ("noeviction", Some(90..)) => "nearly-full",
        ("noeviction", Some(_)) => "never",
        (_, None) => "later",
        (_, Some(_)) => "possible",
    };
    Some(finding("eviction", state, found))
}

/// Counts that a restart loses.
fn persistence(facts: &Facts) -> Option<Finding> {
    let appends = facts.get("aof_enabled")? == "1";
    let sync = facts.get("appendfsync").unwrap_or("unknown");
    let save = facts.get("save").map(str::trim);
    let mut found = match appends {
        true => format!("appendonly yes, appendfsync {sync}"),
        false => "appendonly no".to_owned(),
    };
    found += &match save {
        Some("") => ", no snapshots".to_owned(),
        Some(save) => format!(", save {save}"),
        None => ", snapshots unknown".to_owned(),
    };
    for (status, what) in [
        ("rdb_last_bgsave_status", "snapshot"),
        ("aof_last_write_status", "write of the append-only file"),
    ] {
        if facts.get(status).is_some_and(|status| status != "ok") {
            found += &format!("; the last {what} failed");
        }
    }
    let state = match (appends, sync) {
        _ if found.ends_with("failed") => "failed",
        (true, "always") => "always",
        (true, "everysec") => "everysec",
        (true, "unknown") => "unknown",
        (false, _) if save.is_none() => "unknown",
        (true, _) => "seldom",
        (false, _) if save.is_some_and(|save| !save.is_empty()) => "snapshots",
        (false, _) => "none",
    };
    Some(finding("persistence", state, found))
}

/// The role of the server, and counts that a failover loses.
fn replication(facts: &Facts) -> Option<Finding> {
    let replicas = facts.number("connected_slaves");
    if facts.get("role")? == "slave" {
        let value = |name| facts.get(name).unwrap_or("?");
        let primary = format!("{}:{}", value("master_host"), value("master_port"));
        let is_writable = value("slave_read_only") == "0";
        let state = if is_writable { "writable" } else { "read-only" };
        let is_down = value("master_link_status") == "down";
        let link = if is_down { ", disconnected from it" } else { "" };
        let mut finding = finding(
            "replication",
            state,
            format!("a {state} replica of {primary}{link}"),
        );
        finding.advice = finding.advice.replace("{primary}", &primary);
        return Some(finding);
    }
    if replicas == 0 {
        return Some(finding("replication", "alone", "a primary without replicas"));
    }
    let lag = |replica: u64| {
        let mut fields = facts.get(&format!("slave{replica}"))?.split(',');
        fields.find_map(|field| field.strip_prefix("lag=")?.parse::<i64>().ok())
    };
    let lag = (0..replicas).filter_map(lag).max();
    let lag = lag.map_or_else(String::new, |lag| format!(", largest lag {lag} s"));
    let found = format!("a primary with {replicas} replicas{lag}");
    Some(finding("replication", "replicas", found))
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
    (!found.is_empty()).then(|| finding("addresses", "unchecked", found.join("; ")))
}

/// The finding about a cluster, of which some primaries are not reachable from here.
pub(super) fn of_cluster(facts: &Facts, unreachable: &[String]) -> Finding {
    let Some(state) = facts.get("cluster_state").filter(|_| !facts.nodes.is_empty()) else {
        let found = "unknown: the user may not run CLUSTER INFO or CLUSTER NODES";
        return finding("cluster", "unknown", found);
    };
    let slots = facts.number("cluster_slots_ok");
    let has_replica = |primary: &Node| {
        let mut others = facts.nodes.iter().filter(|node| !node.failed);
        others.any(|node| node.primary.as_ref() == Some(&primary.id))
    };
    let primaries = || facts.nodes.iter().filter(|node| node.is_primary());
    let single = primaries().filter(|primary| !has_replica(primary)).count();
    let found = format!(
        "cluster_state {state}, {slots} of 16384 slots served, {} primaries, {} nodes",
        primaries().count(),
        facts.number("cluster_known_nodes"),
    );
    if state != "ok" || slots != 16384 {
        finding("cluster", "slots", found)
    } else if !unreachable.is_empty() {
        let found = format!("{found}; unreachable: {}", unreachable.join(", "));
        finding("cluster", "unreachable", found)
    } else if single > 0 {
        let found = format!("{found}; primaries without a replica: {single}");
        finding("cluster", "single", found)
    } else {
        finding("cluster", "whole", found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis_check::facts::parse_nodes;

    /// Lines of INFO and CONFIG, separated by spaces; the level, the check and its state.
    const STATES: &str = "\
        redis_version:4.0.14|Problem server Redis 4.0.14, a single server
        redis_version:6.2.7|Note server Redis 6.2.7, a single server
        redis_version:10.0.0 cluster_enabled:1|Ok server Redis 10.0.0, a node of a cluster
        redis_version:7.2.4 valkey_version:8.0.1|Ok server Valkey 8.0.1, a single server
        redis_version:7.2.0 dragonfly_version:df-v1.20|Warning server Dragonfly 1.20, a single server
        redis_version:7.0.15 redis_mode:sentinel|Problem server Redis 7.0.15, a Sentinel
        |Note server unknown: the user may not run INFO
        maxmemory_policy:noeviction|Note eviction maxmemory-policy noeviction, no maxmemory
        maxmemory_policy:noeviction maxmemory:100 used_memory:89|Ok eviction maxmemory-policy noeviction, maxmemory 0 MiB, 89 % used
        maxmemory_policy:noeviction maxmemory:100 used_memory:90|Warning eviction maxmemory-policy noeviction, maxmemory 0 MiB, 90 % used
        maxmemory_policy:allkeys-lru|Note eviction maxmemory-policy allkeys-lru, no maxmemory
        maxmemory_policy:allkeys-lru maxmemory:1 evicted_keys:3|Problem eviction maxmemory-policy allkeys-lru, maxmemory 0 MiB, 0 % used, 3 keys evicted
        aof_enabled:1 appendfsync:always save:|Ok persistence appendonly yes, appendfsync always, no snapshots
        aof_enabled:1 appendfsync:everysec|Note persistence appendonly yes, appendfsync everysec, snapshots unknown
        aof_enabled:1 appendfsync:no save:|Warning persistence appendonly yes, appendfsync no, no snapshots
        aof_enabled:0 save:3600|Warning persistence appendonly no, save 3600
        aof_enabled:0 save: rdb_last_bgsave_status:err|Warning persistence appendonly no, no snapshots; the last snapshot failed
        aof_enabled:1 save:|Warning persistence appendonly yes, appendfsync unknown, no snapshots
        aof_enabled:0|Warning persistence appendonly no, snapshots unknown
        role:master connected_slaves:0|Ok replication a primary without replicas
        role:master connected_slaves:2 slave0:ip=a,lag=0 slave1:ip=b,lag=3|Note replication a primary with 2 replicas, largest lag 3 s
        role:slave master_host:h master_port:1 master_link_status:down|Problem replication a read-only replica of h:1, disconnected from it
        role:slave master_host:h master_port:1 slave_read_only:0|Problem replication a writable replica of h:1
        cluster_state:ok cluster_slots_ok:16384|Note cluster cluster_state ok, 16384 of 16384 slots served, 2 primaries, 0 nodes; primaries without a replica: 1
        cluster_state:fail cluster_slots_ok:16384|Problem cluster cluster_state fail, 16384 of 16384 slots served, 2 primaries, 0 nodes
        cluster_state:ok cluster_slots_ok:9|Problem cluster cluster_state ok, 9 of 16384 slots served, 2 primaries, 0 nodes
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
            let judged = [
                Some(server(&facts)),
                eviction(&facts),
                persistence(&facts),
                replication(&facts),
            ];
            let judged = judged.into_iter().flatten().chain([of_cluster(&facts, &[])]);
            let judged: Vec<_> = judged
                .filter(|finding| expected.contains(&format!(" {} ", finding.check)))
                .collect();
            let [finding] = &judged[..] else {
                panic!("{state}: {judged:?}")
            };
            let said = format!("{:?} {} {}", finding.level, finding.check, finding.found);
            assert_eq!(said, expected);
            assert!(
                !finding.means.is_empty() && !finding.means.contains('{'),
                "{finding:?}"
            );
            assert_eq!(
                finding.advice.is_empty(),
                finding.level == Level::Ok,
                "{finding:?}"
            );
        }
        let whole = facts("cluster_state:ok cluster_slots_ok:16384");
        let unreachable = of_cluster(&whole, &["b:1".to_owned()]);
        assert!(unreachable.found.ends_with("; unreachable: b:1"));
        let mut without_nodes = whole;
        without_nodes.nodes.clear();
        assert_eq!(of_cluster(&without_nodes, &[]).level, Level::Warning);
    }
}
