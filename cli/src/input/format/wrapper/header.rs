//! Headers before a message on one line: of syslog, of Kubernetes, and a time alone.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::input::client;
use crate::input::format::common::{self, CommonLayout};
use crate::input::format::named::json::names;
use crate::input::format::wrapper::{Envelope, Parts};
use crate::input::format::{FirstLines, TimeKind};
use crate::input::row::Unreadable;
use crate::input::time::timestamp::TimestampParser;

/// A header, behind which the message begins. The groups of its expression are `time`, its own fields other than `message`, and
/// `part` if the message continues. No byte has two ways to match, so that the groups are found in one pass.
#[derive(Debug)]
pub(crate) struct Header {
    title: &'static str,
    /// A line, for errors.
    example: &'static str,
    time_kind: TimeKind,
    fields: &'static [&'static str],
    expression: LazyLock<Regex>,
}

/// Syslog of RFC 3164 in files, with a time of RFC 3339.
static SYSLOG: Header = Header {
    title: "syslog",
    example: LINE_OF_SYSLOG,
    time_kind: TimeKind::Full,
    fields: OF_SYSLOG,
    expression: LazyLock::new(|| syslog(r"[0-9]{4}-[^ ]*")),
};

/// Syslog of RFC 3164, whose times have no year.
static OLD_SYSLOG: Header = Header {
    title: "syslog",
    example: LINE_OF_SYSLOG,
    time_kind: TimeKind::WithoutYear,
    fields: OF_SYSLOG,
    expression: LazyLock::new(|| syslog(r"[A-Z][a-z]{2}  ?[0-9]{1,2} [^ ]{2}:[^ ]{2}:[^ ]*")),
};

/// Syslog of RFC 5424: the priority, the version, the time, the host, the program, the process, the identifier of the message,
/// and structured data: "-" or `[id name="value"]` once or several times. The message may begin with a byte order mark.
pub(crate) static RFC5424: Header = Header {
    title: "syslog of RFC 5424",
    example: "<34>1 2003-10-11T22:14:15Z host program process identifier - message",
    time_kind: TimeKind::Full,
    fields: OF_SYSLOG,
    expression: LazyLock::new(|| {
        expression(
            r#"<[0-9]{0,3}>1 (?<time>[^ ]+) (?<host>[^ ]+) (?<program>[^ ]+) (?<pid>[^ ]+) [^ ]+ (?:-|(?:\[(?:[^"\]]|"(?:[^"\\]|\\.)*")*\])+)(?:$| (?:\xef\xbb\xbf)?)"#,
        )
    }),
};

/// The Container Runtime Interface of Kubernetes: `P` stands for a part of a message that continues.
pub(crate) static CRI: Header = Header {
    title: "CRI",
    example: "2015-05-17T10:05:03.1Z stdout F message",
    time_kind: TimeKind::Full,
    fields: &["stream"],
    expression: LazyLock::new(|| {
        // Colons separate tags, of which the first says whether the message ends.
        expression(r"(?<time>[^ ]*) (?<stream>std(?:out|err)) (?:F|(?<part>P))(?::[^ ]*)? ")
    }),
};

/// A time before each line, as `docker logs --timestamps` and `kubectl logs --timestamps` print it.
pub(crate) static TIMED: Header = Header {
    title: "a time before each line",
    example: "2015-05-17T10:05:03Z message",
    time_kind: TimeKind::Full,
    fields: &[],
    expression: LazyLock::new(|| expression(r"(?<time>[^ ]{4}-[^ ]*) ")),
};

const LINE_OF_SYSLOG: &str = "May 17 10:05:03 (or 2015-05-17T10:05:03+00:00) host program[1]: message";

const OF_SYSLOG: &[&str] = &["host", "program", "pid", "message"];

/// The priority, the program and the process may be missing.
fn syslog(time: &str) -> Regex {
    let tag = r"(?<tag>(?<program>[^ :\[]*)(?:\[(?<pid>[^ :\]]*)(?:\][^ :]*)?)?: ?)";
    expression(&format!(
        r"(?:<[0-9]{{0,3}}>)?(?<time>{time}) (?<host>[^ ]+)(?: {tag}?|$)"
    ))
}

fn expression(header: &str) -> Regex {
    Regex::new(&format!("(?s-u)^{header}")).expect("a valid expression")
}

/// The header of syslog that the first lines have.
pub(crate) fn syslog_of(lines: &FirstLines) -> &'static Header {
    match lines.iter().any(|(_, line)| OLD_SYSLOG.is(line)) {
        true => &OLD_SYSLOG,
        false => &SYSLOG,
    }
}

/// Whether a line is one of syslog with an existing time.
pub(crate) fn is_syslog(line: &[u8], timestamps: &mut TimestampParser) -> bool {
    [&OLD_SYSLOG, &SYSLOG].into_iter().any(|mut header| {
        let mut parts = Parts::default();
        header.split(line, &mut parts).is_ok() && header.time_kind.read(&parts.time, timestamps).is_some()
    })
}

/// Whether a line is a time before a line of the common format or an object.
pub(crate) fn is_timed(line: &[u8], timestamps: &mut TimestampParser) -> bool {
    let mut parts = Parts::default();
    (&TIMED).split(line, &mut parts).is_ok()
        && timestamps.detected(&parts.time).is_some()
        && (common::is(&parts.message, CommonLayout::Addresses, timestamps)
            || !names(&parts.message).is_empty())
}

impl Header {
    /// Whether a line has the header.
    pub(crate) fn is(&self, line: &[u8]) -> bool {
        self.expression.is_match(line)
    }
}

impl Envelope for &'static Header {
    fn title(&self) -> &'static str {
        self.title
    }

    fn split(&mut self, line: &[u8], parts: &mut Parts) -> Result<(), Unreadable> {
        let Some(found) = self.expression.captures(line) else {
            let what = format!("no header, as in {}", self.example);
            return Err(Unreadable::line(what));
        };
        let group = |name| found.name(name).map(|group| group.as_bytes());
        // The colons of an address do not end the name of a program.
        let client = found.name("tag").map(|tag| &line[tag.start()..]);
        let client = client.filter(|text| {
            let first = text.split(|&byte| byte == b' ').next();
            client::address(first.unwrap_or_default()).is_some()
        });
        let message = client.unwrap_or(&line[found[0].len()..]);
        for (number, name) in self.fields.iter().enumerate() {
            let value = match *name {
                "message" => Some(message),
                "program" | "pid" if client.is_some() => None,
                name => group(name).filter(|value| *value != b"-"),
            };
            parts.values.set(number, value.unwrap_or_default());
        }
        parts.time.extend_from_slice(group("time").unwrap_or_default());
        parts.message.extend_from_slice(message);
        parts.stream = usize::from(group("stream") == Some(b"stderr"));
        parts.continues = group("part").is_some();
        Ok(())
    }

    fn fields(&self) -> &'static [&'static str] {
        self.fields
    }

    fn time_kind(&self) -> TimeKind {
        self.time_kind
    }
}
