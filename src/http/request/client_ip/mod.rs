mod forwarded;
mod proxies;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::hash::Hash;
use core::net::IpAddr;

use ::http::HeaderName;
use ::http::request::Parts;
use smallvec::SmallVec;

use self::proxies::{ForwardingHeader, ProxyHeader, TrustedProxies};
use crate::error::ConfigError;
use crate::keyed::{ClientAddress, KeyHasher};

/// The address of the peer of a connection, as a request extension.
///
/// It is for servers that provide no such extension. The code that accepts a connection inserts it into each request.
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

/// Finds the client address of a request: the peer, or the address that a proxy reports.
///
/// | the server is reached | |
/// |---|---|
/// | directly | [`peer`](Self::peer) |
/// | through proxies in known networks | [`x_forwarded_for`](Self::x_forwarded_for), [`forwarded`](Self::forwarded) |
/// | only through one proxy, which appends to `X-Forwarded-For` | [`one_proxy`](Self::one_proxy) |
/// | only through a load balancer that writes another header | [`header`](Self::header) |
/// | only through Cloudflare, Fly.io, AWS | [`cloudflare`](Self::cloudflare), [`fly`](Self::fly), [`aws_load_balancer`](Self::aws_load_balancer), [`cloudfront`](Self::cloudfront) |
///
/// # Guarantee
///
/// With `x_forwarded_for` and `forwarded`, a client cannot choose its address, unless a trusted proxy forwards what the
/// client sent:
///
/// - The header is read only if the peer is a trusted proxy. If a trusted proxy sends none, the proxy is the client.
/// - The client is the rightmost address of the header that is not a trusted proxy. Addresses to its left were sent by
///   the client, and are ignored. If all addresses are trusted, the client is the leftmost.
/// - Several lines of the header are one list. Empty elements are skipped.
/// - An element that is not an address (`unknown`, `_hidden`) ends the search. The client is then the proxy that
///   reported it, and elements to its left are ignored.
/// - A `Forwarded` line that violates the grammar of RFC 7239 is treated as one such element.
///
/// The other sources read their header from any peer. A client that reaches the server without the proxy chooses its address, unless
/// [`only_from`](Self::only_from) names the proxy's networks.
///
/// A request without an address has no key. By default it is rejected with status 500
/// ([`OnMissingKey::Fail`](crate::rules::OnMissingKey::Fail)), so that a missing address is noticed. Otherwise all clients would
/// share one budget.
///
/// # Caveats
///
/// - Trust only a header that your proxies always write. A header that they pass through was written by the client. So only one
///   header is read.
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
    /// The function that reads the peer address. `None` stands for [`with_peer`].
    peer: Option<Arc<FindPeer>>,
    source: AddressSource,
    /// The number of leading bits of an IPv6 address that identify a client, 1 to 128.
    prefix: u8,
}

/// The part of a request that has the client's address.
#[derive(Clone, Debug)]
enum AddressSource {
    Peer,
    /// A header with a list of hops.
    Proxies(TrustedProxies),
    /// A header with the address alone.
    Header(ProxyHeader),
}

type FindPeer = dyn Fn(&Parts) -> Option<IpAddr> + Send + Sync;

/// Passes the address of the peer, from the extension of the server, to `read`.
///
/// An address that is stored in two pieces and loaded in one waits for the stores. So `read` gets each address from its extension,
/// and not from a variable that they share.
#[inline(always)]
fn with_peer<T>(request: &Parts, read: impl FnOnce(IpAddr) -> T) -> Option<T> {
    let extensions = &request.extensions;
    if let Some(PeerAddress(peer)) = extensions.get() {
        return Some(read(*peer));
    }
    #[cfg(feature = "axum")]
    if let Some(axum::extract::ConnectInfo(peer)) =
        extensions.get::<axum::extract::ConnectInfo<core::net::SocketAddr>>()
    {
        return Some(read(peer.ip()));
    }
    #[cfg(feature = "tonic")]
    if let Some(peer) = extensions.get::<tonic::transport::server::TcpConnectInfo>() {
        return peer.remote_addr().map(|peer| read(peer.ip()));
    }
    None
}

impl ClientIp {
    /// Uses the peer as the client.
    ///
    /// The address is read from the first of these extensions that the request has:
    ///
    /// 1. [`PeerAddress`];
    /// 2. axum's `ConnectInfo<SocketAddr>` (feature `axum`), which `into_make_service_with_connect_info` inserts;
    /// 3. tonic's `TcpConnectInfo` (feature `tonic`).
    ///
    /// For any other extension, such as tonic's `TlsConnectInfo<TcpConnectInfo>`, see [`peer_from`](Self::peer_from).
    pub const fn peer() -> Self {
        Self {
            peer: None,
            source: AddressSource::Peer,
            prefix: ClientAddress::DEFAULT_PREFIX,
        }
    }

