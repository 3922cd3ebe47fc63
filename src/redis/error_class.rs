//! The errors of the client library: their kind for callers, what they say about a connection, and what mends them.

use alloc::format;
use alloc::string::{String, ToString};

use ::redis::{ErrorKind, RedisError};

use crate::shared::supervision::{CallError, ErrorClass};
use crate::shared::{StoreError, StoreErrorKind};

/// The codes of servers. An error of another code concerns only its call: for example, a key holds data of another program.
const CODES: [(&str, StoreErrorKind, ErrorClass); 16] = {
    use ErrorClass::{None, ServerFault, Suspect};
    use StoreErrorKind::{Refused, UnexpectedReply};
    [
        // Suspect, because after a failover another connection may lead to the new primary.
        ("READONLY", Refused, Suspect),
        ("MASTERDOWN", Refused, Suspect),
        ("OOM", Refused, ServerFault),
        ("LOADING", Refused, ServerFault),
        ("BUSY", Refused, ServerFault),
        ("MISCONF", Refused, ServerFault),
        ("NOREPLICAS", Refused, ServerFault),
        ("CLUSTERDOWN", Refused, ServerFault),
        ("TRYAGAIN", Refused, ServerFault),
        ("MOVED", Refused, ServerFault),
        ("ASK", Refused, ServerFault),
        ("NOAUTH", UnexpectedReply, Suspect),
        ("WRONGPASS", UnexpectedReply, Suspect),
        ("NOPERM", UnexpectedReply, None),
        ("CROSSSLOT", UnexpectedReply, None),
        ("NOSCRIPT", UnexpectedReply, None),
    ]
};

/// The message of an error without the arguments of the call, which a server repeats if it lacks the command.
fn message(error: &RedisError) -> &str {
    let detail = error.detail().unwrap_or_default();
    detail.split(", with args").next().unwrap_or_default()
}

/// The code of an error of the server.
///
/// Proxies put it at the beginning of the message of another error (`ERR READONLY You can't write`), and servers before
/// Redis 7 put it with a dash into the message of a script's error (`ERR Error running script: -READONLY You can't write`).
pub(super) fn code(error: &RedisError) -> Option<&str> {
    let outer = error.code()?;
    let is_known = |code: &str| CODES.iter().any(|(known, ..)| *known == code);
    if is_known(outer) {
        return Some(outer);
    }
    let words = message(error).split(|at: char| at.is_whitespace() || matches!(at, ':' | '\'' | '"' | '('));
    let mut words = words.filter(|word| !word.is_empty()).enumerate();
    let hidden = words.find_map(|(at, word)| match word.strip_prefix('-') {
        Some(code) => is_known(code).then_some(code),
        None => (at == 0 && is_known(word)).then_some(word),
    });
    Some(hidden.unwrap_or(outer))
}

/// Whether the server does not know a script.
pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    code(error) == Some("NOSCRIPT")
}

/// Classifies an error of the client library, of a connection to one server.
pub(super) fn diagnose(error: &RedisError) -> CallError {
    diagnose_of(error, false)
}

/// Classifies an error of the client library. `in_cluster`: the connection is that to a cluster.
pub(super) fn diagnose_of(error: &RedisError, in_cluster: bool) -> CallError {
    let (kind, mut class) = classify(error);
    if in_cluster && class == ErrorClass::Lost {
        // The connection to one node has ended, and the client library makes another.
        class = ErrorClass::Suspect;
    }
    let mut detail = describe(error);
    if let Some(remedy) = remedy(error, in_cluster) {
        detail += &format!(" ({remedy})");
    }
    CallError {
        error: StoreError::new(kind, detail),
        class,
    }
}

fn classify(error: &RedisError) -> (StoreErrorKind, ErrorClass) {
    if error.is_timeout() {
        (StoreErrorKind::TimedOut, ErrorClass::Suspect)
    } else if error.kind() == ErrorKind::AuthenticationFailed {
        (StoreErrorKind::UnexpectedReply, ErrorClass::Suspect)
    } else if let Some(code) = code(error) {
        let known = CODES.iter().find(|(known, ..)| *known == code);
        known.map_or(
            (StoreErrorKind::UnexpectedReply, ErrorClass::None),
            |&(_, kind, class)| (kind, class),
        )
    } else if error.is_unrecoverable_error() {
        (StoreErrorKind::Disconnected, ErrorClass::Lost)
    } else if error.is_io_error() {
        (StoreErrorKind::Disconnected, ErrorClass::Suspect)
    } else {
        (StoreErrorKind::UnexpectedReply, ErrorClass::Suspect)
    }
}

