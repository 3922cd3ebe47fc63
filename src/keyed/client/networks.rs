//! IP networks as texts write them, and sets of them.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{ClientAddress, Prefixes, transition};

/// The addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    /// The first address. The bits after the prefix are zero.
    first: IpAddr,
    bits: u8,
}

impl Network {
    /// Parses `10.0.0.0/8`, `2001:db8::/32` or an address, which is a network of its own. Bits after the prefix are cleared. A
    /// network of IPv4-mapped IPv6 addresses is the IPv4 network.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::parse_exact(text).map(|(network, _)| network)
    }

    /// Parses an entry of an `allow` or `deny` list. If `prefixes` are given, an address without a length stands for its client:
    /// all addresses that these prefixes count as one.
    pub(crate) fn parse_entry(text: &str, prefixes: Option<Prefixes>) -> Result<Self, String> {
        let Some((network, is_exact)) = Self::parse_exact(text) else {
            return Err(format!(
                "invalid address {text:?} (expected an IPv4 or IPv6 address or a network: 10.0.0.1, 10.0.0.0/8, 2001:db8::/64)"
            ));
        };
        if !is_exact {
            return Err(format!(
                "invalid network {text:?}, which has bits after its prefix (expected {}/{})",
                network.first, network.bits
            ));
        }
        Ok(match prefixes {
            Some(prefixes) if !text.contains('/') => Self::of_client(network.first, prefixes),
            _ => network,
        })
    }

    /// Parses a network. Returns also whether no bit after the prefix is set.
    fn parse_exact(text: &str) -> Option<(Self, bool)> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(parse_bits(bits)?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let of_all = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(of_all);
        if bits > of_all {
            return None;
        }
        let (address, bits) = match (address.to_canonical(), bits.checked_sub(96)) {
            (mapped @ IpAddr::V4(_), Some(bits)) if address.is_ipv6() => (mapped, bits),
            _ => (address, bits),
        };
        let network = Self::new(address, bits);
        Some((network, network.first == address))
    }

    /// The network of all addresses that the prefixes count as the client at `address`.
    fn of_client(address: IpAddr, prefixes: Prefixes) -> Self {
        let first = ClientAddress::masked(address, prefixes).address();
        let bits = match first {
            IpAddr::V4(_) => prefixes.ipv4,
            IpAddr::V6(first) if transition::is_one_client(first) => 128,
            IpAddr::V6(_) => prefixes.ipv6,
        };
        Self { first, bits }
    }

    /// The network of the first `bits` bits of an address: at most 32 for IPv4, at most 128 for IPv6.
    fn new(address: IpAddr, bits: u8) -> Self {
        let first = match address {
            IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & !after_v4(bits))),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !after_v6(bits))),
        };
        Self { first, bits }
    }
}

/// The bits of an IPv4 address after its first `bits` bits.
const fn after_v4(bits: u8) -> u32 {
    match u32::MAX.checked_shr(bits as u32) {
        Some(after) => after,
        None => 0,
    }
}

/// The bits of an IPv6 address after its first `bits` bits.
const fn after_v6(bits: u8) -> u128 {
    match u128::MAX.checked_shr(bits as u32) {
        Some(after) => after,
        None => 0,
    }
}

/// Parses the length of a prefix: digits without a sign or leading zeros.
fn parse_bits(text: &str) -> Option<u8> {
    let is_canonical = text == "0" || !text.starts_with(['0', '+']);
    is_canonical.then(|| text.parse().ok()).flatten()
}

/// A set of networks. A lookup compares at most log₂ n + 1 of n networks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Networks {
    v4: Box<[(u32, u32)]>,
    v6: Box<[(u128, u128)]>,
}

impl Networks {
    pub(crate) fn new(networks: impl IntoIterator<Item = Network>) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for Network { first, bits } in networks {
            match first {
                IpAddr::V4(first) => v4.push((first.to_bits(), first.to_bits() | after_v4(bits))),
                IpAddr::V6(first) => v6.push((first.to_bits(), first.to_bits() | after_v6(bits))),
            }
        }
        Self {
            v4: disjoint(v4),
            v6: disjoint(v6),
        }
    }

    /// Returns whether one of the networks has this address. An IPv4-mapped address is the IPv4 address.
    #[inline]
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        match address.to_canonical() {
            IpAddr::V4(address) => is_in(&self.v4, address.to_bits()),
            IpAddr::V6(address) => is_in(&self.v6, address.to_bits()),
        }
    }

    /// Returns whether one of the networks has this address, or the IPv4 address that it embeds.
    pub(crate) fn contains_client(&self, address: IpAddr) -> bool {
        self.contains(address) || self.contains(ClientAddress::unmasked(address))
    }
}

/// Sorts ranges. A range within another one is removed: two networks have no address in common, or one contains the other.
fn disjoint<T: Copy + Ord>(mut ranges: Vec<(T, T)>) -> Box<[(T, T)]> {
    ranges.sort_unstable_by_key(|&(first, last)| (first, core::cmp::Reverse(last)));
    ranges.dedup_by(|inner, outer| inner.1 <= outer.1);
    ranges.into()
}

fn is_in<T: Copy + Ord>(ranges: &[(T, T)], address: T) -> bool {
    let next = ranges.partition_point(|&(first, _)| first <= address);
    next.checked_sub(1)
        .is_some_and(|index| ranges[index].1 >= address)
}
