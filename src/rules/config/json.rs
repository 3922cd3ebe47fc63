use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::file_error::FileError;
use super::format::Format;
use super::node::{Entry, Node, Value};
use super::place::{Lines, Place};

/// The root of a JSON text.
///
/// Each value is first read as a piece of the text, which tells where it stands.
pub(super) fn parse(text: &str) -> Result<Node, FileError> {
    let root: &RawValue = serde_json::from_str(text).map_err(|error| {
        let place = Place {
            line: error.line().max(1),
            column: error.column().max(1),
        };
        FileError::syntax(place, Format::Json, message(&error))
    })?;
    let source = Source {
        text,
        lines: Lines::of(text),
    };
    source.node(root, 1)
}

/// What is wrong, without the place.
fn message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&place).unwrap_or(&message).to_owned()
}

struct Source<'t> {
    text: &'t str,
    lines: Lines<'t>,
}

impl Source<'_> {
    /// Where a piece of the text stands in it.
    fn place(&self, piece: &RawValue) -> Place {
        let offset = piece
            .get()
            .as_ptr()
            .addr()
            .wrapping_sub(self.text.as_ptr().addr());
        self.lines.place(offset)
    }

    fn read<'p, T: Deserialize<'p>>(&self, piece: &'p RawValue) -> Result<T, FileError> {
        // It is JSON, so this fails for what only a string's content can be: half of a surrogate pair.
        serde_json::from_str(piece.get())
            .map_err(|error| FileError::syntax(self.place(piece), Format::Json, message(&error)))
    }

    fn node(&self, piece: &RawValue, depth: usize) -> Result<Node, FileError> {
        let at = self.place(piece);
        if depth > Node::DEEPEST {
            return Err(FileError::syntax(at, Format::Json, "too deep for a rules file"));
        }
        let text = piece.get();
        let value = match text.as_bytes().first() {
            Some(b'{') => {
                let Pairs(pairs) = self.read(piece)?;
                let entries = pairs.into_iter().map(|(name, value)| {
                    Ok(Entry {
                        name: self.read(name)?,
                        at: self.place(name),
                        node: self.node(value, depth + 1)?,
                    })
                });
                return Node::map(at, entries.collect::<Result<_, FileError>>()?);
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

/// The fields of an object, as pieces of the text, in its order.
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
