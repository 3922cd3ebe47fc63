//! Which server it is.

use super::facts::Facts;
use super::finding::{Finding, Level};

const CHECK: &str = "server";

/// The name and the version of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) version: String,
}

impl Kind {
    /// `None`: it does not say.
    pub(super) fn of(facts: &Facts) -> Option<Self> {
        // Those that are not Redis say that they are, too, to be understood by its clients.
        let names = [
            ("Valkey", "valkey_version"),
            ("Dragonfly", "dragonfly_version"),
            ("Redis", "redis_version"),
        ];
        names.into_iter().find_map(|(name, version)| {
            let version = facts.info(version)?;
            // Dragonfly's begins with "df-v".
            let version = version
                .trim_start_matches(|c: char| !c.is_ascii_digit())
                .to_owned();
            Some(Self { name, version })
        })
    }

    /// Of the version, what stands before the first dot.
    fn major(&self) -> u64 {
        self.version
            .split('.')
            .next()
            .and_then(|major| major.parse().ok())
            .unwrap_or(0)
    }
}

/// Whether it is a Sentinel, which keeps nothing.
pub(super) fn is_sentinel(facts: &Facts) -> bool {
    facts.info("redis_mode") == Some("sentinel") || facts.info("server_mode") == Some("sentinel")
}

pub(super) fn judge(facts: &Facts) -> Finding {
    let Some(kind) = Kind::of(facts) else {
        return Finding::new(
            CHECK,
            Level::Note,
            "not known: this user may not ask INFO",
            "Whether the server forgets what it has acknowledged, and so whether any promise holds, cannot be seen: \
             eviction, persistence and replication are left out.",
        )
        .advise("Look again with a user that has the rights +info +config|get.");
    };
    let mode = match (is_sentinel(facts), facts.is_cluster()) {
        (true, _) => "a Sentinel",
        (false, true) => "a node of a cluster",
        (false, false) => "a single server",
    };
    let found = format!("{} {}, {mode}", kind.name, kind.version);
    if is_sentinel(facts) {
        return Finding::new(
            CHECK,
            Level::Problem,
            found,
            "It keeps no counts: every call is an error.",
        )
        .advise(
            "Give the address of the server that it watches: SENTINEL GET-MASTER-ADDR-BY-NAME says which.",
        );
    }
    match (kind.name, kind.major()) {
        ("Redis", 0..5) => Finding::new(
            CHECK,
            Level::Problem,
            found,
            "Strict: scripts that write after they have read TIME are refused here, so every call is an error, and \
             OnError decides.",
        )
        .advise("Upgrade: Redis 5 is the oldest that the scripts run on."),
        ("Redis", 5..7) => Finding::new(
            CHECK,
            Level::Note,
            found,
            "Strict: the scripts run on it, but they were tested with Redis 7.0 and Valkey 8.0.",
        )
        .advise("Upgrade when you can."),
        ("Redis" | "Valkey", _) => Finding::new(
            CHECK,
            Level::Ok,
            found,
            "Strict: the scripts run on it; they were tested with Redis 7.0 and Valkey 8.0.",
        ),
        _ => Finding::new(
            CHECK,
            Level::Warning,
            found,
            "No promise is made on it: whether its scripts are one after the other, each with one TIME, was not looked at.",
        )
        .advise("Use Redis or Valkey."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(info: &str) -> (Level, String) {
        let finding = judge(&Facts::from_lines(info, ""));
        (finding.level, finding.found)
    }

    #[test]
    fn servers_are_told_apart() {
        let is = |level, found: &str| (level, found.to_owned());
        assert_eq!(
            level("redis_version:4.0.14"),
            is(Level::Problem, "Redis 4.0.14, a single server")
        );
        assert_eq!(
            level("redis_version:5.0.3\r"),
            is(Level::Note, "Redis 5.0.3, a single server")
        );
        assert_eq!(
            level("redis_version:6.2.7"),
            is(Level::Note, "Redis 6.2.7, a single server")
        );
        assert_eq!(
            level("redis_version:7.0.15\ncluster_enabled:1"),
            is(Level::Ok, "Redis 7.0.15, a node of a cluster")
        );
        assert_eq!(
            level("redis_version:10.0.0"),
            is(Level::Ok, "Redis 10.0.0, a single server")
        );
        assert_eq!(
            level("redis_version:7.2.4\nvalkey_version:8.0.1"),
            is(Level::Ok, "Valkey 8.0.1, a single server")
        );
        assert_eq!(
            level("redis_version:7.2.0\ndragonfly_version:df-v1.20.1"),
            is(Level::Warning, "Dragonfly 1.20.1, a single server")
        );
        assert_eq!(
            level("redis_version:7.0.15\nredis_mode:sentinel"),
            is(Level::Problem, "Redis 7.0.15, a Sentinel")
        );
        assert_eq!(level("").0, Level::Note);
    }
}
