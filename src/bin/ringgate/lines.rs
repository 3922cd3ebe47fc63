//! The lines of a log, whatever bytes they hold, in bounded memory.

use std::io::{self, BufRead, Read};

/// The longest line that is kept, in bytes, its end not counted.
pub(crate) const LONGEST: usize = 64 * 1024;

/// A reader of lines that never holds more than the longest.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    number: u64,
}

/// One line, without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// The line, or its beginning.
    pub(crate) bytes: &'a [u8],
    /// Whether that is all of it.
    pub(crate) whole: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            line: Vec::with_capacity(LONGEST + 1),
            number: 0,
        }
    }

    /// The next line; `None` when there are no more.
    pub(crate) fn read(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let most = LONGEST as u64 + 1;
        if (&mut self.reader).take(most).read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let whole = if self.line.ends_with(b"\n") {
            self.line.pop();
            true
        } else {
            self.line.len() <= LONGEST
        };
        if whole && self.line.ends_with(b"\r") {
            self.line.pop();
        }
        if !whole {
            self.line.truncate(LONGEST);
            self.reader.skip_until(b'\n')?;
        }
        Ok(Some(Line {
            number: self.number,
            bytes: &self.line,
            whole,
        }))
    }

    pub(crate) fn into_inner(self) -> R {
        self.reader
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Lines};
    use std::io::{self, BufReader};

    /// Number, length and wholeness of each line, read through a buffer of `buffer` bytes.
    fn lengths(text: &[u8], buffer: usize) -> io::Result<Vec<(u64, usize, bool)>> {
        let mut lines = Lines::new(BufReader::with_capacity(buffer, text));
        let mut seen = Vec::new();
        while let Some(line) = lines.read()? {
            seen.push((line.number, line.bytes.len(), line.whole));
        }
        Ok(seen)
    }

    #[test]
    fn lines_end_where_they_end() -> io::Result<()> {
        for buffer in [1, 3, 4096] {
            assert_eq!(lengths(b"", buffer)?, []);
            assert_eq!(lengths(b"\n", buffer)?, [(1, 0, true)]);
            assert_eq!(
                lengths(b"a\r\n\r\nb\r\r\n\xff\nlast", buffer)?,
                [
                    (1, 1, true),
                    (2, 0, true),
                    (3, 2, true),
                    (4, 1, true),
                    (5, 4, true)
                ]
            );
        }
        Ok(())
    }

    #[test]
    fn a_line_is_cut_one_byte_after_the_longest() -> io::Result<()> {
        for (extra, whole) in [(0, true), (1, false), (2, false), (3 * LONGEST, false)] {
            let mut text = vec![b'x'; LONGEST + extra];
            assert_eq!(lengths(&text, 1000)?, [(1, LONGEST, whole)]);
            text.extend(b"\nnext\n");
            assert_eq!(lengths(&text, 1000)?, [(1, LONGEST, whole), (2, 4, true)]);
        }
        Ok(())
    }
}
