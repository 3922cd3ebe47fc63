//! The common and the combined log format, with or without a virtual host before them.

pub(crate) mod field;

use memchr::{memchr, memchr2};

use crate::failure::Failure;
use crate::input::client;
use crate::input::format::columns::path;
use crate::input::format::common::field::CommonField;
use crate::input::format::{LogFormat, Parsed, WantedFields};
use crate::input::row::{Row, Unreadable, shown};
use crate::input::time::clf_time::STAMP;
use crate::input::time::timestamp::TimestampParser;

/// The first words of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommonLayout {
    /// Whether a client may be a host name.
    pub(crate) names: bool,
    /// Whether each line begins with a virtual host. Without this, only lines do whose second word is an address.
    pub(crate) vhost: bool,
}

/// The common and the combined format of Apache and nginx.
#[derive(Debug)]
pub(crate) struct Common {
    wanted: Vec<(CommonField, usize)>,
    layout: CommonLayout,
    /// Whether a host name among the clients is known, and the first one of later lines if not.
    knows_names: bool,
    late_name: Option<String>,
}

impl Common {
    /// # Errors
    ///
    /// When the format does not have a wanted field.
    pub(crate) fn new(wanted: &WantedFields, layout: CommonLayout) -> Result<Self, Failure> {
        if let Some(time) = &wanted.time {
            return Err(Failure::new(format!(
                "invalid --time-field: {time:?} (expected none: the time of the common and the combined format has a fixed place)"
            )));
        }
        let known = wanted
            .fields
            .iter()
            .map(|(name, place)| match CommonField::named(name) {
                Some(field) => Ok((field, *place)),
                None => Err(Failure::argument(
                    "field",
                    format!("{name:?}"),
                    format!(
                        "a field of the common or combined format: {}",
                        CommonField::names()
                    ),
                )),
            });
        Ok(Self {
            wanted: known.collect::<Result<_, _>>()?,
            layout,
            knows_names: false,
            late_name: None,
        })
    }

    /// Sets whether the first lines have a host name as a client.
    pub(crate) const fn with_known_names(mut self, known: bool) -> Self {
        self.knows_names = known;
        self
    }
}

impl LogFormat for Common {
    fn parse(
        &mut self,
        line: &[u8],
        timestamps: &mut TimestampParser,
        row: &mut Row,
    ) -> Result<Parsed, Unreadable> {
        let name = parse_client(line, self.layout, timestamps, &self.wanted, row)?;
        if let Some(name) = name.filter(|_| !self.knows_names) {
            self.knows_names = true;
            self.late_name = Some(shown(name));
        }
        Ok(Parsed::Request)
    }

    fn late_notes(&mut self) -> Vec<String> {
        let name = self.late_name.take().into_iter();
        name.map(|name| format!("clients may be host names, as \"{name}\" after the first lines"))
            .collect()
    }
}

/// Parses `address ident user [time] "request" status size`, or `host:port address ident user ...`. More may follow after a
/// space, as `"referer" "agent"` does in the combined format.
///
/// # Errors
///
/// When the line has another form.
pub(crate) fn parse(
    line: &[u8],
    layout: CommonLayout,
    timestamps: &mut TimestampParser,
    wanted: &[(CommonField, usize)],
    row: &mut Row,
) -> Result<(), Unreadable> {
    parse_client(line, layout, timestamps, wanted, row).map(|_| ())
}

/// Parses a line, which may be in quotation marks. Returns the client if it is a host name.
fn parse_client<'l>(
    line: &'l [u8],
    layout: CommonLayout,
    timestamps: &mut TimestampParser,
    wanted: &[(CommonField, usize)],
    row: &mut Row,
) -> Result<Option<&'l [u8]>, Unreadable> {
    match unquoted(line) {
        None => parse_bare(line, layout, timestamps, wanted, row),
        Some(inner) => parse_bare(inner, layout, timestamps, wanted, row).map_err(|error| Unreadable {
            column: error.column.map(|column| column + 1),
            ..error
        }),
    }
}

/// The line in the quotation marks that OpenLiteSpeed writes around it.
fn unquoted(line: &[u8]) -> Option<&[u8]> {
    let inner = line.strip_prefix(b"\"")?;
    let first = memchr(b' ', inner)?;
    // The second mark may be lost with the end of a line.
    memchr(b'"', &inner[..first])
        .is_none()
        .then(|| inner.strip_suffix(b"\"").unwrap_or(inner))
}