/// The error in the words of the server, without the arguments of an unknown command: those of HELLO include the password.
pub(super) fn describe(error: &RedisError) -> String {
    let mut text = error.to_string();
    if let Some(at) = text.find(", with args") {
        text.truncate(at);
    }
    text
}

/// The change that mends a lasting error. An error is lasting if every such call has it until the program or the server is
/// configured differently.
fn remedy(error: &RedisError, in_cluster: bool) -> Option<String> {
    let (code, message) = (code(error)?, message(error));
    // The error of a script that reaches a key of another slot has no code of its own.
    let is_of_slots = message.contains("same slot") || message.contains("non local key");
    if matches!(code, "CROSSSLOT" | "MOVED" | "ASK") || is_of_slots {
        // The client of a cluster follows slots that move, so its error passes.
        if in_cluster {
            return None;
        }
        let remedy = "the server is a node of a cluster: connect by RedisStore::cluster, feature redis-cluster, even if it is \
                      the only node";
        return Some(String::from(remedy));
    }
    if code == "NOPERM" || message.contains("can't run this command") || message.contains("ACL failure") {
        let right = match message.split('\'').nth(1) {
            Some(name) if message.contains("run the") => format!("+{}", name.to_lowercase()),
            _ if message.contains("key") => String::from("~<prefix>:*"),
            _ => String::from("+<command>"),
        };
        return Some(format!(
            "ACL SETUSER <user> {right}; ringgate redis check lists every right that is missing"
        ));
    }
    if message.contains("unknown command") {
        let name = message.split(['\'', '`']).nth(1).unwrap_or("a command");
        return Some(format!(
            "the server, or a proxy before it, does not have {name}: remove it from rename-command, or connect to a server \
             that has it"
        ));
    }
    None
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;

    use super::*;

    fn error(code: &str, detail: &str) -> RedisError {
        ::redis::make_extension_error(code.into(), (!detail.is_empty()).then(|| detail.into()))
    }

    #[test]
    fn the_arguments_of_an_unknown_command_are_left_out() {
        let detail = "unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'user' 'secret' ";
        let CallError { error, class } = diagnose(&error("ERR", detail));
        let text = error.to_string();
        assert!(text.contains("unknown command 'HELLO'"), "{text}");
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(class, ErrorClass::None);
    }

    /// An error has the class of its code, whether the code is its own, begins its message, or is hidden in it.
    #[test]
    fn a_code_is_known_wherever_the_server_puts_it() {
        let (refused, unexpected) = (StoreErrorKind::Refused, StoreErrorKind::UnexpectedReply);
        let script = "Error running script (call to f_0e): @user_script:1: ";
        let hidden = |message: &str| alloc::format!("{script}{message}");
        for (code, detail, kind, class) in [
            (
                "READONLY",
                "You can't write against a read only replica.".to_owned(),
                refused,
                ErrorClass::Suspect,
            ),
            (
                "ERR",
                "READONLY You can't write against a read only replica.".to_owned(),
                refused,
                ErrorClass::Suspect,
            ),
            (
                "ERR",
                "-READONLY You can't write".to_owned(),
                refused,
                ErrorClass::Suspect,
            ),
            (
                "ERR",
                hidden("-READONLY You can't write"),
                refused,
                ErrorClass::Suspect,
            ),
            (
                "ERR",
                hidden("-LOADING Redis is loading the dataset in memory"),
                refused,
                ErrorClass::ServerFault,
            ),
            (
                "ERR",
                "LOADING Redis is loading the dataset in memory".to_owned(),
                refused,
                ErrorClass::ServerFault,
            ),
            (
                "ERR",
                hidden("-MASTERDOWN Link with MASTER is down"),
                refused,
                ErrorClass::Suspect,
            ),
            (
                "ERR",
                "MASTERDOWN Link with MASTER is down".to_owned(),
                refused,
                ErrorClass::Suspect,
            ),
            (
                "ERR",
                hidden("-OOM command not allowed"),
                refused,
                ErrorClass::ServerFault,
            ),
            (
                "ERR",
                hidden("-BUSY Redis is busy running a script"),
                refused,
                ErrorClass::ServerFault,
            ),
            (
                "ERR",
                hidden("'-MISCONF Errors writing to the AOF file'"),
                refused,
                ErrorClass::ServerFault,
            ),
            (
                "@user_script:",
                "12: -NOREPLICAS Not enough good replicas".to_owned(),
                refused,
                ErrorClass::ServerFault,
            ),
            (
                "ERR",
                "CLUSTERDOWN Hash slot not served".to_owned(),
                refused,
                ErrorClass::ServerFault,
            ),
            (
                "ERR",
                hidden("-TRYAGAIN Multiple keys request during rehashing"),
                refused,
                ErrorClass::ServerFault,
            ),
            (
                "ERR",
                "MOVED 1 10.0.0.1:6379".to_owned(),
                refused,
                ErrorClass::ServerFault,
            ),
            (
                "ERR",
                "NOAUTH Authentication required.".to_owned(),
                unexpected,
                ErrorClass::Suspect,
            ),
            // The word is not a code: it is no first word and has no dash, or is a part of another word.
            (
                "ERR",
                "syntax error near LOADING".to_owned(),
                unexpected,
                ErrorClass::None,
            ),
            (
                "ERR",
                "READONLYISH is no code".to_owned(),
                unexpected,
                ErrorClass::None,
            ),
            (
                "WRONGTYPE",
                "Operation against a key: x-READONLY".to_owned(),
                unexpected,
                ErrorClass::None,
            ),
            (
                "ERR",
                "unknown command 'GET', with args beginning with: '-LOADING'".to_owned(),
                unexpected,
                ErrorClass::None,
            ),
            ("ERR", String::new(), unexpected, ErrorClass::None),
        ] {
            let found = diagnose(&error(code, &detail));
            assert_eq!(
                (found.error.kind(), found.class),
                (kind, class),
                "{code} {detail}"
            );
        }
        assert!(is_unknown_script(&error("NOSCRIPT", "No matching script.")));
        assert!(is_unknown_script(&error("ERR", "NOSCRIPT No matching script.")));
    }

    /// A cluster has a connection to each node, and its client makes another when one of them ends.
    #[test]
    fn the_end_of_a_connection_is_not_that_of_a_cluster() {
        let ended = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        for (in_cluster, class) in [(false, ErrorClass::Lost), (true, ErrorClass::Suspect)] {
            let found = diagnose_of(&ended, in_cluster);
            assert_eq!(
                (found.error.kind(), found.class),
                (StoreErrorKind::Disconnected, class)
            );
        }
    }

    /// A lasting error names what mends it, and a passing one does not.
    #[test]
    fn a_lasting_error_names_its_remedy() {
        for (code, detail, remedy) in [
            (
                "CROSSSLOT",
                "Keys in request don't hash to the same slot",
                "RedisStore::cluster",
            ),
            (
                "ERR",
                "CROSSSLOT Keys in request don't hash to the same slot",
                "RedisStore::cluster",
            ),
            ("MOVED", "12182 127.0.0.1:7012", "RedisStore::cluster"),
            (
                "ERR",
                "Script attempted to access keys that do not hash to the same slot",
                "RedisStore::cluster",
            ),
            (
                "ERR",
                "Script attempted to access a non local key in a cluster node",
                "RedisStore::cluster",
            ),
            (
                "NOPERM",
                "this user has no permissions to run the 'evalsha' command",
                "+evalsha;",
            ),
            (
                "NOPERM",
                "User a has no permissions to run the 'EVAL' command",
                "+eval;",
            ),
            (
                "ERR",
                "-NOPERM this user has no permissions to run the 'hincrby' command",
                "+hincrby;",
            ),
            (
                "NOPERM",
                "this user has no permissions to access one of the keys used as arguments",
                "~<prefix>:*",
            ),
            (
                "ERR",
                "unknown command 'EVALSHA', with args beginning with: 'x'",
                "does not have EVALSHA:",
            ),
            (
                "ERR",
                "unknown command `evalsha`, with args beginning with: `x`",
                "does not have evalsha:",
            ),
        ] {
            let text = diagnose(&error(code, detail)).error.to_string();
            assert!(text.contains(remedy), "{text}");
            let in_cluster = diagnose_of(&error(code, detail), true).error.to_string();
            let is_kept = remedy != "RedisStore::cluster";
            assert_eq!(in_cluster.contains(remedy), is_kept, "{in_cluster}");
        }
        for (code, detail) in [
            ("OOM", "command not allowed"),
            ("ERR", "syntax error"),
            ("LOADING", ""),
        ] {
            let text = diagnose(&error(code, detail)).error.to_string();
            assert!(!text.contains('('), "{text}");
        }
    }
}
