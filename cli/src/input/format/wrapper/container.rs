//! Logs of containers: of Docker's json-file driver, and of the Container Runtime Interface of Kubernetes.

use crate::input::format::common::{self, CommonLayout};
use crate::input::format::named::json::{names, parse};
use crate::input::format::named::paths::Paths;
use crate::input::format::named::servers::has_all;
use crate::input::format::wrapper::{Envelope, Parts};
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

/// Lines such as `{"log":"message\n","stream":"stdout","time":"2015-05-17T10:05:03.1Z"}`.
#[derive(Debug)]
pub(crate) struct Docker {
    paths: Paths,
    /// Whether messages end with a line feed, unless they continue on the next line.
    ends: bool,
}

impl Docker {
    /// For an input with these first lines.
    pub(crate) fn new(lines: &[(usize, Vec<u8>)]) -> Self {
        let paths = Paths::new(["stream", "log", "time"].into_iter().zip(0..));
        let ends = lines.iter().any(|(_, line)| {
            let mut row = Row::default();
            parse(line, &paths, &mut row).is_ok() && row.get(1).is_some_and(|log| log.ends_with(b"\n"))
        });
        Self { paths, ends }
    }

    /// Whether a line has the fields of Docker's, of which there are no other than `attrs`.
    pub(crate) fn is(names: &[String]) -> bool {
        has_all(names, &["log", "stream", "time"])
    }
}

impl Envelope for Docker {
    fn title(&self) -> &'static str {
        "Docker's json-file"
    }

    fn split(&mut self, line: &[u8], parts: &mut Parts) -> Result<(), Unreadable> {
        parse(line, &self.paths, &mut parts.values)?;
        let (Some(log), Some(time)) = (parts.values.get(1), parts.values.get(2)) else {
            return Err(Unreadable::line("no log and time in the object"));
        };
        let message = log.strip_suffix(b"\n");
        parts.continues = self.ends && message.is_none();
        let message = message.unwrap_or(log);
        parts.stream = usize::from(parts.values.get(0) == Some(&b"stderr"[..]));
        parts.time.extend_from_slice(time);
        parts
            .message
            .extend_from_slice(message.strip_suffix(b"\r").unwrap_or(message));
        Ok(())
    }

    fn fields(&self) -> &'static [&'static str] {
        &["stream"]
    }
}

/// Lines such as `2015-05-17T10:05:03.1Z stdout F message`; `P` stands for a part of a message that continues.
#[derive(Debug)]
pub(crate) struct Cri;

impl Cri {
    /// Whether a line is one of CRI.
    pub(crate) fn is(line: &[u8]) -> bool {
        Self.split(line, &mut Parts::default()).is_ok()
    }
}

impl Envelope for Cri {
    fn title(&self) -> &'static str {
        "CRI"
    }

    fn split(&mut self, line: &[u8], parts: &mut Parts) -> Result<(), Unreadable> {
        let mut words = line.splitn(4, |&byte| byte == b' ');
        let (Some(time), Some(stream @ (b"stdout" | b"stderr")), Some(tags), Some(message)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(Unreadable::at(0, "no time, stdout or stderr, and F or P"));
        };
        // Tags are separated by colons; the first says whether the message ends.
        parts.continues = match tags.split(|&byte| byte == b':').next() {
            Some(b"F") => false,
            Some(b"P") => true,
            _ => return Err(Unreadable::at(time.len() + stream.len() + 2, "no tag F or P")),
        };
        parts.stream = usize::from(stream == b"stderr");
        parts.time.extend_from_slice(time);
        parts.message.extend_from_slice(message);
        parts.values.set(0, stream);
        Ok(())
    }

    fn fields(&self) -> &'static [&'static str] {
        &["stream"]
    }
}

/// Lines such as `2015-05-17T10:05:03.1Z message`, as `docker logs --timestamps` and `kubectl logs --timestamps` print them.
#[derive(Debug)]
pub(crate) struct Timed;

impl Timed {
    /// Whether a line is a time before a line of the common format or an object.
    pub(crate) fn is(line: &[u8], timestamps: &mut TimestampParser) -> bool {
        let mut parts = Parts::default();
        Self.split(line, &mut parts).is_ok()
            && timestamps.detected(&parts.time).is_some()
            && (common::is(&parts.message, CommonLayout::ADDRESSES, timestamps)
                || !names(&parts.message).is_empty())
    }
}

impl Envelope for Timed {
    fn title(&self) -> &'static str {
        "a time before each line"
    }

    fn split(&mut self, line: &[u8], parts: &mut Parts) -> Result<(), Unreadable> {
        let space = line.iter().position(|&byte| byte == b' ');
        let (Some(space), [_, _, _, _, b'-', ..]) = (space, line) else {
            return Err(Unreadable::at(0, "no time, as in 2015-05-17T10:05:03Z"));
        };
        parts.time.extend_from_slice(&line[..space]);
        parts.message.extend_from_slice(&line[space + 1..]);
        Ok(())
    }
}