    /// Uses the last address of `X-Forwarded-For`, for any peer. It is for a server that is reached only through one proxy, which
    /// appends the address of its peer.
    ///
    /// nginx appends it with `$proxy_add_x_forwarded_for`, and so do Caddy, Traefik, HAProxy (`option forwardfor`) and Envoy. With
    /// two proxies in a row, the last address is that of the first proxy. Use [`x_forwarded_for`](Self::x_forwarded_for) then.
    pub const fn one_proxy() -> Self {
        Self::by_header(proxies::X_FORWARDED_FOR)
    }

    /// Uses the address in a header of this name, for any peer. It is for a server that is reached only through a load balancer
    /// that writes the header, such as `X-Real-IP`.
    ///
    /// The value is an address, with or without a port. If there are several addresses or lines, the last one is used. A load
    /// balancer that appends to the header of the client has written the last one.
    pub const fn header(name: HeaderName) -> Self {
        Self::by_header(name)
    }

    /// Uses `CF-Connecting-IP`, which Cloudflare writes.
    ///
    /// Let only [Cloudflare's networks](https://www.cloudflare.com/ips/) reach the server, or name them in
    /// [`only_from`](Self::only_from). Cloudflare's addresses change, so no list is part of this crate.
    pub const fn cloudflare() -> Self {
        Self::by_header(HeaderName::from_static("cf-connecting-ip"))
    }

    /// Uses `Fly-Client-IP`, which the proxy of Fly.io writes.
    pub const fn fly() -> Self {
        Self::by_header(HeaderName::from_static("fly-client-ip"))
    }

    /// Uses the last address of `X-Forwarded-For`, which an Application Load Balancer of AWS appends by default.
    ///
    /// Behind CloudFront and a load balancer, the last address is CloudFront's: use [`cloudfront`](Self::cloudfront).
    pub const fn aws_load_balancer() -> Self {
        Self::one_proxy()
    }

    /// Uses `CloudFront-Viewer-Address`, which CloudFront writes if its origin request policy includes it.
    pub const fn cloudfront() -> Self {
        Self {
            peer: None,
            source: AddressSource::Header(ProxyHeader::with_port(HeaderName::from_static(
                "cloudfront-viewer-address",
            ))),
            prefix: ClientAddress::DEFAULT_PREFIX,
        }
    }

    const fn by_header(name: HeaderName) -> Self {
        Self {
            peer: None,
            source: AddressSource::Header(ProxyHeader::new(name)),
            prefix: ClientAddress::DEFAULT_PREFIX,
        }
    }

    /// Reads the header only of peers in these networks. For any other peer, the peer itself is the client.
    ///
    /// It applies to sources that read a header of any peer, such as [`cloudflare`](Self::cloudflare). It has no effect with
    /// [`peer`](Self::peer), [`x_forwarded_for`](Self::x_forwarded_for) and [`forwarded`](Self::forwarded).
    ///
    /// # Errors
    ///
    /// Returns an error with the field `trusted` if a text is neither a network nor an address.
    pub fn only_from<T: AsRef<str>>(
        mut self,
        networks: impl IntoIterator<Item = T>,
    ) -> Result<Self, ConfigError> {
        let networks = proxies::parse_networks(networks)?;
        if let AddressSource::Header(header) = &mut self.source {
            header.only_from(networks);
        }
        Ok(self)
    }

    /// Reads the peer address from an extension of type `T`, of a server that [`peer`](Self::peer) does not know.
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
            source: AddressSource::Proxies(TrustedProxies::new(header, trusted)?),
            ..self
        })
    }

    /// Sets the number of leading bits of an IPv6 address that identify a client. The default is 64.
    ///
    /// # Errors
    ///
    /// Returns an error with the field `prefix` if `bits` is not 1 to 128.
    pub fn prefix(self, bits: u8) -> Result<Self, ConfigError> {
        ClientAddress::with_prefix(IpAddr::from([0, 0, 0, 0]), bits)?;
        Ok(Self { prefix: bits, ..self })
    }

    /// Returns the whole client address, or `None` if the request has none.
    #[must_use]
    #[inline]
    pub fn find(&self, request: &Parts) -> Option<IpAddr> {
        match &self.source {
            AddressSource::Peer => self.find_peer(request),
            AddressSource::Proxies(proxies) => {
                Some(proxies.client(self.find_peer(request)?, &request.headers))
            }
            AddressSource::Header(header) => header.client(|| self.find_peer(request), &request.headers),
        }
    }

    #[inline]
    fn find_peer(&self, request: &Parts) -> Option<IpAddr> {
        let peer = match &self.peer {
            None => with_peer(request, |peer| peer),
            Some(peer) => peer(request),
        };
        peer.map(|peer| peer.to_canonical())
    }

    /// Hashes the client of a request. Returns `false` if the request has no address.
    #[inline]
    pub(super) fn hash(&self, request: &Parts, hasher: &mut KeyHasher) -> bool {
        let hash = |client| self.mask(client).hash(hasher);
        let hashed = match (&self.peer, &self.source) {
            // The masked address is canonical, so the common case needs no call of `find`.
            (None, AddressSource::Peer) => with_peer(request, hash),
            _ => self.find(request).map(hash),
        };
        hashed.is_some()
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
            .field("source", &self.source)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
