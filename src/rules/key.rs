use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{BuildHasher, Hash, Hasher};
use core::net::IpAddr;
use core::str::FromStr;

use super::key_address::{self, AddressSource};
use super::key_list::{KeyList, ListEntries, ListKind};
use super::key_missing::{Missing, MissingFn, OnMissingKey};
use super::key_parts::{KeyParts, PartsOf};
use crate::error::ConfigError;
use crate::keyed::{KeyHasher, Prefixes, SeededState};

/// The part of a request that a rule counts by, such as the client's address, the user, the route, or a tuple of them.
///
/// Rules with clones of one `Key` have the same key, and share a state if their algorithms allow it. A reload compares keys by their
/// names: if the names of a rule and of its key do not change, the rule keeps its counts.
///
/// | the rule counts by | |
/// |---|---|
/// | a text | [`text`](Self::text) |
/// | a number, or another type that is parsed from a text | [`value`](Self::value) |
/// | the address of a client | [`address`](Self::address) |
/// | any other part | [`new`](Self::new), [`optional`](Self::optional) |
/// | the parts of two keys | [`and`](Self::and) |
/// | another key if the request lacks the first | [`or`](Self#method.or) |
///
/// # Lists of keys
///
/// The entries of a rule's `allow` and `deny` lists are texts, which the key reads when the rule set is built. A text that is no value
/// of the key is an error. A key of `new` or `optional` does not know its values, so its lists are errors too, until
/// [`parse_list_entry`](Self::parse_list_entry) is called.
///
/// # Examples
///
/// ```
/// use core::hash::Hash;
/// use ringgate::Key;
///
/// struct Request {
///     user: String,
///     route: &'static str,
/// }
///
/// // The part is borrowed and hashed, never stored or cloned.
/// let user = Key::text("user", |request: &Request| Some(&request.user));
/// let both = Key::new("user and route", |request: &Request, key| {
///     (&request.user, request.route).hash(key);
/// });
/// assert_eq!(user.name(), "user");
/// ```
pub struct Key<R: ?Sized> {
    pub(super) name: Arc<str>,
    pub(super) hash: Arc<HashFn<R>>,
    /// Hashes the present parts of a request that lacks others. `None`: all requests that lack the key share one hash.
    pub(super) hash_without: Option<Arc<HashWithoutFn<R>>>,
    /// `None`: the default of the key.
    pub(super) on_missing: Option<OnMissingKey>,
    /// The treatment of a request that lacks the key, if it depends on the request.
    pub(super) missing: Option<Arc<MissingFn<R>>>,
    pub(super) entries: ListEntries<R>,
    /// The prefixes of an address, and the function that makes the key with others.
    pub(super) prefixes: Option<(Prefixes, Arc<WithPrefixes<R>>)>,
    /// The parts by which shared rules count.
    pub(crate) parts: Option<Arc<PartsOf<R>>>,
}

/// Makes a key with this name, treatment of requests without it, and prefixes.
pub(super) type WithPrefixes<R> = dyn Fn(Arc<str>, Option<OnMissingKey>, Prefixes) -> Key<R> + Send + Sync;
/// A function that hashes the key of a request. `None` if the request has no key.
pub(super) type HashFn<R> = dyn Fn(&R, &SeededState) -> Option<u64> + Send + Sync;
/// A function that hashes a request that lacks a part of its key.
pub(super) type HashWithoutFn<R> = dyn Fn(&R, &SeededState) -> u64 + Send + Sync;

impl<R: ?Sized> Key<R> {
    /// Creates a key from a function that feeds the hasher.
    pub fn new(name: impl Into<Arc<str>>, hash: impl Fn(&R, &mut KeyHasher) + Send + Sync + 'static) -> Self {
        Self::optional(name, OnMissingKey::default(), move |request, key| {
            hash(request, key);
            true
        })
    }

