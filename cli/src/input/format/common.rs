//! The common and the combined log format, with or without a virtual host before them.

use memchr::{memchr, memchr2};

use crate::failure::Failure;
use crate::input::client;
use crate::input::format::columns::{Columns, REQUEST};
use crate::input::format::words::closing;
use crate::input::format::{LogFormat, ParseResult, Parsed, WantedFields};
use crate::input::row::{Row, Unreadable, shown};
use crate::input::time::timestamp::{STAMP, TimestampParser};

/// The first words of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommonLayout {
    /// A client is an address or a host name. A line may begin with a virtual host.
    Names,
    /// A client is an address. A line may begin with a virtual host.
    Addresses,
    /// Each line begins with a virtual host, behind which the client is an address or a host name.
    Vhost,
}

/// The values of a line. Those behind the request, and the virtual host, may be missing.
const NAMES: [&str; VALUES] = [
    "client", "vhost", "ident", "user", "request", "status", "size", "referer", "agent",
];
const VALUES: usize = 9;

/// The place of the user among the values.
pub(crate) const USER: usize = 3;

/// The names of nginx's variables for fields.
const OF_NGINX: [(&str, &str); 10] = [
    ("remote_addr", "client"),
    ("server_name", "vhost"),
    ("remote_user", "user"),
    ("request_method", "method"),
    ("request_uri", "target"),
    ("uri", "path"),
    ("server_protocol", "protocol"),
    ("body_bytes_sent", "size"),
    ("http_referer", "referer"),
    ("http_user_agent", "agent"),
];

/// The common and the combined format of Apache and nginx.
#[derive(Debug)]
pub(crate) struct Common {
    columns: Columns,
    layout: CommonLayout,
    /// Whether a host name among the clients is known, and the first one of later lines if not.
    knows_names: bool,
    late_name: Option<String>,
}

impl Common {
    /// Creates the format. `knows_names` says whether a client in the first lines is a host name.
    ///
    /// # Errors
    ///
    /// When the format does not have a wanted field.
    pub(crate) fn new(
        wanted: &WantedFields,
        layout: CommonLayout,
        knows_names: bool,
    ) -> Result<Self, Failure> {
        if let Some(time) = &wanted.time {
            return Err(Failure::new(format!(
                "invalid --time-field: {time:?} (expected none: the time of the common and the combined format has a fixed place)"
            )));
        }
        let mut wanted = wanted.clone();
        for (name, _) in &mut wanted.fields {
            if let Some((_, ours)) = OF_NGINX.iter().find(|(nginx, _)| nginx == name) {
                *name = (*ours).to_owned();
            }
        }
        let title = "the common or combined format";
        Ok(Self {
            columns: Columns::new(title, &NAMES, &[REQUEST], &[], &wanted)?,
            layout,
            knows_names,
            late_name: None,
        })
    }
}

