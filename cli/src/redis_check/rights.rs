//! The rights of the user.

use redis::Value;

use super::connection::{CallError, Connection, ServerError};
use super::finding::{Finding, Level};

const CHECK: &str = "rights";

/// Whether strict decisions work without a command.
const REQUIRED: bool = false;
const OPTIONAL: bool = true;

/// Commands with the calls that need them, whether strict decisions work without, and arguments that change nothing: the
/// key does not exist, or the server rejects the arguments after it has checked the rights. `KEY` stands for the key.
const PROBES: &[Probe] = &[
    (
        "EVALSHA 0000000000000000000000000000000000000000 1 KEY",
        "every decision",
        REQUIRED,
    ),
    ("EVAL return(1) 1 KEY", "every decision", REQUIRED),
    ("TIME", "every decision", REQUIRED),
    ("PEXPIREAT KEY 1", "every decision", REQUIRED),
    ("HGETALL KEY", "rules by cells (the default)", REQUIRED),
    ("HINCRBY KEY field none", "rules by cells (the default)", REQUIRED),
    (
        "HSET KEY field value none",
        "rules by cells (the default)",
        REQUIRED,
    ),
    ("HDEL KEY field", "rules by cells (the default)", REQUIRED),
    ("ZADD KEY none member", "rules by a log", REQUIRED),
    ("ZCOUNT KEY 0 0", "rules by a log", REQUIRED),
    ("ZRANGE KEY 0 0", "rules by a log", REQUIRED),
    ("ZRANGEBYSCORE KEY 0 0", "rules by a log", REQUIRED),
    ("ZREVRANGEBYSCORE KEY 0 0", "rules by a log", REQUIRED),
    ("ZREMRANGEBYSCORE KEY 0 0", "rules by a log", REQUIRED),
    ("GET KEY", "the modes lease and sync", OPTIONAL),
    ("SET KEY value NX XX", "the modes lease and sync", OPTIONAL),
    ("INFO server", "the modes lease and sync", OPTIONAL),
    ("HGET KEY field", "refunds", REQUIRED),
    ("ZREM KEY member", "refunds", REQUIRED),
    ("DEL KEY", "reset", OPTIONAL),
    ("PING", "the heartbeat", OPTIONAL),
    (CLUSTER, "the slots of a cluster", REQUIRED),
];

type Probe = (&'static str, &'static str, bool);

/// The probe that only a cluster needs.
const CLUSTER: &str = "CLUSTER SLOTS";

/// The command of a probe.
fn name(probe: &Probe) -> &'static str {
    probe.0.split(' ').next().unwrap_or_default()
}

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
        .filter(|probe| cluster || probe.0 != CLUSTER)
        .collect();
    let word = |word| if word == "KEY" { key } else { word };
    let calls: Vec<Vec<&str>> = probes
        .iter()
        .map(|probe| probe.0.split(' ').map(word).collect())
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
    let commands = |probes: &[&Probe]| probes.iter().map(|probe| name(probe)).collect::<Vec<_>>();
    let (mut found, mut grants, mut advice) = (Vec::new(), Vec::new(), Vec::new());
    if !forbidden.is_empty() {
        let commands = commands(&forbidden);
        found.push(format!("the user {user:?} may not run {}", commands.join(" ")));
        grants.extend(
            commands
                .iter()
                .map(|command| format!("+{}", command.to_lowercase())),
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
        found.push(format!(
            "the server does not have {}",
            commands(&unknown).join(" ")
        ));
        advice.push("Remove these commands from rename-command, or use another server.".to_owned());
    }
    let mut needed: Vec<&str> = no_keys.then_some("every decision").into_iter().collect();
    for (_, purpose, _) in forbidden.iter().chain(&unknown) {
        if !needed.contains(purpose) {
            needed.push(purpose);
        }
    }
    let optional = !no_keys && forbidden.iter().chain(&unknown).all(|probe| probe.2 == OPTIONAL);
    let (level, means) = match optional {
        true => (Level::Warning, "Strict decisions work without."),
        false => (Level::Problem, "These calls are errors, and OnError decides."),
    };
    Finding::new(CHECK, level, found.join("; "))
        .means(format!("Needed for {}. {means}", needed.join(", ")))
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
                    PROBES.iter().any(|probe| name(probe) == command),
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
        let answer = |probe: &&Probe| match wrong.iter().find(|(command, _)| *command == name(probe)) {
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
