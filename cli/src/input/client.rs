//! The client of a request: an address, or a host name where the format says so.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ringgate::keyed::ClientAddress;

/// The address in `1.2.3.4`, `1.2.3.4:5678`, `::1`, `[::1]` or `[::1]:5678`, without the port; `None` for another text.
#[inline]
pub(crate) fn address(text: &[u8]) -> Option<&[u8]> {
    if is_address(text) {
        return Some(text);
    }
    if let Some(inner) = text.strip_prefix(b"[") {
        let end = inner.iter().position(|&byte| byte == b']')?;
        let (inner, rest) = (&inner[..end], &inner[end + 1..]);
        let is_port = rest.is_empty() || rest.strip_prefix(b":").is_some_and(is_port);
        return (is_port && is_address(inner)).then_some(inner);
    }
    // Java writes a slash before an address whose name it has not looked up.
    without_port(text).or_else(|| {
        text.strip_prefix(b"/")
            .filter(|text| is_address(text) || has_port(text))
            .and_then(address)
    })
}

/// The address in `1.2.3.4:5678`, or in `::1:5678` of formats that always write a port and no brackets. HAProxy writes `unix:1`
/// for the client of a socket, with the number of the listener.
pub(crate) fn without_port(text: &[u8]) -> Option<&[u8]> {
    if let Some(number) = text.strip_prefix(b"unix:") {
        return is_port(number).then_some(&text[..text.len() - number.len()]);
    }
    let colon = text.iter().rposition(|&byte| byte == b':')?;
    let (host, port) = (&text[..colon], &text[colon + 1..]);
    let inner = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]"));
    let host = inner.unwrap_or(host);
    (is_port(port) && is_address(host)).then_some(host)
}

/// The words of a list such as that of `X-Forwarded-For`.
pub(crate) fn listed(text: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let words = text.split(|byte| b", ".contains(byte));
    words.filter(|word| !word.is_empty())
}

/// Whether a text is a list of several addresses, some of which may be unknown.
pub(crate) fn is_list(text: &[u8]) -> bool {
    let is_word = |word: &[u8]| address(word).is_some() || matches!(word, b"unknown" | b"-");
    text.contains(&b',') && listed(text).all(is_word)
}

/// Whether a text is an address of IP without a port. nginx writes `unix:` for the client of a socket.
#[inline]
pub(crate) fn is_address(text: &[u8]) -> bool {
    // The longest is an IPv6 address with an IPv4 address at its end and a zone.
    if text.is_empty() || text.len() > 64 {
        return false;
    }
    let text = str::from_utf8(text).unwrap_or_default();
    if text.parse::<Ipv4Addr>().is_ok() {
        return true;
    }
    let (bare, zone) = text.split_once('%').unwrap_or((text, "0"));
    (bare.contains(':') && !zone.is_empty() && six(bare).is_some()) || text == "unix:"
}

/// The usual spelling of an address of IPv6, or of the address of IPv4 in it; `None` for another text.
#[inline]
pub(crate) fn canonical(text: &[u8]) -> Option<String> {
    if !text.contains(&b':') {
        return None;
    }
    let text = str::from_utf8(text).ok()?;
    // The zone is the name of an interface, which may have upper case.
    let (bare, zone) = text.split_at(text.find('%').unwrap_or(text.len()));
    Some(six(bare)?.to_canonical().to_string() + zone)
}

/// The usual spelling of an address without its port, or another text.
pub(crate) fn spelled(text: &[u8]) -> Vec<u8> {
    let address = address(text).unwrap_or(text);
    canonical(address).map_or_else(|| address.to_vec(), String::into_bytes)
}

/// An address of IPv6. Eight groups of two digits are no address, but the name of a device (EUI-64) or of a disk (WWN): each
/// address in use has a longer first group, or a shorter group after it.
fn six(text: &str) -> Option<Ipv6Addr> {
    let groups = text.as_bytes().chunks(3);
    let is_name = text.len() == 23
        && groups
            .into_iter()
            .all(|group| group[..2].iter().all(u8::is_ascii_hexdigit));
    text.parse().ok().filter(|_| !is_name)
}

/// The leading bits of an address that identify a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefixes {
    ipv4: u8,
    ipv6: u8,
}

impl Prefixes {
    pub(crate) const DEFAULT: Self = Self { ipv4: 32, ipv6: 64 };

    /// The base of the name of a key, and the prefixes that the library has added to it: `client/24/56`.
    pub(crate) fn of_name(name: &str) -> Option<(&str, Self)> {
        let (rest, ipv6) = name.rsplit_once('/')?;
        let (base, ipv4) = rest.rsplit_once('/')?;
        let prefixes = Self {
            ipv4: ipv4.parse().ok()?,
            ipv6: ipv6.parse().ok()?,
        };
        Some((base, prefixes))
    }

    /// Those of IPv4 and IPv6.
    pub(crate) const fn bits(self) -> [u8; 2] {
        [self.ipv4, self.ipv6]
    }

