//! Parts of a request that have several spellings, in one of them.

use core::fmt::Write;
use core::net::Ipv6Addr;

use ::http::header::{AUTHORIZATION, HOST};
use ::http::request::Parts;
use smallvec::SmallVec;

/// A short text that needs no allocation.
#[derive(Default)]
pub(super) struct ShortText(SmallVec<[u8; 64]>);

impl ShortText {
    /// The text. It consists of the bytes of texts, so it is UTF-8.
    pub(super) fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Write for ShortText {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// Returns the host that a request is for: the authority of its URI, or the `Host` header. `None` if there is none, or if several lines
/// state different hosts.
pub(super) fn host(request: &Parts) -> Option<ShortText> {
    if let Some(authority) = request.uri.authority() {
        return parse_host(authority.as_str());
    }
    let lines = request.headers.get_all(HOST).iter();
    let mut hosts = lines.map(|line| parse_host(core::str::from_utf8(line.as_bytes()).ok()?));
    let first = hosts.next()??;
    let is_first = |other: Option<ShortText>| other.is_some_and(|other| other.as_str() == first.as_str());
    hosts.all(is_first).then_some(first)
}

/// Parses `host`, `host:port` or `user@host:port`.
pub(super) fn parse_host(authority: &str) -> Option<ShortText> {
    let authority = authority.trim_matches([' ', '\t']);
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let mut text = ShortText::default();
    let port = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            let address: Ipv6Addr = address.parse().ok()?;
            write!(text, "[{address}]").ok()?;
            match rest {
                "" => "",
                rest => rest.strip_prefix(':')?,
            }
        }
        None => {
            let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
            // A final dot makes a name absolute (RFC 3986, section 3.2.2).
            let host = host.strip_suffix('.').unwrap_or(host);
            if host.is_empty() || host.contains([' ', '\t', ',', '/']) {
                return None;
            }
            text.0.extend(host.bytes().map(|byte| byte.to_ascii_lowercase()));
            port
        }
    };
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match port.parse::<u16>() {
        Ok(80 | 443) => {}
        Ok(port) => write!(text, ":{port}").ok()?,
        Err(_) if port.is_empty() => {}
        Err(_) => return None,
    }
    Some(text)
}

/// Returns the token of an `Authorization` header with the scheme `Bearer` (RFC 6750, section 2.1).
pub(super) fn bearer(request: &Parts) -> Option<&str> {
    let line = core::str::from_utf8(request.headers.get(AUTHORIZATION)?.as_bytes()).ok()?;
    let (scheme, token) = line.trim_matches([' ', '\t']).split_once([' ', '\t'])?;
    let token = token.trim_matches([' ', '\t']);
    (scheme.eq_ignore_ascii_case("bearer") && is_token(token)).then_some(token)
}

/// Whether a text can be the token of a credential: visible characters.
pub(super) fn is_token(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',')
}
