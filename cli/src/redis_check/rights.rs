//! The rights of the user.

use alloc::collections::BTreeSet;

use redis::Value;

use super::connection::{CallError, Connection};
use super::finding::Finding;
use super::findings::finding;

/// The purposes without which strict decisions work.
const OPTIONAL: [&str; 4] = [
    "the modes lease and sync",
    "reset",
    "the heartbeat",
    "the role of the server",
];
/// The purpose that only a cluster has.
const SLOTS: &str = "the slots of a cluster";

/// The purposes of commands, and the commands with arguments that change nothing: the key does not exist, or the server
/// rejects the arguments after it has checked the rights. `KEY` stands for the key.
const PROBES: [(&str, &[&str]); 10] = [
    (
        "every decision",
        &[
            "EVALSHA 0000000000000000000000000000000000000000 1 KEY",
            "EVAL return(1) 1 KEY",
            "TIME",
            "PEXPIREAT KEY 1",
        ],
    ),
    (
        "rules by cells (the default)",
        &[
            "HGETALL KEY",
            "HINCRBY KEY field none",
            "HSET KEY field value none",
            "HDEL KEY field",
        ],
    ),
    (
        "rules by a log",
        &[
            "ZADD KEY none member",
            "ZCOUNT KEY 0 0",
            "ZRANGE KEY 0 0",
            "ZRANGEBYSCORE KEY 0 0",
            "ZREVRANGEBYSCORE KEY 0 0",
            "ZREMRANGEBYSCORE KEY 0 0",
        ],
    ),
    ("rules by a token bucket", &["GET KEY", "SET KEY value NX XX"]),
    (OPTIONAL[0], &["GET KEY", "SET KEY value NX XX", "INFO server"]),
    ("refunds", &["HGET KEY field", "ZREM KEY member"]),
    (OPTIONAL[1], &["DEL KEY"]),
    (OPTIONAL[2], &["PING"]),
    (OPTIONAL[3], &["ROLE"]),
    (SLOTS, &["CLUSTER SLOTS"]),
];

/// A purpose, and a command with its arguments.
type Probe = (&'static str, &'static str);

fn probes(cluster: bool) -> Vec<Probe> {
    let of_purpose = PROBES.iter().filter(|(purpose, _)| cluster || *purpose != SLOTS);
    let probes = of_purpose.flat_map(|(purpose, commands)| commands.iter().map(|words| (*purpose, *words)));
    probes.collect()
}

/// The command of a probe.
fn name(probe: &Probe) -> &'static str {
    probe.1.split(' ').next().unwrap_or_default()
}

/// Tries each command with a key that does not exist.
pub(super) async fn judge(
    connection: &Connection,
    user: &str,
    prefix: &str,
    key: &str,
    cluster: bool,
) -> Result<Finding, CallError> {
    let probes = probes(cluster);
    let word = |word| if word == "KEY" { key } else { word };
    let calls = probes.iter().map(|probe| probe.1.split(' ').map(word).collect());
    let answers = connection.call_all(&calls.collect::<Vec<_>>()).await?;
    Ok(conclude(user, prefix, &probes, &answers))
}

fn conclude(user: &str, prefix: &str, probes: &[Probe], answers: &[Result<Value, String>]) -> Finding {
    let (mut purposes, mut forbidden, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    let mut no_keys = false;
    for (probe, answer) in probes.iter().zip(answers) {
        match answer {
            // The command is allowed, the key is not. The spaces tell the verb from the name of a user, which has none.
            Err(error) if error.starts_with("NOPERM") && error.contains(" to access ") => no_keys = true,
            Err(error) if error.starts_with("NOPERM") => forbidden.push(name(probe)),
            Err(error) if error.contains("unknown command") || error.contains("unknown subcommand") => {
                unknown.push(name(probe));
            }
            // The server reports any other error after it has checked the rights.
            _ => continue,
        }
        purposes.push(probe.0);
    }
    if purposes.is_empty() {
        let commands = probes.iter().map(name).collect::<BTreeSet<_>>().len();
        let found = format!("the user {user:?} may run all {commands} commands on {prefix}:*");
        return finding("rights", "all", found);
    }
    purposes.dedup();
    // A command may have several purposes.
    for names in [&mut forbidden, &mut unknown] {
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(*name));
    }
    let (mut found, mut grants, mut advice) = (Vec::new(), String::new(), Vec::new());
    if !forbidden.is_empty() {
        found.push(format!("the user {user:?} may not run {}", forbidden.join(" ")));
        grants += &format!(" +{}", forbidden.join(" +").to_lowercase());
    }
    if no_keys {
        found.push(format!("the user {user:?} has no access to the keys {prefix}:*"));
        grants += &format!(" ~{prefix}:*");
    }
    if !grants.is_empty() {
        advice.push(format!("ACL SETUSER {user}{grants}"));
    }
    if !unknown.is_empty() {
        found.push(format!("the server does not have {}", unknown.join(" ")));
        advice.push("Remove these commands from rename-command, or use another server.".to_owned());
    }
    let is_optional = purposes.iter().all(|purpose| OPTIONAL.contains(purpose));
    let state = if is_optional { "optional" } else { "required" };
    let mut finding = finding("rights", state, found.join("; "));
    finding.means += &format!(" {}.", purposes.join(", "));
    finding.advice = advice.join(" ");
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Redis 7.2 names the user in the error.
    #[test]
    fn a_user_name_is_not_a_missing_key() {
        for (error, advice) in [
            (
                "User access has no permissions to run the 'get' command",
                "ACL SETUSER access +get",
            ),
            (
                "this user has no permissions to run the 'get' command",
                "ACL SETUSER access +get",
            ),
            (
                "User access has no permissions to access the 'ringgate:a' key",
                "ACL SETUSER access ~ringgate:*",
            ),
            (
                "this user has no permissions to access one of the keys used as arguments",
                "ACL SETUSER access ~ringgate:*",
            ),
        ] {
            let answer = Err(format!("NOPERM {error}"));
            let finding = conclude("access", "ringgate", &[("a purpose", "GET KEY")], &[answer]);
            assert_eq!(finding.advice, advice, "{error}");
        }
    }

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
                    probes(false).iter().any(|probe| name(probe) == command),
                    "{} calls {command}, which has no probe",
                    path.display()
                );
            }
        }
        assert!(called > 20, "{called}");
    }
}
