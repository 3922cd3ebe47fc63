mod forwarded;
mod proxies;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::hash::Hash;
use core::net::IpAddr;

use ::http::request::Parts;

use self::proxies::{ForwardedBy, Proxies};
use crate::error::ConfigError;
use crate::keyed::ClientAddress;
use crate::keyed::KeyHasher;

/// The address that a connection comes from, as an extension of the requests on it: for servers that have no such
/// extension of their own.
///
/// # Examples
///
/// ```
/// use core::net::IpAddr;
/// use ringgate::http::PeerAddress;
///
/// // By whoever accepts the connection, for each request on it.
/// let accepted: IpAddr = "192.0.2.1".parse().unwrap();
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(PeerAddress(accepted));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddress(pub IpAddr);

/// Says which client a request comes from: its peer, or whom the peer asks for, if the peer is a proxy that is trusted.
///
/// # Guarantee
///
/// No client chooses its address, unless a trusted proxy lets it:
///
/// - The header is not looked at unless the peer itself is trusted.
/// - It is read from the right, where the nearest proxy has written; the client is the first that is not trusted. Whatever
///   stands left of it was sent by the client, and does not count.
/// - Several lines of the header are one list, in their order.
/// - What is no address (`unknown`, `_hidden`, garbage) ends the walk: the client is then the hop that has told it, the
///   last one that is known, and nothing left of it counts. Of a `Forwarded` line that is not of RFC 7239's grammar
///   nothing at all counts.
/// - When all are trusted, the client is the leftmost.
///
/// # Caveats
///
/// - Trust only the header that your proxies write, and let them write it always: what they pass on unseen is the
///   client's. That is why only one header is read.
/// - Where what tells of the client is no address, or a `Forwarded` line is not of the grammar, the client is the proxy
///   that has passed it on: a client that can send such lines shares the proxy's budget. Do not put proxies on a list
///   of those that are always admitted.
/// - An IPv6 client is the first 64 bits of its address, unless [`prefix`](Self::prefix) says otherwise.
///
/// # Examples
///
/// ```
/// use core::net::IpAddr;
/// use ringgate::http::{ClientIp, PeerAddress};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let clients = ClientIp::peer().x_forwarded_for(["10.0.0.0/8"])?;
///
/// // The client says that it asks for 203.0.113.7; the proxy has seen that it is 192.0.2.1.
/// let request = http::Request::builder()
///     .extension(PeerAddress("10.0.0.1".parse()?))
///     .header("X-Forwarded-For", "203.0.113.7, 192.0.2.1")
///     .body(())?;
/// let (parts, ()) = request.into_parts();
/// assert_eq!(clients.find(&parts), Some("192.0.2.1".parse::<IpAddr>()?));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "it says nothing until it is asked, or made a key of"]
pub struct ClientIp {
    /// Where the peer's address is found; `None`: in the extension [`PeerAddress`].
    peer: Option<Arc<PeerOf>>,
    proxies: Option<Proxies>,
    /// 1 to 128.
    prefix: u8,
}

type PeerOf = dyn Fn(&Parts) -> Option<IpAddr> + Send + Sync;

impl ClientIp {
    /// The peer is the client; its address is in the extension [`PeerAddress`], unless [`peer_from`](Self::peer_from) says
    /// otherwise.
    ///
    /// Neither axum nor tonic sets that extension. Where nobody does, no request has this key, and all of them share one
    /// budget ([`Missing::Share`](crate::Missing)): say `peer_from`.
    pub const fn peer() -> Self {
        Self {
            peer: None,
            proxies: None,
            prefix: ClientAddress::DEFAULT_PREFIX,
        }
    }

    /// Finds the peer's address in an extension of another type: axum's `ConnectInfo`, tonic's `TcpConnectInfo`.
    ///
    /// ```
    /// # mod axum {
    /// #     pub mod extract { pub struct ConnectInfo<T>(pub T); }
    /// # }
    /// use core::net::SocketAddr;
    /// use axum::extract::ConnectInfo;
    /// use ringgate::http::ClientIp;
    ///
    /// let of_axum = ClientIp::peer().peer_from(|info: &ConnectInfo<SocketAddr>| Some(info.0.ip()));
    /// # let _ = of_axum;
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

    /// Believes proxies in these networks what they say in `X-Forwarded-For`, and in no other header.
    ///
    /// Networks and addresses are written as `10.0.0.0/8`, `10.0.0.1`, `2001:db8::/32`; those of IPv4 are meant also where
    /// an address comes as an IPv6 one (`::ffff:10.0.0.1`).
    ///
    /// # Errors
    ///
    /// With the field `trusted`, when one is neither a network nor an address.
    pub fn x_forwarded_for<T: AsRef<str>>(
        self,
        trusted: impl IntoIterator<Item = T>,
    ) -> Result<Self, ConfigError> {
        self.behind(ForwardedBy::XForwardedFor, trusted)
    }

    /// Believes proxies in these networks what they say in `Forwarded` (RFC 7239), and in no other header.
    ///
    /// # Errors
    ///
    /// As [`x_forwarded_for`](Self::x_forwarded_for).
    pub fn forwarded<T: AsRef<str>>(self, trusted: impl IntoIterator<Item = T>) -> Result<Self, ConfigError> {
        self.behind(ForwardedBy::Forwarded, trusted)
    }

    fn behind<T: AsRef<str>>(
        self,
        header: ForwardedBy,
        trusted: impl IntoIterator<Item = T>,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            proxies: Some(Proxies::new(header, trusted)?),
            ..self
        })
    }

    /// So many bits of an IPv6 address stand for one client, 64 when nothing is said.
    ///
    /// # Errors
    ///
    /// `prefix`: not 1 to 128.
    pub fn prefix(self, bits: u8) -> Result<Self, ConfigError> {
        ClientAddress::with_prefix(IpAddr::from([0, 0, 0, 0]), bits)?;
        Ok(Self { prefix: bits, ..self })
    }

    /// The client's address, whole; `None`: the request does not say who the peer is.
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

    /// What of the address stands for the client.
    #[inline]
    fn client(&self, address: IpAddr) -> ClientAddress {
        ClientAddress::masked(address, self.prefix)
    }

    /// Feeds what stands for the client into the hasher; false: nobody knows who it is.
    #[inline]
    pub(super) fn feed(&self, request: &Parts, key: &mut KeyHasher) -> bool {
        let client = match (&self.peer, &self.proxies) {
            // The most common of all, without a detour.
            (None, None) => request.extensions.get().map(|&PeerAddress(peer)| peer),
            _ => self.find(request),
        };
        let Some(client) = client else { return false };
        self.client(client).hash(key);
        true
    }

    /// Feeds an address of a list into the hasher.
    pub(super) fn feed_text(&self, text: &str, key: &mut KeyHasher) -> Result<(), String> {
        let address: IpAddr = text
            .parse()
            .map_err(|error: core::net::AddrParseError| format!("{text:?}: {error}"))?;
        self.client(address).hash(key);
        Ok(())
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
