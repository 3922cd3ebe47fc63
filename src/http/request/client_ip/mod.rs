mod forwarded;
mod proxies;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::net::IpAddr;

use ::http::header::{FORWARDED, HeaderName};
use ::http::request::Parts;

use self::proxies::{ClientHeader, Stated, Syntax, X_FORWARDED_FOR};
use crate::error::ConfigError;
use crate::keyed::Prefixes;
use crate::rules::{AddressSource, MissingCause};

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
/// | only through one proxy or a load balancer of AWS, which append to `X-Forwarded-For` | [`one_proxy`](Self::one_proxy) |
/// | only through a load balancer that writes another header, such as `X-Real-IP`, or `Fly-Client-IP` of Fly.io | [`header`](Self::header) |
/// | only through Cloudflare | [`cloudflare`](Self::cloudflare) |
/// | only through CloudFront of AWS | [`cloudfront`](Self::cloudfront) |
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
/// - An element that is not an address (`unknown`, `_hidden`) ends the search, and elements to its left are ignored. The request has no
///   client then, and is refused: see below.
/// - A `Forwarded` line whose quotation marks do not pair is treated as one such element.
///
/// The other sources read their header from any peer. A client that reaches the server without the proxy chooses its address, unless
/// [`only_from`](Self::only_from) names the proxy's networks.
///
/// # Requests without a client
///
/// - A request without an address has no key. By default it is rejected with status 500
///   ([`OnMissingKey::Fail`](crate::rules::OnMissingKey::Fail)), so that a missing address is noticed. Otherwise all clients would
///   share one budget.
/// - A request whose header states something else than an address is rejected with status 400, or with another that
///   [`status`](crate::http::RateLimitLayer::status) has set, whatever [`on_missing`](crate::Key::on_missing) says. The `detail` of
///   the response names the header.
///
/// The first request of each kind is logged as an error of `tracing` (feature `observe`), with what was given. So is, as a warning, the
/// first request of a trusted proxy without the header.
///
/// # Spellings
///
/// An address may have a port, quotation marks and a zone, and IPv6 addresses may have no brackets: `192.0.2.1:4711`, `"192.0.2.1"`,
/// `[2001:db8::1]:4711`, `2001:db8:0:0:0:0:0:1:4711`, `fe80::1%eth0`. A text that is an IPv6 address has no port, so `2001:db8::1:443`
/// is one address. In `Forwarded`, values may lack their quotation marks.
///
/// # Caveats
///
/// - Trust only a header that your proxies always write. A header that they pass through was written by the client. So only one
///   header is read.
/// - If a trusted proxy sends no header, its requests share its budget. Do not put proxies on the `allow` list of a rule.
/// - Clients are told apart as by [`ClientAddress`](crate::keyed::ClientAddress): an IPv6 client by the first 64 bits of its address,
///   unless [`prefix`](Self::prefix) is set.
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
    /// The header that states the address. `None`: the client is the peer.
    header: Option<ClientHeader>,
    prefixes: Prefixes,
}

/// A function that finds the address of the peer of a request.
type FindPeer = dyn Fn(&Parts) -> Option<IpAddr> + Send + Sync;

