//! The lines of a log, of arbitrary bytes, in bounded memory.
//!
//! A log may have holes: bytes of zero where a file was truncated under its writer, or a machine lost power. A hole is no part of
//! a line.

use std::io::{self, ErrorKind, Read};

use memchr::memchr;

/// The longest line in bytes, without its end. Longer lines are cut.
pub(crate) const LONGEST: usize = 64 * 1024;

/// Bytes of the buffer behind the beginning; more than the longest line with its end.
const BUFFER: usize = 4 * LONGEST;

/// Bytes of the beginning, by which the format of an input is detected: a thousand lines, unless they are longer than 4 KiB.
const BEGINNING: usize = 64 * LONGEST;

/// The zeros within a line that are a hole: more than the header of an archive has, which is refused. A shorter run may be a
/// part of a value, so that a client with a zero in its user agent does not end its line.
const HOLE: usize = 512;

/// The byte order mark U+FEFF in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A reader of lines with one buffer; lines are borrowed from it.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The bytes that were read and not returned yet.
    start: usize,
    end: usize,
    ended: bool,
    /// The error of the reader. It is returned behind the last whole line.
    failed: Option<io::Error>,
    number: u64,
    holes: Holes,
}

/// One line, without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// The line, or its beginning if it was cut.
    pub(crate) bytes: &'a [u8],
    /// Whether the line was not cut.
    pub(crate) whole: bool,
}

impl Line<'_> {
    /// Whether the line has nothing but white space.
    pub(crate) fn is_blank(self) -> bool {
        self.whole && self.bytes.trim_ascii().is_empty()
    }
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self::with_buffer(reader, BEGINNING)
    }

    fn with_buffer(reader: R, buffer: usize) -> Self {
        Self {
            reader,
            buffer: vec![0; buffer.max(LONGEST + 2)],
            start: 0,
            end: 0,
            ended: false,
            failed: None,
            number: 0,
            holes: Holes::default(),
        }
    }

    /// The beginning without consuming it: as many bytes as the buffer has, or all. Their number does not depend on how many a
    /// read returns, so that a pipe has the beginning of a file.
    pub(crate) fn peek(&mut self) -> io::Result<&[u8]> {
        while self.end < self.buffer.len() && !self.ended {
            self.fill()?;
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Skips a byte order mark, with which some programs begin a file.
    pub(crate) fn pass_mark(&mut self) -> io::Result<()> {
        if self.peek()?.starts_with(MARK) {
            self.start += MARK.len();
        }
        Ok(())
    }

    /// The next line; `None` at the end.
    #[inline]
    pub(crate) fn read(&mut self) -> io::Result<Option<Line<'_>>> {
        let mut seen = 0;
        let length = loop {
            if let Some(at) = memchr(b'\n', &self.buffer[self.start + seen..self.end]) {
                break Some(seen + at);
            }
            seen = self.end - self.start;
            if seen > LONGEST + 1 || self.ended {
                break None;
            }
            self.fill()?;
        };
        if length.is_none()
            && let Some(error) = self.failed.take()
        {
            // The line may have been cut, so it is not returned.
            self.start = self.end;
            return Err(error);
        }
        let (start, rest) = (self.start, self.end - self.start);
        let (mut length, mut whole) = match length {
            Some(length) => {
                self.start += length + 1;
                (length, true)
            }
            None if rest == 0 => return Ok(None),
            None => {
                self.start = self.end;
                (rest, self.ended)
            }
        };
        self.number += 1;
        if !whole {
            // The beginning moves to the front of the buffer, so that skipping the rest does not overwrite it.
            self.buffer.copy_within(start..start + LONGEST, 0);
            self.skip()?;
            return Ok(Some(Line {
                number: self.number,
                bytes: &self.buffer[..LONGEST],
                whole: false,
            }));
        }
        if length > 0 && self.buffer[start + length - 1] == b'\r' {
            length -= 1;
        }
        if length > LONGEST {
            (length, whole) = (LONGEST, false);
        }
        // The beginning of a hole, which ended the line.
        length = without_zeros(&self.buffer[start..start + length]).len();
        Ok(Some(Line {
            number: self.number,
            bytes: &self.buffer[start..start + length],
            whole,
        }))
    }

    /// Whether the reader has failed, and the error was not returned yet.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// The number of lines so far.
    pub(crate) const fn count(&self) -> u64 {
        self.number
    }

    /// Reads more bytes behind those in the buffer.
    fn fill(&mut self) -> io::Result<()> {
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            // The beginning was read. At most the longest line is left of it.
            self.buffer.truncate(BUFFER);
        }
        self.end += self.more(self.end)?;
        Ok(())
    }

    /// Reads bytes to a place of the buffer, and returns their number, without those of holes. It may be zero before the end.
    fn more(&mut self, at: usize) -> io::Result<usize> {
        loop {
            match self.reader.read(&mut self.buffer[at..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(read) => return Ok(self.holes.remove(&mut self.buffer[at..at + read])),
                Err(error) => {
                    (self.ended, self.failed) = (true, Some(error));
                    return Ok(0);
                }
            }
        }
    }

    /// Skips the rest of a line, and keeps the first [`LONGEST`] bytes of the buffer.
    fn skip(&mut self) -> io::Result<()> {
        loop {
            let read = self.more(LONGEST)?;
            let new = &self.buffer[LONGEST..LONGEST + read];
            (self.start, self.end) = (LONGEST + read, LONGEST + read);
            if let Some(at) = memchr(b'\n', new) {
                self.start = LONGEST + at + 1;
                return Ok(());
            }
            if self.ended {
                return Ok(());
            }
        }
    }
}

