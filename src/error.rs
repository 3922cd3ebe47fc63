//! The error of a configuration that cannot be built.

use alloc::string::String;
use core::fmt;

/// The error of an invalid configuration: the field, the value that was given, and the values that are accepted.
///
/// # Examples
///
/// ```
/// use ringgate::{CounterRing, Quota};
///
/// # fn main() -> Result<(), ringgate::ConfigError> {
/// let error = CounterRing::builder(Quota::per_second(10)?).cells(5_000).build().unwrap_err();
/// assert_eq!(error.field, "cells");
/// assert_eq!(error.to_string(), "invalid cells: 5000 (expected 1 to 4096)");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigError {
    /// The field of the builder or the file, such as `limit`, `window`, `cells` or `burst`.
    pub field: &'static str,
    /// The value that was given, as text.
    pub given: String,
    /// The values that are accepted, as text, with their unit.
    pub expected: String,
}

impl ConfigError {
    pub(crate) fn new(field: &'static str, given: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            field,
            given: given.into(),
            expected: expected.into(),
        }
    }

    /// The error of a field that was not given.
    pub(crate) fn missing(field: &'static str, expected: impl Into<String>) -> Self {
        Self::new(field, Self::MISSING, expected)
    }

    /// The `given` of a field that was not given.
    const MISSING: &'static str = "missing";
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field,
            given,
            expected,
        } = self;
        match given.as_str() {
            Self::MISSING => write!(f, "missing {field} (expected {expected})"),
            given => write!(f, "invalid {field}: {given} (expected {expected})"),
        }
    }
}

impl core::error::Error for ConfigError {}
