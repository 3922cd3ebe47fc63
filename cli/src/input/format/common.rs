//! The common and the combined log format.

use memchr::{memchr, memchr2};

use crate::failure::Failure;
use crate::input::format::common_field::CommonField;
use crate::input::format::{LogFormat, WantedFields};
use crate::input::row::{Row, Unreadable, shown};
use crate::input::time::clf_time::STAMP;
use crate::input::time::timestamp::TimestampParser;

/// The wanted fields, with their places in a row.
pub(crate) type Wanted = [(CommonField, usize)];

/// The common and the combined format of Apache and nginx.
#[derive(Debug)]
pub(crate) struct Common(Vec<(CommonField, usize)>);

impl Common {
    /// # Errors
    ///
    /// When the format does not have a wanted field.
    pub(crate) fn new(wanted: &WantedFields) -> Result<Self, Failure> {
        if let Some(time) = &wanted.time {
            return Err(Failure::new(format!(
                "invalid --time-field: {time:?} (the common and the combined format have a fixed time field)"
            )));
        }
        let fields = wanted.fields.iter().zip(0..);
        let known = fields.map(|(name, place)| match CommonField::named(name) {
            Some(field) => Ok((field, place)),
            None => Err(Failure::argument(
                "field",
                format!("{name:?}"),
                format!(
                    "a field of the common or combined format: {}",
                    CommonField::names()
                ),
            )),
        });
        known.collect::<Result<_, _>>().map(Self)
    }
}

impl LogFormat for Common {
    fn parse(&self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> Result<(), Unreadable> {
        parse(line, 0, timestamps, &self.0, row)
    }
}

/// Parses `address ident user [time] "request" status size` from `offset` on. More may follow after a space, as `"referer"
/// "agent"` does in the combined format.
///
/// # Errors
///
/// When the line has another form.
pub(crate) fn parse(
    line: &[u8],
    offset: usize,
    timestamps: &mut TimestampParser,
    wanted: &Wanted,
    row: &mut Row,
) -> Result<(), Unreadable> {
    let text = &line[offset..];
    // The offset of a suffix of the line.
    let place = |rest: &[u8]| line.len() - rest.len();
    let wrong = |rest: &[u8], what: &str| Err(Unreadable::at(place(rest), what));
    let Some((address, rest)) = word(text).filter(|(address, _)| address.iter().all(u8::is_ascii_graphic))
    else {
        return wrong(text, "no client address of printable ASCII");
    };
    let Some((ident, after_ident)) = word(rest) else {
        return wrong(rest, "no identity after the address");
    };
    let (user, stamp, request) =
        bracketed(after_ident).map_err(|(what, at)| Unreadable::at(place(after_ident) + at, what))?;
    let Some(time) = timestamps.stamp(stamp) else {
        let at = place(request) - STAMP - 3;
        let given = shown(stamp);
        return Err(Unreadable::at(
            at,
            format!(
                "invalid time: \"{given}\" (expected an existing time such as 17/May/2015:10:05:03 +0000)"
            ),
        ));
    };
    let Some(rest) = after_quote(request) else {
        return wrong(request, "no end of the quoted request");
    };
    let quoted = &request[..request.len() - rest.len() - 1];
    let &[b' ', s0, s1, s2, ref after_status @ ..] = rest else {
        return wrong(rest, "no status of three digits");
    };
    let status = [s0, s1, s2];
    if !status.iter().all(u8::is_ascii_digit) {
        return wrong(rest, "no status of three digits");
    }
    let (size, rest) = match after_status {
        [b' ', text @ ..] => {
            let end = memchr(b' ', text).unwrap_or(text.len());
            if !is_size(&text[..end]) {
                return wrong(text, "no size, in digits or \"-\"");
            }
            text.split_at(end)
        }
        [] => return wrong(after_status, "no size, in digits or \"-\""),
        _ => return wrong(rest, "no status of three digits"),
    };
    row.time = time;
    for &(field, at) in wanted {
        let value = match field {
            CommonField::Client => address,
            CommonField::Ident => ident,
            CommonField::User => user,
            CommonField::Request => quoted,
            CommonField::Method => part(quoted, 0),
            CommonField::Target => part(quoted, 1),
            CommonField::Path => {
                let target = part(quoted, 1);
                &target[..memchr(b'?', target).unwrap_or(target.len())]
            }
            CommonField::Protocol => part(quoted, 2),
            CommonField::Status => &status,
            CommonField::Size => size,
            CommonField::Referer => match quoted_after(rest) {
                Some((referer, _)) => referer,
                None => continue,
            },
            CommonField::Agent => match quoted_after(rest).and_then(|(_, rest)| quoted_after(rest)) {
                Some((agent, _)) => agent,
                None => continue,
            },
        };
        row.set(at, value);
    }
    Ok(())
}

/// The first word, and the text behind the space after it; `None` if the word is empty.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr(b' ', text).unwrap_or(text.len());
    (end > 0).then(|| (&text[..end], text.get(end + 1..).unwrap_or_default()))
}

