//! Parsers of `X-Forwarded-For` and `Forwarded` (RFC 7239) that do not allocate.
//!
//! They read what software writes beside the grammar, if it has one meaning: values without quotation marks, spaces around `=`,
//! addresses with a zone, and IPv6 addresses with a port but without brackets.

use core::net::{IpAddr, Ipv6Addr};

/// Passes the elements of an `X-Forwarded-For` line to `hop`, from left to right, each with its address. The address is `None` if the
/// element is not an address. Empty elements are skipped (RFC 9110, section 5.6.1.2).
pub(super) fn parse_x_forwarded_for(line: &str, mut hop: impl FnMut(&str, Option<IpAddr>)) {
    for text in line.split(',') {
        let text = text.trim_matches(is_space);
        if !text.is_empty() {
            let unquoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            hop(text, node_address(unquoted.unwrap_or(text)));
        }
    }
}

/// Passes the elements of a `Forwarded` line to `hop`, from left to right, each with its address. The address is `None` if the element
/// has none. Empty elements are skipped.
///
/// # Errors
///
/// Returns an error if a quotation mark is not closed, or is neither at the beginning nor at the end of a value. The caller must then
/// ignore the whole line: a quotation mark sent by the client could turn quoted text of a proxy into elements.
pub(super) fn parse_forwarded(
    line: &str,
    mut hop: impl FnMut(&str, Option<IpAddr>),
) -> Result<(), Malformed> {
    let mut rest = line;
    loop {
        let start = rest;
        let (mut address, mut has_for, mut is_empty) = (None, false, true);
        // The pairs of one element, which are separated by semicolons.
        loop {
            let name = read_until(&mut rest, &['=', ';', ','])?;
            let value = match rest.strip_prefix('=') {
                Some(value) => {
                    rest = value.trim_start_matches(is_space);
                    read_value(&mut rest)?
                }
                None => "",
            };
            is_empty &= name.is_empty() && value.is_empty();
            if name.eq_ignore_ascii_case("for") {
                // Of two addresses in one element, neither is certain.
                address = node_address(value).filter(|_| !has_for);
                has_for = true;
            }
            match rest.strip_prefix(';') {
                Some(pairs) => rest = pairs,
                None => break,
            }
        }
        if !is_empty {
            let element = &start[..start.len() - rest.len()];
            hop(element.trim_matches(is_space), address);
        }
        match rest.strip_prefix(',') {
            Some(elements) => rest = elements,
            None => return Ok(()),
        }
    }
}

/// The error of a line whose elements cannot be told apart.
#[derive(Debug)]
pub(super) struct Malformed;

/// Reads up to one of these characters or the end, without the spaces around it. A quotation mark is an error.
fn read_until<'a>(rest: &mut &'a str, ends: &[char]) -> Result<&'a str, Malformed> {
    let (text, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
    *rest = after;
    match text.contains('"') {
        true => Err(Malformed),
        false => Ok(text.trim_matches(is_space)),
    }
}

/// Reads the value of a pair, up to a semicolon, a comma or the end. Escapes of a quoted value are kept, so an address with one is
/// invalid.
fn read_value<'a>(rest: &mut &'a str) -> Result<&'a str, Malformed> {
    let Some(text) = rest.strip_prefix('"') else {
        return read_until(rest, &[';', ',']);
    };
    let mut is_escaped = false;
    let is_end = |c| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends
    };
    let (value, after) = text.split_at(text.find(is_end).ok_or(Malformed)?);
    *rest = after[1..].trim_start_matches(is_space);
    let ends = rest.is_empty() || rest.starts_with([';', ',']);
    ends.then_some(value).ok_or(Malformed)
}

const fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// Parses an address as a proxy writes it, with or without a port: `192.0.2.1`, `[2001:db8::1]`, `2001:db8::1`, `fe80::1%eth0`.
///
/// Without brackets, the end of an IPv6 address could be a port. The whole text is tried first, so only a text that is no address is
/// read as an address with a port.
///
/// Returns `None` if the text is something else, such as `unknown` or an obfuscated name (RFC 7239, section 6).
fn node_address(node: &str) -> Option<IpAddr> {
    let node = node.trim_matches(is_space);
    if let Some(rest) = node.strip_prefix('[') {
        let (node, rest) = rest.split_once(']')?;
        let is_whole = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        return address(node).filter(|_| is_whole);
    }
    address(node).or_else(|| {
        let (node, port) = node.rsplit_once(':')?;
        address(node).filter(|_| is_port(port))
    })
}

/// Parses an address. The zone of an IPv6 address (RFC 4007, section 11) is dropped, because it is a name of the proxy.
fn address(text: &str) -> Option<IpAddr> {
    match text.split_once('%') {
        None => text.parse().ok(),
        Some((address, zone)) => {
            let is_zone = !zone.is_empty() && zone.bytes().all(is_name);
            let address: Ipv6Addr = address.parse().ok()?;
            is_zone.then_some(address.into())
        }
    }
}

fn is_port(port: &str) -> bool {
    match port.strip_prefix('_') {
        Some(name) => !name.is_empty() && name.bytes().all(is_name),
        None => (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit()),
    }
}

const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}
