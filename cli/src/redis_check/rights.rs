//! The rights of the user.

use redis::Value;

use super::connection::{CallError, Connection, ServerError};
use super::finding::{Finding, Level};

const CHECK: &str = "rights";

/// A command, with arguments that change nothing: the key does not exist, or the server rejects the arguments after it
/// has checked the rights. `KEY` stands for the key.
struct Probe {
    command: &'static str,
    arguments: &'static [&'static str],
    needed: Needed,
}

/// The calls that need a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needed {
    Always,
    /// Rules that count by cells.
    Cells,
    /// Rules that count by a log.
    Log,
    /// `Mode::Lease` and `Mode::Sync`.
    Leases,
    Refunds,
    Reset,
    /// Detection of lost connections.
    Heartbeat,
    /// Discovery of the slots of a cluster.
    Cluster,
}

impl Needed {
    const fn by(self) -> &'static str {
        match self {
            Self::Always => "every decision",
            Self::Cells => "rules by cells (the default)",
            Self::Log => "rules by a log",
            Self::Leases => "the modes lease and sync",
            Self::Refunds => "refunds",
            Self::Reset => "reset",
            Self::Heartbeat => "the heartbeat",
            Self::Cluster => "the slots of a cluster",
        }
    }

    /// Whether strict decisions work without the command.
    const fn is_optional(self) -> bool {
        matches!(self, Self::Leases | Self::Reset | Self::Heartbeat)
    }
}