fn parse_bare<'l>(
    line: &'l [u8],
    layout: CommonLayout,
    timestamps: &mut TimestampParser,
    wanted: &[(CommonField, usize)],
    row: &mut Row,
) -> Result<Option<&'l [u8]>, Unreadable> {
    // The offset of a suffix of the line.
    let place = |rest: &[u8]| line.len() - rest.len();
    let wrong = |rest: &[u8], what: &str| Err(Unreadable::at(place(rest), what));
    let First {
        host,
        client: address,
        is_name,
        rest,
    } = First::of(line, layout)?;
    let Some((ident, after_ident)) = word(rest) else {
        return wrong(rest, "no identity after the address");
    };
    let after_ident = without_bracket(after_ident);
    let (user, stamp, request) =
        bracketed(after_ident).map_err(|(what, at)| Unreadable::at(place(after_ident) + at, what))?;
    // An address among the other words is that of the client, and the name is a prefix of another program.
    if is_name
        && user
            .split(|&byte| byte == b' ')
            .any(|word| client::address(word).is_some())
    {
        return wrong(
            line,
            "a name at the beginning, and an address after it (expected the client first)",
        );
    }
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
    if has_request(rest) {
        return wrong(rest, "a second request on the line");
    }
    row.time = time;
    for &(field, at) in wanted {
        let value = match field {
            CommonField::Host if host.is_empty() => continue,
            CommonField::Host => host,
            CommonField::Client => address,
            CommonField::Ident => ident,
            CommonField::User => user,
            CommonField::Request => quoted,
            CommonField::Method => part(quoted, 0),
            CommonField::Target => part(quoted, 1),
            CommonField::Path => {
                // Proxies write a whole URL.
                path(part(quoted, 1))
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
    Ok(is_name.then_some(address))
}

/// The text behind the client in brackets that ingress-nginx writes again before the user.
fn without_bracket(text: &[u8]) -> &[u8] {
    let Some(inner) = text.strip_prefix(b"[") else {
        return text;
    };
    let Some(end) = memchr(b']', inner).filter(|&end| inner[end..].starts_with(b"] - ")) else {
        return text;
    };
    let mut words = inner[..end].split(|byte| b", ".contains(byte));
    match words.all(|word| word.is_empty() || word == b"-" || client::address(word).is_some()) {
        true => &inner[end + 4..],
        false => text,
    }
}

/// The words before the identity.
struct First<'l> {
    host: &'l [u8],
    client: &'l [u8],
    /// Whether the client is a host name.
    is_name: bool,
    rest: &'l [u8],
}

impl<'l> First<'l> {
    /// Splits the virtual host and the client from a line.
    fn of(line: &'l [u8], layout: CommonLayout) -> Result<Self, Unreadable> {
        const EXPECTED: &str = "no client address at the beginning";
        let Some((first, rest)) = word(line) else {
            return Err(Unreadable::at(0, EXPECTED));
        };
        let second = word(rest);
        // In nearly all lines the second word is the missing identity.
        let second_address = match second {
            None | Some((b"-", _)) => None,
            Some((second, _)) => client::address(second),
        };
        let plain = |client, is_name| Self {
            host: b"",
            client,
            is_name,
            rest,
        };
        match (client::address(first), second_address) {
            (Some(client), None) if !layout.vhost => Ok(plain(client, false)),
            (Some(_), Some(_)) if !layout.vhost && !client::has_port(first) => Err(Unreadable::at(
                0,
                "two addresses at the beginning (expected one; --log-format says which is the client)",
            )),
            (_, Some(address)) if client::is_virtual_host(first) => Ok(Self {
                host: first,
                client: address,
                is_name: false,
                rest: second.map_or(&b""[..], |(_, rest)| rest),
            }),
            // A mark such as "|" is that of a program that writes a name before each line.
            (None, None)
                if layout.names
                    && !layout.vhost
                    && client::is_name(first)
                    && second.is_none_or(|(second, _)| second == b"-" || client::is_name(second)) =>
            {
                Ok(plain(first, true))
            }
            _ => {
                let given = shown(first);
                Err(Unreadable::at(
                    0,
                    format!("{EXPECTED}: \"{given}\" (expected an address, or HOST:PORT and an address)"),
                ))
            }
        }
    }
}

/// Whether the client of a line is a host name, and the line is well formed otherwise.
pub(crate) fn has_name(line: &[u8], timestamps: &mut TimestampParser) -> bool {
    let names = CommonLayout {
        names: true,
        vhost: false,
    };
    let addresses = CommonLayout {
        names: false,
        vhost: false,
    };
    let mut row = Row::new(0);
    parse(line, addresses, timestamps, &[], &mut row).is_err()
        && parse(line, names, timestamps, &[], &mut row).is_ok()
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

/// Whether a time in brackets follows outside of quotation marks: two lines were written as one.
fn has_request(mut rest: &[u8]) -> bool {
    while let Some(at) = memchr2(b'"', b'[', rest) {
        let after = &rest[at + 1..];
        if rest[at] == b'[' {
            let stamp = after.split_first_chunk::<STAMP>();
            if matches!(stamp, Some(([_, _, b'/', _, _, _, b'/', ..], [b']', ..]))) {
                return true;
            }
            rest = after;
        } else {
            let Some(after) = after_quote(after) else {
                return false;
            };
            rest = after;
        }
    }
    false
}

/// Whether the text is a size in bytes, or `-`.
fn is_size(size: &[u8]) -> bool {
    size == b"-" || (!size.is_empty() && size.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests;
