use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput};

use super::node::{Field, Node, Value};
use super::position::Position;
use crate::rules::config::file_error::FileError;
use crate::rules::config::file_format::FileFormat;

/// Parses a YAML text of one document.
pub(crate) fn parse(text: &str) -> Result<Node, FileError> {
    let mut document = Document {
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        aliasable: Document::MAX_ALIASED,
    };
    let mut root = None;
    loop {
        let (event, span) = document.next()?;
        match event {
            Event::StreamStart | Event::DocumentEnd | Event::Nothing => {}
            Event::StreamEnd => break,
            Event::DocumentStart(_) if root.is_some() => {
                return Err(syntax_error(span.start, "more than one document"));
            }
            Event::DocumentStart(_) => {
                let (event, span) = document.next()?;
                root = Some(document.node(event, span, 1)?);
            }
            _ => return Err(syntax_error(span.start, "a value outside of a document")),
        }
    }
    Ok(root.unwrap_or(Node {
        at: Position::START,
        value: Value::Other(String::from("nothing")),
    }))
}

/// A YAML document that is read event by event.
struct Document<'t> {
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, Node>,
    /// The [size](Node::size) of the nodes that aliases may still repeat.
    aliasable: usize,
}

impl<'t> Document<'t> {
    /// The maximum [size](Node::size) of all nodes that aliases repeat, so that a text with aliases of aliases, or of a long text, cannot
    /// exhaust the memory.
    const MAX_ALIASED: usize = 100_000;

    fn next(&mut self) -> Result<(Event<'t>, Span), FileError> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => Err(syntax_error(*error.marker(), error.info())),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, FileError> {
        if depth > Node::MAX_DEPTH {
            return Err(syntax_error(span.start, "values are nested too deep"));
        }
        let at = position(span.start);
        let (anchor, node) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
                let value = match style {
                    ScalarStyle::Plain if !is_text => plain(&text),
                    _ => Value::Text(text.into_owned()),
                };
                (anchor, Node { at, value })
            }
            Event::SequenceStart(anchor, _) => {
                let mut nodes = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break,
                        (event, span) => nodes.push(self.node(event, span, depth + 1)?),
                    }
                }
                let value = Value::List(nodes);
                (anchor, Node { at, value })
            }
            Event::MappingStart(anchor, _) => {
                let mut fields = Vec::new();
                loop {
                    match self.next()? {
                        (Event::MappingEnd, _) => break,
                        (Event::Scalar(name, ..), key) => {
                            let (event, span) = self.next()?;
                            fields.push(Field {
                                name: name.into_owned(),
                                at: position(key.start),
                                node: self.node(event, span, depth + 1)?,
                            });
                        }
                        (_, span) => return Err(syntax_error(span.start, "a field whose name is not text")),
                    }
                }
                (anchor, Node::map(at, fields)?)
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor) else {
                    return Err(syntax_error(span.start, "an alias of the value that contains it"));
                };
                let Some(left) = self.aliasable.checked_sub(node.size()) else {
                    return Err(syntax_error(span.start, "too many aliases"));
                };
                self.aliasable = left;
                return Ok(Node { at, ..node.clone() });
            }
            _ => return Err(syntax_error(span.start, "a value is missing")),
        };
        let has_anchor = anchor != 0;
        if has_anchor {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }
}

/// The value of a plain scalar, by the core schema of YAML 1.2.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Other(String::from("null")),
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let digits = |digits: &str, radix| match digits.bytes().next() {
        Some(b'+') | None => None,
        Some(_) => u64::from_str_radix(digits, radix).ok(),
    };
    let number = match text.get(..2) {
        Some("0x") => digits(&text[2..], 16),
        Some("0o") => digits(&text[2..], 8),
        _ => digits(text.strip_prefix('+').unwrap_or(text), 10),
    };
    if let Some(number) = number {
        return Value::Whole(number);
    }
    // Rust also parses words as numbers: inf, nan.
    let is_number = text.bytes().any(|byte| byte.is_ascii_digit()) && text.parse::<f64>().is_ok();
    if is_number || text.trim_start_matches(['-', '+']).eq_ignore_ascii_case(".inf") {
        Value::Other(text.to_owned())
    } else {
        Value::Text(text.to_owned())
    }
}

fn position(marker: Marker) -> Position {
    Position {
        line: marker.line(),
        column: marker.col() + 1,
    }
}

fn syntax_error(at: Marker, message: &str) -> FileError {
    FileError::syntax(position(at), FileFormat::Yaml, message)
}