const PROBES: &[Probe] = {
    const fn probe(needed: Needed, command: &'static str, arguments: &'static [&'static str]) -> Probe {
        Probe {
            command,
            arguments,
            needed,
        }
    }
    use Needed::{Always, Cells, Cluster, Heartbeat, Leases, Log, Refunds, Reset};
    &[
        probe(
            Always,
            "EVALSHA",
            &["0000000000000000000000000000000000000000", "1", "KEY"],
        ),
        probe(Always, "EVAL", &["return 1", "1", "KEY"]),
        probe(Always, "TIME", &[]),
        probe(Always, "PEXPIREAT", &["KEY", "1"]),
        probe(Cells, "HGETALL", &["KEY"]),
        probe(Cells, "HINCRBY", &["KEY", "field", "no number"]),
        probe(Cells, "HSET", &["KEY", "field", "value", "no value"]),
        probe(Cells, "HDEL", &["KEY", "field"]),
        probe(Log, "ZADD", &["KEY", "no number", "member"]),
        probe(Log, "ZCOUNT", &["KEY", "0", "0"]),
        probe(Log, "ZRANGE", &["KEY", "0", "0"]),
        probe(Log, "ZRANGEBYSCORE", &["KEY", "0", "0"]),
        probe(Log, "ZREVRANGEBYSCORE", &["KEY", "0", "0"]),
        probe(Log, "ZREMRANGEBYSCORE", &["KEY", "0", "0"]),
        probe(Leases, "GET", &["KEY"]),
        probe(Leases, "SET", &["KEY", "value", "NX", "XX"]),
        probe(Leases, "INFO", &["server"]),
        probe(Refunds, "HGET", &["KEY", "field"]),
        probe(Refunds, "ZREM", &["KEY", "member"]),
        probe(Reset, "DEL", &["KEY"]),
        probe(Heartbeat, "PING", &[]),
        probe(Cluster, "CLUSTER", &["SLOTS"]),
    ]
};

/// Tries each command with a key that does not exist.
pub(super) async fn judge(
    connection: &Connection,
    user: &str,
    prefix: &str,
    key: &str,
    cluster: bool,
) -> Result<Finding, CallError> {
    let probes: Vec<&Probe> = PROBES
        .iter()
        .filter(|probe| cluster || probe.needed != Needed::Cluster)
        .collect();
    let calls: Vec<Vec<&str>> = probes
        .iter()
        .map(|probe| {
            let arguments = probe
                .arguments
                .iter()
                .map(|&argument| if argument == "KEY" { key } else { argument });
            core::iter::once(probe.command).chain(arguments).collect()
        })
        .collect();
    let answers = connection.call_all(&calls).await?;
    Ok(conclude(user, prefix, &probes, &answers))
}

fn conclude(user: &str, prefix: &str, probes: &[&Probe], answers: &[Result<Value, ServerError>]) -> Finding {
    let (mut forbidden, mut unknown, mut no_keys) = (Vec::new(), Vec::new(), false);
    for (probe, answer) in probes.iter().zip(answers) {
        match answer {
            // The command is allowed, the key is not.
            Err(error) if error.is_forbidden() && error.message.contains("access") => no_keys = true,
            Err(error) if error.is_forbidden() => forbidden.push(*probe),
            Err(error) if error.is_unknown_command() => unknown.push(*probe),
            // The server reports any other error after it has checked the rights.
            _ => {}
        }
    }
    if forbidden.is_empty() && unknown.is_empty() && !no_keys {
        let found = format!(
            "the user {user:?} may run all {} commands on {prefix}:*",
            probes.len()
        );
        return Finding::new(CHECK, Level::Ok, found).means("No call needs another right.");
    }
    let commands = |probes: &[&Probe]| {
        probes
            .iter()
            .map(|probe| probe.command)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (mut found, mut grants, mut advice) = (Vec::new(), Vec::new(), Vec::new());
    if !forbidden.is_empty() {
        found.push(format!("the user {user:?} may not run {}", commands(&forbidden)));
        grants.extend(
            forbidden
                .iter()
                .map(|probe| format!("+{}", probe.command.to_lowercase())),
        );
    }
    if no_keys {
        found.push(format!("the user {user:?} has no access to the keys {prefix}:*"));
        grants.push(format!("~{prefix}:*"));
    }
    if !grants.is_empty() {
        advice.push(format!("ACL SETUSER {user} {}", grants.join(" ")));
    }
    if !unknown.is_empty() {
        found.push(format!("the server does not have {}", commands(&unknown)));
        advice.push("Remove these commands from rename-command, or use another server.".to_owned());
    }
    let mut needed: Vec<Needed> = no_keys.then_some(Needed::Always).into_iter().collect();
    for probe in forbidden.iter().chain(&unknown) {
        if !needed.contains(&probe.needed) {
            needed.push(probe.needed);
        }
    }
    let by: Vec<&str> = needed.iter().map(|needed| needed.by()).collect();
    let (level, means) = match needed.iter().all(|needed| needed.is_optional()) {
        true => (Level::Warning, "Strict decisions work without."),
        false => (Level::Problem, "These calls are errors, and OnError decides."),
    };
    Finding::new(CHECK, level, found.join("; "))
        .means(format!("Needed for {}. {means}", by.join(", ")))
        .advise(advice.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_of_the_scripts_has_a_probe() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/redis/script");
        let mut called = 0;
        for file in std::fs::read_dir(folder).expect("the sources") {
            let path = file.expect("a file").path();
            if path.extension().is_none_or(|ending| ending != "lua") {
                continue;
            }
            let script = std::fs::read_to_string(&path).expect("a script");
            for call in script.split("redis.call('").skip(1) {
                let command = call.split('\'').next().expect("a name");
                called += 1;
                assert!(
                    PROBES.iter().any(|probe| probe.command == command),
                    "{} calls {command}, which has no probe",
                    path.display()
                );
            }
        }
        assert!(called > 20, "{called}");
    }

    fn error(words: &str) -> ServerError {
        ServerError {
            code: words.split(' ').next().expect("a word").to_owned(),
            message: words.to_owned(),
        }
    }

    fn with(wrong: &[(&str, &str)]) -> Finding {
        let probes: Vec<&Probe> = PROBES.iter().collect();
        let answer = |probe: &&Probe| match wrong.iter().find(|(command, _)| *command == probe.command) {
            Some((_, words)) => Err(error(words)),
            None => Err(error("ERR value is not an integer or out of range")),
        };
        let answers: Vec<_> = probes.iter().map(answer).collect();
        conclude("limiter", "ringgate", &probes, &answers)
    }

    #[test]
    fn missing_rights_are_named() {
        assert_eq!(with(&[]).level, Level::Ok);
        let no_run = "NOPERM this user has no permissions to run the 'x' command";
        let no_key = "NOPERM this user has no permissions to access one of the keys used as arguments";
        let finding = with(&[("HINCRBY", no_run), ("DEL", no_run)]);
        assert_eq!(finding.level, Level::Problem);
        assert_eq!(finding.found, "the user \"limiter\" may not run HINCRBY DEL");
        assert_eq!(finding.advice, "ACL SETUSER limiter +hincrby +del");
        let finding = with(&[("DEL", no_run), ("PING", no_run)]);
        assert_eq!(finding.level, Level::Warning);
        let finding = with(&[("HSET", no_key)]);
        assert_eq!(finding.level, Level::Problem);
        assert_eq!(finding.advice, "ACL SETUSER limiter ~ringgate:*");
        let finding = with(&[(
            "EVALSHA",
            "ERR unknown command 'EVALSHA', with args beginning with: ",
        )]);
        assert_eq!(finding.level, Level::Problem);
        assert_eq!(finding.found, "the server does not have EVALSHA");
    }
}
