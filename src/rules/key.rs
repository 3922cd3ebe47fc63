use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::hash::{BuildHasher, Hasher};

use crate::keyed::{KeyHasher, SeededState};

/// The part of a request that a rule counts by, such as the client's address, the user, the route, or a tuple of them.
///
/// Rules with clones of one `Key` have the same key, and share a state if their algorithms allow it. A reload compares keys by their
/// names: if the names of a rule and of its key do not change, the rule keeps its counts.
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
/// let user = Key::new("user", |request: &Request, key| request.user.hash(key));
/// let both = Key::new("user and route", |request: &Request, key| {
///     (&request.user, request.route).hash(key);
/// });
/// assert_eq!(user.name(), "user");
/// ```
pub struct Key<R: ?Sized> {
    name: Arc<str>,
    hash: Arc<HashFn<R>>,
    on_missing: OnMissingKey,
    parse_list_entry: Arc<HashTextFn>,
    #[cfg(feature = "shared")]
    shared: Option<Arc<super::key_parts::PartsOf<R>>>,
}

/// The treatment of a request that lacks the rule's key: see [`Key::optional`].
///
/// # Examples
///
/// ```
/// use core::hash::Hash;
/// use ringgate::rules::{OnMissingKey, RuleSetBuilder};
/// use ringgate::{Key, ManualClock, Rule};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let user = Key::optional("user", OnMissingKey::Deny, |user: &Option<&str>, key| {
///     user.hash(key);
///     user.is_some()
/// });
/// let rules = RuleSetBuilder::new()
///     .rule(Rule::new("user", "10/s".parse()?).by(&user))
///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// assert!(rules.check(&Some("alice")).is_ok());
/// let denied = rules.check(&None).unwrap_err();
/// assert!(denied.violations().any(|peek| peek.lacks_key()));
/// // A later retry would also be denied.
/// assert_eq!(denied.retry_after(), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissingKey {
    /// All such requests count together, as if they had the same key. This is the default, so that a client cannot evade a limit by
    /// omitting a header.
    #[default]
    Share,
    /// The request is denied, as if its key were on the rule's `deny` list.
    Deny,
    /// The rule does not apply to the request.
    Skip,
    /// The request is denied as with [`Deny`](Self::Deny). The cause is the server, which should provide the key of every request.
    ///
    /// The HTTP layer rejects such requests with status 500. This is the layer's default for client addresses, which a server may
    /// not have been configured to provide.
    Fail,
}

impl OnMissingKey {
    /// Whether a request without the key is denied.
    pub(crate) const fn denies(self) -> bool {
        match self {
            Self::Deny | Self::Fail => true,
            Self::Share | Self::Skip => false,
        }
    }
}

type HashFn<R> = dyn Fn(&R, &SeededState) -> Option<u64> + Send + Sync;
pub(crate) type HashTextFn = dyn Fn(&str, &mut KeyHasher) -> Result<(), String> + Send + Sync;

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
        Self {
            name: name.into(),
            // The hasher is created inside of the closure, so that its state stays in registers.
            hash: Arc::new(move |request, seeds| {
                let mut hasher = seeds.build_hasher();
                hash(request, &mut hasher).then(|| hasher.finish())
            }),
            on_missing,
            parse_list_entry: Arc::new(|text, key| {
                core::hash::Hash::hash(text, key);
                Ok(())
            }),
            #[cfg(feature = "shared")]
            shared: None,
        }
    }

    /// Sets the function that reads a key from its text in a list of a rules file (`allow`, `deny`).
    ///
    /// The function must feed the hasher as the key does, or return an error about the text. The default hashes the text as a `str`.
    /// A key that feeds the hasher in another way needs this call. Otherwise no entry of a list matches. For addresses:
    /// `.parse_list_entry(|text, key| text.parse::<IpAddr>().map(|ip| ip.hash(key)).map_err(|error| error.to_string()))`.
    #[must_use]
    pub fn parse_list_entry(
        self,
        parse: impl Fn(&str, &mut KeyHasher) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            parse_list_entry: Arc::new(parse),
            ..self
        }
    }

    /// Sets the parts of the key, as bytes, by which shared limits count.
    ///
    /// The parts must be the same on every node. The bytes that [`Hash`](core::hash::Hash) feeds to a hasher may differ between
    /// compilers and targets, so nodes would count the same key separately. Two requests have the same key if their lists of parts
    /// are equal: `["ab", "c"]` is not `["a", "bc"]`.
    #[cfg(feature = "shared")]
    #[must_use]
    pub fn shared_as(
        self,
        parts: impl Fn(&R, &mut super::key_parts::KeyParts) + Send + Sync + 'static,
    ) -> Self {
        Self {
            shared: Some(Arc::new(parts)),
            ..self
        }
    }

    #[cfg(feature = "shared")]
    pub(crate) fn parts(&self) -> Option<&super::key_parts::PartsOf<R>> {
        self.shared.as_deref()
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

    pub(crate) const fn on_missing(&self) -> OnMissingKey {
        self.on_missing
    }

    /// The hash that all requests without a key share: that of no bytes.
    #[cold]
    pub(crate) fn hash_of_none(seeds: &SeededState) -> u64 {
        seeds.build_hasher().finish()
    }

    /// The function that feeds a list entry to a hasher.
    #[cfg(feature = "config")]
    pub(crate) fn hash_text(&self) -> Arc<HashTextFn> {
        Arc::clone(&self.parse_list_entry)
    }

    /// A number that only clones of this key have, as long as one of them exists.
    #[inline]
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.hash).addr()
    }

    /// Whether both are clones of one key.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.hash, &other.hash)
    }
}

impl<R: ?Sized> Clone for Key<R> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            hash: Arc::clone(&self.hash),
            on_missing: self.on_missing,
            parse_list_entry: Arc::clone(&self.parse_list_entry),
            #[cfg(feature = "shared")]
            shared: self.shared.clone(),
        }
    }
}

impl<R: ?Sized> fmt::Debug for Key<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.name).finish()
    }
}
