//! Reasons for a run without a result.

use core::error::Error;
use core::fmt;
use std::io;

use ringgate::ConfigError;
use ringgate::rules::{FileError, RuleError};

/// A run ended without a result; the display form is the whole message.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An algorithm or a store cannot be built.
    Config(ConfigError),
    /// A rule of the command line cannot be built.
    Rule(RuleError),
    /// A rules file is invalid.
    Rules(FileError),
    /// An argument or an input is invalid.
    Message(String),
    /// A file, a pipe or a runtime failed.
    Io {
        /// The operation, as in "cannot read access.log".
        operation: String,
        error: io::Error,
    },
    /// The input has no request.
    Empty {
        /// Lines that could not be parsed.
        unreadable: u64,
        /// Requests outside of `--from` and `--to`.
        out_of_range: u64,
        /// Lines that are no requests of the format.
        others: u64,
        /// The first of them, with their errors.
        examples: Vec<String>,
    },
    /// An input has more unreadable lines than requests.
    Illegible {
        input: String,
        unreadable: u64,
        lines: u64,
        /// The format and the reason for it.
        format: String,
        /// The first unreadable lines, with their errors.
        examples: Vec<String>,
    },
    /// The input spans more time than a limiter can represent.
    TooLong {
        first: String,
        last: String,
        /// The longest span that is possible with these windows.
        days: u64,
    },
    /// A server does not answer.
    Unreachable {
        /// The address, without a password.
        server: String,
        reason: String,
    },
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }

    /// An invalid value: `invalid {name}: {given} (expected {expected})`.
    pub(crate) fn argument(
        name: impl fmt::Display,
        given: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self::Message(format!("invalid {name}: {given} (expected {expected})"))
    }

    pub(crate) fn io(operation: impl Into<String>, error: io::Error) -> Self {
        Self::Io {
            operation: operation.into(),
            error,
        }
    }

    /// A failure of a temporary file.
    pub(crate) fn temporary(error: io::Error) -> Self {
        Self::io(
            "cannot use a temporary file in $TMPDIR or the system's folder",
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
            Self::Message(message) => f.write_str(message),
            Self::Io { operation, error } => write!(f, "{operation}: {error}"),
            Self::Empty {
                unreadable,
                out_of_range,
                others,
                examples,
            } => {
                match unreadable + out_of_range + others {
                    0 => f.write_str(
                        "no requests in the input: it has no lines (expected one request a line)",
                    )?,
                    _ => f.write_str("no requests in the input")?,
                }
                match unreadable {
                    0 => {}
                    1 => f.write_str(" (1 unreadable line)")?,
                    _ => write!(f, " ({unreadable} unreadable lines)")?,
                }
                if *out_of_range > 0 {
                    write!(f, "; {out_of_range} requests are outside of --from and --to")?;
                }
                if *others > 0 {
                    write!(f, "; {others} lines are no requests of the format")?;
                }
                if *unreadable > 0 {
                    write!(f, "; --format, --log-format or --pattern say how lines are read")?;
                }
                examples.iter().try_for_each(|example| write!(f, "\n{example}"))
            }
            Self::Illegible {
                input,
                unreadable,
                lines,
                format,
                examples,
            } => {
                write!(
                    f,
                    "{unreadable} of {lines} lines of {input} are unreadable as {format} (--format, --log-format or --pattern \
                     say how lines are read; --lenient leaves them out)"
                )?;
                examples.iter().try_for_each(|example| write!(f, "\n{example}"))
            }
            Self::TooLong { first, last, days } => write!(
                f,
                "input spans {first} to {last} (expected at most {days} days with these windows; --from and --to leave requests out)"
            ),
            Self::Unreachable { server, reason } => write!(f, "cannot check {server}: {reason}"),
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
            Self::Message(_)
            | Self::Empty { .. }
            | Self::Illegible { .. }
            | Self::TooLong { .. }
            | Self::Unreachable { .. } => None,
        }
    }
}
