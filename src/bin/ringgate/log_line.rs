//! One line of an access log.

use core::fmt;

use crate::stamp::{STAMP, Stamps};

/// What a line says about its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogLine<'a> {
    /// The client's address, printable ASCII and not empty.
    pub(crate) address: &'a str,
    /// When it was, in seconds since 1970-01-01T00:00:00Z.
    pub(crate) second: i64,
}

/// Why a line is no request: the first part of the format that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    TooLong,
    Address,
    Ident,
    Bracket,
    Time,
    Request,
    Status,
    Size,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "longer than 64 KiB",
            Self::Address => "no client address of printable ASCII",
            Self::Ident => "no identity after the address",
            Self::Bracket => "no user and [time], as in \"- [17/May/2015:10:05:03 +0000]\"",
            Self::Time => "no such time",
            Self::Request => "no quoted request after the time",
            Self::Status => "no status of three digits",
            Self::Size => "no size, in digits or \"-\"",
        })
    }
}

impl<'a> LogLine<'a> {
    /// Reads `address ident user [time] "request" status size`, and whatever follows after a space.
    ///
    /// # Errors
    ///
    /// When the line is anything else.
    pub(crate) fn parse(line: &'a [u8], stamps: &mut Stamps) -> Result<Self, Malformed> {
        let (address, rest) = word(line)
            .filter(|(address, _)| address.iter().all(u8::is_ascii_graphic))
            .ok_or(Malformed::Address)?;
        let address = str::from_utf8(address).map_err(|_| Malformed::Address)?;
        let (_ident, rest) = word(rest).ok_or(Malformed::Ident)?;
        let (stamp, rest) = bracketed(rest)?;
        let second = stamps.second(stamp).ok_or(Malformed::Time)?;
        let rest = after_quote(rest).ok_or(Malformed::Request)?;
        let &[b' ', s0, s1, s2, ref rest @ ..] = rest else {
            return Err(Malformed::Status);
        };
        if ![s0, s1, s2].iter().all(u8::is_ascii_digit) {
            return Err(Malformed::Status);
        }
        match rest {
            [b' ', size @ ..] if is_size(size) => Ok(Self { address, second }),
            [] | [b' ', ..] => Err(Malformed::Size),
            _ => Err(Malformed::Status),
        }
    }
}

/// The first word, not empty, and what follows the space after it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
    (end > 0).then(|| (&text[..end], text.get(end + 1..).unwrap_or_default()))
}

/// The time in `user [time] "request`, and what follows the quotation mark.
///
/// A user name is the client's choice: it may hold spaces and brackets, but servers escape a
/// quotation mark in it. So the time is what comes last before the first one that is not escaped.
fn bracketed(text: &[u8]) -> Result<(&[u8; STAMP], &[u8]), Malformed> {
    let mut missing = Malformed::Bracket;
    // The user's name has a byte at least.
    for at in 1..text.len() {
        let stamp_on = text[at..]
            .strip_prefix(b" [")
            .and_then(|rest| rest.split_first_chunk::<STAMP>());
        if let Some((stamp, [b']', rest @ ..])) = stamp_on {
            if let [b' ', b'"', rest @ ..] = rest {
                return Ok((stamp, rest));
            }
            missing = Malformed::Request;
        }
    }
    Err(missing)
}

/// What follows the quotation mark that ends a quoted text; `\"` does not end it.
fn after_quote(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        let at = text.iter().position(|&byte| byte == b'"' || byte == b'\\')?;
        if text[at] == b'"' {
            return Some(&text[at + 1..]);
        }
        // The byte after a backslash is what it says, whatever it is.
        text = text.get(at + 2..)?;
    }
}