    /// Creates a key that a request may lack. The function feeds the hasher, and returns whether the request has the key.
    ///
    /// If it returns `false`, the hash is discarded, and `on_missing` applies.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::hash::Hash;
    /// use ringgate::rules::{OnMissingKey, RuleSetBuilder};
    /// use ringgate::{Key, ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let user = Key::optional("user", OnMissingKey::Skip, |user: &Option<&str>, key| {
    ///     user.hash(key);
    ///     user.is_some()
    /// });
    /// let rules = RuleSetBuilder::new()
    ///     .rule(Rule::new("user", "1/s".parse()?).by(&user))
    ///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// assert!(rules.check(&Some("alice")).is_ok());
    /// assert!(rules.check(&Some("alice")).is_err());
    /// // The rule does not apply to a request without a user.
    /// assert!(!rules.check(&None).unwrap().is_limited());
    /// # Ok(())
    /// # }
    /// ```
    pub fn optional(
        name: impl Into<Arc<str>>,
        on_missing: OnMissingKey,
        hash: impl Fn(&R, &mut KeyHasher) -> bool + Send + Sync + 'static,
    ) -> Self {
        // The hasher is created inside of the closure, so that its state stays in registers.
        let hash = move |request: &R, seeds: &SeededState| {
            let mut hasher = seeds.build_hasher();
            hash(request, &mut hasher).then(|| hasher.finish())
        };
        Self {
            on_missing: Some(on_missing),
            ..Self::of_hash(name, Arc::new(hash))
        }
    }

    pub(super) fn of_hash(name: impl Into<Arc<str>>, hash: Arc<HashFn<R>>) -> Self {
        Self {
            name: name.into(),
            hash,
            hash_without: None,
            on_missing: None,
            missing: None,
            entries: ListEntries::Unknown,
            prefixes: None,
            parts: None,
        }
    }

