//! Syslog: a time, a host, a program and a message.

use memchr::memchr;

use crate::failure::Failure;
use crate::input::format::common;
use crate::input::format::common_field::CommonField;
use crate::input::format::{LogFormat, WantedFields};
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

/// A field of a line, without the fields of a log line in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyslogField {
    Host,
    Program,
    Pid,
    Message,
}

impl SyslogField {
    const NAMES: [(&str, Self); 4] = [
        ("host", Self::Host),
        ("program", Self::Program),
        ("pid", Self::Pid),
        ("message", Self::Message),
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut known = Self::NAMES.iter();
        known.find(|known| known.0 == name).map(|known| known.1)
    }

    /// All names, for an error.
    pub(crate) fn names() -> String {
        Self::NAMES.map(|(name, _)| name).join(", ")
    }
}

/// Syslog, whose messages may be lines of the common or combined format.
#[derive(Debug)]
pub(crate) struct Syslog {
    fields: Vec<(SyslogField, usize)>,
    of_message: Vec<(CommonField, usize)>,
}

impl Syslog {
    /// # Errors
    ///
    /// When neither syslog nor the common format has a wanted field.
    pub(crate) fn new(wanted: &WantedFields) -> Result<Self, Failure> {
        let (mut fields, mut of_message) = (Vec::new(), Vec::new());
        for (name, place) in wanted.fields.iter().zip(0..) {
            if let Some(field) = SyslogField::named(name) {
                fields.push((field, place));
            } else if let Some(field) = CommonField::named(name) {
                of_message.push((field, place));
            } else {
                return Err(Failure::argument(
                    "field",
                    format!("{name:?}"),
                    format!(
                        "a field of syslog: {}, or of a common log line in the message: {}",
                        SyslogField::names(),
                        CommonField::names()
                    ),
                ));
            }
        }
        Ok(Self { fields, of_message })
    }
}

