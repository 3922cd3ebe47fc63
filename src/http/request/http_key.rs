use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::hash::Hash;

use ::http::header::{COOKIE, HeaderMap, HeaderName};
use ::http::request::Parts;
use smallvec::SmallVec;

use super::client_ip::ClientIp;
use crate::keyed::KeyHasher;
use crate::rules::{Key, OnMissingKey};
#[cfg(feature = "shared")]
use crate::shared::KeyParts;

/// A builder of a [`Key`] that is a part of an HTTP request.
///
/// By default all requests without that part share one budget ([`OnMissingKey::Share`]). If the key is an address, they are
/// rejected with status 500 ([`OnMissingKey::Fail`]).
///
/// # Cost
///
/// The part is hashed in place. It is neither copied nor stored.
///
/// # Examples
///
/// ```
/// use http::header::HeaderName;
/// use ringgate::http::{ClientIp, HttpKey};
/// use ringgate::rules::{OnMissingKey, RuleSetBuilder};
/// use ringgate::{ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let client = HttpKey::client(ClientIp::peer()).key();
/// // The rule `user` does not apply to requests without an API key.
/// let user = HttpKey::header(HeaderName::from_static("x-api-key"))
///     .on_missing(OnMissingKey::Skip)
///     .key();
/// let rules = RuleSetBuilder::new()
///     .rule(Rule::new("client", "100/min".parse()?).by(&client))
///     .rule(Rule::new("user", "10/s".parse()?).by(&user));
/// # let _ = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// # Ok(())
/// # }
/// ```
///
/// Rules of a configuration file refer to keys by name. `Extractors::key` registers a key for them.
#[must_use = "call `key` to make a key"]
pub struct HttpKey {
    name: Arc<str>,
    on_missing: OnMissingKey,
    build: Box<Build>,
    #[cfg(feature = "shared")]
    parts: Option<Box<PartsOf>>,
}

#[cfg(feature = "shared")]
type PartsOf = dyn Fn(&Parts, &mut KeyParts) + Send + Sync;

type Build = dyn FnOnce(Arc<str>, OnMissingKey) -> Key<Parts> + Send + Sync;

impl HttpKey {
    /// Creates a key from a function that hashes a part of the request.
    ///
    /// The function returns `false` if the request has no such part.
    ///
    /// ```
    /// use core::hash::Hash;
    /// use ringgate::http::HttpKey;
    ///
    /// let method_and_path = HttpKey::new("endpoint", |request, hasher| {
    ///     (&request.method, request.uri.path()).hash(hasher);
    ///     true
    /// });
    /// # let _ = method_and_path;
    /// ```
    pub fn new(
        name: impl Into<Arc<str>>,
        hash: impl Fn(&Parts, &mut KeyHasher) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::from_build(name, move |name, missing| Key::optional(name, missing, hash))
    }

