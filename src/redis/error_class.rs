//! The errors of the client library: their kind for callers, and what they say about a connection.

use alloc::string::ToString;

use ::redis::{ErrorKind, RedisError};

use crate::shared::{StoreError, StoreErrorKind};

/// The state of a connection, as an error indicates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorClass {
    /// The error says nothing about the connection.
    None,
    /// The connection works, but the server cannot serve calls now.
    ServerFault,
    /// The connection may be broken. Several such errors in a row end it.
    Suspect,
    /// The connection has ended.
    Lost,
}

/// Whether the server does not know a script.
pub(super) fn is_unknown_script(error: &RedisError) -> bool {
    error.code() == Some("NOSCRIPT")
}

/// Classifies an error of the client library.
pub(super) fn diagnose(error: &RedisError) -> (StoreError, ErrorClass) {
    let (kind, class) = if error.is_timeout() {
        (StoreErrorKind::TimedOut, ErrorClass::Suspect)
    } else if error.kind() == ErrorKind::AuthenticationFailed {
        (StoreErrorKind::UnexpectedReply, ErrorClass::Suspect)
    } else if let Some(code) = error.code() {
        // Older servers put the code into the message of the script's error.
        let hidden = |code: &str| error.detail().is_some_and(|detail| detail.contains(code));
        match code {
            // After a failover, the address may lead to the new primary.
            "READONLY" | "MASTERDOWN" => (StoreErrorKind::Refused, ErrorClass::Suspect),
            _ if hidden("-READONLY") => (StoreErrorKind::Refused, ErrorClass::Suspect),
            "OOM" | "LOADING" | "BUSY" | "MISCONF" | "NOREPLICAS" | "CLUSTERDOWN" | "TRYAGAIN" | "MOVED"
            | "ASK" => (StoreErrorKind::Refused, ErrorClass::ServerFault),
            _ if hidden("-OOM") => (StoreErrorKind::Refused, ErrorClass::ServerFault),
            "NOAUTH" | "WRONGPASS" => (StoreErrorKind::UnexpectedReply, ErrorClass::Suspect),
            // The error concerns this call, or data of another program under its name.
            _ => (StoreErrorKind::UnexpectedReply, ErrorClass::None),
        }
    } else if error.is_unrecoverable_error() {
        (StoreErrorKind::Disconnected, ErrorClass::Lost)
    } else if error.is_io_error() {
        (StoreErrorKind::Disconnected, ErrorClass::Suspect)
    } else {
        (StoreErrorKind::UnexpectedReply, ErrorClass::Suspect)
    };
    let mut detail = error.to_string();
    // A server that lacks a command repeats its arguments: those of HELLO include the password.
    if let Some(at) = detail.find(", with args") {
        detail.truncate(at);
    }
    (StoreError::new(kind, detail), class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_an_unknown_command_are_left_out() {
        let detail = "unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'user' 'secret' ";
        let error = ::redis::make_extension_error("ERR".into(), Some(detail.into()));
        let (error, class) = diagnose(&error);
        let text = error.to_string();
        assert!(text.contains("unknown command 'HELLO'"), "{text}");
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(class, ErrorClass::None);
    }
}