/// A line without zeros at its end.
pub(crate) fn without_zeros(line: &[u8]) -> &[u8] {
    match line {
        [.., 0] => {
            &line[..line
                .iter()
                .rposition(|&byte| byte != 0)
                .map_or(0, |last| last + 1)]
        }
        _ => line,
    }
}

/// The removal of holes, from one read to the next.
#[derive(Debug)]
struct Holes {
    /// Whether the next byte begins a line.
    begins: bool,
    /// The zeros at the end of the line so far.
    zeros: usize,
}

impl Default for Holes {
    fn default() -> Self {
        Self {
            begins: true,
            zeros: 0,
        }
    }
}

impl Holes {
    /// Removes zeros at the beginning of lines, and replaces a hole within a line by the end of the line. Returns the number of
    /// bytes that remain at the front.
    #[inline]
    fn remove(&mut self, bytes: &mut [u8]) -> usize {
        if memchr(0, bytes).is_some() {
            return self.remove_some(bytes);
        }
        if let Some(last) = bytes.last() {
            (self.begins, self.zeros) = (*last == b'\n', 0);
        }
        bytes.len()
    }

    #[cold]
    fn remove_some(&mut self, bytes: &mut [u8]) -> usize {
        let (mut from, mut to) = (0, 0);
        while from < bytes.len() {
            let text = memchr(0, &bytes[from..]).unwrap_or(bytes.len() - from);
            if text > 0 {
                bytes.copy_within(from..from + text, to);
                (from, to) = (from + text, to + text);
                (self.begins, self.zeros) = (bytes[to - 1] == b'\n', 0);
                continue;
            }
            let zeros = &bytes[from..];
            let run = zeros.iter().position(|&byte| byte != 0).unwrap_or(zeros.len());
            from += run;
            if self.begins {
                continue;
            }
            let kept = run.min(HOLE - self.zeros);
            bytes[to..to + kept].fill(0);
            (to, self.zeros) = (to + kept, self.zeros + kept);
            if self.zeros == HOLE {
                bytes[to - 1] = b'\n';
                (self.begins, self.zeros) = (true, 0);
            }
        }
        to
    }
}

#[cfg(test)]
mod tests {
    use super::{HOLE, LONGEST, Lines};
    use std::io::{self, BufReader, Read};

