//! Settings that decide whether counts are lost: eviction, persistence and replication.

use super::facts::Facts;
use super::finding::{Finding, Level};

/// Percent of maxmemory in use from which on memory is nearly full.
const NEARLY_FULL: u64 = 90;

/// Whether counts may be evicted; `None` if the settings are unknown.
pub(super) fn eviction(facts: &Facts) -> Option<Finding> {
    let policy = facts
        .info("maxmemory_policy")
        .or(facts.config("maxmemory-policy"))?;
    let limit = facts
        .number("maxmemory")
        .or_else(|| facts.config("maxmemory")?.parse().ok())?;
    let used = facts.number("used_memory").unwrap_or(0);
    let percent = used.saturating_mul(100).checked_div(limit);
    let mut found = match percent {
        None => format!("maxmemory-policy {policy}, no maxmemory"),
        Some(percent) => format!(
            "maxmemory-policy {policy}, maxmemory {} MiB, {percent} % used",
            limit >> 20
        ),
    };
    if let Some(evicted) = facts.number("evicted_keys").filter(|&evicted| evicted > 0) {
        found += &format!(", {evicted} keys evicted");
    }
    let finding = |level| Finding::new("eviction", level, found);
    Some(match (policy, percent) {
        ("noeviction", None) => finding(Level::Note)
            .means("No count is evicted. The server may be killed when the machine has no memory left.")
            .advise("CONFIG SET maxmemory 1gb, or as much as the machine can spare."),
        ("noeviction", Some(NEARLY_FULL..)) => finding(Level::Warning)
            .means("No count is evicted. When memory is full, every call is an error, and OnError decides.")
            .advise("CONFIG SET maxmemory with a larger size, or use a server for limits alone."),
        ("noeviction", Some(_)) => finding(Level::Ok).means("No count is evicted."),
        (_, None) => finding(Level::Note)
            .means("No count is evicted as long as there is no maxmemory.")
            .advise("CONFIG SET maxmemory-policy noeviction, before maxmemory is set."),
        (_, Some(_)) => finding(Level::Problem)
            .means("Counts may be evicted. For each evicted key, up to L more are admitted in a window, in every mode.")
            .advise("CONFIG SET maxmemory-policy noeviction, or use a server for limits alone."),
    })
}

/// Advice where there is no append-only file.
const APPEND: &str = "CONFIG SET appendonly yes, unless windows are shorter than a restart.";

/// Counts that a restart loses; `None` if the settings are unknown.
pub(super) fn persistence(facts: &Facts) -> Option<Finding> {
    let appends = match facts.info("aof_enabled") {
        Some(enabled) => enabled == "1",
        None => facts.config("appendonly")? == "yes",
    };
    let sync = facts.config("appendfsync").unwrap_or("unknown");
    let mut found = match appends {
        true => format!("appendonly yes, appendfsync {sync}"),
        false => "appendonly no".to_owned(),
    };
    let save = facts.config("save").map(str::trim);
    found += &match save {
        Some("") => ", no snapshots".to_owned(),
        Some(save) => format!(", save {save}"),
        None => ", snapshots unknown".to_owned(),
    };
    let failed = [
        ("rdb_last_bgsave_status", "snapshot"),
        ("aof_last_write_status", "write of the append-only file"),
    ];
    let failed = failed
        .into_iter()
        .find(|(status, _)| facts.info(status).is_some_and(|status| status != "ok"));
    if let Some((_, what)) = failed {
        found += &format!("; the last {what} failed");
    }
    let (level, lost, advice) = match (failed, appends, sync) {
        (Some(_), ..) => (
            Level::Warning,
            "A restart loses more than the settings say, and writes may be refused (MISCONF).",
            "See the server's log for the cause.",
        ),
        (None, true, "always") => {
            return Some(Finding::new("persistence", Level::Ok, found).means("A restart loses no count."));
        }
        (None, true, "everysec") => (
            Level::Note,
            "A crash of the machine loses up to two seconds.",
            "CONFIG SET appendfsync always if this is too much. It writes to disk for each decision.",
        ),
        (None, true, _) => (
            Level::Warning,
            "A crash of the machine loses half a minute or more.",
            "CONFIG SET appendfsync everysec.",
        ),
        (None, false, _) if save.is_some_and(|save| !save.is_empty()) => (
            Level::Warning,
            "A restart loses all counts since the last snapshot.",
            APPEND,
        ),
        (None, false, _) => (Level::Warning, "A restart loses all counts.", APPEND),
    };
    let means = format!("{lost} For each loss, up to L more are admitted in a window.");
    Some(
        Finding::new("persistence", level, found)
            .means(means)
            .advise(advice),
    )
}

/// The role of the server, and counts that a failover loses; `None` if the role is unknown.
pub(super) fn replication(facts: &Facts) -> Option<Finding> {
    match facts.info("role")? {
        "slave" => Some(replica(facts)),
        _ => Some(primary(facts)),
    }
}

