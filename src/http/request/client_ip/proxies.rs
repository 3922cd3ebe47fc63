use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::net::IpAddr;

use ::http::header::{FORWARDED, HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;

use super::forwarded;
use crate::error::ConfigError;

/// Proxies whose forwarding header is believed.
#[derive(Clone, Debug)]
pub(super) struct TrustedProxies {
    header: ForwardingHeader,
    networks: Box<[IpNet]>,
}

/// Header in which a proxy reports the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForwardingHeader {
    Forwarded,
    XForwardedFor,
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

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
        let networks = networks.into_iter().map(|text| parse_network(text.as_ref()));
        Ok(Self {
            header,
            networks: networks.collect::<Result<_, _>>()?,
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

/// Scan of the hops from left to right, which needs no storage for them.
///
/// An untrusted hop replaces the client found so far. A trusted hop becomes the client only if none was found.
#[derive(Clone, Copy)]
struct HopScan<'a> {
    proxies: &'a TrustedProxies,
    /// Client by the hops read so far. `None` stands for the next hop to the right, or the peer.
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
            // Not an address: the hop to its right reported it, and is the client.
            None => None,
            Some(hop) if self.proxies.trusts(hop) => self.client.or(Some(hop)),
            Some(hop) => Some(hop),
        };
    }
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
