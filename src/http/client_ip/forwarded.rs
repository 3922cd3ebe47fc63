//! Addresses in `X-Forwarded-For` and `Forwarded` (RFC 7239), read without an allocation and without trust.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Hands over the addresses of an `X-Forwarded-For` line from left to right; `None` stands for what is no address.
pub(super) fn x_forwarded_for(line: &str, mut element: impl FnMut(Option<IpAddr>)) {
    for text in line.split(',') {
        let text = text.trim_matches(is_space);
        // An IPv6 address comes here without brackets.
        element(address(text).or_else(|| text.parse().ok().map(IpAddr::V6)));
    }
}

/// Hands over the addresses of the elements of a `Forwarded` line from left to right; `None` stands for an element that
/// tells none.
///
/// # Errors
///
/// When anything in the line is not of the grammar. Then nothing in it counts: with a quotation mark that was slipped in,
/// what a proxy has written between such marks would be outside of them.
pub(super) fn forwarded(line: &str, mut element: impl FnMut(Option<IpAddr>)) -> Result<(), Malformed> {
    let mut rest = Rest(line);
    loop {
        element(forwarded_element(&mut rest)?);
        if rest.0.is_empty() {
            return Ok(());
        }
        rest.expect(',')?;
    }
}

/// A line that is not of the grammar.
#[derive(Debug)]
pub(super) struct Malformed;

/// One element: pairs with semicolons between them, up to a comma or the end.
fn forwarded_element(rest: &mut Rest<'_>) -> Result<Option<IpAddr>, Malformed> {
    let mut told = None;
    let mut seen = false;
    loop {
        rest.skip_spaces();
        let name = rest.token();
        if !name.is_empty() {
            rest.expect('=')?;
            let value = match rest.0.strip_prefix('"') {
                Some(quoted) => rest.quoted(quoted)?,
                None => match rest.token() {
                    "" => return Err(Malformed),
                    token => token,
                },
            };
            if name.eq_ignore_ascii_case("for") {
                // Each parameter may come once.
                if core::mem::replace(&mut seen, true) {
                    return Err(Malformed);
                }
                told = address(value);
            }
            rest.skip_spaces();
        }
        match rest.0.strip_prefix(';') {
            Some(next) => rest.0 = next,
            None => return Ok(told),
        }
    }
}

/// What of a line is still to be read.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
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

    /// What stands between quotation marks, of which the first is behind us. Escapes stay as they are, so an address
    /// with one is none.
    fn quoted(&mut self, text: &'a str) -> Result<&'a str, Malformed> {
        let mut escaped = false;
        for (at, c) in text.char_indices() {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    self.0 = &text[at + 1..];
                    return Ok(&text[..at]);
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

/// RFC 9110, 5.6.2.
const fn is_token(c: char) -> bool {
    matches!(c, '!' | '#'..='\'' | '*' | '+' | '-' | '.' | '^'..='`' | '|' | '~') || c.is_ascii_alphanumeric()
}

/// The address of a node (RFC 7239, 6): `192.0.2.1`, `[2001:db8::1]`, with a port or without. `None`: it is unknown,
/// obfuscated, or nothing of the sort.
fn address(node: &str) -> Option<IpAddr> {
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