fn replica(facts: &Facts) -> Finding {
    let field = |name| facts.info(name).unwrap_or("?");
    let primary = format!("{}:{}", field("master_host"), field("master_port"));
    let read_only = facts
        .info("slave_read_only")
        .or(facts.config("replica-read-only"))
        .is_none_or(|setting| setting != "0" && setting != "no");
    let link = match facts.info("master_link_status") {
        Some("down") => ", disconnected from it",
        _ => "",
    };
    let (found, means) = if read_only {
        (
            format!("a read-only replica of {primary}{link}"),
            "Every admission is an error, and OnError decides. Leases and budgets are not granted.",
        )
    } else {
        (
            format!("a writable replica of {primary}{link}"),
            "The primary does not know the counts of this server, and the next synchronization erases them.",
        )
    };
    Finding::new("replication", Level::Problem, found)
        .means(means)
        .advise(format!("Use the address of the primary, {primary}."))
}

fn primary(facts: &Facts) -> Finding {
    let replicas = facts.number("connected_slaves").unwrap_or(0);
    if replicas == 0 {
        return Finding::new("replication", Level::Ok, "a primary without replicas")
            .means("No failover can lose counts. While the server is down, OnError decides.");
    }
    let lag = (0..replicas).filter_map(|replica| {
        let line = facts.info(&format!("slave{replica}"))?;
        let lag = line.split(',').find_map(|field| field.strip_prefix("lag="))?;
        lag.parse::<i64>().ok()
    });
    let lag = lag
        .max()
        .map_or(String::new(), |lag| format!(", largest lag {lag} s"));
    Finding::new("replication", Level::Note, format!("a primary with {replicas} replicas{lag}"))
        .means("Replication is asynchronous: a failover may lose the last counts. For each failover, up to L more are admitted in a window.")
        .advise("CONFIG SET min-replicas-to-write 1 if this is too much. Without a replica, every call is then an error.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_is_a_problem_where_counts_can_be_evicted() {
        let level = |policy: &str, limit: u64, used: u64| {
            let info = format!("maxmemory_policy:{policy}\nmaxmemory:{limit}\nused_memory:{used}");
            eviction(&Facts::from_lines(&info, "")).expect("known").level
        };
        assert_eq!(level("noeviction", 0, 1), Level::Note);
        assert_eq!(level("noeviction", 100, 89), Level::Ok);
        assert_eq!(level("noeviction", 100, 90), Level::Warning);
        assert_eq!(level("allkeys-lru", 0, 1), Level::Note);
        for policy in ["allkeys-lru", "allkeys-random", "volatile-lru", "volatile-ttl"] {
            assert_eq!(level(policy, 100, 1), Level::Problem, "{policy}");
        }
        let config = Facts::from_lines("", "maxmemory:100\nmaxmemory-policy:allkeys-lru");
        assert_eq!(eviction(&config).expect("known").level, Level::Problem);
        assert_eq!(eviction(&Facts::default()), None);
    }

    #[test]
    fn persistence_depends_on_fsync_and_snapshots() {
        let of = |info: &str, config: &str| persistence(&Facts::from_lines(info, config)).expect("known");
        for (config, level, means) in [
            ("appendonly:yes\nappendfsync:always\nsave:", Level::Ok, "no count"),
            (
                "appendonly:yes\nappendfsync:everysec\nsave:",
                Level::Note,
                "two seconds",
            ),
            (
                "appendonly:yes\nappendfsync:no\nsave:",
                Level::Warning,
                "half a minute",
            ),
            ("appendonly:no\nsave:3600 1", Level::Warning, "last snapshot"),
            ("appendonly:no\nsave:", Level::Warning, "all counts"),
        ] {
            let finding = of("", config);
            assert_eq!(finding.level, level, "{config}");
            assert!(finding.means.contains(means), "{finding:?}");
        }
        let failing = of("aof_enabled:1\naof_last_write_status:err", "appendfsync:always");
        assert!(
            failing.level == Level::Warning && failing.found.ends_with("failed"),
            "{failing:?}"
        );
        assert_eq!(persistence(&Facts::default()), None);
    }

    #[test]
    fn roles_are_judged() {
        let replica = "role:slave\nmaster_host:h\nmaster_port:1\nmaster_link_status:";
        for (info, level, found) in [
            (
                "role:master\nconnected_slaves:0",
                Level::Ok,
                "a primary without replicas",
            ),
            (
                "role:master\nconnected_slaves:2\nslave0:ip=a,port=1,lag=0\nslave1:ip=b,port=1,lag=3",
                Level::Note,
                "a primary with 2 replicas, largest lag 3 s",
            ),
            (
                &format!("{replica}down\nslave_read_only:1"),
                Level::Problem,
                "a read-only replica of h:1, disconnected from it",
            ),
            (
                &format!("{replica}up\nslave_read_only:0"),
                Level::Problem,
                "a writable replica of h:1",
            ),
        ] {
            let finding = replication(&Facts::from_lines(info, "")).expect("known");
            assert_eq!((finding.level, &*finding.found), (level, found));
        }
        assert_eq!(replication(&Facts::default()), None);
    }
}