    /// Creates a key from a function that returns a text of the request, or `None` if the request has none.
    ///
    /// The entries of lists are compared with the text. Shared rules count by its bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{Key, ManualClock, Rule};
    ///
    /// struct Upload {
    ///     user: String,
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let user = Key::text("user", |upload: &Upload| Some(&upload.user));
    /// let rules = RuleSetBuilder::new()
    ///     .rule(Rule::new("uploads", "10/s".parse()?).by(&user).deny("mallory"))
    ///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// assert!(rules.check(&Upload { user: "mallory".into() }).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn text(
        name: impl Into<Arc<str>>,
        text: impl for<'a> Fn(&'a R) -> Option<&'a str> + Send + Sync + 'static,
    ) -> Self {
        let text = Arc::new(text);
        let hashed = Arc::clone(&text);
        let key = Self::optional(name, OnMissingKey::default(), move |request, key| {
            hashed(request).inspect(|text| text.hash(key)).is_some()
        });
        let key = key.parse_list_entry(|text, key| {
            text.hash(key);
            Ok(())
        });
        key.shared_as(move |request, parts| {
            if let Some(text) = text(request) {
                parts.part(text);
            }
        })
    }

    /// Creates a key from a function that returns a value of the request, or `None` if the request has none.
    ///
    /// The entries of lists are parsed as a `T`. Shared rules need [`shared_as`](Self#method.shared_as) as well.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{Key, ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let user = Key::value("user", |user: &u64| Some(*user));
    /// let rule = Rule::new("user", "10/s".parse()?).by(&user);
    /// let rules = RuleSetBuilder::new()
    ///     .rule(rule.clone().deny(7))
    ///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// assert!(rules.check(&7).is_err());
    ///
    /// // An entry that no request can match is an error.
    /// let rules = RuleSetBuilder::new().rule(rule.deny("mallory"));
    /// let error = rules.build_with(ManualClock::new(), [1, 2, 3, 4]).unwrap_err();
    /// assert_eq!(error.error.field, "deny");
    /// # Ok(())
    /// # }
    /// ```
    pub fn value<T>(
        name: impl Into<Arc<str>>,
        value: impl Fn(&R) -> Option<T> + Send + Sync + 'static,
    ) -> Self
    where
        T: Hash + FromStr<Err: fmt::Display> + 'static,
    {
        let key = Self::optional(name, OnMissingKey::default(), move |request, key| {
            value(request).inspect(|value| value.hash(key)).is_some()
        });
        key.parse_list_entry(|text, key| {
            let value: T = text.parse().map_err(|error: T::Err| error.to_string())?;
            value.hash(key);
            Ok(())
        })
    }

    /// Creates a key from a function that returns the address of the client, or `None` if the request has none.
    ///
    /// Clients are told apart as by [`ClientAddress`](crate::keyed::ClientAddress). A request without an address is denied
    /// ([`OnMissingKey::Fail`]), unless [`on_missing`](Self::on_missing) is called.
    ///
    /// An entry of a list is an address or a network, such as `10.0.0.0/8` or `2001:db8::/64`:
    ///
    /// - A network stands for exactly its addresses.
    /// - An address in `allow` stands for itself, and not for the rest of its /64.
    /// - An address in `deny` stands for all addresses that the key counts as the same client. For the address alone, write
    ///   `2001:db8::1/128`.
    ///
    /// # Cost
    ///
    /// A lookup in a list of n networks compares at most 2·(log₂ n + 1) of them.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::net::IpAddr;
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{Key, ManualClock, Rule};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let client = Key::address("client", |address: &IpAddr| Some(*address));
    /// let rules = RuleSetBuilder::new()
    ///     .rule(Rule::new("client", "1/min".parse()?).by(&client).allow("10.0.0.0/8"))
    ///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// let (own, other): (IpAddr, IpAddr) = ("10.1.2.3".parse()?, "192.0.2.1".parse()?);
    /// assert!(rules.check(&own).is_ok() && rules.check(&own).is_ok());
    /// assert!(rules.check(&other).is_ok() && rules.check(&other).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn address(
        name: impl Into<Arc<str>>,
        address: impl Fn(&R) -> Option<IpAddr> + Send + Sync + 'static,
    ) -> Self {
        let source = Arc::new(key_address::FindAddress(address));
        Self::of_addresses(name.into(), Some(OnMissingKey::Fail), source, Prefixes::DEFAULT)
    }

    /// Creates a key from a source of addresses.
    pub(crate) fn of_addresses<S: AddressSource<R>>(
        name: Arc<str>,
        on_missing: Option<OnMissingKey>,
        source: Arc<S>,
        prefixes: Prefixes,
    ) -> Self {
        let (hashed, found) = (Arc::clone(&source), Arc::clone(&source));
        let hash =
            move |request: &R, seeds: &SeededState| key_address::hash(&*hashed, request, prefixes, seeds);
        let key = Self::of_hash(name, Arc::new(hash));
        let shared = Arc::clone(&source);
        let key =
            key.shared_as(move |request, parts| key_address::add_part(&*shared, request, prefixes, parts));
        Self {
            on_missing: Some(on_missing.unwrap_or(OnMissingKey::Fail)),
            missing: Some(key_address::missing(&source)),
            entries: ListEntries::Addresses(Arc::new(move |request| found.find(request)), prefixes),
            prefixes: Some((
                prefixes,
                Arc::new(move |name, on_missing, prefixes| {
                    Self::of_addresses(name, on_missing, Arc::clone(&source), prefixes)
                }),
            )),
            ..key
        }
    }

    /// Returns this key of addresses with other prefixes: the numbers of leading bits of IPv4 and IPv6 addresses that identify a
    /// client. The name gets the prefixes as a suffix, such as `client/24/56`, because a reload compares keys by their names.
    ///
    /// # Errors
    ///
    /// `ipv4_prefix`: `ipv4` is not 1 to 32. `prefix`: `ipv6` is not 1 to 128, or the key is not made by [`address`](Self::address) or
    /// `HttpKey::client`, or has other parts for shared rules.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::net::IpAddr;
    /// use ringgate::Key;
    ///
    /// # fn main() -> Result<(), ringgate::ConfigError> {
    /// let client = Key::address("client", |address: &IpAddr| Some(*address));
    /// assert_eq!(client.with_prefixes(24, 56)?.name(), "client/24/56");
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_prefixes(&self, ipv4: u8, ipv6: u8) -> Result<Self, ConfigError> {
        let prefixes = Prefixes::DEFAULT.with_ipv4(ipv4)?.with_ipv6(ipv6)?;
        let Some((own, make)) = &self.prefixes else {
            let given = alloc::format!("given for the key {:?}", self.name);
            return Err(ConfigError::new("prefix", given, "a key of addresses"));
        };
        if *own == prefixes {
            return Ok(self.clone());
        }
        let name = alloc::format!("{}/{ipv4}/{ipv6}", self.name);
        Ok(make(name.into(), self.on_missing, prefixes))
    }

    pub(crate) fn prefixes(&self) -> Option<Prefixes> {
        self.prefixes.as_ref().map(|(prefixes, _)| *prefixes)
    }

    /// Returns a key that counts by both keys together, such as the client and the route. Its name is `a and b`.
    ///
    /// A request that lacks one of them is treated as [`on_missing`](Self::on_missing) of that key says, unless `on_missing` of
    /// the new key is called. By [`Share`](OnMissingKey::Share), requests that lack the same part share one budget if their other
    /// parts are equal. If a request lacks both, and one of them denies, it is denied. A request that lacks a part lacks the new
    /// key, so with [`or`](Self#method.or) it is counted by the other key.
    ///
    /// Shared rules count by the parts of both, if both have parts for shared rules. Lists are errors, until
    /// [`parse_list_entry`](Self::parse_list_entry) is called.
    ///
    /// # Examples
    ///
    /// ```
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{Key, ManualClock, Rule};
    ///
    /// type Request = (&'static str, u64);
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let route = Key::text("route", |request: &Request| Some(request.0));
    /// let user = Key::value("user", |request: &Request| Some(request.1));
    /// let rules = RuleSetBuilder::new()
    ///     .rule(Rule::new("each", "1/s".parse()?).by(&route.and(&user)))
    ///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// assert!(rules.check(&("/a", 7)).is_ok());
    /// assert!(rules.check(&("/b", 7)).is_ok());
    /// assert!(rules.check(&("/a", 7)).is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn and(&self, other: &Self) -> Self
    where
        R: 'static,
    {
        let pair = [self.clone(), other.clone()];
        let (hashed, of_share) = (pair.clone(), pair.clone());
        let hash = move |request: &R, seeds: &SeededState| {
            let mut hasher = seeds.build_hasher();
            for key in &hashed {
                hasher.write_u64(key.hash(request, seeds)?);
            }
            Some(hasher.finish())
        };
        let hash_without = move |request: &R, seeds: &SeededState| {
            let mut hasher = seeds.build_hasher();
            for key in &of_share {
                hasher.write_u64(key.hash_or_shared(request, seeds));
            }
            hasher.finish()
        };
        let name = alloc::format!("{} and {}", self.name, other.name);
        let key = Self::of_hash(name, Arc::new(hash));
        let key = match (self.parts.clone(), other.parts.clone()) {
            (Some(one), Some(other)) => key.shared_as(move |request, parts| {
                one(request, parts.begin());
                other(request, parts.begin());
            }),
            (None, _) | (_, None) => key,
        };
        Self {
            missing: Some(Arc::new(move |request, on_missing| {
                let of_parts = pair.iter().filter_map(|key| key.missing_part(request));
                Missing::first_denial(of_parts, on_missing)
            })),
            hash_without: Some(Arc::new(hash_without)),
            ..key
        }
    }

    /// Hashes the key of the request, or the parts of it that the request has.
    pub(crate) fn hash_or_shared(&self, request: &R, seeds: &SeededState) -> u64 {
        let hash = self.hash(request, seeds);
        hash.unwrap_or_else(|| self.hash_without(request, seeds))
    }

    /// The treatment of a request that lacks this key, as a part of another one. `None` if it has the key, or shares a budget.
    fn missing_part(&self, request: &R) -> Option<Missing> {
        let missing = (!self.has(request)).then(|| self.missing(request));
        missing.filter(|missing| missing.on_missing != OnMissingKey::Share)
    }

    pub(super) fn has(&self, request: &R) -> bool {
        self.hash(request, &SeededState::with_seeds([1, 2, 3, 4]))
            .is_some()
    }

    /// Renames the key. A rule keeps its counts over a reload if its name and the name of its key do not change.
    #[must_use]
    pub fn named(self, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        Self { name, ..self }
    }

    /// Sets the treatment of requests without the key.
    #[must_use]
    pub fn on_missing(self, on_missing: OnMissingKey) -> Self {
        Self {
            on_missing: Some(on_missing),
            ..self
        }
    }

    /// Sets the function that reads a key from its text in a list (`allow`, `deny`).
    ///
    /// The function must feed the hasher as the key does, or return an error about the text. For a key that hashes an address:
    /// `.parse_list_entry(|text, key| text.parse::<IpAddr>().map(|ip| ip.hash(key)).map_err(|error| error.to_string()))`.
    #[must_use]
    pub fn parse_list_entry(
        self,
        parse: impl Fn(&str, &mut KeyHasher) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            entries: ListEntries::Values(Arc::new(parse)),
            ..self
        }
    }

    /// Sets the parts of the key, as bytes, by which shared limits count.
    ///
    /// The parts must be the same on every node. The bytes that [`Hash`] feeds to a hasher may differ between
    /// compilers and targets, so nodes would count the same key separately. Two requests have the same key if their lists of parts
    /// are equal: `["ab", "c"]` is not `["a", "bc"]`.
    #[must_use]
    pub fn shared_as(self, parts: impl Fn(&R, &mut KeyParts) + Send + Sync + 'static) -> Self {
        Self {
            parts: Some(Arc::new(parts)),
            // The parts of another prefix are not known.
            prefixes: None,
            ..self
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Hashes the key of the request. `None` if it has no key.
    #[inline]
    pub(crate) fn hash(&self, request: &R, seeds: &SeededState) -> Option<u64> {
        (self.hash)(request, seeds)
    }

    /// The treatment of a request that lacks the key.
    #[cold]
    pub(crate) fn missing(&self, request: &R) -> Missing {
        match &self.missing {
            Some(missing) => missing(request, self.on_missing),
            None => Missing::of(self.on_missing.unwrap_or_default()),
        }
    }

    /// The hash of a request without the key: of no bytes, or of the parts that the request has.
    #[cold]
    pub(crate) fn hash_without(&self, request: &R, seeds: &SeededState) -> u64 {
        match &self.hash_without {
            Some(hash) => hash(request, seeds),
            None => seeds.build_hasher().finish(),
        }
    }

    /// The errors about the entries of a list that are no values of this key, with their indices. If the key does not know its
    /// values, the first entry stands for all.
    pub(crate) fn invalid_entries(&self, kind: ListKind, entries: &[String]) -> Vec<(usize, ConfigError)> {
        let seeds = SeededState::with_seeds([1, 2, 3, 4]);
        let error = |entry: &String| self.list(kind, core::slice::from_ref(entry), &seeds).err();
        let invalid = entries.iter().enumerate();
        let invalid = invalid.filter_map(|(at, entry)| Some((at, error(entry)?)));
        match self.entries {
            ListEntries::Unknown => invalid.take(1).collect(),
            ListEntries::Values(_) | ListEntries::Addresses(..) | ListEntries::Either(..) => {
                invalid.collect()
            }
        }
    }

    /// Reads the entries of a list. `None` if there are none.
    pub(crate) fn list(
        &self,
        kind: ListKind,
        entries: &[String],
        seeds: &SeededState,
    ) -> Result<Option<KeyList<R>>, ConfigError> {
        self.entries.list(&self.name, kind, entries, seeds)
    }

    /// A number that only clones of this key have, as long as one of them exists.
    #[inline]
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.hash).addr()
    }

    /// Whether both are clones of one key, and treat requests that lack it alike. Rules with such keys can share a state, whose key
    /// has one name, here and in a store.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let has_parts_of = match (&self.parts, &other.parts) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        has_parts_of
            && Arc::ptr_eq(&self.hash, &other.hash)
            && self.name == other.name
            && self.on_missing == other.on_missing
    }
}

impl<R: ?Sized> Clone for Key<R> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            hash: Arc::clone(&self.hash),
            hash_without: self.hash_without.clone(),
            on_missing: self.on_missing,
            missing: self.missing.clone(),
            entries: self.entries.clone(),
            prefixes: self.prefixes.clone(),
            parts: self.parts.clone(),
        }
    }
}

impl<R: ?Sized> fmt::Debug for Key<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.name).finish()
    }
}
