use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::net::IpAddr;

use ::http::header::{FORWARDED, HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;

use super::forwarded;
use crate::error::ConfigError;

/// The proxies whose forwarding header is trusted.
#[derive(Clone, Debug)]
pub(super) struct TrustedProxies {
    header: ForwardingHeader,
    networks: Box<[IpNet]>,
}

/// The header in which a proxy reports the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForwardingHeader {
    Forwarded,
    XForwardedFor,
}

pub(super) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

impl ForwardingHeader {
    const fn name(self) -> HeaderName {
        match self {
            Self::Forwarded => FORWARDED,
            Self::XForwardedFor => X_FORWARDED_FOR,
        }
    }
}

impl TrustedProxies {
    pub(super) fn new<T: AsRef<str>>(
        header: ForwardingHeader,
        networks: impl IntoIterator<Item = T>,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            header,
            networks: parse_networks(networks)?,
        })
    }

    /// Returns the client of a request from `peer`: the rightmost address that is not trusted.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let mut scan = HopScan {
            proxies: self,
            client: None,
        };
        for line in headers.get_all(self.header.name()) {
            scan.line(line);
        }
        scan.client.unwrap_or(peer)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }
}

/// The header in which the proxy in front of the server reports only the address of the client.
#[derive(Clone, Debug)]
pub(super) struct ProxyHeader {
    name: HeaderName,
    /// Whether the value ends with a port, even after an IPv6 address without brackets.
    has_port: bool,
    /// The proxies that may write it. `None`: any peer.
    networks: Option<Box<[IpNet]>>,
}

impl ProxyHeader {
    pub(super) const fn new(name: HeaderName) -> Self {
        Self {
            name,
            has_port: false,
            networks: None,
        }
    }

    pub(super) const fn with_port(name: HeaderName) -> Self {
        Self {
            name,
            has_port: true,
            networks: None,
        }
    }

    pub(super) fn only_from(&mut self, networks: Box<[IpNet]>) {
        self.networks = Some(networks);
    }

    /// Returns the last address of the header, or the peer if the peer is not trusted to write the header.
    pub(super) fn client(
        &self,
        peer: impl FnOnce() -> Option<IpAddr>,
        headers: &HeaderMap,
    ) -> Option<IpAddr> {
        if let Some(networks) = &self.networks {
            let peer = peer()?;
            if !networks.iter().any(|network| network.contains(&peer)) {
                return Some(peer);
            }
        }
        let mut last = None;
        for line in headers.get_all(&self.name) {
            // A lossy conversion: bytes that a client sends must not hide what a proxy appends to them.
            let text = String::from_utf8_lossy(line.as_bytes());
            match text.rsplit_once(':') {
                Some((address, _)) if self.has_port => {
                    forwarded::parse_x_forwarded_for(address, |hop| last = Some(hop));
                }
                _ => forwarded::parse_x_forwarded_for(&text, |hop| last = Some(hop)),
            }
        }
        last.flatten().map(|client: IpAddr| client.to_canonical())
    }
}

/// A scan of the hops from left to right, which does not store them.
///
/// An untrusted hop replaces the client found so far. A trusted hop becomes the client only if none was found.
#[derive(Clone, Copy)]
struct HopScan<'a> {
    proxies: &'a TrustedProxies,
    /// The client by the hops that were read so far. `None` stands for the next hop to the right, or for the peer.
    client: Option<IpAddr>,
}

impl HopScan<'_> {
    fn line(&mut self, line: &HeaderValue) {
        let before = *self;
        // A lossy conversion: bytes that a client sends must not hide what a proxy appends to them.
        let text = String::from_utf8_lossy(line.as_bytes());
        let parsed = match self.proxies.header {
            ForwardingHeader::Forwarded => forwarded::parse_forwarded(&text, |hop| self.hop(hop)),
            ForwardingHeader::XForwardedFor => {
                forwarded::parse_x_forwarded_for(&text, |hop| self.hop(hop));
                Ok(())
            }
        };
        if parsed.is_err() {
            *self = before;
            self.hop(None);
        }
    }

    fn hop(&mut self, hop: Option<IpAddr>) {
        self.client = match hop.map(|hop| hop.to_canonical()) {
            // This is not an address. The hop to its right has reported it, and is the client.
            None => None,
            Some(hop) if self.proxies.trusts(hop) => self.client.or(Some(hop)),
            Some(hop) => Some(hop),
        };
    }
}

pub(super) fn parse_networks<T: AsRef<str>>(
    networks: impl IntoIterator<Item = T>,
) -> Result<Box<[IpNet]>, ConfigError> {
    let networks = networks.into_iter();
    networks.map(|text| parse_network(text.as_ref())).collect()
}

/// Parses `10.0.0.0/8` or `10.0.0.1`.
fn parse_network(text: &str) -> Result<IpNet, ConfigError> {
    let network = match text.parse::<IpAddr>() {
        Ok(address) => Ok(IpNet::from(address.to_canonical())),
        Err(_) => text.parse::<IpNet>(),
    };
    network.map(canonical).map_err(|_| {
        ConfigError::new(
            "trusted",
            format!("{text:?}"),
            "an address or a network: 10.0.0.1, 10.0.0.0/8, 2001:db8::/32",
        )
    })
}

/// Converts a network of IPv4-mapped IPv6 addresses to the IPv4 network, and clears the host bits.
fn canonical(network: IpNet) -> IpNet {
    let bits = network.prefix_len().checked_sub(96);
    match (network.addr().to_canonical(), bits) {
        (IpAddr::V4(address), Some(bits)) if network.addr().is_ipv6() => {
            IpNet::new(address.into(), bits).map_or(network, |network| network.trunc())
        }
        _ => network.trunc(),
    }
}