    /// Creates a key from a function that returns a text of the request, or `None` if the request has none.
    ///
    /// ```
    /// use ringgate::http::HttpKey;
    ///
    /// let host = HttpKey::text("host", |request| request.uri.host());
    /// # let _ = host;
    /// ```
    pub fn text(
        name: impl Into<Arc<str>>,
        text: impl for<'a> Fn(&'a Parts) -> Option<&'a str> + Send + Sync + 'static,
    ) -> Self {
        let text = Arc::new(text);
        let hashed = Arc::clone(&text);
        let key = Self::new(name, move |request, hasher| {
            hashed(request).inspect(|text| text.hash(hasher)).is_some()
        });
        key.with_part(move |request| text(request).map(|text| text.as_bytes().into()))
    }

    /// Creates a key named `client` from the client address. IPv6 clients are identified by a prefix of the address.
    ///
    /// Requests without an address are rejected with status 500 and a detail that says what to do, unless
    /// [`on_missing`](Self::on_missing) is called.
    pub fn client(client: ClientIp) -> Self {
        let shared = client.clone();
        let key = Self::from_build("client", move |name, missing| {
            let of_list = client.clone();
            Key::optional(name, missing, move |request, hasher| client.hash(request, hasher))
                .parse_list_entry(move |text, hasher| of_list.hash_text(text, hasher))
        });
        key.with_part(move |request| shared.octets(request))
            .on_missing(OnMissingKey::Fail)
    }

    /// Creates a key named `peer` from the address of the peer: see [`ClientIp::peer`].
    ///
    /// Requests without an address are rejected with status 500 and a detail that says what to do, unless
    /// [`on_missing`](Self::on_missing) is called.
    pub fn peer() -> Self {
        Self::client(ClientIp::peer()).named("peer")
    }

    /// Creates a key from a header, named after it. The first of several lines is used. An empty value is no key.
    ///
    /// The application must also use the first line, and must verify the value. A client that can choose any value gets a budget
    /// for each value.
    pub fn header(header: HeaderName) -> Self {
        let name = String::from(header.as_str());
        let shared = header.clone();
        let key = Self::new(name, move |request, hasher| {
            let value = request.headers.get(&header).filter(|value| !value.is_empty());
            value
                .inspect(|value| match value.to_str() {
                    // The value is hashed as the texts of `allow` and `deny` lists are.
                    Ok(text) => text.hash(hasher),
                    Err(_) => value.as_bytes().hash(hasher),
                })
                .is_some()
        });
        key.with_part(move |request| {
            let value = request.headers.get(&shared);
            let value = value.filter(|value| !value.is_empty());
            value.map(|value| value.as_bytes().into())
        })
    }

    /// Creates a key from a cookie, named after it. The first of several cookies with this name is used, without the quotation
    /// marks around its value. An empty value is no key.
    ///
    /// The value is not decoded. If the application uses another one of several cookies, or decodes values such as `%61`, a client
    /// can get several budgets for one session. Prefer an [`extension`](Self::extension) that is set after the session is
    /// verified.
    pub fn cookie(cookie: impl Into<Arc<str>>) -> Self {
        let cookie: Arc<str> = cookie.into();
        Self::text(Arc::clone(&cookie), move |request| {
            find_cookie(&request.headers, &cookie)
        })
    }

    /// Creates a key named `path` from the path as it was sent: without the query, not decoded, not normalized.
    ///
    /// A client can choose any number of paths. Prefer a [`route`](Self::route).
    pub fn path() -> Self {
        Self::text("path", |request| Some(request.uri.path()))
    }

    /// Creates a key named `route` from the matched route, which the router stores in an extension of type `T`.
    ///
    /// The layer must run after the router has matched: in axum, use `Router::route_layer` or `MethodRouter::layer`.
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

    /// Creates a key from an extension of type `T` that an outer layer has inserted, such as the authenticated user.
    pub fn extension<T: Hash + Send + Sync + 'static>(name: impl Into<Arc<str>>) -> Self {
        Self::new(name, |request, hasher| {
            let extension = request.extensions.get::<T>();
            extension.inspect(|extension| extension.hash(hasher)).is_some()
        })
    }

    /// Sets the parts of the key by which shared rules count: see [`Key::shared_as`].
    ///
    /// Keys from addresses, headers, cookies, paths, routes and texts have parts. A key of [`new`](Self::new) or
    /// [`extension`](Self::extension) needs this call if shared rules use it.
    ///
    /// ```
    /// use ringgate::http::HttpKey;
    ///
    /// #[derive(Clone, Hash)]
    /// struct User(u64);
    ///
    /// let user = HttpKey::extension::<User>("user").shared_as(|request, parts| {
    ///     if let Some(User(number)) = request.extensions.get() {
    ///         parts.part(number.to_be_bytes());
    ///     }
    /// });
    /// # let _ = user;
    /// ```
    #[cfg(feature = "shared")]
    pub fn shared_as(self, parts: impl Fn(&Parts, &mut KeyParts) + Send + Sync + 'static) -> Self {
        Self {
            parts: Some(Box::new(parts)),
            ..self
        }
    }

    /// Sets the only part of the key by which shared rules count.
    #[cfg_attr(
        not(feature = "shared"),
        expect(unused_variables, reason = "only shared rules need it")
    )]
    fn with_part(self, part: impl Fn(&Parts) -> Option<SmallVec<[u8; 64]>> + Send + Sync + 'static) -> Self {
        #[cfg(feature = "shared")]
        return self.shared_as(move |request, parts| {
            if let Some(part) = part(request) {
                parts.part(part);
            }
        });
        #[cfg(not(feature = "shared"))]
        self
    }

    fn from_build(
        name: impl Into<Arc<str>>,
        build: impl FnOnce(Arc<str>, OnMissingKey) -> Key<Parts> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            on_missing: OnMissingKey::default(),
            build: Box::new(build),
            #[cfg(feature = "shared")]
            parts: None,
        }
    }

    /// Renames the key. A rule keeps its counts over a reload if its name and the name of its key do not change.
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    /// Sets the treatment of requests without the key. The default is [`OnMissingKey::Fail`] for addresses, and
    /// [`OnMissingKey::Share`] for other keys.
    ///
    /// With [`OnMissingKey::Deny`] they are rejected with status 400, or with
    /// [`missing_key_status`](crate::http::RateLimitLayer::missing_key_status), and charged to no rule.
    pub fn on_missing(self, on_missing: OnMissingKey) -> Self {
        Self { on_missing, ..self }
    }

    /// Makes the key. Rules with the same key, or with clones of it, are evaluated in one step where possible.
    #[must_use]
    pub fn key(self) -> Key<Parts> {
        let key = (self.build)(self.name, self.on_missing);
        #[cfg(feature = "shared")]
        if let Some(parts) = self.parts {
            return key.shared_as(parts);
        }
        key
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
            .field("on_missing", &self.on_missing)
            .finish_non_exhaustive()
    }
}

/// Returns the value of the first cookie of this name, unless it is empty (RFC 6265, section 4.2.1).
fn find_cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b';'));
    let mut values = pairs.filter_map(|pair| {
        let (this, value) = core::str::from_utf8(pair).ok()?.split_once('=')?;
        (this.trim() == name).then(|| value.trim())
    });
    let value = values.next()?;
    let unquoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    Some(unquoted.unwrap_or(value)).filter(|value| !value.is_empty())
}
