use alloc::format;
use alloc::string::String;
#[cfg(feature = "observe")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
#[cfg(feature = "observe")]
use core::sync::atomic::{AtomicBool, Ordering};

use ::http::header::{FORWARDED, HeaderMap, HeaderName, HeaderValue};

use super::forwarded;
use crate::error::ConfigError;
use crate::keyed::{Network, Networks};

/// The address that a header states, or the reason why it states none.
#[derive(Clone, Debug)]
pub(super) enum Stated {
    Address(IpAddr),
    /// There is no header, or it is empty.
    Missing,
    /// The header states something else.
    Unreadable {
        /// The element, if the caller asked for it.
        given: String,
    },
}

impl Stated {
    pub(super) const fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Missing | Self::Unreadable { .. } => None,
        }
    }

    /// The address of an element, without the element itself if the caller does not ask for it.
    fn of(element: &str, address: Option<IpAddr>, keeps_given: bool) -> Self {
        match address {
            Some(address) => Self::Address(address.to_canonical()),
            None if keeps_given => Self::Unreadable {
                given: element.into(),
            },
            None => Self::Unreadable { given: String::new() },
        }
    }
}

/// The proxies whose forwarding header is trusted.
#[derive(Clone, Debug)]
pub(super) struct TrustedProxies {
    header: ForwardingHeader,
    networks: Networks,
    /// Whether it was logged that a proxy sends no header.
    #[cfg(feature = "observe")]
    reported: Arc<AtomicBool>,
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
            #[cfg(feature = "observe")]
            reported: Arc::default(),
        })
    }

    /// Returns the name of the header that is read.
    pub(super) const fn header(&self) -> HeaderName {
        self.header.name()
    }

    /// Returns the client of a request from `peer`: the rightmost address that is not trusted. An element that is not readable is
    /// returned only if the caller keeps what was given.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap, keeps_given: bool) -> Stated {
        if !self.trusts(peer) {
            return Stated::Address(peer);
        }
        let mut scan = HopScan {
            proxies: self,
            client: Stated::Missing,
            keeps_given,
        };
        for line in headers.get_all(self.header.name()) {
            scan.line(line);
        }
        match scan.client {
            Stated::Missing => {
                #[cfg(feature = "observe")]
                self.report_missing(peer);
                Stated::Address(peer)
            }
            stated @ (Stated::Address(_) | Stated::Unreadable { .. }) => stated,
        }
    }

    /// Logs once that a trusted proxy sends no header, because all its clients then share its budget.
    #[cfg(feature = "observe")]
    fn report_missing(&self, peer: IpAddr) {
        // Relaxed: the flag publishes no other memory.
        if !self.reported.load(Ordering::Relaxed) && !self.reported.swap(true, Ordering::Relaxed) {
            let header = self.header.name();
            tracing::warn!(
                target: "ringgate",
                "trusted proxy {peer} sent a request without the header `{header}`, which counts as the proxy's own: if the proxy \
                forwards requests of clients, let it write the header"
            );
        }
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.networks.contains(address)
    }
}

/// The header in which the proxy in front of the server reports only the address of the client.
#[derive(Clone, Debug)]
pub(super) struct ProxyHeader {
    name: HeaderName,
    /// Whether the value ends with a port, even after an IPv6 address without brackets.
    has_port: bool,
    /// The proxies that may write it. `None`: any peer.
    networks: Option<Networks>,
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

    pub(super) fn only_from(&mut self, networks: Networks) {
        self.networks = Some(networks);
    }

    /// Returns the name of the header that is read.
    pub(super) const fn header(&self) -> &HeaderName {
        &self.name
    }

    /// Returns the last address of the header, or the peer if the peer is not trusted to write the header. `None` if the peer is needed
    /// and unknown.
    pub(super) fn client(
        &self,
        peer: impl FnOnce() -> Option<IpAddr>,
        headers: &HeaderMap,
        keeps_given: bool,
    ) -> Option<Stated> {
        if let Some(networks) = &self.networks {
            let peer = peer()?;
            if !networks.contains(peer) {
                return Some(Stated::Address(peer));
            }
        }
        let mut last = Stated::Missing;
        let mut hop = |text: &str, hop| last = Stated::of(text, hop, keeps_given);
        for line in headers.get_all(&self.name) {
            // A lossy conversion: bytes that a client sends must not hide what a proxy appends to them.
            let text = String::from_utf8_lossy(line.as_bytes());
            match text.rsplit_once(':') {
                Some((address, _)) if self.has_port => forwarded::parse_x_forwarded_for(address, &mut hop),
                _ => forwarded::parse_x_forwarded_for(&text, &mut hop),
            }
        }
        Some(last)
    }
}

/// A scan of the hops from left to right, which does not store them.
///
/// An untrusted hop replaces the client found so far. A trusted hop becomes the client only if none was found. An element that is not
/// readable was reported by the hop to its right, so it hides all hops to its left.
struct HopScan<'a> {
    proxies: &'a TrustedProxies,
    /// The client by the hops that were read so far.
    client: Stated,
    keeps_given: bool,
}

impl HopScan<'_> {
    fn line(&mut self, line: &HeaderValue) {
        // A lossy conversion: bytes that a client sends must not hide what a proxy appends to them.
        let text = String::from_utf8_lossy(line.as_bytes());
        match self.proxies.header {
            ForwardingHeader::XForwardedFor => {
                forwarded::parse_x_forwarded_for(&text, |element, hop| self.hop(element, hop));
            }
            ForwardingHeader::Forwarded => {
                if forwarded::parse_forwarded(&text, |element, hop| self.hop(element, hop)).is_err() {
                    self.hop(&text, None);
                }
            }
        }
    }

    fn hop(&mut self, element: &str, hop: Option<IpAddr>) {
        let stated = Stated::of(element, hop, self.keeps_given);
        let is_trusted = stated
            .address()
            .is_some_and(|address| self.proxies.trusts(address));
        if !is_trusted || matches!(self.client, Stated::Missing) {
            self.client = stated;
        }
    }
}

pub(super) fn parse_networks<T: AsRef<str>>(
    networks: impl IntoIterator<Item = T>,
) -> Result<Networks, ConfigError> {
    let parse = |text: T| {
        let text = text.as_ref();
        Network::parse(text).ok_or_else(|| {
            ConfigError::new(
                "trusted",
                format!("{text:?}"),
                "an address or a network: 10.0.0.1, 10.0.0.0/8, 2001:db8::/32",
            )
        })
    };
    let networks: Result<Vec<Network>, ConfigError> = networks.into_iter().map(parse).collect();
    networks.map(Networks::new)
}
