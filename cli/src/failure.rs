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

/// An algorithm or a store cannot be built.
impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self(error.to_string())
    }
}

/// A rule of the command line cannot be built.
impl From<RuleError> for Failure {
    fn from(error: RuleError) -> Self {
        Self(error.to_string())
    }
}

/// A rules file is invalid.
impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
