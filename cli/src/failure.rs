//! Why a run ends without a result.

use core::error::Error;
use core::fmt;
use std::io;

use ringgate::{ConfigError, FileError, RuleError};

/// A run ended without a result; the display form is the whole message.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An algorithm that was asked for cannot be built.
    Config(ConfigError),
    /// A rule that was asked for cannot be built.
    Rule(RuleError),
    /// The file of rules says what no rule has.
    Rules(FileError),
    /// An argument, or a value in it, is not allowed.
    Argument {
        /// Which.
        what: String,
        /// What was given.
        given: String,
        /// What is allowed.
        allowed: String,
    },
    /// Something could not be read or written.
    Io {
        /// What could not be done to what.
        what: String,
        /// Why.
        error: io::Error,
    },
    /// Not one line of the input is a request.
    Empty {
        /// How many lines are something else.
        unreadable: u64,
        /// The first of them.
        examples: Vec<String>,
    },
    /// The input goes on for longer than a limiter counts.
    TooLong {
        /// The earliest request, and the latest, as text.
        first: String,
        last: String,
        /// How far after the first a request may be.
        days: u64,
    },
    /// Nobody answers.
    Unreachable {
        /// Which address, without a password.
        server: String,
        /// What happened instead.
        why: String,
    },
}

impl Failure {
    pub(crate) fn io(what: impl Into<String>, error: io::Error) -> Self {
        Self::Io {
            what: what.into(),
            error,
        }
    }

    pub(crate) fn argument(
        what: impl Into<String>,
        given: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        Self::Argument {
            what: what.into(),
            given: given.into(),
            allowed: allowed.into(),
        }
    }

    /// What went wrong with a file of the tool's own.
    pub(crate) fn temporary(error: io::Error) -> Self {
        Self::io(
            "the temporary file cannot be used (it is in $TMPDIR, or where the system has such files)",
            error,
        )
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<RuleError> for Failure {
    fn from(error: RuleError) -> Self {
        Self::Rule(error)
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::Rules(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Rule(error) => error.fmt(f),
            Self::Rules(error) => error.fmt(f),
            Self::Argument { what, given, allowed } => {
                write!(f, "{what} is {given}, but allowed is {allowed}")
            }
            Self::Io { what, error } => write!(f, "{what}: {error}"),
            Self::Empty { unreadable, examples } => {
                write!(
                    f,
                    "the input is empty: no request in it, unreadable lines: {unreadable}"
                )?;
                examples.iter().try_for_each(|example| write!(f, "\n{example}"))
            }
            Self::TooLong { first, last, days } => write!(
                f,
                "the input goes from {first} to {last}, but with these windows a limiter counts {days} days from \
                 the first request on"
            ),
            Self::Unreachable { server, why } => write!(f, "{server} cannot be examined: {why}"),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Rule(error) => Some(error),
            Self::Rules(error) => Some(error),
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
