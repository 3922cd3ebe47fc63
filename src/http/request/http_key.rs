use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::hash::Hash;

use ::http::header::{COOKIE, HeaderMap, HeaderName, HeaderValue};
use ::http::request::Parts;
use ::http::uri::PathAndQuery;

use super::client_ip::ClientIp;
use super::outer_path::outer_path;
use super::spelling;
use crate::keyed::KeyHasher;
use crate::rules::{Key, OnMissingKey};

/// The keys that are a part of an HTTP request. Each function makes a [`Key`]. [`Key::text`] and [`Key::optional`] make keys of other
/// parts:
///
/// ```
/// use http::request::Parts;
/// use ringgate::Key;
///
/// let query = Key::text("query", |request: &Parts| request.uri.query());
/// # let _ = query;
/// ```
///
/// By default all requests without that part share one budget ([`OnMissingKey::Share`]). If the key is an address, they are
/// rejected with status 500 ([`OnMissingKey::Fail`]). [`Key::on_missing`] changes this. With [`OnMissingKey::Deny`], they are rejected
/// with status 400, or with another that [`status`](crate::http::RateLimitLayer::status) has set, and charged to no rule.
///
/// All keys have the parts by which shared rules count, except those of [`extension`](Self::extension), which need
/// `Key::shared_as`.
///
/// The entries of `allow` and `deny` lists are read as the key's values: addresses and networks, hosts, paths, or texts. An entry that
/// no request can have is an error when the rule set is built. A key of [`extension`](Self::extension) or
/// [`and`](Key::and) has no lists, unless [`Key::parse_list_entry`] is called.
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
/// let client = HttpKey::client(ClientIp::peer());
/// // The rule `user` does not apply to requests without an API key.
/// let user = HttpKey::header(HeaderName::from_static("x-api-key"))
///     .on_missing(OnMissingKey::Skip);
/// let rules = RuleSetBuilder::new()
///     .rule(Rule::new("client", "100/min".parse()?).by(&client))
///     .rule(Rule::new("user", "10/s".parse()?).by(&user));
/// # let _ = rules.build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// # Ok(())
/// # }
/// ```
///
/// Rules of a configuration file refer to keys by name. `Extractors::key` registers a key for them.
#[derive(Clone, Copy, Debug)]
pub enum HttpKey {}

impl HttpKey {
    /// Creates a key named `client` from the client address. IPv6 clients are identified by a prefix of the address.
    ///
    /// Requests without an address are rejected with status 500 and a detail that says what to do, unless
    /// [`on_missing`](Key::on_missing) is called. An address that cannot be read is rejected with status 400.
    ///
    /// The entries of lists are addresses and networks: see [`Key::address`].
    pub fn client(client: ClientIp) -> Key<Parts> {
        let prefixes = client.prefixes();
        Key::of_addresses("client".into(), None, Arc::new(client), prefixes)
    }

    /// Creates a key named `peer` from the address of the peer: see [`ClientIp::peer`].
    ///
    /// Requests without an address are rejected with status 500 and a detail that says what to do, unless
    /// [`on_missing`](Key::on_missing) is called.
    pub fn peer() -> Key<Parts> {
        Self::client(ClientIp::peer()).named("peer")
    }

    /// Creates a key named `host` from the host that the request is for: the authority of the URI, or the `Host` header without one.
    ///
    /// All spellings of a host are one key: letters are lower case, the ports 80 and 443, a final dot and a user name are removed. A
    /// request without a host, or with different hosts in several lines, has no key.
    ///
    /// A client can choose any host, unless the server or its proxy refuses unknown ones.
    pub fn host() -> Key<Parts> {
        let key = optional("host", |request, hasher| {
            let host = spelling::host(request);
            host.inspect(|host| host.as_str().hash(hasher)).is_some()
        });
        let key = key.parse_list_entry(|text, hasher| {
            let host = spelling::parse_host(text).ok_or_else(|| {
                format!("invalid host {text:?} (expected a host such as example.com or example.com:8080)")
            })?;
            host.as_str().hash(hasher);
            Ok(())
        });
        key.shared_as(|request, parts| {
            if let Some(host) = spelling::host(request) {
                parts.part(host.as_str());
            }
        })
    }

    /// Creates a key named `bearer` from the token of the `Authorization` header with the scheme `Bearer`. The first of several lines is
    /// used. A request with another scheme, or with spaces or a comma in the token, has no key.
    ///
    /// All spellings of a credential are one key: the scheme may have letters of any case, and spaces may be around the token.
    ///
    /// The application must also use the first line, and must verify the token. A client that can choose any token gets a budget for
    /// each token. The entries of lists are tokens without the scheme.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::Rule;
    /// use ringgate::http::HttpKey;
    /// use ringgate::rules::OnMissingKey;
    ///
    /// # fn main() -> Result<(), ringgate::ConfigError> {
    /// let token = HttpKey::bearer().on_missing(OnMissingKey::Deny);
    /// let rule = Rule::new("token", "10/s".parse()?).by(&token);
    /// # let _ = rule;
    /// # Ok(())
    /// # }
    /// ```
    pub fn bearer() -> Key<Parts> {
        listed(
            Key::text("bearer", spelling::bearer),
            "token",
            "the token alone, without the scheme, spaces and commas",
            spelling::is_token,
        )
    }

