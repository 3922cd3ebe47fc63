mod forwarded;
mod proxies;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::hash::Hash;
use core::net::IpAddr;

use ::http::request::Parts;
use smallvec::SmallVec;

use self::proxies::{ForwardingHeader, TrustedProxies};
use crate::error::ConfigError;
use crate::keyed::{ClientAddress, KeyHasher};

/// Address of the peer of a connection, as a request extension.
///
/// It is for servers that have no extension of their own. The code that accepts a connection inserts it into each
/// request.
///
/// # Examples
///
/// ```
/// use core::net::IpAddr;
/// use ringgate::http::PeerAddress;
///
/// let peer: IpAddr = "192.0.2.1".parse().unwrap();
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(PeerAddress(peer));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddress(pub IpAddr);

/// Finds the client address of a request: the peer, or the address that a trusted proxy reports.
///
/// # Guarantee
///
/// A client cannot choose its address, unless a trusted proxy forwards what the client sent:
///
/// - The header is read only if the peer is a trusted proxy.
/// - The client is the rightmost address of the header that is not a trusted proxy. Addresses to its left were sent by
///   the client, and are ignored. If all addresses are trusted, the client is the leftmost.
/// - Several lines of the header are one list.
/// - An element that is not an address (`unknown`, `_hidden`) ends the search. The client is then the proxy that
///   reported it, and elements to its left are ignored.
/// - A `Forwarded` line that violates the grammar of RFC 7239 is treated as one such element.
///
/// # Caveats
///
/// - Trust only a header that your proxies always write. A header that they pass through is the client's, which is why
///   only one header is read.
/// - A client that can make a proxy forward an invalid element shares the proxy's budget. Do not put proxies on the
///   `allow` list of a rule.
/// - An IPv6 client is identified by the first 64 bits of its address, unless [`prefix`](Self::prefix) is set.
///
/// # Examples
///
/// ```
/// use core::net::IpAddr;
/// use ringgate::http::{ClientIp, PeerAddress};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let client = ClientIp::peer().x_forwarded_for(["10.0.0.0/8"])?;
///
/// // The client claims to be 203.0.113.7. The proxy appended the address that it saw.
/// let request = http::Request::builder()
///     .extension(PeerAddress("10.0.0.1".parse()?))
///     .header("X-Forwarded-For", "203.0.113.7, 192.0.2.1")
///     .body(())?;
/// let (parts, ()) = request.into_parts();
/// assert_eq!(client.find(&parts), Some("192.0.2.1".parse::<IpAddr>()?));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "it does nothing until it is part of a key"]
pub struct ClientIp {
    /// Reads the peer address. `None` stands for the extension [`PeerAddress`].
    peer: Option<Arc<FindPeer>>,
    proxies: Option<TrustedProxies>,
    /// 1 to 128.
    prefix: u8,
}

type FindPeer = dyn Fn(&Parts) -> Option<IpAddr> + Send + Sync;

impl ClientIp {
    /// Uses the peer as the client. Its address is read from the extension [`PeerAddress`].
    ///
    /// axum and tonic do not insert that extension: use [`peer_from`](Self::peer_from) with them. Requests without a peer
    /// address have no key, and share one budget by default. [`HttpKey::on_missing`](crate::http::HttpKey::on_missing) can deny
    /// them instead.
    pub const fn peer() -> Self {
        Self {
            peer: None,
            proxies: None,
            prefix: ClientAddress::DEFAULT_PREFIX,
        }
    }

