use alloc::format;
use alloc::string::String;
#[cfg(feature = "observe")]
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
#[cfg(feature = "observe")]
use core::sync::atomic::{AtomicBool, Ordering};

use ::http::header::{HeaderMap, HeaderName};

use super::forwarded;
use crate::error::ConfigError;
use crate::keyed::{Network, Networks};

/// The address that a header states, or the reason why it states none.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stated {
    Address(IpAddr),
    /// There is no header, or it is empty.
    Missing,
    /// The header states something else.
    Unreadable,
}

/// A header in which proxies report the client.
#[derive(Clone, Debug)]
pub(super) struct ClientHeader {
    pub(super) name: HeaderName,
    syntax: Syntax,
    /// The proxies that may write it. `None`: any peer.
    networks: Option<Networks>,
    /// Whether it was logged that a proxy sends no header.
    #[cfg(feature = "observe")]
    reported: Option<Arc<AtomicBool>>,
}

/// The form in which a header states addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// The address is the last element.
    Address,
    /// The address is the last element, and ends with a port, even after an IPv6 address without brackets.
    AddressAndPort,
    /// Each proxy has added the address of its peer, as an element of `X-Forwarded-For`.
    Hops,
    /// Each proxy has added the address of its peer, as an element of `Forwarded`.
    Forwarded,
}

pub(super) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

impl ClientHeader {
    pub(super) const fn new(name: HeaderName, syntax: Syntax) -> Self {
        Self {
            name,
            syntax,
            networks: None,
            #[cfg(feature = "observe")]
            reported: None,
        }
    }

    /// Lets only proxies in these networks write the header.
    pub(super) fn trust(&mut self, networks: Networks) {
        self.networks = Some(networks);
        #[cfg(feature = "observe")]
        self.reported.get_or_insert_default();
    }

    /// Whether the networks are those of the proxies whose hops are skipped.
    pub(super) const fn has_hops(&self) -> bool {
        matches!(self.syntax, Syntax::Hops | Syntax::Forwarded)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.networks
            .as_ref()
            .is_none_or(|networks| networks.contains(address))
    }

    /// Returns the client of a request: the last address of the header, without hops that are trusted, or the peer if it is not trusted
    /// to write the header. `None` if the peer is needed and unknown. The elements that are not readable are passed to `given`, that of the
    /// result last.
    ///
    /// The elements are read from left to right, and are not stored. One that is not readable was reported by the hop to its right, so it
    /// hides all hops to its left.
    pub(super) fn client(
        &self,
        peer: impl FnOnce() -> Option<IpAddr>,
        headers: &HeaderMap,
        mut given: impl FnMut(&str),
    ) -> Option<Stated> {
        let mut proxy = None;
        if self.networks.is_some() {
            let peer = peer()?;
            if !self.trusts(peer) {
                return Some(Stated::Address(peer));
            }
            proxy = Some(peer).filter(|_| self.has_hops());
        }
        let mut client = Stated::Missing;
        let mut hop = |element: &str, address: Option<IpAddr>| match address.map(|it| it.to_canonical()) {
            None => {
                given(element);
                client = Stated::Unreadable;
            }
            // If all hops are trusted, the client is the leftmost.
            Some(hop) if self.has_hops() && self.trusts(hop) && !matches!(client, Stated::Missing) => {}
            Some(hop) => client = Stated::Address(hop),
        };
        for line in headers.get_all(&self.name) {
            // A lossy conversion: bytes that a client sends must not hide what a proxy appends to them.
            let text = String::from_utf8_lossy(line.as_bytes());
            match self.syntax {
                Syntax::Address | Syntax::Hops => forwarded::parse_x_forwarded_for(&text, &mut hop),
                Syntax::AddressAndPort => {
                    let address = text.rsplit_once(':').map_or(&*text, |(address, _)| address);
                    forwarded::parse_x_forwarded_for(address, &mut hop);
                }
                Syntax::Forwarded => {
                    if forwarded::parse_forwarded(&text, &mut hop).is_err() {
                        hop(&text, None);
                    }
                }
            }
        }
        match (client, proxy) {
            (Stated::Missing, Some(proxy)) => {
                #[cfg(feature = "observe")]
                self.report_missing(proxy);
                Some(Stated::Address(proxy))
            }
            (client, _) => Some(client),
        }
    }

    /// Logs once that a trusted proxy sends no header, because all its clients then share its budget.
    #[cfg(feature = "observe")]
    fn report_missing(&self, proxy: IpAddr) {
        let header = &self.name;
        // Relaxed: the flag publishes no other memory.
        if self.reported.as_ref().is_some_and(|reported| {
            !reported.load(Ordering::Relaxed) && !reported.swap(true, Ordering::Relaxed)
        }) {
            tracing::warn!(
                target: "ringgate",
                "trusted proxy {proxy} sent a request without the header `{header}`, which counts as the proxy's own: if the proxy \
                forwards requests of clients, let it write the header"
            );
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
