//! The lines of a log, of arbitrary bytes, in bounded memory.
//!
//! A log may have holes: bytes of zero where a file was truncated under its writer, or a machine lost power. A hole is no part of
//! a line.

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use memchr::memchr;

/// The longest line in bytes, without its end. Longer lines are cut.
pub(crate) const LONGEST: usize = 64 * 1024;

/// Bytes of the buffer behind the beginning.
const BUFFER: usize = 4 * LONGEST;

/// Bytes of the beginning, by which the format of an input is detected: a thousand lines, unless they are longer than 4 KiB.
const BEGINNING: usize = 64 * LONGEST;

/// The zeros within a line that are a hole: more than the header of an archive has, which is refused. A shorter run may be a
/// part of a value, so that a client with a zero in its user agent does not end its line.
const HOLE: usize = 512;

/// The byte order mark U+FEFF in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A reader of lines, each of which is borrowed from it.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: Chain<Cursor<Vec<u8>>, BufReader<WithoutHoles<R>>>,
    line: Vec<u8>,
    number: u64,
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
    /// Reads the beginning. Skips a byte order mark, with which some programs begin a file.
    pub(crate) fn new(reader: R) -> Self {
        let mut reader = BufReader::with_capacity(
            BUFFER,
            WithoutHoles {
                reader,
                failed: None,
                begins: true,
                zeros: 0,
            },
        );
        let mut start = Vec::new();
        let read = reader.by_ref().take(BEGINNING as u64).read_to_end(&mut start);
        reader.get_mut().failed = read.err();
        if start.starts_with(MARK) {
            start.drain(..MARK.len());
        }
        Self {
            reader: Cursor::new(start).chain(reader),
            line: Vec::new(),
            number: 0,
        }
    }

    /// The beginning, or all bytes up to the end or an error. Its length does not depend on how many bytes a read returns, so that a
    /// pipe has the beginning of a file.
    pub(crate) fn start(&self) -> &[u8] {
        self.reader.get_ref().0.get_ref()
    }

    /// Whether the reader has failed, and the error was not returned yet.
    pub(crate) fn has_failed(&self) -> bool {
        self.reader.get_ref().1.get_ref().failed.is_some()
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    ///
    /// When the reader has failed within or behind a line that may have been cut by that, so it is not returned.
    #[inline]
    pub(crate) fn read(&mut self) -> io::Result<Option<Line<'_>>> {
        // The longest line with its end.
        const MOST: usize = LONGEST + 2;
        self.line.clear();
        let mut reader = self.reader.by_ref().take(MOST as u64);
        if reader.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.len() == MOST
            && !self.line.ends_with(b"\n")
            && let Err(error) = self.reader.skip_until(b'\n')
        {
            self.reader.get_mut().1.get_mut().failed = Some(error);
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Ok(Some(Line {
            number: self.number,
            // Zeros at the end are the beginning of a hole, which ended the line.
            bytes: without_zeros(&line[..line.len().min(LONGEST)]),
            whole: line.len() <= LONGEST,
        }))
    }

    /// The number of lines so far.
    pub(crate) const fn count(&self) -> u64 {
        self.number
    }
}

/// A line without zeros at its end.
pub(crate) fn without_zeros(line: &[u8]) -> &[u8] {
    let last = line.iter().rposition(|&byte| byte != 0);
    &line[..last.map_or(0, |last| last + 1)]
}

/// A reader without the holes of another one.
#[derive(Debug)]
struct WithoutHoles<R> {
    reader: R,
    /// An error that the next read returns.
    failed: Option<io::Error>,
    /// Whether the next byte begins a line.
    begins: bool,
    /// The zeros at the end of the line so far.
    zeros: usize,
}

impl<R: Read> Read for WithoutHoles<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        loop {
            let read = self.reader.read(buffer)?;
            let kept = self.remove(&mut buffer[..read]);
            // Zero bytes would be the end, although the reader has read a hole.
            if kept > 0 || read == 0 {
                return Ok(kept);
            }
        }
    }
}

impl<R> WithoutHoles<R> {
    /// Removes zeros at the beginning of lines, and replaces a hole within a line by the end of the line. Returns the number of
    /// bytes that remain at the front.
    fn remove(&mut self, bytes: &mut [u8]) -> usize {
        let (mut from, mut to) = (0, 0);
        while from < bytes.len() {
            let text = memchr(0, &bytes[from..]).unwrap_or(bytes.len() - from);
            if text > 0 {
                if from > to {
                    bytes.copy_within(from..from + text, to);
                }
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
    use super::{BEGINNING, HOLE, LONGEST, Lines};
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
        let mut lines = Lines::new(Slow(text, at_once));
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
                let mut lines = Lines::new(Slow(&text, at_once));
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
    fn the_beginning_is_not_consumed() -> io::Result<()> {
        let mut lines = Lines::new(Slow(b"\xef\xbb\xbfone\ntwo", 1));
        assert_eq!(lines.start(), b"one\ntwo");
        assert_eq!(lines.read()?.map(|line| line.bytes), Some(&b"one"[..]));
        assert_eq!(lines.read()?.map(|line| line.bytes), Some(&b"two"[..]));
        assert_eq!(lines.count(), 2);
        Ok(())
    }

    /// A reader that fails once behind its bytes.
    struct Failing<'a>(&'a [u8], bool);

    impl Read for Failing<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 if !core::mem::replace(&mut self.1, true) => Err(io::Error::other("broken")),
                read => Ok(read),
            }
        }
    }

    #[test]
    fn an_error_follows_the_last_whole_line() -> io::Result<()> {
        for length in [1, 100, LONGEST, BEGINNING + 1] {
            for (end, more) in [("\n", ""), ("\n", "cut")] {
                let text = ["x".repeat(length).as_bytes(), end.as_bytes(), more.as_bytes()].concat();
                let mut lines = Lines::new(Failing(&text, false));
                assert_eq!(lines.has_failed(), length < BEGINNING);
                assert!(lines.read()?.is_some_and(|line| line.number == 1));
                assert!(lines.read().is_err(), "{length}{more}");
                assert_eq!(lines.count(), 1);
            }
        }
        Ok(())
    }
}
