use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::net::IpAddr;

use ::http::header::{FORWARDED, HeaderMap, HeaderName, HeaderValue};
use ipnet::IpNet;

use super::forwarded;
use crate::error::ConfigError;

/// Proxies that are believed, and the header that they tell the client in.
#[derive(Clone, Debug)]
pub(super) struct Proxies {
    header: ForwardedBy,
    trusted: Box<[IpNet]>,
}

/// The header in which proxies say for whom they ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForwardedBy {
    Forwarded,
    XForwardedFor,
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

impl ForwardedBy {
    const fn name(self) -> HeaderName {
        match self {
            Self::Forwarded => FORWARDED,
            Self::XForwardedFor => X_FORWARDED_FOR,
        }
    }
}

impl Proxies {
    pub(super) fn new<T: AsRef<str>>(
        header: ForwardedBy,
        networks: impl IntoIterator<Item = T>,
    ) -> Result<Self, ConfigError> {
        let trusted = networks.into_iter().map(|text| network(text.as_ref()));
        Ok(Self {
            header,
            trusted: trusted.collect::<Result<_, _>>()?,
        })
    }

    /// The client on whose behalf `peer` asks: the rightmost that is not trusted.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.trusts(peer) {
            return peer;
        }
        let mut walk = Walk {
            proxies: self,
            client: None,
        };
        for line in headers.get_all(self.header.name()) {
            walk.line(line);
        }
        walk.client.unwrap_or(peer)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(&address))
    }
}

/// The walk along the hops. It is taken from the left, where the first of them stands, so that nothing has to be kept:
/// whatever is found further right replaces what was found before, except that a trusted hop only fills a gap.
#[derive(Clone, Copy)]
struct Walk<'a> {
    proxies: &'a Proxies,
    /// The client, by what was read so far; `None`: what comes next to the right, in the end the peer.
    client: Option<IpAddr>,
}

impl Walk<'_> {
    fn line(&mut self, line: &HeaderValue) {
        let before = *self;
        // What is no text stands for itself, so that a client cannot spoil what a proxy writes after it.
        let text = String::from_utf8_lossy(line.as_bytes());
        let read = match self.proxies.header {
            ForwardedBy::Forwarded => forwarded::forwarded(&text, |hop| self.hop(hop)),
            ForwardedBy::XForwardedFor => {
                forwarded::x_forwarded_for(&text, |hop| self.hop(hop));
                Ok(())
            }
        };
        if read.is_err() {
            *self = before;
            self.hop(None);
        }
    }

    fn hop(&mut self, hop: Option<IpAddr>) {
        self.client = match hop.map(|hop| hop.to_canonical()) {
            // Whoever says so is the last who is known, and nothing left of it counts.
            None => None,
            Some(hop) if self.proxies.trusts(hop) => self.client.or(Some(hop)),
            hop => hop,
        };
    }
}

/// Reads `10.0.0.0/8` or `10.0.0.1`.
fn network(text: &str) -> Result<IpNet, ConfigError> {
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

/// A network of IPv4 addresses that is written as one of IPv6 addresses is what it means.
fn canonical(network: IpNet) -> IpNet {
    let bits = network.prefix_len().checked_sub(96);
    match (network.addr().to_canonical(), bits) {
        (IpAddr::V4(address), Some(bits)) if network.addr().is_ipv6() => {
            IpNet::new(address.into(), bits).map_or(network, |network| network.trunc())
        }
        _ => network.trunc(),
    }
}
