//! Why a run ends without a result.

use core::error::Error;
use core::fmt;
use std::io;

use ringgate::ConfigError;

/// A run ended without a result; the display form is the whole message.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The limiter that was asked for cannot be built.
    Config(ConfigError),
    /// `--cells` was given with an algorithm that has none to choose.
    NoCells {
        /// What was given.
        given: u64,
        /// The algorithm's name on the command line.
        algorithm: String,
    },
    /// Something could not be read or written.
    Io {
        /// What could not be done to what.
        what: String,
        /// Why.
        error: io::Error,
    },
    /// Not one line of the log is a request.
    Empty {
        /// How many lines are something else.
        malformed: u64,
        /// The first of them.
        examples: Vec<String>,
    },
    /// The log goes on for longer than a limiter counts.
    TooLong {
        /// The earliest request, and one that is too late, as text.
        first: String,
        late: String,
        /// How far after the first a request may be.
        days: u64,
    },
    /// More client addresses than there are numbers for them.
    TooManyKeys,
    /// Nobody answers.
    #[cfg(feature = "redis")]
    Unreachable {
        /// Which address, without a password.
        server: String,
        /// What happened instead.
        why: String,
    },
    /// What was asked for needs more features than there are.
    #[cfg(not(feature = "redis"))]
    NotBuilt {
        /// The command.
        what: &'static str,
        /// Those that it needs.
        features: &'static str,
    },
}

impl Failure {
    pub(crate) fn io(what: impl Into<String>, error: io::Error) -> Self {
        Self::Io {
            what: what.into(),
            error,
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::NoCells { given, algorithm } => write!(
                f,
                "cells is {given} cells, but allowed is no --cells with --algorithm {algorithm}, \
                 only with counter, classic and even"
            ),
            Self::Io { what, error } => write!(f, "{what}: {error}"),
            Self::Empty { malformed, examples } => {
                write!(
                    f,
                    "the log is empty: no request in it, malformed lines: {malformed}"
                )?;
                examples.iter().try_for_each(|example| write!(f, "\n{example}"))
            }
            Self::TooLong { first, late, days } => write!(
                f,
                "the log goes from {first} to {late} or later, but with this window a limiter counts {days} days \
                 from the first request on"
            ),
            Self::TooManyKeys => write!(f, "the log holds more than {} client addresses", u32::MAX),
            #[cfg(feature = "redis")]
            Self::Unreachable { server, why } => write!(f, "{server} cannot be examined: {why}"),
            #[cfg(not(feature = "redis"))]
            Self::NotBuilt { what, features } => write!(
                f,
                "`{what}` is not in this build of ringgate: cargo install ringgate --features {features}"
            ),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Config(error) => Some(error),
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
