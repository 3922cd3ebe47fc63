//! Parsers of `X-Forwarded-For` and `Forwarded` (RFC 7239) that do not allocate.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Passes the addresses of an `X-Forwarded-For` line to `hop`, from left to right. Passes `None` for an element that is not an
/// address, and skips empty elements (RFC 9110, section 5.6.1.2).
pub(super) fn parse_x_forwarded_for(line: &str, mut hop: impl FnMut(Option<IpAddr>)) {
    for text in line.split(',') {
        let text = text.trim_matches(is_space);
        if text.is_empty() {
            continue;
        }
        // Unlike `Forwarded`, this header has IPv6 addresses without brackets.
        hop(node_address(text).or_else(|| text.parse().ok().map(IpAddr::V6)));
    }
}

/// Passes the addresses of a `Forwarded` line to `hop`, from left to right. Passes `None` for an element without an address, and
/// skips empty elements.
///
/// # Errors
///
/// Returns an error if the line violates the grammar. The caller must then ignore the whole line: a quotation mark sent
/// by the client could turn quoted text of a proxy into elements.
pub(super) fn parse_forwarded(line: &str, mut hop: impl FnMut(Option<IpAddr>)) -> Result<(), Malformed> {
    let mut cursor = Cursor(line);
    loop {
        if let Some(address) = forwarded_element(&mut cursor)? {
            hop(address);
        }
        if cursor.0.is_empty() {
            return Ok(());
        }
        cursor.expect(',')?;
    }
}

/// The error of a line that violates the grammar of `Forwarded`.
#[derive(Debug)]
pub(super) struct Malformed;

/// Parses one element: pairs separated by semicolons, up to a comma or the end. Returns `None` if it is empty.
fn forwarded_element(cursor: &mut Cursor<'_>) -> Result<Option<Option<IpAddr>>, Malformed> {
    let mut address = None;
    let (mut has_for, mut is_empty) = (false, true);
    loop {
        cursor.skip_spaces();
        let name = cursor.token();
        if !name.is_empty() {
            is_empty = false;
            cursor.expect('=')?;
            let value = match cursor.0.strip_prefix('"') {
                Some(quoted) => cursor.quoted(quoted)?,
                None => match cursor.token() {
                    "" => return Err(Malformed),
                    token => token,
                },
            };
            if name.eq_ignore_ascii_case("for") {
                // A parameter occurs at most once in an element.
                if core::mem::replace(&mut has_for, true) {
                    return Err(Malformed);
                }
                address = node_address(value);
            }
            cursor.skip_spaces();
        }
        match cursor.0.strip_prefix(';') {
            Some(rest) => cursor.0 = rest,
            None => return Ok((!is_empty).then_some(address)),
        }
    }
}

/// The unread rest of a line.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn skip_spaces(&mut self) {
        self.0 = self.0.trim_start_matches(is_space);
    }

    fn expect(&mut self, expected: char) -> Result<(), Malformed> {
        self.0 = self.0.strip_prefix(expected).ok_or(Malformed)?;
        Ok(())
    }

    fn token(&mut self) -> &'a str {
        let end = self.0.find(|c: char| !is_token(c)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        token
    }

    /// Reads a quoted string, whose opening mark was consumed. Escapes are kept, so an address with one is invalid.
    fn quoted(&mut self, text: &'a str) -> Result<&'a str, Malformed> {
        let mut escaped = false;
        for (index, c) in text.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    self.0 = &text[index + 1..];
                    return Ok(&text[..index]);
                }
                _ => {}
            }
        }
        Err(Malformed)
    }
}

const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// Returns whether a character may occur in a token (RFC 9110, section 5.6.2).
const fn is_token(c: char) -> bool {
    matches!(c, '!' | '#'..='\'' | '*' | '+' | '-' | '.' | '^'..='`' | '|' | '~') || c.is_ascii_alphanumeric()
}

/// Parses the address of a node (RFC 7239, section 6): `192.0.2.1` or `[2001:db8::1]`, with or without a port.
///
/// Returns `None` if the node is unknown, obfuscated or invalid.
fn node_address(node: &str) -> Option<IpAddr> {
    let (address, port) = match node.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            let port = match rest {
                "" => None,
                rest => Some(rest.strip_prefix(':')?),
            };
            (address.parse::<Ipv6Addr>().ok()?.into(), port)
        }
        None => match node.split_once(':') {
            Some((address, port)) => (address.parse::<Ipv4Addr>().ok()?.into(), Some(port)),
            None => (node.parse::<Ipv4Addr>().ok()?.into(), None),
        },
    };
    port.is_none_or(is_port).then_some(address)
}

fn is_port(port: &str) -> bool {
    match port.strip_prefix('_') {
        Some(name) => {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        }
        None => (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit()),
    }
}
