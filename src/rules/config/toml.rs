use alloc::string::ToString;
use alloc::vec::Vec;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file_error::FileError;
use super::format::Format;
use super::node::{Entry, Node, Value};
use super::place::{Lines, Place};

/// The root of a TOML text, which is a table.
pub(super) fn parse(text: &str) -> Result<Node, FileError> {
    let lines = Lines::of(text);
    let root = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        FileError::syntax(lines.place(offset), Format::Toml, error.message())
    })?;
    table(Place::START, root.get_ref(), &lines, 1)
}

fn table(at: Place, table: &DeTable<'_>, lines: &Lines<'_>, depth: usize) -> Result<Node, FileError> {
    let entries = table.iter().map(|(name, value)| {
        Ok(Entry {
            name: name.get_ref().to_string(),
            at: lines.place(name.span().start),
            node: node(value, lines, depth)?,
        })
    });
    let mut entries = entries.collect::<Result<Vec<_>, FileError>>()?;
    // The parser gives them in the order of their names.
    entries.sort_by_key(|entry| entry.at);
    Node::map(at, entries)
}

fn node(value: &Spanned<DeValue<'_>>, lines: &Lines<'_>, depth: usize) -> Result<Node, FileError> {
    let at = lines.place(value.span().start);
    if depth > Node::DEEPEST {
        return Err(FileError::syntax(at, Format::Toml, "too deep for a rules file"));
    }
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::Other(number.to_string()), Value::Whole),
        DeValue::Float(number) => Value::Other(number.to_string()),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(time) => Value::Other(time.to_string()),
        DeValue::Array(values) => {
            let nodes = values.iter().map(|value| node(value, lines, depth + 1));
            Value::List(nodes.collect::<Result<_, _>>()?)
        }
        DeValue::Table(values) => return table(at, values, lines, depth + 1),
    };
    Ok(Node { at, value })
}
