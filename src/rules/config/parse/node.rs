use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::collections::HashSet;

use super::position::Position;
use crate::error::ConfigError;
use crate::rules::config::file_error::FileError;

/// A value in a file, with its position: the common result of all parsers.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: Position,
    pub(crate) value: Value,
}

/// A value of a rules file, whatever the format.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Bool(bool),
    Whole(u64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Field>),
    /// The text of a value that no field accepts: null, a date, a negative number, or a fraction.
    Other(String),
}

/// A field of a map.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) at: Position,
    pub(crate) node: Node,
}

impl Node {
    /// The maximum depth of nested values. A rules file needs four levels.
    pub(crate) const MAX_DEPTH: usize = 16;

    /// The bytes of text that take about as much memory as a node.
    const BYTES: usize = 64;

    /// Creates a map. Returns an error if two fields have the same name.
    pub(crate) fn map(at: Position, fields: Vec<Field>) -> Result<Self, FileError> {
        let mut names = HashSet::new();
        for entry in &fields {
            if !names.insert(entry.name.as_str()) {
                let error = ConfigError::new("field", format!("{:?} again", entry.name), "each field once");
                return Err(FileError::value(entry.at, error));
            }
        }
        Ok(Self {
            at,
            value: Value::Map(fields),
        })
    }

    /// The value of a field, if this is a map and has it.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        let Value::Map(fields) = &self.value else {
            return None;
        };
        let entry = fields.iter().find(|entry| entry.name == name)?;
        Some(&entry.node)
    }

    /// The values of a list or a map. Empty for a scalar.
    pub(crate) fn values(&self) -> Vec<&Self> {
        match &self.value {
            Value::List(nodes) => nodes.iter().collect(),
            Value::Map(fields) => fields.iter().map(|entry| &entry.node).collect(),
            Value::Bool(_) | Value::Whole(_) | Value::Text(_) | Value::Other(_) => Vec::new(),
        }
    }

    /// The text of the value in an error message.
    pub(crate) fn given(&self) -> String {
        match &self.value {
            Value::Bool(value) => value.to_string(),
            Value::Whole(value) => value.to_string(),
            Value::Text(text) => format!("{text:?}"),
            Value::List(_) => String::from("a list"),
            Value::Map(_) => String::from("a map"),
            Value::Other(text) => text.clone(),
        }
    }

    /// The error that `field` does not accept this value.
    pub(crate) fn unexpected(&self, field: &'static str, expected: impl Into<String>) -> FileError {
        self.invalid(field, self.given(), &expected.into())
    }

    /// The error that `field` does not accept what is given here.
    pub(crate) fn invalid(&self, field: &'static str, given: impl Into<String>, expected: &str) -> FileError {
        FileError::value(self.at, ConfigError::new(field, given, expected))
    }

    /// The memory that a copy takes, in nodes: one for this node and each node in it, and one for every [`BYTES`](Self::BYTES) bytes of
    /// their texts.
    pub(crate) fn size(&self) -> usize {
        let of_text = |text: &str| text.len() / Self::BYTES;
        1 + match &self.value {
            Value::Bool(_) | Value::Whole(_) => 0,
            Value::Text(text) | Value::Other(text) => of_text(text),
            Value::List(nodes) => nodes.iter().map(Self::size).sum(),
            Value::Map(fields) => {
                let sizes = fields
                    .iter()
                    .map(|entry| of_text(&entry.name) + entry.node.size());
                sizes.sum()
            }
        }
    }
}
