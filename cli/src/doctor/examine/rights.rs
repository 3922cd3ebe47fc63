//! Whether the user may do what ringgate needs.

use redis::Value;

use super::finding::{Finding, Level};
use super::wire::{ServerError, Trouble, Wire};

const CHECK: &str = "rights";

/// A command, and arguments by which it changes nothing: of a name that nobody has written, or such that it is refused
/// after the rights were looked at. `KEY` stands for that name.
struct Probe {
    command: &'static str,
    arguments: &'static [&'static str],
    needed: Needed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needed {
    Always,
    /// By rules that count by cells.
    Cells,
    /// By rules that count by a log.
    Log,
    /// By `Mode::Lease` and `Mode::Sync`.
    Accounts,
    /// By what gives permits back.
    Refunds,
    /// By `reset`.
    Reset,
    /// To see in time that a connection is lost.
    Heartbeat,
    /// To find the slots of a cluster.
    Cluster,
}

impl Needed {
    const fn by(self) -> &'static str {
        match self {
            Self::Always => "every decision",
            Self::Cells => "rules by cells, the default",
            Self::Log => "rules by a log",
            Self::Accounts => "the modes lease and sync",
            Self::Refunds => "permits that are given back",
            Self::Reset => "reset",
            Self::Heartbeat => "the heartbeat",
            Self::Cluster => "finding slots",
        }
    }

    /// Strict decisions do without.
    const fn can_be_missed(self) -> bool {
        matches!(self, Self::Accounts | Self::Reset | Self::Heartbeat)
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
    use Needed::{Accounts, Always, Cells, Cluster, Heartbeat, Log, Refunds, Reset};
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
        probe(Accounts, "GET", &["KEY"]),
        probe(Accounts, "SET", &["KEY", "value", "NX", "XX"]),
        probe(Accounts, "INFO", &["server"]),
        probe(Refunds, "HGET", &["KEY", "field"]),
        probe(Refunds, "ZREM", &["KEY", "member"]),
        probe(Reset, "DEL", &["KEY"]),
        probe(Heartbeat, "PING", &[]),
        probe(Cluster, "CLUSTER", &["SLOTS"]),
    ]
};

/// Tries each command with this name, which nobody may ever have written.
pub(super) async fn judge(
    wire: &Wire,
    user: &str,
    prefix: &str,
    key: &str,
    cluster: bool,
) -> Result<Finding, Trouble> {
    let probes: Vec<&Probe> = PROBES
        .iter()
        .filter(|probe| cluster || probe.needed != Needed::Cluster)
        .collect();
    let questions: Vec<Vec<&str>> = probes
        .iter()
        .map(|probe| {
            let arguments = probe
                .arguments
                .iter()
                .map(|&argument| if argument == "KEY" { key } else { argument });
            core::iter::once(probe.command).chain(arguments).collect()
        })
        .collect();
    let answers = wire.ask_all(&questions).await?;
    Ok(conclude(user, prefix, &probes, &answers))
}

fn conclude(user: &str, prefix: &str, probes: &[&Probe], answers: &[Result<Value, ServerError>]) -> Finding {
    let (mut forbidden, mut unknown, mut no_names) = (Vec::new(), Vec::new(), false);
    for (probe, answer) in probes.iter().zip(answers) {
        match answer {
            Err(error) if error.is_forbidden() => match error.words.contains("access") {
                // Of the command it has the right, but not of the name.
                true => no_names = true,
                false => forbidden.push(*probe),
            },
            Err(error) if error.is_unknown() => unknown.push(*probe),
            // Any other error came after the rights were looked at.
            _ => {}
        }
    }
    if forbidden.is_empty() && unknown.is_empty() && !no_names {
        let found = format!(
            "the user {user:?} may run all {} commands that are needed, on {prefix}:*",
            probes.len()
        );
        return Finding::new(CHECK, Level::Ok, found, "No call is refused for want of a right.");
    }
    let (mut found, mut advice) = (Vec::new(), Vec::new());
    let list = |probes: &[&Probe]| -> String {
        let commands: Vec<&str> = probes.iter().map(|probe| probe.command).collect();
        commands.join(" ")
    };
    let rights: Vec<String> = forbidden
        .iter()
        .map(|probe| format!("+{}", probe.command.to_lowercase()))
        .collect();
    let mut grants = rights.join(" ");
    if !forbidden.is_empty() {
        found.push(format!("the user {user:?} may not run {}", list(&forbidden)));
    }
    if no_names {
        found.push(format!("the user {user:?} has no access to the names {prefix}:*"));
        grants = format!("{grants} ~{prefix}:*").trim_start().to_owned();
    }
    if !grants.is_empty() {
        advice.push(format!("ACL SETUSER {user} {grants}"));
    }
    if !unknown.is_empty() {
        found.push(format!("the server does not know {}", list(&unknown)));
        advice.push("Take these out of rename-command, or use a server that has them.".to_owned());
    }
    let mut missed: Vec<Needed> = Vec::new();
    for probe in forbidden.iter().chain(&unknown) {
        if !missed.contains(&probe.needed) {
            missed.push(probe.needed);
        }
    }
    if no_names {
        missed.push(Needed::Always);
    }
    let by: Vec<&str> = missed.iter().map(|needed| needed.by()).collect();
    let bearable = missed.iter().all(|needed| needed.can_be_missed());
    let (level, means) = if bearable {
        (Level::Warning, "Strict decisions do without.")
    } else {
        (Level::Problem, "Such calls are errors, and OnError decides.")
    };
    let means = format!("It is needed for {}. {means}", by.join(", "));
    Finding::new(CHECK, level, found.join("; "), means).advise(advice.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the scripts call is tried.
    #[test]
    fn every_command_of_the_scripts_is_probed() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/redis");
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
                    "{} calls {command}, which nobody tries",
                    path.display()
                );
            }
        }
        assert!(called > 20, "{called}");
    }

    fn error(words: &str) -> ServerError {
        ServerError {
            code: words.split(' ').next().expect("a word").to_owned(),
            words: words.to_owned(),
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
    fn what_is_missed_is_named() {
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
        assert_eq!(finding.found, "the server does not know EVALSHA");
    }
}