    /// Creates a key from a header, named after it. The first of several lines is used. An empty value is no key.
    ///
    /// The value is used as it is, so a credential with several spellings is several keys: see [`bearer`](Self::bearer).
    ///
    /// The application must also use the first line, and must verify the value. A client that can choose any value gets a budget
    /// for each value.
    pub fn header(header: HeaderName) -> Key<Parts> {
        let name = String::from(header.as_str());
        let shared = header.clone();
        let key = optional(name, move |request, hasher| {
            let value = header_value(&request.headers, &header);
            value
                .inspect(|value| match core::str::from_utf8(value) {
                    // The value is hashed as the texts of `allow` and `deny` lists are.
                    Ok(text) => text.hash(hasher),
                    Err(_) => value.hash(hasher),
                })
                .is_some()
        });
        let key = listed(
            key,
            "value of a header",
            "a value without spaces around it",
            |text| {
                let is_value = !text.is_empty() && text.trim() == text;
                is_value && HeaderValue::from_bytes(text.as_bytes()).is_ok()
            },
        );
        key.shared_as(move |request, parts| {
            if let Some(value) = header_value(&request.headers, &shared) {
                parts.part(value);
            }
        })
    }

    /// Creates a key from a cookie, named after it. The first of several cookies with this name is used, without the quotation
    /// marks around its value. An empty value is no key.
    ///
    /// The value is not decoded. If the application uses another one of several cookies, or decodes values such as `%61`, a client
    /// can get several budgets for one session. Prefer an [`extension`](Self::extension) that is set after the session is
    /// verified.
    pub fn cookie(cookie: impl Into<Arc<str>>) -> Key<Parts> {
        let cookie: Arc<str> = cookie.into();
        let found = Arc::clone(&cookie);
        let key = Key::text(Arc::clone(&cookie), move |request: &Parts| {
            find_cookie(&request.headers, &found)
        });
        listed(
            key,
            "value of a cookie",
            "a value without quotation marks, semicolons and spaces around it",
            move |text| {
                let mut headers = HeaderMap::new();
                if let Ok(line) = HeaderValue::from_bytes(format!("{cookie}={text}").as_bytes()) {
                    headers.insert(COOKIE, line);
                }
                find_cookie(&headers, &cookie) == Some(text)
            },
        )
    }

    /// Creates a key named `path` from the path as it was sent: without the query, not decoded, not normalized.
    ///
    /// Within a nested router of axum it is the whole path, with the part that the outer routers have removed (feature `axum`).
    ///
    /// A client can choose any number of paths. Prefer a [`route`](Self::route).
    pub fn path() -> Key<Parts> {
        listed(
            Key::text("path", |request| Some(outer_path(request))),
            "path",
            "a path without a query, such as /items",
            |text| {
                let parsed = text.parse::<PathAndQuery>();
                parsed.is_ok_and(|parsed| parsed.path() == text)
            },
        )
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
    ) -> Key<Parts> {
        Key::text("route", move |request: &Parts| {
            request.extensions.get::<T>().map(&pattern)
        })
    }

    /// Creates a key from an extension of type `T` that an outer layer has inserted, such as the authenticated user.
    pub fn extension<T: Hash + Send + Sync + 'static>(name: impl Into<Arc<str>>) -> Key<Parts> {
        optional(name, |request, hasher| {
            let extension = request.extensions.get::<T>();
            extension.inspect(|extension| extension.hash(hasher)).is_some()
        })
    }
}

/// Creates a key from a function that returns `false` if the request has no such part.
fn optional(
    name: impl Into<Arc<str>>,
    hash: impl Fn(&Parts, &mut KeyHasher) -> bool + Send + Sync + 'static,
) -> Key<Parts> {
    Key::optional(name, OnMissingKey::default(), hash)
}

/// Sets which texts can be entries of lists. An error calls an entry `what`, and says what is `expected`.
fn listed(
    key: Key<Parts>,
    what: &'static str,
    expected: &'static str,
    is_valid: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> Key<Parts> {
    key.parse_list_entry(move |text, hasher| {
        if !is_valid(text) {
            return Err(format!("invalid {what} {text:?} (expected {expected})"));
        }
        text.hash(hasher);
        Ok(())
    })
}

/// Returns the value of the first line of a header, unless it is empty.
fn header_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let value = headers.get(name)?.as_bytes();
    (!value.is_empty()).then_some(value)
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