    fn client(self, address: IpAddr) -> Option<IpAddr> {
        let client = ClientAddress::with_prefixes(address, self.ipv4, self.ipv6);
        client.ok().map(ClientAddress::address)
    }
}

/// The client of an address, as the library counts it: a network, or one address. `None` for another text, and for the
/// address of IPv4 that is its own client.
#[inline]
pub(crate) fn counted(text: &[u8], prefixes: Prefixes) -> Option<String> {
    let Some(spelled) = canonical(text) else {
        // Only a shorter prefix changes an address of IPv4.
        let address = (prefixes.ipv4 < 32).then(|| plain(text)).flatten()?;
        return Some(format!("{}/{}", prefixes.client(address)?, prefixes.ipv4));
    };
    let (bare, zone) = spelled.split_at(spelled.find('%').unwrap_or(spelled.len()));
    let address: IpAddr = bare.parse().ok()?;
    let client = prefixes.client(address)?;
    let bits = match client {
        IpAddr::V4(_) => Some(prefixes.ipv4).filter(|&bits| bits < 32),
        // A client of one address has no neighbour, whatever the prefix.
        IpAddr::V6(first) => {
            let neighbour = IpAddr::V6(Ipv6Addr::from_bits(first.to_bits() ^ 1));
            Some(prefixes.ipv6).filter(|_| prefixes.client(neighbour) == Some(client))
        }
    };
    Some(match bits {
        Some(bits) => format!("{client}/{bits}{zone}"),
        None => format!("{client}{zone}"),
    })
}

/// The address that a text is, without a port or a zone.
pub(crate) fn plain(text: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(text).ok()?;
    text.parse::<Ipv4Addr>()
        .map(IpAddr::V4)
        .ok()
        .or_else(|| six(text).map(IpAddr::V6))
}

/// Whether a text is written like a network of IP: an address, a slash and a number.
pub(crate) fn is_network(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, bits)| {
        let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
        address.parse::<IpAddr>().is_ok() && is_number
    })
}

/// Whether an address is that of another network. The address of a proxy is often one of the same network or machine.
pub(crate) fn is_public(text: &[u8]) -> bool {
    let spelled = canonical(text);
    let text = spelled.as_ref().map_or(text, String::as_bytes);
    match str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
        Some(IpAddr::V4(address)) => {
            !(address.is_loopback() || address.is_private() || address.is_link_local())
        }
        Some(IpAddr::V6(address)) => {
            !(address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local())
        }
        None => false,
    }
}

/// The first groups of an address of IPv6 in the form of [`all_groups`]. The last group may be incomplete, so it keeps its
/// zeros.
pub(crate) fn first_groups(text: &str) -> String {
    let (whole, last) = text.split_at(text.rfind(':').map_or(0, |colon| colon + 1));
    let group = |group: &str| match group.trim_start_matches('0') {
        ":" if group.len() > 1 => "0:".to_owned(),
        short => short.to_ascii_lowercase(),
    };
    whole.split_inclusive(':').map(group).collect::<String>() + &last.to_ascii_lowercase()
}

/// The eight groups of an address of IPv6, without leading zeros; `None` for another text.
pub(crate) fn all_groups(text: &str) -> Option<String> {
    let address: Ipv6Addr = text.parse().ok()?;
    Some(address.segments().map(|group| format!("{group:x}")).join(":"))
}

fn is_port(text: &[u8]) -> bool {
    (1..=5).contains(&text.len()) && text.iter().all(u8::is_ascii_digit)
}

/// Whether a text may be a host name, without a port.
pub(crate) fn is_name(text: &[u8]) -> bool {
    let of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    text.iter().all(of_name) && text.iter().any(u8::is_ascii_alphabetic)
}

/// Whether a text is a virtual host: a name or an address, with or without a port.
pub(crate) fn is_virtual_host(text: &[u8]) -> bool {
    is_name(text) || address(text).is_some() || has_port(text)
}