impl LogFormat for Common {
    fn parse(&mut self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> ParseResult {
        let CommonLine {
            time,
            values,
            is_name,
        } = CommonLine::of(line, self.layout, timestamps)?;
        row.time = time;
        self.columns.fill(|column| values[column], timestamps, row)?;
        if is_name && !self.knows_names {
            self.knows_names = true;
            self.late_name = values[0].map(shown);
        }
        Ok(Parsed::Request)
    }

    fn late_notes(&mut self) -> Result<Vec<String>, Failure> {
        let name = self.late_name.take().into_iter();
        Ok(name
            .map(|name| format!("clients may be host names, as \"{name}\" after the first lines"))
            .collect())
    }
}

/// A line such as `address ident user [time] "request" status size`, or `host:port address ident user ...`. More may follow after a
/// space, as `"referer" "agent"` does in the combined format.
#[derive(Debug)]
pub(crate) struct CommonLine<'l> {
    time: i64,
    /// The values, in the order of their names.
    pub(crate) values: [Option<&'l [u8]>; VALUES],
    /// Whether the client is a host name.
    is_name: bool,
}

impl<'l> CommonLine<'l> {
    /// Splits a line, which may be in quotation marks.
    ///
    /// A line up to its request is one of the format: a client must not hide by a request, a status or an agent of another form.
    ///
    /// # Errors
    ///
    /// When the line has another form.
    pub(crate) fn of(
        line: &'l [u8],
        layout: CommonLayout,
        timestamps: &mut TimestampParser,
    ) -> Result<Self, Unreadable> {
        match unquoted(line) {
            None => split_bare(line, layout, timestamps),
            Some(inner) => split_bare(inner, layout, timestamps).map_err(|error| Unreadable {
                column: error.column.map(|column| column + 1),
                ..error
            }),
        }
    }
}

/// The line in the quotation marks that OpenLiteSpeed writes around it, or in single ones.
fn unquoted(line: &[u8]) -> Option<&[u8]> {
    let (&mark, inner) = line
        .split_first()
        .filter(|(mark, _)| matches!(mark, b'"' | b'\''))?;
    let first = memchr(b' ', inner)?;
    // The second mark may be lost with the end of a line.
    memchr(mark, &inner[..first])
        .is_none()
        .then(|| inner.strip_suffix(&[mark]).unwrap_or(inner))
}

fn split_bare<'l>(
    line: &'l [u8],
    layout: CommonLayout,
    timestamps: &mut TimestampParser,
) -> Result<CommonLine<'l>, Unreadable> {
    // The offset of a suffix of the line.
    let place = |rest: &[u8]| line.len() - rest.len();
    let wrong = |rest: &[u8], what: &str| Err(Unreadable::at(place(rest), what));
    let First {
        host,
        client,
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
    // An identity has no dot, and a client behind a virtual host has.
    if is_name && ident.contains(&b'.') && user.contains(&b' ') {
        return wrong(
            line,
            "two names at the beginning (expected one; --log-format says which is the client)",
        );
    }
    let Some(time) = timestamps.detected(stamp) else {
        let at = place(request) - stamp.len() - 3;
        let given = shown(stamp);
        return Err(Unreadable::at(
            at,
            format!(
                "invalid time: \"{given}\" (expected an existing time such as 17/May/2015:10:05:03 +0000)"
            ),
        ));
    };
    let (quoted, rest) = match end_of_request(request) {
        Some(split) => split,
        None => return wrong(request, "a second request on the line"),
    };
    let (status, rest) = next_value(rest);
    let (size, rest) = next_value(rest);
    if has_request(rest) {
        return wrong(rest, "a second request on the line");
    }
    let referer = quoted_after(rest);
    let agent = referer.and_then(|(_, rest)| quoted_after(rest));
    let present = |value: &'l [u8]| Some(value).filter(|value| !value.is_empty());
    Ok(CommonLine {
        time,
        values: [
            Some(client),
            present(host),
            Some(ident),
            Some(user),
            Some(quoted),
            present(status),
            // Behind another value the size may have another place.
            present(size).filter(|_| !status.is_empty() && may_be_status(status)),
            referer.map(|(referer, _)| referer),
            agent.map(|(agent, _)| agent),
        ],
        is_name,
    })
}

/// The text behind the client in brackets that ingress-nginx writes again before the user.
fn without_bracket(text: &[u8]) -> &[u8] {
    let Some(inner) = text.strip_prefix(b"[") else {
        return text;
    };
    let Some(end) = memchr(b']', inner).filter(|&end| inner[end..].starts_with(b"] - ")) else {
        return text;
    };
    match client::listed(&inner[..end]).all(|word| word == b"-" || client::address(word).is_some()) {
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
        let has_name = |(second, _): (&[u8], &[u8])| client::is_name(second);
        // Of two words before the time, the first is the identity.
        let begins_at_name = |(second, rest): (&[u8], &[u8])| {
            client::is_name(second) && rest.starts_with(b"- ") && !rest.starts_with(b"- [")
        };
        let behind = |second: Option<(&'l [u8], &'l [u8])>| {
            let (client, rest) = second.unwrap_or_default();
            Self {
                host: first,
                client,
                is_name: true,
                rest,
            }
        };
        match (client::address(first), second_address) {
            (Some(client), None) if layout != CommonLayout::Vhost => Ok(plain(client, false)),
            (Some(_), Some(_)) if layout != CommonLayout::Vhost && !client::has_port(first) => {
                Err(Unreadable::at(
                    0,
                    "two addresses at the beginning (expected one; --log-format says which is the client)",
                ))
            }
            (_, Some(address)) if client::is_virtual_host(first) => Ok(Self {
                host: first,
                client: address,
                is_name: false,
                rest: second.map_or(&b""[..], |(_, rest)| rest),
            }),
            // An identity is nearly always "-". So a second name before it is that of the client, behind a virtual host.
            (None, None)
                if layout != CommonLayout::Addresses
                    && client::is_virtual_host(first)
                    && second.is_some_and(begins_at_name) =>
            {
                Ok(behind(second))
            }
            (_, None)
                if layout == CommonLayout::Vhost
                    && client::is_virtual_host(first)
                    && second.is_some_and(has_name) =>
            {
                Ok(behind(second))
            }
            // A mark such as "|" is that of a program that writes a name before each line.
            (None, None)
                if layout == CommonLayout::Names
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

/// Whether a line is of the format.
pub(crate) fn is(line: &[u8], layout: CommonLayout, timestamps: &mut TimestampParser) -> bool {
    CommonLine::of(line, layout, timestamps).is_ok()
}

/// The client of a line, which is an address.
pub(crate) fn client<'l>(line: &'l [u8], timestamps: &mut TimestampParser) -> Option<&'l [u8]> {
    CommonLine::of(line, CommonLayout::Addresses, timestamps)
        .ok()?
        .values[0]
}

/// The client of a line if it is a host name, and the line is well formed otherwise.
pub(crate) fn client_name<'l>(
    line: &'l [u8],
    layout: CommonLayout,
    timestamps: &mut TimestampParser,
) -> Option<&'l [u8]> {
    let parsed = CommonLine::of(line, layout, timestamps).ok()?;
    parsed.values[0].filter(|_| parsed.is_name)
}