/// Passes the address of the peer, from the extension of the server, to `read`.
///
/// An address that is stored in two pieces and loaded in one waits for the stores. So `read` gets each address from its extension,
/// and not from a variable that they share. The versions of a [`PeerAddress`] are two calls, so that no address is copied before its
/// version is known.
#[inline(always)]
fn with_peer<T>(request: &Parts, read: impl FnOnce(IpAddr) -> T) -> Option<T> {
    let extensions = &request.extensions;
    if let Some(PeerAddress(peer)) = extensions.get() {
        return Some(match *peer {
            IpAddr::V4(peer) => read(IpAddr::V4(peer)),
            IpAddr::V6(peer) => read(IpAddr::V6(peer)),
        });
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
            header: None,
            prefixes: Prefixes::DEFAULT,
        }
    }

    const fn by_header(name: HeaderName, syntax: Syntax) -> Self {
        Self {
            peer: None,
            header: Some(ClientHeader::new(name, syntax)),
            prefixes: Prefixes::DEFAULT,
        }
    }

    /// Uses the last address of `X-Forwarded-For`, for any peer. It is for a server that is reached only through one proxy, which
    /// appends the address of its peer.
    ///
    /// nginx appends it with `$proxy_add_x_forwarded_for`, and so do Caddy, Traefik, HAProxy (`option forwardfor`), Envoy, and by
    /// default an Application Load Balancer of AWS. With two proxies in a row, the last address is that of the first proxy. Use
    /// [`x_forwarded_for`](Self::x_forwarded_for) then, and [`cloudfront`](Self::cloudfront) behind CloudFront.
    pub const fn one_proxy() -> Self {
        Self::by_header(X_FORWARDED_FOR, Syntax::Address)
    }

    /// Uses the address in a header of this name, for any peer. It is for a server that is reached only through a load balancer
    /// that writes the header, such as `X-Real-IP`, or `Fly-Client-IP` of Fly.io.
    ///
    /// The value is an address, with or without a port. If there are several addresses or lines, the last one is used. A load
    /// balancer that appends to the header of the client has written the last one.
    pub const fn header(name: HeaderName) -> Self {
        Self::by_header(name, Syntax::Address)
    }

    /// Uses `CF-Connecting-IP`, which Cloudflare writes.
    ///
    /// Let only [Cloudflare's networks](https://www.cloudflare.com/ips/) reach the server, or name them in
    /// [`only_from`](Self::only_from). Cloudflare's addresses change, so no list is part of this crate.
    pub const fn cloudflare() -> Self {
        Self::by_header(HeaderName::from_static("cf-connecting-ip"), Syntax::Address)
    }

    /// Uses `CloudFront-Viewer-Address`, which CloudFront writes if its origin request policy includes it.
    pub const fn cloudfront() -> Self {
        let name = HeaderName::from_static("cloudfront-viewer-address");
        Self::by_header(name, Syntax::AddressAndPort)
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
        if let Some(header) = self.header.as_mut().filter(|header| !header.has_hops()) {
            header.trust(networks);
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
        self.behind(X_FORWARDED_FOR, Syntax::Hops, trusted)
    }

    /// Reads `Forwarded` (RFC 7239) of proxies in these networks, and no other header.
    ///
    /// # Errors
    ///
    /// Returns an error with the field `trusted` if a text is neither a network nor an address.
    pub fn forwarded<T: AsRef<str>>(self, trusted: impl IntoIterator<Item = T>) -> Result<Self, ConfigError> {
        self.behind(FORWARDED, Syntax::Forwarded, trusted)
    }

    fn behind<T: AsRef<str>>(
        self,
        name: HeaderName,
        syntax: Syntax,
        trusted: impl IntoIterator<Item = T>,
    ) -> Result<Self, ConfigError> {
        let mut header = ClientHeader::new(name, syntax);
        header.trust(proxies::parse_networks(trusted)?);
        Ok(Self {
            header: Some(header),
            ..self
        })
    }

    /// Sets the number of leading bits of an IPv6 address that identify a client. The default is 64.
    ///
    /// # Errors
    ///
    /// Returns an error with the field `prefix` if `bits` is not 1 to 128.
    pub fn prefix(self, bits: u8) -> Result<Self, ConfigError> {
        let prefixes = self.prefixes.with_ipv6(bits)?;
        Ok(Self { prefixes, ..self })
    }

    /// Sets the number of leading bits of an IPv4 address that identify a client, such as 24. The default is 32, the whole address.
    ///
    /// # Errors
    ///
    /// Returns an error with the field `ipv4_prefix` if `bits` is not 1 to 32.
    pub fn ipv4_prefix(self, bits: u8) -> Result<Self, ConfigError> {
        let prefixes = self.prefixes.with_ipv4(bits)?;
        Ok(Self { prefixes, ..self })
    }

    pub(super) const fn prefixes(&self) -> Prefixes {
        self.prefixes
    }

    /// Returns the whole client address. `None` if the request has none, or states something else than an address.
    ///
    /// An IPv4-mapped IPv6 address is the IPv4 address. Other IPv6 addresses that embed one, such as those of NAT64, are returned as
    /// they are.
    #[must_use]
    #[inline]
    pub fn find(&self, request: &Parts) -> Option<IpAddr> {
        match &self.header {
            None => self.find_peer(request),
            Some(header) => match self.stated(header, request, |_| {})? {
                Stated::Address(address) => Some(address),
                Stated::Missing | Stated::Unreadable => None,
            },
        }
    }

    /// Returns what the header of a request states as its client. `None` if the peer is needed and unknown.
    fn stated(&self, header: &ClientHeader, request: &Parts, given: impl FnMut(&str)) -> Option<Stated> {
        header.client(|| self.find_peer(request), &request.headers, given)
    }

    #[inline]
    fn find_peer(&self, request: &Parts) -> Option<IpAddr> {
        let peer = match &self.peer {
            None => with_peer(request, |peer| peer),
            Some(peer) => peer(request),
        };
        peer.map(|peer| peer.to_canonical())
    }
}

impl AddressSource<Parts> for ClientIp {
    #[inline]
    fn find(&self, request: &Parts) -> Option<IpAddr> {
        Self::find(self, request)
    }

    #[inline(always)]
    fn with<T>(&self, request: &Parts, read: impl FnOnce(IpAddr) -> T) -> Option<T> {
        match (&self.peer, &self.header) {
            // The masked address is canonical, so the common case needs no call of `find`.
            (None, None) => with_peer(request, read),
            _ => self.find(request).map(read),
        }
    }

    #[cold]
    fn cause(&self, request: &Parts) -> Option<(MissingCause, bool)> {
        let header = self.header.as_ref()?;
        let name = &header.name;
        let mut given = String::new();
        let stated = self.stated(header, request, |element| element.clone_into(&mut given))?;
        let (text, given) = match stated {
            Stated::Address(_) => return None,
            Stated::Missing => {
                let text = format!(
                    "the request has no header `{name}`, from which the server reads the address of the client: the proxy in front of \
                    the server must write it"
                );
                (text, None)
            }
            Stated::Unreadable => {
                let text = format!(
                    "the header `{name}` states no address of the client (expected an address such as 192.0.2.1, 192.0.2.1:4711, \
                    2001:db8::1 or [2001:db8::1]:4711)"
                );
                (text, Some(given.into()))
            }
        };
        let is_unreadable = given.is_some();
        let text = text.into();
        Some((MissingCause { text, given }, is_unreadable))
    }
}

impl fmt::Debug for ClientIp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIp")
            .field("header", &self.header)
            .field("prefixes", &self.prefixes)
            .finish_non_exhaustive()
    }
}
