//! Syslog of RFC 5424: `<34>1 2003-10-11T22:14:15.003Z host program pid id [data] message`.

use crate::input::format::wrapper::{Envelope, Parts, syslog};
use crate::input::row::Unreadable;

/// A syslog line of RFC 5424.
#[derive(Debug)]
pub(crate) struct Rfc5424;

impl Rfc5424 {
    /// Whether a line is one of RFC 5424.
    pub(crate) fn is(line: &[u8]) -> bool {
        Self.split(line, &mut Parts::default()).is_ok()
    }
}

impl Envelope for Rfc5424 {
    fn title(&self) -> &'static str {
        "syslog of RFC 5424"
    }

    fn split(&mut self, line: &[u8], parts: &mut Parts) -> Result<(), Unreadable> {
        let text = syslog::after_priority(line);
        if text.len() == line.len() {
            return Err(Unreadable::at(0, "no priority, as in <34>"));
        }
        // The version, the time, the host, the program, the process and the identifier of the message.
        let mut words = text.splitn(7, |&byte| byte == b' ');
        let mut word = || words.next().filter(|word| !word.is_empty());
        let (Some(b"1"), Some(time), Some(host), Some(program), Some(pid), Some(_id), Some(rest)) =
            (word(), word(), word(), word(), word(), word(), word())
        else {
            return Err(Unreadable::at(
                line.len() - text.len(),
                "no version 1, time, host, program, process and identifier",
            ));
        };
        let message = after_data(rest)
            .ok_or_else(|| Unreadable::at(line.len() - rest.len(), "no structured data, as in - or [id]"))?;
        // The message may begin with a byte order mark.
        let message = message.strip_prefix(b"\xef\xbb\xbf").unwrap_or(message);
        parts.time.extend_from_slice(time);
        parts.message.extend_from_slice(message);
        for (field, value) in [host, program, pid].into_iter().enumerate() {
            parts.set(field, if value == b"-" { b"" } else { value });
        }
        parts.set(3, message);
        Ok(())
    }

    fn fields(&self) -> &'static [&'static str] {
        &syslog::FIELDS
    }
}

/// The text behind structured data: `-`, or `[id name="value"]` once or several times.
fn after_data(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text;
    if let Some(after) = rest.strip_prefix(b"-") {
        rest = after;
    } else {
        if !rest.starts_with(b"[") {
            return None;
        }
        while rest.starts_with(b"[") {
            let mut quoted = false;
            let mut at = 1;
            loop {
                match rest.get(at)? {
                    b'\\' if quoted => at += 1,
                    b'"' => quoted = !quoted,
                    b']' if !quoted => break,
                    _ => {}
                }
                at += 1;
            }
            rest = &rest[at + 1..];
        }
    }
    match rest {
        [] => Some(rest),
        [b' ', message @ ..] => Some(message),
        _ => None,
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
            let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
            Ok::<_, String>((
                text(&parts.time),
                parts.values.iter().map(text).collect::<Vec<_>>().join("|"),
            ))
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
