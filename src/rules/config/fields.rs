//! Readers of the values of fields. An error has the position of the value.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::file_error::FileError;
use super::keywords::{A_QUOTA, A_WHOLE_NUMBER, one_of};
use super::parse::node::{Field, Node, Value};
use crate::error::ConfigError;
use crate::quota::Quota;

/// Reads the fields of a map, and collects the errors of all of them.
pub(super) struct MapReader<'n> {
    node: &'n Node,
    errors: Vec<FileError>,
    /// The fields that are missing or have no valid value.
    unread: Vec<&'static str>,
    /// Whether a field has another name than these. It may be the missing one, misspelled.
    has_others: bool,
}

impl<'n> MapReader<'n> {
    /// Begins to read a map that has no fields but these. The error about another field has the position of its name.
    pub(super) fn of(node: &'n Node, names: &[&str], field: &'static str, expected: &'static str) -> Self {
        let errors = match &node.value {
            Value::Map(fields) => {
                let is_other = |entry: &&Field| !names.contains(&entry.name.as_str());
                let error = |entry: &Field| {
                    let given = format!("{:?}", entry.name);
                    FileError::value(entry.at, ConfigError::new("field", given, one_of(names)))
                };
                fields.iter().filter(is_other).map(error).collect()
            }
            Value::Bool(_) | Value::Whole(_) | Value::Text(_) | Value::List(_) | Value::Other(_) => {
                alloc::vec![node.unexpected(field, expected)]
            }
        };
        Self {
            node,
            has_others: !errors.is_empty(),
            errors,
            unread: Vec::new(),
        }
    }

    pub(super) fn field(&self, name: &str) -> Option<&'n Node> {
        self.node.field(name)
    }

    /// Reads a field, if it is given and was not refused.
    pub(super) fn optional<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&'n Node) -> Result<T, FileError>,
    ) -> Option<T> {
        let node = self.node.field(field).filter(|_| !self.lacks(field))?;
        self.accept(field, read(node))
    }

    /// Adds the error that a field cannot be given beside another one, if it is given.
    pub(super) fn refuse(&mut self, field: &'static str, beside: &str, expected: &str) {
        if let Some(node) = self.node.field(field) {
            let given = format!("given beside {beside}");
            self.accept::<()>(field, Err(node.invalid(field, given, expected)));
        }
    }

    /// Reads a field that must be given. Returns `stand_in` after an error.
    pub(super) fn required<T>(
        &mut self,
        field: &'static str,
        expected: &str,
        stand_in: T,
        read: impl FnOnce(&'n Node) -> Result<T, FileError>,
    ) -> T {
        match self.node.field(field) {
            Some(node) => self.accept(field, read(node)).unwrap_or(stand_in),
            None => {
                self.missing(field, expected);
                stand_in
            }
        }
    }

    pub(super) fn missing(&mut self, field: &'static str, expected: &str) {
        self.unread.push(field);
        if !self.has_others {
            let error = ConfigError::missing(field, expected);
            self.errors.push(FileError::value(self.node.at, error));
        }
    }

    /// Returns the value of a field, or adds its error.
    pub(super) fn accept<T>(&mut self, field: &'static str, read: Result<T, FileError>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) => {
                self.unread.push(field);
                self.errors.push(error);
                None
            }
        }
    }

    /// Whether the field is missing or has no valid value.
    pub(super) fn lacks(&self, field: &str) -> bool {
        self.unread.contains(&field)
    }

    /// Returns `value` if there was no error.
    pub(super) fn finish<T>(self, value: T) -> Result<T, FileError> {
        FileError::all(self.errors).map(|()| value)
    }
}

pub(super) fn text<'n>(node: &'n Node, field: &'static str, expected: &str) -> Result<&'n str, FileError> {
    match &node.value {
        Value::Text(text) => Ok(text),
        Value::Bool(_) | Value::Whole(_) | Value::List(_) | Value::Map(_) | Value::Other(_) => {
            Err(node.unexpected(field, expected))
        }
    }
}

pub(super) fn list<'n>(node: &'n Node, field: &'static str, expected: &str) -> Result<&'n [Node], FileError> {
    match &node.value {
        Value::List(nodes) => Ok(nodes),
        Value::Bool(_) | Value::Whole(_) | Value::Text(_) | Value::Map(_) | Value::Other(_) => {
            Err(node.unexpected(field, expected))
        }
    }
}

pub(super) fn boolean(field: &'static str, node: &Node) -> Result<bool, FileError> {
    match node.value {
        Value::Bool(value) => Ok(value),
        Value::Whole(_) | Value::Text(_) | Value::List(_) | Value::Map(_) | Value::Other(_) => {
            Err(node.unexpected(field, "true or false"))
        }
    }
}

/// Reads a duration, which is written as the window of a quota.
pub(super) fn duration(field: &'static str, node: &Node, expected: &str) -> Result<Duration, FileError> {
    let quota: Result<Quota, _> = format!("1/{}", text(node, field, expected)?).parse();
    quota
        .map(Quota::window)
        .map_err(|_| node.unexpected(field, expected))
}

pub(super) fn quota(field: &'static str, node: &Node) -> Result<Quota, FileError> {
    let quota = text(node, field, A_QUOTA)?.parse();
    quota.map_err(|error: ConfigError| {
        // An unreadable text is an error of this field, and a number out of its range one of that number.
        let of_text = error.field == "quota";
        let field = if of_text { field } else { error.field };
        FileError::value(node.at, ConfigError { field, ..error })
    })
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
    Err(node.unexpected(field, one_of(&words.collect::<Vec<String>>())))
}
