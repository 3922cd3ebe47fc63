use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use std::collections::HashSet;

use super::file_error::FileError;
use super::place::Place;
use crate::error::ConfigError;

/// A value as it stands in a file, the same for every format.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: Place,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Bool(bool),
    Whole(u64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
    /// What no field takes, as it is written: null, a date, a negative number, a fraction.
    Other(String),
}

/// A field of a map.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) at: Place,
    pub(super) node: Node,
}

impl Node {
    /// How deep values may be in each other. A rules file needs four levels.
    pub(super) const DEEPEST: usize = 16;

    /// A map, whose names must differ.
    pub(super) fn map(at: Place, entries: Vec<Entry>) -> Result<Self, FileError> {
        let mut names = HashSet::new();
        for entry in &entries {
            if !names.insert(entry.name.as_str()) {
                let error = ConfigError::new("field", format!("{:?} again", entry.name), "each field once");
                return Err(FileError::value(entry.at, error));
            }
        }
        Ok(Self {
            at,
            value: Value::Map(entries),
        })
    }

    /// The value of the field, if this is a map that has it.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        let Value::Map(entries) = &self.value else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.name == name)?;
        Some(&entry.node)
    }

    /// The values of a list, or of a map; none of anything else.
    pub(super) fn values(&self) -> Vec<&Self> {
        match &self.value {
            Value::List(nodes) => nodes.iter().collect(),
            Value::Map(entries) => entries.iter().map(|entry| &entry.node).collect(),
            _ => Vec::new(),
        }
    }

    /// What was given, for an error.
    pub(super) fn given(&self) -> String {
        match &self.value {
            Value::Bool(value) => value.to_string(),
            Value::Whole(value) => value.to_string(),
            Value::Text(text) => format!("{text:?}"),
            Value::List(_) => String::from("a list"),
            Value::Map(_) => String::from("a map"),
            Value::Other(text) => text.clone(),
        }
    }

    /// The error that this is not what `field` takes.
    pub(super) fn not_allowed(&self, field: &'static str, allowed: impl Into<String>) -> FileError {
        FileError::value(self.at, ConfigError::new(field, self.given(), allowed))
    }

    /// How many nodes this is, with all that are in it.
    pub(super) fn size(&self) -> usize {
        1 + self.values().into_iter().map(Self::size).sum::<usize>()
    }
}
