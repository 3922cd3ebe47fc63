use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::hash::Hash;

use ::http::header::{COOKIE, HeaderMap, HeaderName};
use ::http::request::Parts;

use super::client_ip::ClientIp;
use crate::keyed::KeyHasher;
use crate::rules::{Key, Missing};

/// Which part of an http request a rule counts by: a [`Key`] in the making.
///
/// When nothing is said, all requests that have no such part share one budget ([`Missing::Share`]).
///
/// # Cost
///
/// What is found is hashed where it stands, and neither copied nor stored.
///
/// # Examples
///
/// ```
/// use ::http::header::HeaderName;
/// use ringgate::http::{ClientIp, HttpKey};
/// use ringgate::{ManualClock, Missing, Rule, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let client = HttpKey::client(ClientIp::peer()).key();
/// // Whoever has no key of ours is limited by the address alone.
/// let user = HttpKey::header(HeaderName::from_static("x-api-key"))
///     .missing(Missing::Skip)
///     .key();
/// let rules = RuleSetBuilder::new()
///     .rule(Rule::new("client", "100/min".parse()?).by(&client))
///     .rule(Rule::new("user", "10/s".parse()?).by(&user));
/// # let _ = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// # Ok(())
/// # }
/// ```
///
/// In a configuration file, rules name it: hand it to `Extractors::key`.
#[must_use = "it is no key yet"]
pub struct HttpKey {
    name: Arc<str>,
    missing: Missing,
    make: Box<Make>,
}

type Make = dyn FnOnce(Arc<str>, Missing) -> Key<Parts> + Send + Sync;

impl HttpKey {
    /// Whatever `hash` feeds into the hasher of a request, if the request has it: it says whether.
    ///
    /// ```
    /// use core::hash::Hash;
    /// use ringgate::http::HttpKey;
    ///
    /// let method_and_path = HttpKey::new("endpoint", |request, key| {
    ///     (&request.method, request.uri.path()).hash(key);
    ///     true
    /// });
    /// # let _ = method_and_path;
    /// ```
    pub fn new(
        name: impl Into<Arc<str>>,
        hash: impl Fn(&Parts, &mut KeyHasher) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::made(name, move |name, missing| Key::optional(name, missing, hash))
    }

    /// A text that `find` finds in a request.
    ///
    /// ```
    /// use ringgate::http::HttpKey;
    ///
    /// let host = HttpKey::text("host", |request| request.uri.host());
    /// # let _ = host;
    /// ```
    pub fn text(
        name: impl Into<Arc<str>>,
        find: impl for<'a> Fn(&'a Parts) -> Option<&'a str> + Send + Sync + 'static,
    ) -> Self {
        Self::new(name, move |request, key| {
            let found = find(request);
            found.inspect(|text| text.hash(key)).is_some()
        })
    }

    /// The client's address, under the name `client`: of an IPv6 address, as many bits as stand for one client.
    pub fn client(clients: ClientIp) -> Self {
        Self::made("client", move |name, missing| {
            let listed = clients.clone();
            Key::optional(name, missing, move |request, key| clients.feed(request, key))
                .listed(move |text, key| listed.feed_text(text, key))
        })
    }

    /// The address in the extension [`PeerAddress`](super::PeerAddress), under the name `peer`; which is for whoever accepts
    /// connections to set ([`ClientIp::peer`]).
    pub fn peer() -> Self {
        Self::client(ClientIp::peer()).named("peer")
    }

    /// A header, under its own name: of several lines the first.
    ///
    /// See that the application goes by the first, too; and that what it says cannot be made up at will, or everybody has
    /// as many budgets as they like.
    pub fn header(header: HeaderName) -> Self {
        let name = String::from(header.as_str());
        Self::new(name, move |request, key| {
            let value = request.headers.get(&header);
            value
                .inspect(|value| match value.to_str() {
                    // As the text of a list is fed.
                    Ok(text) => text.hash(key),
                    Err(_) => value.as_bytes().hash(key),
                })
                .is_some()
        })
    }

    /// A cookie, under its own name: of several the first, as it was sent, but for quotation marks around it.
    ///
    /// See that the application goes by the same: some take the last, and some decode what is written as `%61`, and then a client
    /// has as many budgets as it likes. For sessions, have the application say who it is, in an [`extension`](Self::extension).
    pub fn cookie(cookie: impl Into<Arc<str>>) -> Self {
        let cookie: Arc<str> = cookie.into();
        Self::text(Arc::clone(&cookie), move |request| {
            find_cookie(&request.headers, &cookie)
        })
    }

    /// The path as it was sent, under the name `path`: without the query, and nothing decoded or normalized.
    ///
    /// Prefer a [`route`](Self::route): of paths there are as many as anybody likes to send.
    pub fn path() -> Self {
        Self::text("path", |request| Some(request.uri.path()))
    }

    /// The route that the request was found to be for, under the name `route`: from an extension of the router's type.
    ///
    /// The layer must be where the route is known. In axum, that is by `Router::route_layer` or `MethodRouter::layer`.
    ///
    /// ```
    /// # mod axum {
    /// #     pub mod extract {
    /// #         pub struct MatchedPath(String);
    /// #         impl MatchedPath { pub fn as_str(&self) -> &str { &self.0 } }
    /// #     }
    /// # }
    /// use axum::extract::MatchedPath;
    /// use ringgate::http::HttpKey;
    ///
    /// let route = HttpKey::route(|path: &MatchedPath| path.as_str());
    /// # let _ = route;
    /// ```
    pub fn route<T: Send + Sync + 'static>(
        pattern: impl for<'a> Fn(&'a T) -> &'a str + Send + Sync + 'static,
    ) -> Self {
        Self::text("route", move |request| {
            request.extensions.get::<T>().map(&pattern)
        })
    }

    /// An extension that somebody before the layer has put in: the user who is logged in, say.
    pub fn extension<T: Hash + Send + Sync + 'static>(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, |request, key| {
            let found = request.extensions.get::<T>();
            found.inspect(|found| found.hash(key)).is_some()
        })
    }

    fn made(
        name: impl Into<Arc<str>>,
        make: impl FnOnce(Arc<str>, Missing) -> Key<Parts> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            missing: Missing::default(),
            make: Box::new(make),
        }
    }

    /// Gives it another name. A rule that keeps its name and its key's name keeps its counts over a reload.
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    /// Says what becomes of requests that have none.
    ///
    /// With [`Missing::Refuse`] they are answered 400, or what
    /// [`missing_status`](super::RateLimitLayer::missing_status) says, and charged to no rule.
    pub fn missing(self, missing: Missing) -> Self {
        Self { missing, ..self }
    }

    /// Makes the key. Rules that are given clones of it, or the same one, are decided in one step where they can be.
    #[must_use]
    pub fn key(self) -> Key<Parts> {
        (self.make)(self.name, self.missing)
    }
}

impl From<HttpKey> for Key<Parts> {
    fn from(key: HttpKey) -> Self {
        key.key()
    }
}

impl fmt::Debug for HttpKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpKey")
            .field("name", &self.name)
            .field("missing", &self.missing)
            .finish_non_exhaustive()
    }
}

/// The value of the first cookie of this name (RFC 6265, 4.2.1).
fn find_cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b';'));
    let mut values = pairs.filter_map(|pair| {
        let (this, value) = core::str::from_utf8(pair).ok()?.split_once('=')?;
        (this.trim() == name).then(|| value.trim())
    });
    let value = values.next()?;
    let unquoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    Some(unquoted.unwrap_or(value))
}
