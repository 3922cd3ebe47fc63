//! IPv4 addresses that are embedded in IPv6 addresses.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the IPv4 address that an IPv6 address embeds, or the address itself.
#[inline]
pub(super) fn embedded(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) => embedded_ipv4(address).map_or(IpAddr::V6(address), IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Whether an IPv6 address identifies one client by all its bits.
///
/// Neighbors on a link share the prefix of link-local addresses. A translator of `64:ff9b:1::/48` gives each IPv4 client one address.
pub(super) const fn is_one_client(address: Ipv6Addr) -> bool {
    address.is_unicast_link_local()
        || address.is_loopback()
        || matches!(address.segments(), [0x64, 0xff9b, 1, ..])
}

fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let ipv4 = |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        // IPv4-mapped (RFC 4291, section 2.5.5.2).
        [0, 0, 0, 0, 0, 0xffff, high, low]
        // IPv4-translated (RFC 7915, section 1.2).
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        // NAT64 with the well-known prefix (RFC 6052, section 2.1).
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        // 6to4 (RFC 3056, section 2).
        | [0x2002, high, low, ..] => ipv4(high, low),
        // Teredo: the octets of the client's address are inverted (RFC 4380, section 4).
        [0x2001, 0, .., high, low] => ipv4(!high, !low),
        // NAT64 with a local prefix of 48 bits (RFC 8215; RFC 6052, section 2.2). Bits 64 to 71 are zero.
        [0x64, 0xff9b, 1, high, middle @ 0..=0xff, low, 0, 0] if low & 0xff == 0 => ipv4(high, middle << 8 | low >> 8),
        // NAT64 with a local prefix of 96 bits. Longer zeros at the end could be the suffix of a prefix of 56 or 64 bits.
        [0x64, 0xff9b, 1, _, _, _, high, low] if low != 0 || high & 0xff != 0 => ipv4(high, low),
        _ => None,
    }
}
