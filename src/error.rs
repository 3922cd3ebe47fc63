//! What is wrong with a configuration.

use alloc::string::String;
use core::fmt;

/// A limiter that was asked for cannot be built: which field is wrong, what was given, and what is
/// allowed.
///
/// # Examples
///
/// ```
/// use ringgate::{CounterRing, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let error = CounterRing::builder(Quota::per_second(10)?).cells(5_000).build().unwrap_err();
/// assert_eq!(error.field, "cells");
/// assert_eq!(error.to_string(), "cells is 5000 cells, but allowed is 1 to 4096 cells");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// The field at fault, by its name in the builder or in the file: `limit`, `window`, `cells`, `burst`, `enforce`
    /// and the like.
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
