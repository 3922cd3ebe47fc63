//! Readers of the values of fields. An error has the position of the value.

use alloc::format;
use alloc::string::String;

use super::file_error::FileError;
use super::keywords::{A_WHOLE_NUMBER, one_of};
use super::parse::node::{Node, Value};
use crate::error::ConfigError;

/// Checks that a node is a map with no fields but these. The error about another field has the position of its name.
pub(super) fn only_fields(
    node: &Node,
    names: &[&str],
    field: &'static str,
    expected: &'static str,
) -> Result<(), FileError> {
    let Value::Map(fields) = &node.value else {
        return Err(node.unexpected(field, expected));
    };
    match fields.iter().find(|field| !names.contains(&field.name.as_str())) {
        None => Ok(()),
        Some(field) => Err(FileError::value(
            field.at,
            ConfigError::new("field", format!("{:?}", field.name), one_of(names)),
        )),
    }
}

/// Returns the error about a map without a required field.
pub(super) fn missing(node: &Node, field: &'static str, expected: &str) -> FileError {
    FileError::value(node.at, ConfigError::missing(field, expected))
}

pub(super) fn text<'n>(node: &'n Node, field: &'static str, expected: &str) -> Result<&'n str, FileError> {
    match &node.value {
        Value::Text(text) => Ok(text),
        Value::Bool(_) | Value::Whole(_) | Value::List(_) | Value::Map(_) | Value::Other(_) => {
            Err(node.unexpected(field, expected))
        }
    }
}

pub(super) fn whole(field: &'static str, node: &Node) -> Result<u64, FileError> {
    match node.value {
        Value::Whole(number) => Ok(number),
        Value::Bool(_) | Value::Text(_) | Value::List(_) | Value::Map(_) | Value::Other(_) => {
            Err(node.unexpected(field, A_WHOLE_NUMBER))
        }
    }
}

/// Returns the value of one of these words.
pub(super) fn keyword<T: Copy>(
    field: &'static str,
    node: &Node,
    keywords: &[(&str, T)],
) -> Result<T, FileError> {
    if let Value::Text(text) = &node.value
        && let Some(&(_, meaning)) = keywords.iter().find(|(word, _)| word == text)
    {
        return Ok(meaning);
    }
    let words = keywords.iter().map(|(word, _)| format!("{word:?}"));
    Err(node.unexpected(field, one_of(&words.collect::<alloc::vec::Vec<String>>())))
}

/// Checks that a rule with the limit `field` has none of the fields `others`, which state other limits, and no algorithm.
pub(super) fn only_limit(
    field: &'static str,
    limit: &Node,
    rule: &Node,
    others: &[&str],
) -> Result<(), FileError> {
    let beside = |at, field, other: &str, expected| {
        let error = ConfigError::new(field, format!("given beside {other}"), expected);
        Err(FileError::value(at, error))
    };
    if let Some(algorithm) = rule.field("algorithm") {
        return beside(algorithm.at, "algorithm", field, "no algorithm");
    }
    match others.iter().find(|name| rule.field(name).is_some()) {
        None => Ok(()),
        Some(other) => beside(limit.at, field, other, "one of the two"),
    }
}
