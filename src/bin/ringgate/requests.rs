//! The requests of a log, in the order of its lines.

use std::collections::HashMap;
use std::io::BufRead;

use crate::failure::Failure;
use crate::lines::{Line, Lines};
use crate::log_line::{LogLine, Malformed};
use crate::stamp::Stamps;

/// One request: what is left of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// When it was, in seconds since 1970-01-01T00:00:00Z.
    pub(crate) second: i64,
    /// The number of the client's address, from 0 in the order of their first lines.
    pub(crate) key: u32,
}

/// The lines that are no requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MalformedLines {
    pub(crate) count: u64,
    /// What is wrong with the first of them.
    pub(crate) examples: Vec<String>,
}

impl MalformedLines {
    /// Malformed lines that are shown.
    const SHOWN: usize = 3;

    /// Characters that are shown of a line.
    const SHOWN_CHARS: usize = 80;

    fn add(&mut self, line: Line<'_>, reason: Malformed) {
        self.count += 1;
        if self.examples.len() < Self::SHOWN {
            let text = Self::shown(line.bytes);
            self.examples
                .push(format!("line {}: {reason}: {text}", line.number));
        }
    }

    /// The beginning of a line; what cannot be printed is escaped.
    fn shown(line: &[u8]) -> String {
        // No character is longer than four bytes.
        let start = &line[..line.len().min(4 * (Self::SHOWN_CHARS + 1))];
        let start = String::from_utf8_lossy(start);
        let mut chars = start.chars();
        let mut shown = String::new();
        for char in chars.by_ref().take(Self::SHOWN_CHARS) {
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
}

/// A reader of requests, and what it has met so far.
#[derive(Debug)]
pub(crate) struct Requests<R> {
    lines: Lines<R>,
    stamps: Stamps,
    keys: HashMap<Box<str>, u32>,
    malformed: MalformedLines,
}

impl<R: BufRead> Requests<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            lines: Lines::new(reader),
            stamps: Stamps::default(),
            keys: HashMap::new(),
            malformed: MalformedLines::default(),
        }
    }

    /// The next request; `None` when there are no more. Malformed lines are counted, blank ones are not.
    pub(crate) fn read(&mut self) -> Result<Option<Request>, Failure> {
        loop {
            let line = self
                .lines
                .read()
                .map_err(|error| Failure::io("the log cannot be read", error))?;
            let Some(line) = line else {
                return Ok(None);
            };
            if line.whole && line.bytes.trim_ascii().is_empty() {
                continue;
            }
            let parsed = if line.whole {
                LogLine::parse(line.bytes, &mut self.stamps)
            } else {
                Err(Malformed::TooLong)
            };
            match parsed {
                Ok(LogLine { address, second }) => {
                    let key = Self::key(&mut self.keys, address)?;
                    return Ok(Some(Request { second, key }));
                }
                Err(reason) => self.malformed.add(line, reason),
            }
        }
    }

    /// The number of an address, a new one when it was never seen.
    fn key(keys: &mut HashMap<Box<str>, u32>, address: &str) -> Result<u32, Failure> {
        if let Some(&key) = keys.get(address) {
            return Ok(key);
        }
        let key = u32::try_from(keys.len()).map_err(|_| Failure::TooManyKeys)?;
        keys.insert(address.into(), key);
        Ok(key)
    }

    /// The reader, for starting over.
    pub(crate) fn into_reader(self) -> R {
        self.lines.into_inner()
    }

    /// The addresses with their numbers, and the lines that are no requests.
    pub(crate) fn into_seen(self) -> (HashMap<Box<str>, u32>, MalformedLines) {
        (self.keys, self.malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::{MalformedLines, Request, Requests};
    use crate::failure::Failure;

    #[test]
    fn lines_become_numbered_requests() -> Result<(), Failure> {
        let tail = r#""GET / HTTP/1.1" 200 5"#;
        let log = format!(
            "\nb - - [01/Jan/1970:00:00:07 +0000] {tail}\r\n \t\r\nnonsense\n\
             a - - [01/Jan/1970:00:00:05 +0000] {tail}\nb - - [01/Jan/1970:00:00:08 +0000] {tail}"
        );
        let mut requests = Requests::new(log.as_bytes());
        for (second, key) in [(7, 0), (5, 1), (8, 0)] {
            assert_eq!(requests.read()?, Some(Request { second, key }));
        }
        assert_eq!(requests.read()?, None);
        let (keys, malformed) = requests.into_seen();
        assert_eq!((keys["b"], keys["a"], keys.len()), (0, 1, 2));
        assert_eq!(malformed.count, 1);
        assert_eq!(
            malformed.examples,
            ["line 4: no identity after the address: nonsense"]
        );
        Ok(())
    }

    #[test]
    fn a_shown_line_is_short_and_printable() {
        assert_eq!(
            MalformedLines::shown("\u{1b}[2J \"\\x\" \u{202e}\u{e9}".as_bytes()),
            "\\u{1b}[2J \"\\x\" \\u{202e}\u{e9}"
        );
        assert_eq!(MalformedLines::shown(b"a\xffb\0"), "a\u{fffd}b\\0");
        assert_eq!(MalformedLines::shown(&[b'x'; 80]), "x".repeat(80));
        assert_eq!(MalformedLines::shown(&[b'x'; 81]), format!("{}…", "x".repeat(80)));
        let wide = "\u{1f980}".repeat(81);
        assert_eq!(
            MalformedLines::shown(wide.as_bytes()),
            format!("{}…", "\u{1f980}".repeat(80))
        );
    }
}
