//! The product and the version of a server, and whether it accepts the login.

use super::connection::{Address, ServerError};
use super::facts::Facts;
use super::finding::{Finding, Level};

const CHECK: &str = "server";

/// The product and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Product {
    pub(super) name: &'static str,
    pub(super) version: String,
}

impl Product {
    pub(super) fn of(facts: &Facts) -> Option<Self> {
        // Products that are compatible with Redis report a version of Redis too.
        let names = [
            ("Valkey", "valkey_version"),
            ("Dragonfly", "dragonfly_version"),
            ("Redis", "redis_version"),
        ];
        names.into_iter().find_map(|(name, version)| {
            // Dragonfly's begins with "df-v".
            let version = facts
                .info(version)?
                .trim_start_matches(|c: char| !c.is_ascii_digit())
                .to_owned();
            Some(Self { name, version })
        })
    }

    fn major(&self) -> u64 {
        let major = self.version.split('.').next();
        major.and_then(|major| major.parse().ok()).unwrap_or(0)
    }
}

pub(super) fn is_sentinel(facts: &Facts) -> bool {
    facts.info("redis_mode") == Some("sentinel") || facts.info("server_mode") == Some("sentinel")
}

pub(super) fn judge(facts: &Facts) -> Finding {
    let Some(product) = Product::of(facts) else {
        return Finding::new(CHECK, Level::Note, "unknown: the user may not run INFO")
            .means("Eviction, persistence and replication are not checked.")
            .advise("Check again with a user that has the rights +info +config|get.");
    };
    let kind = match (is_sentinel(facts), facts.is_cluster()) {
        (true, _) => "a Sentinel",
        (false, true) => "a node of a cluster",
        (false, false) => "a single server",
    };
    let finding = |level| {
        Finding::new(
            CHECK,
            level,
            format!("{} {}, {kind}", product.name, product.version),
        )
    };
    if is_sentinel(facts) {
        return finding(Level::Problem)
            .means("A Sentinel keeps no counts: every call is an error.")
            .advise("Use the address of the server that it watches: SENTINEL GET-MASTER-ADDR-BY-NAME.");
    }
    match (product.name, product.major()) {
        ("Redis", 0..5) => finding(Level::Problem)
            .means("Scripts that write after TIME are refused: every call is an error.")
            .advise("Upgrade to Redis 5 or later."),
        ("Redis", 5..7) => finding(Level::Note)
            .means("The scripts run, but are tested with Redis 7.0 and Valkey 8.0 only.")
            .advise("Upgrade to Redis 7 or later."),
        ("Redis" | "Valkey", _) => {
            finding(Level::Ok).means("The scripts are tested with Redis 7.0 and Valkey 8.0.")
        }
        _ => finding(Level::Warning)
            .means("Not tested: whether scripts are atomic and see one TIME is unknown.")
            .advise("Use Redis or Valkey."),
    }
}

/// The finding about an error in answer to the first call; `None` if the error only concerns a right.
pub(super) fn login(address: &Address, error: &ServerError) -> Option<Finding> {
    let user = address.user();
    let (check, found, advice) = match error.code.as_str() {
        "NOPERM" => return None,
        "WRONGPASS" => (
            "login",
            format!("wrong password for the user {user:?}"),
            "Use the password of ACL SETUSER or requirepass; write @ : / ? # % as %40 and so on.",
        ),
        "NOAUTH" => (
            "login",
            "a password is required, and the address has none".to_owned(),
            "Use redis://user:password@host:port or redis://:password@host:port.",
        ),
        code => (
            "answers",
            format!("every answer is the error {:?}", error.message),
            match code {
                "LOADING" => "Check again when the server has loaded its data.",
                "BUSY" => "Stop the script that blocks the server: SCRIPT KILL.",
                "MASTERDOWN" => "Restore its primary, or use the primary's address.",
                "DENIED" => "Set a password or an address to bind to: the server is in protected mode.",
                _ => "See the server's log.",
            },
        ),
    };
    let finding =
        Finding::new(check, Level::Problem, found).means("Every call is an error, and OnError decides.");
    Some(finding.advise(advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_versions_are_judged() {
        for (info, level, found) in [
            (
                "redis_version:4.0.14",
                Level::Problem,
                "Redis 4.0.14, a single server",
            ),
            (
                "redis_version:5.0.3\r",
                Level::Note,
                "Redis 5.0.3, a single server",
            ),
            ("redis_version:6.2.7", Level::Note, "Redis 6.2.7, a single server"),
            (
                "redis_version:7.0.15\ncluster_enabled:1",
                Level::Ok,
                "Redis 7.0.15, a node of a cluster",
            ),
            ("redis_version:10.0.0", Level::Ok, "Redis 10.0.0, a single server"),
            (
                "redis_version:7.2.4\nvalkey_version:8.0.1",
                Level::Ok,
                "Valkey 8.0.1, a single server",
            ),
            (
                "redis_version:7.2.0\ndragonfly_version:df-v1.20.1",
                Level::Warning,
                "Dragonfly 1.20.1, a single server",
            ),
            (
                "redis_version:7.0.15\nredis_mode:sentinel",
                Level::Problem,
                "Redis 7.0.15, a Sentinel",
            ),
            ("", Level::Note, "unknown: the user may not run INFO"),
        ] {
            let finding = judge(&Facts::from_lines(info, ""));
            assert_eq!((finding.level, &*finding.found), (level, found));
        }
    }
}
