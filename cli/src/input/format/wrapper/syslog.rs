//! Syslog of RFC 3164 and of files: a time, a host, a program and a message.

use memchr::memchr;

use crate::input::client;
use crate::input::format::wrapper::{Envelope, Parts};
use crate::input::format::{FirstLines, TimeKind};
use crate::input::row::Unreadable;
use crate::input::time::timestamp::TimestampParser;

/// The names of the fields, by their numbers.
pub(crate) const FIELDS: [&str; 4] = ["host", "program", "pid", "message"];

/// Lines such as `<13>May 17 10:05:03 host program[pid]: message`. The priority, the program and the pid may be missing.
#[derive(Debug)]
pub(crate) struct Syslog {
    /// Whether times are `May 17 10:05:03`, and not `2015-05-17T10:05:03+00:00`.
    pub(crate) without_year: bool,
}

impl Syslog {
    /// For an input with these first lines.
    pub(crate) fn new(lines: &FirstLines) -> Self {
        let mut old = Self { without_year: true };
        let mut lines = lines.iter();
        let is_old = lines.any(|(_, line)| old.split(line, &mut Parts::default()).is_ok());
        Self { without_year: is_old }
    }

    /// Whether a line is one of syslog with an existing time.
    pub(crate) fn is(line: &[u8], timestamps: &mut TimestampParser) -> bool {
        [true, false].into_iter().any(|without_year| {
            let mut parts = Parts::default();
            Self { without_year }.split(line, &mut parts).is_ok()
                && match without_year {
                    true => timestamps.syslog(&parts.time),
                    false => timestamps.detected(&parts.time),
                }
                .is_some()
        })
    }
}

impl Envelope for Syslog {
    fn title(&self) -> &'static str {
        "syslog"
    }

    fn split(&mut self, line: &[u8], parts: &mut Parts) -> Result<(), Unreadable> {
        let text = after_priority(line);
        let at = line.len() - text.len();
        let Some(length) = stamp(text).filter(|_| text[0].is_ascii_digit() != self.without_year) else {
            return Err(Unreadable::at(
                at,
                "no time, as in May 17 10:05:03 or 2015-05-17T10:05:03+00:00",
            ));
        };
        let (time, rest) = text.split_at(length);
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        let host_end = memchr(b' ', rest).unwrap_or(rest.len());
        if host_end == 0 {
            return Err(Unreadable::at(line.len() - rest.len(), "no host after the time"));
        }
        let (host, rest) = rest.split_at(host_end);
        let tagged = rest.strip_prefix(b" ").unwrap_or(rest);
        let tag_end = tagged.iter().position(|&byte| byte == b':' || byte == b' ');
        let (tag, message) = match tag_end {
            Some(end) if tagged[end] == b':' && !begins_with_address(tagged) => {
                let message = &tagged[end + 1..];
                (&tagged[..end], message.strip_prefix(b" ").unwrap_or(message))
            }
            _ => (&b""[..], tagged),
        };
        let (program, pid) = match (memchr(b'[', tag), tag.strip_suffix(b"]")) {
            (Some(open), Some(inner)) => (&tag[..open], &inner[open + 1..]),
            _ => (tag, &b""[..]),
        };
        parts.time.extend_from_slice(time);
        parts.message.extend_from_slice(message);
        for (field, value) in [host, program, pid, message].into_iter().enumerate() {
            parts.values.set(field, value);
        }
        Ok(())
    }

    fn fields(&self) -> &'static [&'static str] {
        &FIELDS
    }

    fn time_kind(&self) -> TimeKind {
        if self.without_year {
            TimeKind::WithoutYear
        } else {
            TimeKind::Full
        }
    }
}

/// Whether the first word is an address, whose colons do not end the name of a program.
fn begins_with_address(text: &[u8]) -> bool {
    let end = memchr(b' ', text).unwrap_or(text.len());
    client::address(&text[..end]).is_some()
}

