//! Reasons for a run without a result.

use core::fmt;
use std::io;

use ringgate::ConfigError;
use ringgate::rules::{FileError, RuleError};

/// A run ended without a result: the whole message for the user.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// An invalid value: `invalid {name}: {given} (expected {expected})`.
    pub(crate) fn argument(
        name: impl fmt::Display,
        given: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self(format!("invalid {name}: {given} (expected {expected})"))
    }

    /// A file, a pipe or a runtime failed in an operation such as "cannot read access.log".
    pub(crate) fn io(operation: impl fmt::Display, error: &impl fmt::Display) -> Self {
        Self(format!("{operation}: {error}"))
    }

    /// A failure of a temporary file.
    pub(crate) fn temporary(error: io::Error) -> Self {
        Self::io(
            "cannot use a temporary file in $TMPDIR or the system's folder",
            &error,
        )
    }
}

/// Declares errors whose text is the whole message.
macro_rules! whole_messages {
    ($($error:ty),+) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self(error.to_string())
            }
        })+
    };
}

// Of an algorithm or a store, of a rule of the command line, and of a rules file.
whole_messages!(ConfigError, RuleError, FileError);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