/// A word of a request by its number; empty if there is none.
fn part(request: &[u8], number: usize) -> &[u8] {
    request
        .split(|&byte| byte == b' ')
        .nth(number)
        .unwrap_or_default()
}

/// Splits ` "text"rest` into the text and the rest.
fn quoted_after(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = rest.strip_prefix(b" \"")?;
    let rest = after_quote(text)?;
    Some((&text[..text.len() - rest.len() - 1], rest))
}

type Bracketed<'a> = (&'a [u8], &'a [u8; STAMP], &'a [u8]);

/// Splits `user [time] "rest` into the user, the time and the rest; or returns the missing part and its offset.
///
/// The client chooses the user name. It may hold spaces and brackets, but servers escape a quotation mark in it. So the
/// time is the last one before the first quotation mark that is not escaped.
fn bracketed(text: &[u8]) -> Result<Bracketed<'_>, (&'static str, usize)> {
    let mut missing = ("no user and [time], as in \"- [17/May/2015:10:05:03 +0000]\"", 0);
    let mut from = 0;
    while let Some(at) = memchr(b'[', &text[from..]) {
        let at = from + at;
        from = at + 1;
        // The user name has at least one byte, and a space follows it.
        if at < 2 || text[at - 1] != b' ' {
            continue;
        }
        if let Some((stamp, [b']', rest @ ..])) = text[at + 1..].split_first_chunk::<STAMP>() {
            if let [b' ', b'"', rest @ ..] = rest {
                return Ok((&text[..at - 1], stamp, rest));
            }
            missing = ("no quoted request after the time", at + STAMP + 2);
        }
    }
    Err(missing)
}

/// The text behind the closing quotation mark; `\"` does not close.
fn after_quote(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        let at = memchr2(b'"', b'\\', text)?;
        if text[at] == b'"' {
            return Some(&text[at + 1..]);
        }
        // A backslash escapes any byte.
        text = text.get(at + 2..)?;
    }
}

