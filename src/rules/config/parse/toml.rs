use alloc::string::ToString;
use alloc::vec::Vec;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::node::{Field, Node, Value};
use super::position::{LineIndex, Position};
use crate::rules::config::file_error::FileError;
use crate::rules::config::file_format::FileFormat;

/// Parses a TOML text, whose root is a table.
pub(crate) fn parse(text: &str) -> Result<Node, FileError> {
    let lines = LineIndex::of(text);
    let root = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        FileError::syntax(lines.position(offset), FileFormat::Toml, error.message())
    })?;
    table(Position::START, root.get_ref(), &lines, 1)
}

fn table(at: Position, table: &DeTable<'_>, lines: &LineIndex<'_>, depth: usize) -> Result<Node, FileError> {
    let mut entries: Vec<_> = table.iter().collect();
    // The parser returns the fields in the order of their names. In the order of the text, the next position is near the last one.
    entries.sort_by_key(|(name, _)| name.span().start);
    let fields = entries.into_iter().map(|(name, value)| {
        Ok(Field {
            name: name.get_ref().to_string(),
            at: lines.position(name.span().start),
            node: node(value, lines, depth)?,
        })
    });
    Node::map(at, fields.collect::<Result<_, FileError>>()?)
}

fn node(value: &Spanned<DeValue<'_>>, lines: &LineIndex<'_>, depth: usize) -> Result<Node, FileError> {
    let at = lines.position(value.span().start);
    if depth > Node::MAX_DEPTH {
        return Err(FileError::syntax(
            at,
            FileFormat::Toml,
            "values are nested too deep",
        ));
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