/// The length of the time at the beginning of a text.
fn stamp(text: &[u8]) -> Option<usize> {
    match text {
        [y0, y1, y2, y3, b'-', ..] if [y0, y1, y2, y3].iter().all(|byte| byte.is_ascii_digit()) => {
            Some(memchr(b' ', text).unwrap_or(text.len()))
        }
        // The month, a day of one or two columns, and the time.
        [b'A'..=b'Z', b'a'..=b'z', b'a'..=b'z', b' ', day @ ..] => {
            let padding = usize::from(day.first() == Some(&b' '));
            let digits = day[padding..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            let time = day.get(padding + digits + 1..)?;
            let is_time = (1..=2).contains(&digits)
                && day[padding + digits] == b' '
                && matches!(time, [_, _, b':', _, _, b':', ..]);
            let end = memchr(b' ', time).unwrap_or(time.len());
            is_time.then(|| text.len() - time.len() + end)
        }
        _ => None,
    }
}

/// The line without a priority such as `<13>`.
fn after_priority(line: &[u8]) -> &[u8] {
    let inner = line.strip_prefix(b"<");
    let end = inner.and_then(|inner| memchr(b'>', &inner[..inner.len().min(4)]));
    match (inner, end) {
        (Some(inner), Some(end)) if inner[..end].iter().all(u8::is_ascii_digit) => &inner[end + 1..],
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::{FIELDS, Syslog};
    use crate::input::format::wrapper::{Envelope, Parts};

    fn parts(line: &str) -> Result<(String, Vec<String>), String> {
        let mut parts = Parts::default();
        let text = line.trim_start_matches(|c: char| "<>13".contains(c));
        let without_year = !text.starts_with(|c: char| c.is_ascii_digit());
        Syslog { without_year }
            .split(line.as_bytes(), &mut parts)
            .map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let value = |field| text(parts.values.get(field).unwrap_or_default());
        Ok((text(&parts.time), (0..FIELDS.len()).map(value).collect()))
    }

    #[test]
    fn times_hosts_and_programs_are_split() {
        for (line, time, expected) in [
            (
                "<13>May 17 10:05:03 web nginx[12]: hello: you",
                "May 17 10:05:03",
                ["web", "nginx", "12", "hello: you"],
            ),
            (
                "May  7 10:05:03 web kernel: up",
                "May  7 10:05:03",
                ["web", "kernel", "", "up"],
            ),
            (
                "May 7 10:05:03.5 web last message repeated",
                "May 7 10:05:03.5",
                ["web", "", "", "last message repeated"],
            ),
            (
                "2015-05-17T12:05:03.25+02:00 web cron[7]:x",
                "2015-05-17T12:05:03.25+02:00",
                ["web", "cron", "7", "x"],
            ),
            ("May 17 10:05:03 web", "May 17 10:05:03", ["web", "", "", ""]),
            (
                "May 17 10:05:03 web dead:beef::1 - - [",
                "May 17 10:05:03",
                ["web", "", "", "dead:beef::1 - - ["],
            ),
        ] {
            let expected = expected.map(str::to_owned).to_vec();
            assert_eq!(parts(line), Ok((time.to_owned(), expected)), "{line}");
        }
    }

    #[test]
    fn missing_parts_are_named() {
        for (line, said) in [
            ("", "column 1: no time"),
            ("<13>", "column 5: no time"),
            ("May", "column 1: no time"),
            ("May 17", "column 1: no time"),
            ("May 17 10:05:03", "column 16: no host"),
            ("May 17 10:05:03 ", "column 17: no host"),
            ("<x>May 17 10:05:03 web", "column 1: no time"),
            ("\u{e9}\u{e9} \u{e9}", "column 1: no time"),
        ] {
            let error = parts(line).expect_err(line);
            assert!(error.starts_with(said), "{line}: {error}");
        }
    }
}