/// Whether the text is a size in bytes, or `-`.
fn is_size(size: &[u8]) -> bool {
    size == b"-" || (!size.is_empty() && size.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::input::format::common_field::CommonField;
    use crate::input::row::Row;
    use crate::input::time::calendar::SECOND;
    use crate::input::time::infer_year::YearInference;
    use crate::input::time::timestamp::{TimestampFormat, TimestampParser};

    /// The time in seconds and these fields of a line.
    fn fields<const N: usize>(
        line: &str,
        wanted: [CommonField; N],
    ) -> Result<(i64, [Option<String>; N]), String> {
        let mut timestamps = TimestampParser::new(TimestampFormat::Auto, YearInference::new(None, 0), 0);
        let mut row = Row::new(N);
        let places: Vec<_> = wanted.into_iter().zip(0..).collect();
        parse(line.as_bytes(), 0, &mut timestamps, &places, &mut row).map_err(|error| error.to_string())?;
        let text = |at| row.get(at).map(|text| String::from_utf8_lossy(text).into_owned());
        Ok((row.time / SECOND, core::array::from_fn(text)))
    }

    fn client(line: &str) -> Result<(i64, [Option<String>; 1]), String> {
        fields(line, [CommonField::Client])
    }

    #[test]
    fn both_formats_are_parsed() {
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
            assert_eq!(client(line), Ok((9, [Some(address.into())])), "{line}");
        }
    }

    #[test]
    fn every_field_is_found() {
        use CommonField::{
            Agent, Client, Ident, Method, Path, Protocol, Referer, Request, Size, Status, Target, User,
        };
        let line = r#"a id a b [01/Jan/1970:00:00:09 +0000] "GET /p?q=\"1 HTTP/1.1" 200 17 "r\"f" "agent""#;
        let wanted = [
            Client, Ident, User, Request, Method, Target, Path, Protocol, Status, Size, Referer, Agent,
        ];
        let expected = [
            "a",
            "id",
            "a b",
            r#"GET /p?q=\"1 HTTP/1.1"#,
            "GET",
            r#"/p?q=\"1"#,
            "/p",
            "HTTP/1.1",
            "200",
            "17",
            r#"r\"f"#,
            "agent",
        ];
        assert_eq!(
            fields(line, wanted),
            Ok((9, expected.map(|text| Some(text.into()))))
        );
        // The common format has no referer and no agent, and a request may be any text.
        let line = r#"a - - [01/Jan/1970:00:00:09 +0000] "-" 200 -"#;
        let some = |text: &str| Some(text.to_string());
        assert_eq!(
            fields(line, [Method, Path, Size, Referer, Agent]),
            Ok((9, [some("-"), some(""), some("-"), None, None]))
        );
    }

    #[test]
    fn a_user_name_may_have_spaces_and_brackets() {
        for user in [
            "John Doe",
            "[",
            "a [b] c",
            "x [01/Jan/1970:00:00:01 +0000] y",
            r#"x [01/Jan/1970:00:00:01 +0000] \"GET"#,
        ] {
            let line = format!(r#"1.2.3.4 - {user} [01/Jan/1970:00:00:09 +0000] "GET /" 200 5"#);
            assert_eq!(
                fields(&line, [CommonField::User]),
                Ok((9, [Some(user.into())])),
                "{line}"
            );
        }
    }

    #[test]
    fn missing_parts_are_named_with_their_column() {
        let stamp = "[01/Jan/1970:00:00:09 +0000]";
        for (line, column, missing) in [
            ("", 1, "no client address"),
            ("1.2.3.4", 8, "no identity"),
            ("1.2.3.4 ", 9, "no identity"),
            (&format!(r#" - - {stamp} "GET /" 200 5"#), 1, "no client address"),
            (
                &format!("h\u{f6}st - - {stamp} \"GET /\" 200 5"),
                1,
                "no client address",
            ),
            (
                &format!("a\u{1b}[1m - - {stamp} \"GET /\" 200 5"),
                1,
                "no client address",
            ),
            ("1.2.3.4 -", 10, "no user and [time]"),
            ("1.2.3.4 - me", 11, "no user and [time]"),
            (&format!(r#"1.2.3.4  - {stamp} "GET /" 200 5"#), 9, "no identity"),
            (
                &format!(r#"1.2.3.4 - {stamp} "GET /" 200 5"#),
                11,
                "no user and [time]",
            ),
            (
                r#"1.2.3.4 - - 01/Jan/1970:00:00:09 +0000 "GET /" 200 5"#,
                11,
                "no user and [time]",
            ),
            (
                r#"1.2.3.4 - - [1970-01-01T00:00:09Z] "GET /" 200 5"#,
                11,
                "no user and [time]",
            ),
            (
                r#"1.2.3.4 - - [31/Feb/1970:00:00:09 +0000] "GET /" 200 5"#,
                14,
                "invalid time: \"31/Feb/1970:00:00:09 +0000\" (expected an existing time",
            ),
            (&format!("1.2.3.4 - - {stamp}"), 41, "no quoted request"),
            (
                &format!("1.2.3.4 - - {stamp} GET / 200 5"),
                41,
                "no quoted request",
            ),
            (
                &format!(r#"1.2.3.4 - - {stamp} "GET / 200 5"#),
                43,
                "no end of the quoted",
            ),
            (
                &format!(r#"1.2.3.4 - - {stamp} "GET /\" 200 5"#),
                43,
                "no end of the quoted",
            ),
            (
                &format!(r#"1.2.3.4 - - {stamp} "GET /\"#),
                43,
                "no end of the quoted",
            ),
            (&format!(r#"1.2.3.4 - - {stamp} "GET /""#), 49, "no status"),
            (&format!(r#"1.2.3.4 - - {stamp} "GET /"200 5"#), 49, "no status"),
            (&format!(r#"1.2.3.4 - - {stamp} "GET /" 20 5"#), 49, "no status"),
            (&format!(r#"1.2.3.4 - - {stamp} "GET /" 2000 5"#), 49, "no status"),
            (&format!(r#"1.2.3.4 - - {stamp} "GET /" abc 5"#), 49, "no status"),
            (&format!(r#"1.2.3.4 - - {stamp} "GET /" 200"#), 53, "no size"),
            (&format!(r#"1.2.3.4 - - {stamp} "GET /" 200 "#), 54, "no size"),
            (&format!(r#"1.2.3.4 - - {stamp} "GET /" 200 5x"#), 54, "no size"),
            (&format!(r#"1.2.3.4 - - {stamp} "GET /" 200 --"#), 54, "no size"),
        ] {
            let error = client(line).expect_err(line);
            assert!(
                error.starts_with(&format!("column {column}: {missing}")),
                "{line}: {error}"
            );
        }
    }
}
