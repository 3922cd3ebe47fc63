//! Syslog of RFC 5424: `<34>1 2003-10-11T22:14:15.003Z host program pid id [data] message`.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::input::format::wrapper::{Envelope, Parts, syslog};
use crate::input::row::Unreadable;

/// A syslog line of RFC 5424.
#[derive(Debug)]
pub(crate) struct Rfc5424;

/// The priority, the version, the time, the host, the program, the process, the identifier of the message, and structured data: "-"
/// or `[id name="value"]` once or several times. The message may begin with a byte order mark.
static LINE: LazyLock<Regex> = LazyLock::new(|| {
    let line = r#"(?s-u)^<[0-9]{0,3}>1 ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) [^ ]+ (?:-|(?:\[(?:[^"\]]|"(?:[^"\\]|\\.)*")*\])+)(?:$| (?:\xef\xbb\xbf)?(.*)$)"#;
    Regex::new(line).expect("a valid expression")
});

impl Rfc5424 {
    /// Whether a line is one of RFC 5424.
    pub(crate) fn is(line: &[u8]) -> bool {
        LINE.is_match(line)
    }
}

impl Envelope for Rfc5424 {
    fn title(&self) -> &'static str {
        "syslog of RFC 5424"
    }

    fn split(&mut self, line: &[u8], parts: &mut Parts) -> Result<(), Unreadable> {
        let Some(found) = LINE.captures(line) else {
            let what = "no line of RFC 5424, as in <34>1 2003-10-11T22:14:15Z host program process identifier - message";
            return Err(Unreadable::line(what));
        };
        let group = |number| found.get(number).map_or(&b""[..], |group| group.as_bytes());
        parts.time.extend_from_slice(group(1));
        parts.message.extend_from_slice(group(5));
        for (field, value) in [group(2), group(3), group(4)].into_iter().enumerate() {
            parts.values.set(field, if value == b"-" { b"" } else { value });
        }
        parts.values.set(3, group(5));
        Ok(())
    }

    fn fields(&self) -> &'static [&'static str] {
        &syslog::FIELDS
    }
}

#[cfg(test)]
mod tests {
    use super::Rfc5424;
    use crate::input::format::wrapper::{Envelope, Parts};

    /// The examples are after sections 6.3.5 and 6.5 of RFC 5424.
    #[test]
    fn headers_and_structured_data_are_split() {
        let split = |line: &str| {
            let mut parts = Parts::default();
            Rfc5424
                .split(line.as_bytes(), &mut parts)
                .map_err(|error| error.to_string())?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let value = |field| text(parts.values.get(field).unwrap_or_default());
            Ok::<_, String>((text(&parts.time), [0, 1, 2, 3].map(value).join("|")))
        };
        for (line, time, expected) in [
            (
                "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \u{feff}'su root' failed",
                "2003-10-11T22:14:15.003Z",
                "mymachine.example.com|su||'su root' failed",
            ),
            (
                r#"<165>1 2003-10-11T22:14:15.003Z web nginx 8710 - [a@1 x="q\"]"][b y="]"] 1.2.3.4 - -"#,
                "2003-10-11T22:14:15.003Z",
                "web|nginx|8710|1.2.3.4 - -",
            ),
            ("<13>1 - - - - - -", "-", "|||"),
        ] {
            assert_eq!(split(line), Ok((time.to_owned(), expected.to_owned())), "{line}");
        }
        for line in [
            "1 2003-10-11T22:14:15Z h p - - - x",
            "<34>2 2003-10-11T22:14:15Z h p - - - x",
            "<34>1 2003-10-11T22:14:15Z h p - -",
            "<34>1 2003-10-11T22:14:15Z h p - - x",
            "<34>1 2003-10-11T22:14:15Z h p - - [a x",
            "<34>1 2003-10-11T22:14:15Z h  - - - x",
            "<34>May 17 10:05:03 web nginx: x",
        ] {
            assert!(split(line).is_err(), "{line}");
        }
    }
}