/// Whether the text begins with a size in bytes, and it ends with the text or a space.
fn is_size(text: &[u8]) -> bool {
    let size = text.split(|&byte| byte == b' ').next().unwrap_or_default();
    size == b"-" || (!size.is_empty() && size.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::{LogLine, Malformed};
    use crate::stamp::Stamps;

    fn parse(line: &str) -> Result<LogLine<'_>, Malformed> {
        LogLine::parse(line.as_bytes(), &mut Stamps::default())
    }

    #[test]
    fn both_formats_are_read() {
        for (line, address) in [
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET / HTTP/1.1" 200 5"#,
                "1.2.3.4",
            ),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET / HTTP/1.1" 304 -"#,
                "1.2.3.4",
            ),
            (
                r#"::1 - - [01/Jan/1970:01:00:09 +0100] "-" 408 0 "-" "curl/8""#,
                "::1",
            ),
            (
                r#"a.example id me [01/Jan/1970:00:00:09 +0000] "" 400 0 "r" "a \" b" 0.01"#,
                "a.example",
            ),
            (
                r#"x - - [01/Jan/1970:00:00:09 +0000] "GET /\"q\\" 200 1 cut "off"#,
                "x",
            ),
        ] {
            assert_eq!(parse(line), Ok(LogLine { address, second: 9 }), "{line}");
        }
    }

    #[test]
    fn a_user_name_may_hold_anything_but_a_bare_quotation_mark() {
        for user in [
            "John Doe",
            "[",
            "a [b] c",
            "x [01/Jan/1970:00:00:01 +0000] y",
            r#"x [01/Jan/1970:00:00:01 +0000] \"GET"#,
        ] {
            let line = format!(r#"1.2.3.4 - {user} [01/Jan/1970:00:00:09 +0000] "GET /" 200 5"#);
            assert_eq!(parse(&line).map(|line| line.second), Ok(9), "{line}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (line, missing) in [
            ("", Malformed::Address),
            ("1.2.3.4", Malformed::Ident),
            ("1.2.3.4 ", Malformed::Ident),
            (
                r#" - - [01/Jan/1970:00:00:09 +0000] "GET /" 200 5"#,
                Malformed::Address,
            ),
            (
                "h\u{f6}st - - [01/Jan/1970:00:00:09 +0000] \"GET /\" 200 5",
                Malformed::Address,
            ),
            (
                "a\u{1b}[1m - - [01/Jan/1970:00:00:09 +0000] \"GET /\" 200 5",
                Malformed::Address,
            ),
            ("1.2.3.4 -", Malformed::Bracket),
            ("1.2.3.4 - me", Malformed::Bracket),
            (
                r#"1.2.3.4  - [01/Jan/1970:00:00:09 +0000] "GET /" 200 5"#,
                Malformed::Ident,
            ),
            (
                r#"1.2.3.4 - [01/Jan/1970:00:00:09 +0000] "GET /" 200 5"#,
                Malformed::Bracket,
            ),
            (
                r#"1.2.3.4 - - 01/Jan/1970:00:00:09 +0000 "GET /" 200 5"#,
                Malformed::Bracket,
            ),
            (
                r#"1.2.3.4 - - [1970-01-01T00:00:09Z] "GET /" 200 5"#,
                Malformed::Bracket,
            ),
            (
                r#"1.2.3.4 - - [31/Feb/1970:00:00:09 +0000] "GET /" 200 5"#,
                Malformed::Time,
            ),
            (r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000]"#, Malformed::Request),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] GET / 200 5"#,
                Malformed::Request,
            ),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET / 200 5"#,
                Malformed::Request,
            ),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET /\" 200 5"#,
                Malformed::Request,
            ),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET /\"#,
                Malformed::Request,
            ),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET /""#,
                Malformed::Status,
            ),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET /"200 5"#,
                Malformed::Status,
            ),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET /" 20 5"#,
                Malformed::Status,
            ),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET /" 2000 5"#,
                Malformed::Status,
            ),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET /" abc 5"#,
                Malformed::Status,
            ),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET /" 200"#,
                Malformed::Size,
            ),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET /" 200 "#,
                Malformed::Size,
            ),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET /" 200 5x"#,
                Malformed::Size,
            ),
            (
                r#"1.2.3.4 - - [01/Jan/1970:00:00:09 +0000] "GET /" 200 --"#,
                Malformed::Size,
            ),
        ] {
            assert_eq!(parse(line), Err(missing), "{line}");
        }
    }
}
