use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::node::{Field, Node, Value};
use super::position::{LineIndex, Position};
use crate::rules::config::file_error::FileError;
use crate::rules::config::file_format::FileFormat;

/// Parses a JSON text.
///
/// Each value is first read as a slice of the text. The address of the slice gives the position.
pub(crate) fn parse(text: &str) -> Result<Node, FileError> {
    let root: &RawValue = serde_json::from_str(text).map_err(|error| {
        // The library counts the bytes of the line.
        let line = text
            .lines()
            .nth(error.line().saturating_sub(1))
            .unwrap_or_default();
        let is_before = |&(at, _): &(usize, char)| at + 1 < error.column();
        let position = Position {
            line: error.line().max(1),
            column: line.char_indices().take_while(is_before).count() + 1,
        };
        FileError::syntax(position, FileFormat::Json, message(&error))
    })?;
    let source = JsonText {
        text,
        lines: LineIndex::of(text),
    };
    source.node(root, 1)
}

/// The message without the position.
fn message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&position).unwrap_or(&message).to_owned()
}

/// A JSON text, for the positions of its values.
struct JsonText<'t> {
    text: &'t str,
    lines: LineIndex<'t>,
}

impl JsonText<'_> {
    /// The position of a slice of the text.
    fn position(&self, piece: &RawValue) -> Position {
        let offset = piece
            .get()
            .as_ptr()
            .addr()
            .wrapping_sub(self.text.as_ptr().addr());
        self.lines.position(offset)
    }

    fn read<'p, T: Deserialize<'p>>(&self, piece: &'p RawValue) -> Result<T, FileError> {
        // The slice is valid JSON. Only a string can still be invalid, if it has half of a surrogate pair.
        serde_json::from_str(piece.get())
            .map_err(|error| FileError::syntax(self.position(piece), FileFormat::Json, message(&error)))
    }

    fn node(&self, piece: &RawValue, depth: usize) -> Result<Node, FileError> {
        let at = self.position(piece);
        if depth > Node::MAX_DEPTH {
            return Err(FileError::syntax(
                at,
                FileFormat::Json,
                "values are nested too deep",
            ));
        }
        let text = piece.get();
        let value = match text.as_bytes().first() {
            Some(b'{') => {
                let Pairs(pairs) = self.read(piece)?;
                let fields = pairs.into_iter().map(|(name, value)| {
                    Ok(Field {
                        name: self.read(name)?,
                        at: self.position(name),
                        node: self.node(value, depth + 1)?,
                    })
                });
                return Node::map(at, fields.collect::<Result<_, FileError>>()?);
            }
            Some(b'[') => {
                let pieces: Vec<&RawValue> = self.read(piece)?;
                let nodes = pieces.into_iter().map(|piece| self.node(piece, depth + 1));
                Value::List(nodes.collect::<Result<_, _>>()?)
            }
            Some(b'"') => Value::Text(self.read(piece)?),
            _ => match text {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                number => number
                    .parse()
                    .map_or_else(|_| Value::Other(number.to_owned()), Value::Whole),
            },
        };
        Ok(Node { at, value })
    }
}

/// The fields of an object as slices of the text, in the order of the text.
struct Pairs<'p>(Vec<(&'p RawValue, &'p RawValue)>);

impl<'p> Deserialize<'p> for Pairs<'p> {
    fn deserialize<D: Deserializer<'p>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pieces;

        impl<'p> Visitor<'p> for Pieces {
            type Value = Pairs<'p>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'p>>(self, mut map: A) -> Result<Pairs<'p>, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        deserializer.deserialize_map(Pieces)
    }
}