/// Whether a text is a name or an address with a port.
pub(crate) fn has_port(text: &[u8]) -> bool {
    match text.iter().rposition(|&byte| byte == b':') {
        Some(colon) => {
            let host = &text[..colon];
            is_port(&text[colon + 1..])
                && (is_name(host) || without_port(text).is_some())
                && !is_address(text)
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Prefixes, address, all_groups, canonical, counted, first_groups, has_port, is_name, is_network,
        is_public,
    };

    #[test]
    fn addresses_lose_their_port() {
        for (text, expected) in [
            ("1.2.3.4", Some("1.2.3.4")),
            ("1.2.3.4:5678", Some("1.2.3.4")),
            ("::1", Some("::1")),
            ("2001:db8::1:443", Some("2001:db8::1:443")),
            ("[2001:db8::1]:443", Some("2001:db8::1")),
            ("[::1]", Some("::1")),
            ("fe80::1%eth0", Some("fe80::1%eth0")),
            ("unix:", Some("unix:")),
            ("unix:1", Some("unix:")),
            ("unix:x", None),
            ("/1.2.3.4:5678", Some("1.2.3.4")),
            ("/[::1]:5678", Some("::1")),
            ("/0:0:0:0:0:0:0:1:5678", Some("0:0:0:0:0:0:0:1")),
            ("//1.2.3.4", None),
            ("/1.2.3.4/a", None),
            ("00:12:4b:00:14:b5:d9:01", None),
            ("1.2.3", None),
            ("1.2.3.4.5", None),
            ("1.2.3.256", None),
            ("1.2.3.4:", None),
            ("1.2.3.4:x", None),
            ("[::1]x", None),
            ("[1.2.3.4", None),
            ("10.9.9.9,", None),
            ("www.example.com:443", None),
            ("fe80::1%", None),
            ("-", None),
            ("", None),
        ] {
            assert_eq!(address(text.as_bytes()), expected.map(str::as_bytes), "{text}");
        }
    }

    #[test]
    fn names_are_told_from_addresses() {
        for (text, name, port) in [
            ("www.example.com", true, false),
            ("www.example.com:443", false, true),
            ("1.2.3.4:443", false, true),
            ("[::1]:443", false, true),
            ("::1:443", false, false),
            ("12345", false, false),
            ("-", false, false),
            ("a b", false, false),
            ("10.9.9.9,", false, false),
        ] {
            assert_eq!(
                (is_name(text.as_bytes()), has_port(text.as_bytes())),
                (name, port),
                "{text}"
            );
        }
    }

    #[test]
    fn addresses_of_six_count_by_the_network_of_a_client() {
        assert_eq!(Prefixes::of_name("client"), None);
        assert_eq!(Prefixes::of_name("a/b/64"), None);
        let short = Prefixes { ipv4: 24, ipv6: 56 };
        assert_eq!(Prefixes::of_name("a/b/24/56"), Some(("a/b", short)));
        for (text, expected) in [
            ("192.0.2.77", Some("192.0.2.0/24")),
            ("::ffff:192.0.2.77", Some("192.0.2.0/24")),
            ("64:ff9b::c000:24d", Some("192.0.2.0/24")),
            ("2001:db8:1:2ff::1", Some("2001:db8:1:200::/56")),
            ("::1", Some("::1")),
            ("fe80::1", Some("fe80::1")),
            ("unix:", None),
            ("a.example.com", None),
        ] {
            assert_eq!(counted(text.as_bytes(), short).as_deref(), expected, "{text}");
        }
        for (text, expected) in [
            ("2001:DB8:1:2::1", Some("2001:db8:1:2::/64")),
            ("2001:db8:1:2:ffff:ffff:ffff:ffff", Some("2001:db8:1:2::/64")),
            ("2001:db8:1:3::1", Some("2001:db8:1:3::/64")),
            ("::ffff:192.0.2.1", Some("192.0.2.1")),
            ("192.0.2.1", None),
            ("www.example.com:443", None),
            ("/a:b", None),
        ] {
            let client = counted(text.as_bytes(), Prefixes::DEFAULT);
            assert_eq!(client.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn networks_and_public_addresses_are_told() {
        for text in ["10.0.0.0/8", "2001:db8::/64", "192.0.2.1/32", "::1/999"] {
            assert!(is_network(text), "{text}");
        }
        for text in ["10.0.0.0", "/a/8", "10.0.0.0/", "10.0.0.0/x", "a/8"] {
            assert!(!is_network(text), "{text}");
        }
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "::1",
            "fd00::1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "@",
            "www",
        ] {
            assert!(!is_public(text.as_bytes()), "{text}");
        }
        for text in ["198.51.100.7", "2001:db8::1"] {
            assert!(is_public(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn addresses_have_one_spelling() {
        for (text, expected) in [
            ("::1", Some("::1")),
            ("0:0:0:0:0:0:0:1", Some("::1")),
            ("2001:0DB8::000A", Some("2001:db8::a")),
            ("::FFFF:192.0.2.1", Some("192.0.2.1")),
            ("FE80::0001%Eth0", Some("fe80::1%Eth0")),
            ("192.0.2.1", None),
            ("/a:b", None),
            ("00:12:4b:00:14:b5:d9:01", None),
            ("0:12:4b:00:14:b5:d9:01", Some("0:12:4b:0:14:b5:d9:1")),
        ] {
            assert_eq!(canonical(text.as_bytes()).as_deref(), expected, "{text}");
        }
        assert_eq!(all_groups("2001:db8::a").as_deref(), Some("2001:db8:0:0:0:0:0:a"));
        assert_eq!(first_groups("2001:0DB8:0000:0A"), "2001:db8:0:0a");
        assert_eq!(
            (first_groups("::"), first_groups("10.")),
            ("::".into(), "10.".into())
        );
    }
}