    /// Reads the peer address from an extension of type `T`: axum's `ConnectInfo`, tonic's `TcpConnectInfo`.
    ///
    /// ```
    /// # mod axum {
    /// #     pub mod extract { pub struct ConnectInfo<T>(pub T); }
    /// # }
    /// use core::net::SocketAddr;
    /// use axum::extract::ConnectInfo;
    /// use ringgate::http::ClientIp;
    ///
    /// let client = ClientIp::peer().peer_from(|info: &ConnectInfo<SocketAddr>| Some(info.0.ip()));
    /// # let _ = client;
    /// ```
    pub fn peer_from<T: Send + Sync + 'static>(
        self,
        address: impl Fn(&T) -> Option<IpAddr> + Send + Sync + 'static,
    ) -> Self {
        Self {
            peer: Some(Arc::new(move |request| {
                request.extensions.get::<T>().and_then(&address)
            })),
            ..self
        }
    }

    /// Reads `X-Forwarded-For` of proxies in these networks, and no other header.
    ///
    /// Networks and addresses are written as `10.0.0.0/8`, `10.0.0.1` or `2001:db8::/32`. An IPv4 network also matches
    /// IPv4-mapped IPv6 addresses (`::ffff:10.0.0.1`).
    ///
    /// # Errors
    ///
    /// Returns an error with the field `trusted` if a text is neither a network nor an address.
    pub fn x_forwarded_for<T: AsRef<str>>(
        self,
        trusted: impl IntoIterator<Item = T>,
    ) -> Result<Self, ConfigError> {
        self.behind(ForwardingHeader::XForwardedFor, trusted)
    }

    /// Reads `Forwarded` (RFC 7239) of proxies in these networks, and no other header.
    ///
    /// # Errors
    ///
    /// Returns an error with the field `trusted` if a text is neither a network nor an address.
    pub fn forwarded<T: AsRef<str>>(self, trusted: impl IntoIterator<Item = T>) -> Result<Self, ConfigError> {
        self.behind(ForwardingHeader::Forwarded, trusted)
    }

    fn behind<T: AsRef<str>>(
        self,
        header: ForwardingHeader,
        trusted: impl IntoIterator<Item = T>,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            proxies: Some(TrustedProxies::new(header, trusted)?),
            ..self
        })
    }

    /// Sets how many leading bits of an IPv6 address identify a client. The default is 64.
    ///
    /// # Errors
    ///
    /// Returns an error with the field `prefix` if `bits` is not 1 to 128.
    pub fn prefix(self, bits: u8) -> Result<Self, ConfigError> {
        ClientAddress::with_prefix(IpAddr::from([0, 0, 0, 0]), bits)?;
        Ok(Self { prefix: bits, ..self })
    }

    /// Returns the whole client address, or `None` if the request has no peer address.
    #[must_use]
    #[inline]
    pub fn find(&self, request: &Parts) -> Option<IpAddr> {
        let peer = match &self.peer {
            None => request.extensions.get::<PeerAddress>()?.0,
            Some(peer) => peer(request)?,
        };
        let peer = peer.to_canonical();
        Some(match &self.proxies {
            None => peer,
            Some(proxies) => proxies.client(peer, &request.headers),
        })
    }

    /// Hashes the client of a request. Returns `false` if the request has no peer address.
    #[inline]
    pub(super) fn hash(&self, request: &Parts, hasher: &mut KeyHasher) -> bool {
        let client = match (&self.peer, &self.proxies) {
            // The masked address is canonical, so the common case needs no call of `find`.
            (None, None) => request.extensions.get().map(|&PeerAddress(peer)| peer),
            _ => self.find(request),
        };
        let Some(client) = client else { return false };
        self.mask(client).hash(hasher);
        true
    }

    /// The octets of the client's address, without the bits after the prefix.
    pub(super) fn octets(&self, request: &Parts) -> Option<SmallVec<[u8; 64]>> {
        Some(match self.mask(self.find(request)?).address() {
            IpAddr::V4(address) => SmallVec::from_slice(&address.octets()),
            IpAddr::V6(address) => SmallVec::from_slice(&address.octets()),
        })
    }

    /// Hashes an address of an `allow` or `deny` list.
    pub(super) fn hash_text(&self, text: &str, hasher: &mut KeyHasher) -> Result<(), String> {
        let address: IpAddr = text
            .parse()
            .map_err(|_| format!("invalid address {text:?} (expected an IPv4 or IPv6 address)"))?;
        self.mask(address).hash(hasher);
        Ok(())
    }

    #[inline]
    fn mask(&self, address: IpAddr) -> ClientAddress {
        ClientAddress::masked(address, self.prefix)
    }
}

impl fmt::Debug for ClientIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIp")
            .field("proxies", &self.proxies)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
