//! What is wrong with a configuration.

use alloc::string::String;
use core::fmt;

/// A limiter that was asked for cannot be built: which field is wrong, what was given, and what is
/// allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// The field at fault, by its name in the builder or in the file: `limit`, `window`, `cells`, `burst`, `enforce` and the like.
    pub field: &'static str,
    /// What was given, as text, with its unit.
    pub given: String,
    /// What is allowed, as text, with its unit.
    pub allowed: String,
}

impl ConfigError {
    pub(crate) fn new(field: &'static str, given: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self {
            field,
            given: given.into(),
            allowed: allowed.into(),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is {}, but allowed is {}",
            self.field, self.given, self.allowed
        )
    }
}

impl core::error::Error for ConfigError {}