/// The first word, and the text behind the space after it; `None` if the word is empty.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr(b' ', text).unwrap_or(text.len());
    (end > 0).then(|| (&text[..end], text.get(end + 1..).unwrap_or_default()))
}

/// Splits ` "text"rest` into the text and the rest.
fn quoted_after(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    to_quote(rest.strip_prefix(b" \"")?)
}

/// The user, the time, and the text after the quotation mark that follows.
type Bracketed<'a> = (&'a [u8], &'a [u8], &'a [u8]);

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
        if let Some((stamp, rest)) = stamp(&text[at + 1..]) {
            if let [b' ', b'"', rest @ ..] = rest {
                return Ok((&text[..at - 1], stamp, rest));
            }
            missing = ("no quoted request after the time", at + stamp.len() + 2);
        }
    }
    Err(missing)
}

/// Bytes of the shortest and of the longest time in brackets.
const SHORTEST_STAMP: usize = "2015-05-17 10:05:03".len();
const LONGEST_STAMP: usize = "17/May/2015:10:05:03.123456789 +00:00".len();

/// Splits `17/May/2015:10:05:03 +0000]rest`, or another time with a date, into the time and the rest.
fn stamp(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = match text.get(STAMP) {
        Some(b']') => STAMP,
        _ => memchr(b']', &text[..text.len().min(LONGEST_STAMP + 1)]).filter(|&end| end >= SHORTEST_STAMP)?,
    };
    let stamp = &text[..end];
    let has_date = matches!(
        stamp,
        [_, _, b'/', _, _, _, b'/', ..] | [_, _, _, _, b'-' | b'/', _, _, b'-' | b'/', ..]
    );
    (has_date && !stamp.contains(&b'[')).then(|| (stamp, &text[end + 1..]))
}

/// Splits the text behind an opening quotation mark into the request and the rest of the line; `None` if another request
/// begins in it.
///
/// A client may send a quotation mark or a backslash to a server that does not escape them. Then the request ends at the first
/// quotation mark before a space, or with the line.
fn end_of_request(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if let Some(split @ (_, [] | [b' ', ..])) = to_quote(text) {
        return Some(split);
    }
    let has_other = memchr::memchr_iter(b'[', text)
        .any(|at| matches!(stamp(&text[at + 1..]), Some((_, [b' ', b'"', ..]))));
    if has_other {
        return None;
    }
    let mut quotes = memchr::memchr_iter(b'"', text);
    Some(
        match quotes.find(|at| matches!(text.get(at + 1), None | Some(b' '))) {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (text, b""),
        },
    )
}

/// Splits ` value rest` into the value and the rest. The value may be quoted.
fn next_value(rest: &[u8]) -> (&[u8], &[u8]) {
    if let Some(split) = quoted_after(rest) {
        return split;
    }
    let Some(text) = rest.strip_prefix(b" ") else {
        return (b"", rest);
    };
    text.split_at(memchr(b' ', text).unwrap_or(text.len()))
}

/// Whether a value in the place of the status is one, or stands for a missing one as `-` does. A longer number is another
/// field.
fn may_be_status(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    digits == 0 || (digits == value.len() && digits <= 3)
}

/// Splits `text"rest` into the text and the rest; `\"` does not close.
fn to_quote(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = closing(text, |_| true)?;
    Some((&text[..end], &text[end + 1..]))
}

/// Whether a time in brackets follows outside of quotation marks: two lines were written as one.
fn has_request(mut rest: &[u8]) -> bool {
    while let Some(at) = memchr2(b'"', b'[', rest) {
        let after = &rest[at + 1..];
        if rest[at] == b'[' {
            if stamp(after).is_some() {
                return true;
            }
            rest = after;
        } else {
            let Some((_, after)) = to_quote(after) else {
                return false;
            };
            rest = after;
        }
    }
    false
}
