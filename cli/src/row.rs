//! What one line says in the fields that are wanted.

use core::fmt;

/// The values of the wanted fields, and when the request was; used again for each line.
#[derive(Debug)]
pub(crate) struct Row {
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    pub(crate) time: i64,
    text: Vec<u8>,
    values: Box<[Option<(usize, usize)>]>,
}

impl Row {
    /// For so many fields.
    pub(crate) fn new(fields: usize) -> Self {
        Self {
            time: 0,
            text: Vec::new(),
            values: vec![None; fields].into_boxed_slice(),
        }
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.values.fill(None);
    }

    #[inline]
    pub(crate) fn set(&mut self, field: usize, value: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(value);
        self.values[field] = Some((start, self.text.len()));
    }

    /// Gives a field the value of another.
    #[inline]
    pub(crate) fn copy(&mut self, from: usize, to: usize) {
        self.values[to] = self.values[from];
    }

    #[inline]
    pub(crate) fn get(&self, field: usize) -> Option<&[u8]> {
        self.values[field].map(|(start, end)| &self.text[start..end])
    }
}

/// Why a line is no request: where, what was there, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// The byte of the line, from 1, if it is about one.
    pub(crate) column: Option<usize>,
    /// What is wrong: a whole phrase.
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

    /// A field is not what it must be.
    pub(crate) fn field(name: &str, given: &[u8], allowed: &str) -> Self {
        Self::line(format!(
            "{name:?} is \"{}\", but allowed is {allowed}",
            shown(given)
        ))
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

/// Characters that are shown of a text.
const SHOWN_CHARS: usize = 80;

/// The beginning of a text; what cannot be printed is escaped.
pub(crate) fn shown(text: &[u8]) -> String {
    // No character is longer than four bytes.
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
    fn a_shown_text_is_short_and_printable() {
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
    fn a_cleared_row_says_nothing() {
        let mut row = Row::new(2);
        row.set(1, b"old");
        row.set(1, b"new");
        assert_eq!((row.get(0), row.get(1)), (None, Some(&b"new"[..])));
        row.clear();
        assert_eq!(row.get(1), None);
    }

    #[test]
    fn a_message_says_where_and_what() {
        assert_eq!(
            Unreadable::at(4, "no such thing").to_string(),
            "column 5: no such thing"
        );
        assert_eq!(
            Unreadable::field("bytes", b"x\n", "digits").to_string(),
            "\"bytes\" is \"x\\n\", but allowed is digits"
        );
    }
}