    /// A reader that returns at most this number of bytes.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let most = buffer.len().min(self.1);
            self.0.read(&mut buffer[..most])
        }
    }

    /// The number, the length and the wholeness of each line.
    fn lengths(text: &[u8], at_once: usize) -> io::Result<Vec<(u64, usize, bool)>> {
        let mut lines = Lines::with_buffer(Slow(text, at_once), 0);
        let mut seen = Vec::new();
        while let Some(line) = lines.read()? {
            seen.push((line.number, line.bytes.len(), line.whole));
        }
        assert_eq!(lines.read()?, None);
        Ok(seen)
    }

    #[test]
    fn line_ends_are_removed() -> io::Result<()> {
        for at_once in [1, 3, 4096] {
            assert_eq!(lengths(b"", at_once)?, []);
            assert_eq!(lengths(b"\n", at_once)?, [(1, 0, true)]);
            assert_eq!(
                lengths(b"a\r\n\r\nb\r\r\n\xff\nlast", at_once)?,
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
        for (extra, whole) in [
            (0, true),
            (1, false),
            (2, false),
            (3, false),
            (3 * LONGEST, false),
        ] {
            let mut text = vec![b'x'; LONGEST + extra];
            for at_once in [1000, usize::MAX] {
                assert_eq!(lengths(&text, at_once)?, [(1, LONGEST, whole)], "{extra}");
            }
            for end in ["\nnext\n", "\r\nnext\n"] {
                let whole_with_end = [&text, end.as_bytes()].concat();
                for at_once in [1000, usize::MAX] {
                    assert_eq!(
                        lengths(&whole_with_end, at_once)?,
                        [(1, LONGEST, whole), (2, 4, true)],
                        "{extra}"
                    );
                }
            }
            text.clear();
        }
        Ok(())
    }

    #[test]
    fn lines_equal_those_of_the_standard_library() -> io::Result<()> {
        let mut text = Vec::new();
        for number in 0..20_000_usize {
            text.resize(text.len() + number * number % 331, b'y');
            text.push(b'\n');
        }
        let expected: Vec<usize> = io::BufRead::split(BufReader::new(&text[..]), b'\n')
            .map(|line| line.map(|line| line.len()))
            .collect::<io::Result<_>>()?;
        for at_once in [777, 1 << 20] {
            let seen: Vec<usize> = lengths(&text, at_once)?.iter().map(|line| line.1).collect();
            assert_eq!(seen, expected);
        }
        Ok(())
    }

    #[test]
    fn holes_are_no_part_of_a_line() -> io::Result<()> {
        for (text, expected) in [
            ([&[0; 70_000][..], b"one\ntwo"].concat(), &["one", "two"][..]),
            ([b"one\n", &[0; 5][..], b"two\n"].concat(), &["one", "two"]),
            ([b"one", &[0; 70_000][..], b"two\n"].concat(), &["one", "two"]),
            ([b"one\n\n", &[0; 100][..]].concat(), &["one", ""]),
            ([b"one", &[0; 3][..]].concat(), &["one"]),
            (
                [b"o\0\0ne", &[0; HOLE][..], b"\ntwo"].concat(),
                &["o\0\0ne", "", "two"],
            ),
            (vec![0; 70_000], &[]),
        ] {
            for at_once in [1, 7, 1000, usize::MAX] {
                let mut lines = Lines::with_buffer(Slow(&text, at_once), 0);
                let mut seen = Vec::new();
                while let Some(line) = lines.read()? {
                    assert!(line.whole);
                    seen.push(String::from_utf8_lossy(line.bytes).into_owned());
                }
                assert_eq!(seen, expected, "{at_once}");
            }
        }
        // A run that is shorter than a hole stays in its line.
        let text = [b"a", &[0; HOLE - 1][..], b"b"].concat();
        assert_eq!(lengths(&text, 1)?, [(1, HOLE + 1, true)]);
        Ok(())
    }

    #[test]
    fn peeked_bytes_are_not_consumed() -> io::Result<()> {
        let mut lines = Lines::new(Slow(b"one\ntwo", 1));
        assert_eq!(lines.peek()?, b"one\ntwo");
        assert_eq!(lines.read()?.map(|line| line.bytes), Some(&b"one"[..]));
        assert_eq!(lines.read()?.map(|line| line.bytes), Some(&b"two"[..]));
        assert_eq!(lines.count(), 2);
        Ok(())
    }
}
