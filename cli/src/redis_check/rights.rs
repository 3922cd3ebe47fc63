//! The rights of the user.

use redis::Value;

use super::connection::{CallError, Connection};
use super::finding::{Finding, Level};

/// The commands of limiters, with arguments that change nothing: the key does not exist, or the server rejects the
/// arguments after it has checked the rights. `KEY` stands for the key.
const COMMANDS: [&str; 22] = [
    "EVALSHA 0000000000000000000000000000000000000000 1 KEY",
    "EVAL return(1) 1 KEY",
    "TIME",
    "PEXPIREAT KEY 1",
    "HGETALL KEY",
    "HGET KEY field",
    "HINCRBY KEY field none",
    "HSET KEY field value none",
    "HDEL KEY field",
    "ZADD KEY none member",
    "ZCOUNT KEY 0 0",
    "ZRANGE KEY 0 0",
    "ZRANGEBYSCORE KEY 0 0",
    "ZREVRANGEBYSCORE KEY 0 0",
    "ZREMRANGEBYSCORE KEY 0 0",
    "ZREM KEY member",
    "GET KEY",
    "SET KEY value NX XX",
    "DEL KEY",
    "PING",
    "INFO server",
    "ROLE",
];
/// The command that only a client of a cluster needs.
const OF_CLUSTER: &str = "CLUSTER SLOTS";

fn name(command: &'static str) -> &'static str {
    command.split(' ').next().unwrap_or_default()
}

/// Tries each command with a key that does not exist.
pub(super) async fn judge(
    connection: &Connection,
    user: &str,
    prefix: &str,
    key: &str,
    cluster: bool,
) -> Result<Finding, CallError> {
    let mut commands = COMMANDS.to_vec();
    commands.extend(cluster.then_some(OF_CLUSTER));
    let word = |word| if word == "KEY" { key } else { word };
    let calls = commands
        .iter()
        .map(|command| command.split(' ').map(word).collect());
    let answers = connection.call_all(&calls.collect::<Vec<_>>()).await?;
    Ok(conclude(user, prefix, &commands, &answers))
}

fn conclude(
    user: &str,
    prefix: &str,
    commands: &[&'static str],
    answers: &[Result<Value, String>],
) -> Finding {
    let (mut forbidden, mut unknown, mut no_keys) = (Vec::new(), Vec::new(), false);
    for (command, answer) in commands.iter().zip(answers) {
        match answer {
            // The command is allowed, the key is not. With the spaces, a user named "access" is no match.
            Err(error) if error.starts_with("NOPERM") && error.contains(" to access ") => no_keys = true,
            Err(error) if error.starts_with("NOPERM") => forbidden.push(name(command)),
            Err(error) if error.contains("unknown command") || error.contains("unknown subcommand") => {
                unknown.push(name(command));
            }
            // The server reports any other error after it has checked the rights.
            _ => {}
        }
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
    if found.is_empty() {
        let found = format!(
            "the user {user:?} may run all {} commands on {prefix}:*",
            commands.len()
        );
        return Finding::new("rights", Level::Ok, found, "No call needs another right.");
    }
    let means = "Calls that need these rights are errors, and OnError decides.";
    Finding::new("rights", Level::Problem, found.join("; "), means).advice(advice.join(" "))
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
            let finding = conclude("access", "ringgate", &["GET KEY"], &[answer]);
            assert_eq!(finding.advice, advice, "{error}");
        }
    }

    #[test]
    fn each_command_of_the_scripts_is_tried() {
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
                    COMMANDS.iter().any(|tried| name(tried) == command),
                    "{} calls {command}, which is not tried",
                    path.display()
                );
            }
        }
        assert!(called > 20, "{called}");
    }
}