impl LogFormat for Syslog {
    fn parse(&self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> Result<(), Unreadable> {
        parse(line, timestamps, (&self.fields, &self.of_message), row)
    }
}

/// Parses `<priority>time host program[pid]: message`. The priority, the program and the pid may be missing. The time is
/// `May 17 10:05:03` or `2015-05-17T10:05:03+00:00`. If a field of the common format is wanted, the message must be a line
/// of that format.
///
/// # Errors
///
/// When the line has another form.
pub(crate) fn parse(
    line: &[u8],
    timestamps: &mut TimestampParser,
    (fields, log): (&[(SyslogField, usize)], &common::Wanted),
    row: &mut Row,
) -> Result<(), Unreadable> {
    let text = after_priority(line);
    let at = line.len() - text.len();
    let length = match text {
        [b'0'..=b'9', ..] => memchr(b' ', text).unwrap_or(text.len()),
        // The month, a day of one or two columns, and the time.
        _ => {
            let day = match text {
                [_, _, _, b' ', b' ', ..] | [_, _, _, b' ', _, _, ..] => 4,
                _ => text.len(),
            };
            let mut spaces = text
                .iter()
                .enumerate()
                .skip(day + 1)
                .filter(|byte| *byte.1 == b' ');
            let time = spaces.next().map_or(text.len(), |space| space.0 + 1);
            memchr(b' ', text.get(time..).unwrap_or_default()).map_or(text.len(), |end| time + end)
        }
    };
    let (stamp, rest) = text.split_at(length);
    let time = match stamp {
        [_, _, _, _, b'-', ..] => timestamps.read(stamp),
        [b'A'..=b'Z', ..] => timestamps.syslog(stamp),
        _ => None,
    };
    let Some(time) = time else {
        return Err(Unreadable::at(
            at,
            "no time, as in May 17 10:05:03 or 2015-05-17T10:05:03+00:00",
        ));
    };
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    let host_end = memchr(b' ', rest).unwrap_or(rest.len());
    if host_end == 0 {
        return Err(Unreadable::at(line.len() - rest.len(), "no host after the time"));
    }
    let (host, rest) = rest.split_at(host_end);
    let tagged = rest.strip_prefix(b" ").unwrap_or(rest);
    let tag_end = tagged.iter().position(|&byte| byte == b':' || byte == b' ');
    let (tag, message) = match tag_end {
        Some(end) if tagged[end] == b':' => {
            let message = &tagged[end + 1..];
            (&tagged[..end], message.strip_prefix(b" ").unwrap_or(message))
        }
        _ => (&b""[..], tagged),
    };
    let (program, pid) = match (memchr(b'[', tag), tag.strip_suffix(b"]")) {
        (Some(open), Some(inner)) => (&tag[..open], &inner[open + 1..]),
        _ => (tag, &b""[..]),
    };
    if !log.is_empty() {
        common::parse(line, line.len() - message.len(), timestamps, log, row)?;
    }
    row.time = time;
    for &(field, place) in fields {
        let value = match field {
            SyslogField::Host => host,
            SyslogField::Program => program,
            SyslogField::Pid => pid,
            SyslogField::Message => message,
        };
        if !value.is_empty() {
            row.set(place, value);
        }
    }
    Ok(())
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
    use super::{SyslogField, parse};
    use crate::input::format::common_field::CommonField;
    use crate::input::row::Row;
    use crate::input::time::calendar;
    use crate::input::time::infer_year::YearInference;
    use crate::input::time::timestamp::{TimestampFormat, TimestampParser};

    fn fields(line: &str, log: bool) -> Result<(String, [Option<String>; 5]), String> {
        let mut timestamps =
            TimestampParser::new(TimestampFormat::Auto, YearInference::new(Some(2015), 0), 0);
        let mut row = Row::new(5);
        let wanted = [
            (SyslogField::Host, 0),
            (SyslogField::Program, 1),
            (SyslogField::Pid, 2),
            (SyslogField::Message, 3),
        ];
        let client = [(CommonField::Client, 4)];
        let client = if log { &client[..] } else { &[] };
        parse(line.as_bytes(), &mut timestamps, (&wanted, client), &mut row)
            .map_err(|error| error.to_string())?;
        let text = |at| row.get(at).map(|text| String::from_utf8_lossy(text).into_owned());
        Ok((calendar::text(row.time), core::array::from_fn(text)))
    }

    #[test]
    fn times_hosts_and_programs_are_parsed() {
        for (line, time, expected) in [
            (
                "<13>May 17 10:05:03 web nginx[12]: hello: you",
                "2015-05-17T10:05:03Z",
                ["web", "nginx", "12", "hello: you"],
            ),
            (
                "May  7 10:05:03 web kernel: up",
                "2015-05-07T10:05:03Z",
                ["web", "kernel", "", "up"],
            ),
            (
                "May 7 10:05:03.5 web last message repeated",
                "2015-05-07T10:05:03.5Z",
                ["web", "", "", "last message repeated"],
            ),
            (
                "2015-05-17T12:05:03.25+02:00 web cron[7]:x",
                "2015-05-17T10:05:03.25Z",
                ["web", "cron", "7", "x"],
            ),
            ("May 17 10:05:03 web", "2015-05-17T10:05:03Z", ["web", "", "", ""]),
        ] {
            let (at, values) = fields(line, false).expect(line);
            let values = values.map(Option::unwrap_or_default);
            assert_eq!(
                (at.as_str(), &values.each_ref().map(String::as_str)[..4]),
                (time, &expected[..])
            );
        }
    }

    #[test]
    fn a_message_may_be_a_log_line() {
        let head = "May 17 10:05:03 web nginx: ";
        let line = format!("{head}1.2.3.4 - - [17/May/2015:10:05:02 +0000] \"GET /\" 200 5");
        let (at, values) = fields(&line, true).expect("a log line");
        assert_eq!(
            (at.as_str(), values[4].as_deref()),
            ("2015-05-17T10:05:03Z", Some("1.2.3.4"))
        );
        let error = fields(&format!("{head}hello"), true).expect_err("none");
        assert_eq!(error, "column 33: no identity after the address");
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
            ("2015-05-17T10:05:03", "column 20: no host"),
            ("<x>May 17 10:05:03 web", "column 1: no time"),
            ("\u{e9}\u{e9} \u{e9}", "column 1: no time"),
        ] {
            let error = fields(line, false).expect_err(line);
            assert!(error.starts_with(said), "{line}: {error}");
        }
    }
}
