//! The wanted fields of one line.

use core::fmt;

/// The values of the wanted fields and the time of a request; reused for each line.
#[derive(Debug)]
pub(crate) struct Row {
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub(crate) time: i64,
    /// The number of requests: more than one if a line stands for repeated ones.
    pub(crate) count: u64,
    text: Vec<u8>,
    /// The places of the values in the text. A field behind the last one has no value.
    values: Vec<Option<(usize, usize)>>,
}

impl Default for Row {
    fn default() -> Self {
        Self {
            time: 0,
            count: 1,
            text: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl Row {
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.count = 1;
        self.text.clear();
        self.values.clear();
    }

    #[inline]
    pub(crate) fn set(&mut self, field: usize, value: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(value);
        if self.values.len() <= field {
            self.values.resize(field + 1, None);
        }
        self.values[field] = Some((start, self.text.len()));
    }

    #[inline]
    pub(crate) fn get(&self, field: usize) -> Option<&[u8]> {
        let (start, end) = (*self.values.get(field)?)?;
        Some(&self.text[start..end])
    }
}

/// The error of a line that is not a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// The byte of the line, from 1, if the error has one.
    pub(crate) column: Option<usize>,
    /// The error as a phrase.
    pub(crate) what: Box<str>,
}

impl Unreadable {
    pub(crate) fn at(offset: usize, what: impl Into<Box<str>>) -> Self {
        Self {
            column: Some(offset + 1),
            what: what.into(),
        }
    }

    pub(crate) fn line(what: impl Into<Box<str>>) -> Self {
        Self {
            column: None,
            what: what.into(),
        }
    }

    /// A field has an invalid value.
    pub(crate) fn field(name: &str, given: &[u8], expected: &str) -> Self {
        Self::line(format!(
            "invalid {name:?}: \"{}\" (expected {expected})",
            shown(given)
        ))
    }

    /// A field is missing.
    pub(crate) fn missing(name: &str, expected: &str) -> Self {
        Self::line(format!("missing {name:?} (expected {expected})"))
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(column) = self.column {
            write!(f, "column {column}: ")?;
        }
        f.write_str(&self.what)
    }
}

/// The characters of a text that messages show.
const SHOWN_CHARS: usize = 80;

/// The beginning of a text, with unprintable characters escaped.
pub(crate) fn shown(text: &[u8]) -> String {
    // A character has at most four bytes.
    let start = &text[..text.len().min(4 * (SHOWN_CHARS + 1))];
    let start = String::from_utf8_lossy(start);
    let mut chars = start.chars();
    let mut shown = String::new();
    for char in chars.by_ref().take(SHOWN_CHARS) {
        match char {
            '"' | '\'' | '\\' => shown.push(char),
            _ => shown.extend(char.escape_debug()),
        }
    }
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{Row, Unreadable, shown};

    #[test]
    fn shown_text_is_short_and_printable() {
        assert_eq!(
            shown("\u{1b}[2J \"\\x\" \u{202e}\u{e9}".as_bytes()),
            "\\u{1b}[2J \"\\x\" \\u{202e}\u{e9}"
        );
        assert_eq!(shown(b"a\xffb\0"), "a\u{fffd}b\\0");
        assert_eq!(shown(&[b'x'; 80]), "x".repeat(80));
        assert_eq!(shown(&[b'x'; 81]), format!("{}…", "x".repeat(80)));
        let wide = "\u{1f980}".repeat(81);
        assert_eq!(shown(wide.as_bytes()), format!("{}…", "\u{1f980}".repeat(80)));
    }

    #[test]
    fn a_cleared_row_is_empty() {
        let mut row = Row::default();
        row.set(1, b"old");
        row.set(1, b"new");
        assert_eq!((row.get(0), row.get(1)), (None, Some(&b"new"[..])));
        row.clear();
        assert_eq!(row.get(1), None);
    }

    #[test]
    fn messages_have_a_column_and_a_reason() {
        assert_eq!(
            Unreadable::at(4, "no such thing").to_string(),
            "column 5: no such thing"
        );
        assert_eq!(
            Unreadable::field("bytes", b"x\n", "digits").to_string(),
            "invalid \"bytes\": \"x\\n\" (expected digits)"
        );
    }
}
