use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::hash::{BuildHasher, Hasher};

use crate::keyed::{KeyHasher, SeededState};

/// Which part of a request a rule counts by: the client's address, the user, the route, a tuple of them.
///
/// Rules that are given clones of one `Key` have the same key, and are decided in one step where
/// their algorithms allow. The name tells keys apart over a reload: a rule that keeps its name and its key's
/// name keeps its counts.
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
/// // Borrowed and hashed, never stored or cloned.
/// let user = Key::new("user", |request: &Request, key| request.user.hash(key));
/// let both = Key::new("user and route", |request: &Request, key| {
///     (&request.user, request.route).hash(key);
/// });
/// assert_eq!(user.name(), "user");
/// ```
pub struct Key<R: ?Sized> {
    name: Arc<str>,
    hash: Arc<HashOf<R>>,
    missing: Missing,
    listed: Arc<HashOfText>,
    #[cfg(feature = "redis")]
    shared: Option<Arc<super::shared::PartsOf<R>>>,
}

/// What a rule does about a request without its key: see [`Key::optional`].
///
/// # Examples
///
/// ```
/// use core::hash::Hash;
/// use ringgate::{Key, ManualClock, Missing, Rule, RuleSetBuilder};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let user = Key::optional("user", Missing::Refuse, |user: &Option<&str>, key| {
///     user.hash(key);
///     user.is_some()
/// });
/// let rules = RuleSetBuilder::new()
///     .rule(Rule::new("user", "10/s".parse()?).by(&user))
///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
/// assert!(rules.check(&Some("alice")).is_ok());
/// let refused = rules.check(&None).unwrap_err();
/// assert!(refused.violations().any(|look| look.lacks_key()));
/// // To come back later does not help.
/// assert_eq!(refused.retry_after(), None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missing {
    /// All such requests share one budget, as if they had one key. The default: nobody gets round a limit by leaving
    /// something out.
    #[default]
    Share,
    /// The request is refused, as one whose key is on the list of those that always are.
    Refuse,
    /// The rule is not about the request.
    Skip,
}

type HashOf<R> = dyn Fn(&R, &SeededState) -> Option<u64> + Send + Sync;
pub(super) type HashOfText = dyn Fn(&str, &mut KeyHasher) -> Result<(), String> + Send + Sync;

impl<R: ?Sized> Key<R> {
    /// The key that `hash` feeds into the hasher.
    pub fn new(name: impl Into<Arc<str>>, hash: impl Fn(&R, &mut KeyHasher) + Send + Sync + 'static) -> Self {
        Self::optional(name, Missing::default(), move |request, key| {
            hash(request, key);
            true
        })
    }

    /// The key that `hash` feeds into the hasher, if the request has one: it says whether. `missing` says what becomes
    /// of a request that has none, of which what was fed does not count.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::hash::Hash;
    /// use ringgate::{Key, ManualClock, Missing, Rule, RuleSetBuilder};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let user = Key::optional("user", Missing::Skip, |user: &Option<&str>, key| {
    ///     user.hash(key);
    ///     user.is_some()
    /// });
    /// let rules = RuleSetBuilder::new()
    ///     .rule(Rule::new("user", "1/s".parse()?).by(&user))
    ///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// assert!(rules.check(&Some("alice")).is_ok());
    /// assert!(rules.check(&Some("alice")).is_err());
    /// // Whoever has no name is none of the rule's business.
    /// assert!(!rules.check(&None).unwrap().is_limited());
    /// # Ok(())
    /// # }
    /// ```
    pub fn optional(
        name: impl Into<Arc<str>>,
        missing: Missing,
        hash: impl Fn(&R, &mut KeyHasher) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            // Here, and not where it is called, so that the hasher's state stays in registers.
            hash: Arc::new(move |request, seeds| {
                let mut hasher = seeds.build_hasher();
                hash(request, &mut hasher).then(|| hasher.finish())
            }),
            missing,
            listed: Arc::new(|text, key| {
                core::hash::Hash::hash(text, key);
                Ok(())
            }),
            #[cfg(feature = "redis")]
            shared: None,
        }
    }

    /// The same key, and how a key that is written as text is fed into the hasher: for the lists of keys in
    /// a configuration file. When nothing is said, as a `str` is.
    ///
    /// It must feed the hasher what the key itself would, or say what is wrong with the text. A key that is not fed as a
    /// `str` needs this, or no entry of a list ever matches: for addresses,
    /// `.listed(|text, key| text.parse::<IpAddr>().map(|ip| ip.hash(key)).map_err(|error| error.to_string()))`.
    #[must_use]
    pub fn listed(
        self,
        listed: impl Fn(&str, &mut KeyHasher) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            listed: Arc::new(listed),
            ..self
        }
    }

    /// The same key, and what of it is the same on all machines, for limits that many of them share: its parts, as bytes.
    ///
    /// What [`Hash`](core::hash::Hash) feeds a hasher may differ between compilers and kinds of machines, and then each
    /// of them would count for itself. So it is said once more here, in bytes that mean the same everywhere. Requests
    /// have the same key when they have the same parts, each of them whole: `["ab", "c"]` is not `["a", "bc"]`.
    #[cfg(feature = "redis")]
    #[must_use]
    pub fn shared_as(self, parts: impl Fn(&R, &mut super::shared::KeyParts) + Send + Sync + 'static) -> Self {
        Self {
            shared: Some(Arc::new(parts)),
            ..self
        }
    }

    /// What is the same on all machines.
    #[cfg(feature = "redis")]
    pub(super) fn parts(&self) -> Option<&super::shared::PartsOf<R>> {
        self.shared.as_deref()
    }

    /// The key's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `None`: the request has no key.
    #[inline]
    pub(super) fn hash(&self, request: &R, seeds: &SeededState) -> Option<u64> {
        (self.hash)(request, seeds)
    }

    /// What becomes of a request without the key.
    pub(super) const fn missing(&self) -> Missing {
        self.missing
    }

    /// What stands for the key of all requests without one: what a hasher says that was fed nothing.
    #[cold]
    pub(super) fn hash_of_none(seeds: &SeededState) -> u64 {
        seeds.build_hasher().finish()
    }

    /// How a key that is written as text is fed into a hasher.
    #[cfg(feature = "config")]
    pub(super) fn hash_of_text(&self) -> Arc<HashOfText> {
        Arc::clone(&self.listed)
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.hash, &other.hash)
    }
}

impl<R: ?Sized> Clone for Key<R> {
    fn clone(&self) -> Self {
        Self {
            name: Arc::clone(&self.name),
            hash: Arc::clone(&self.hash),
            missing: self.missing,
            listed: Arc::clone(&self.listed),
            #[cfg(feature = "redis")]
            shared: self.shared.clone(),
        }
    }
}

impl<R: ?Sized> fmt::Debug for Key<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.name).finish()
    }
}

/// A named function of a request.
pub(super) struct Named<F: ?Sized> {
    name: Arc<str>,
    function: Arc<F>,
}

impl<F: ?Sized> Named<F> {
    pub(super) const fn new(name: Arc<str>, function: Arc<F>) -> Self {
        Self { name, function }
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.function, &other.function)
    }

    #[inline]
    pub(super) fn function(&self) -> &F {
        &self.function
    }
}

impl<F: ?Sized> Clone for Named<F> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.name), Arc::clone(&self.function))
    }
}

impl<F: ?Sized> fmt::Debug for Named<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.name, f)
    }
}

macro_rules! function_of_a_request {
    ($(#[$doc:meta])* $name:ident, $answer:ty) => {
        $(#[$doc])*
        pub struct $name<R: ?Sized>(pub(super) Named<dyn Fn(&R) -> $answer + Send + Sync>);

        impl<R: ?Sized> $name<R> {
            /// Names a function of a request.
            pub fn new(
                name: impl Into<Arc<str>>,
                function: impl Fn(&R) -> $answer + Send + Sync + 'static,
            ) -> Self {
                Self(Named::new(name.into(), Arc::new(function)))
            }

            /// The name.
            #[must_use]
            pub fn name(&self) -> &str {
                &self.0.name
            }
        }

        impl<R: ?Sized> Clone for $name<R> {
            fn clone(&self) -> Self {
                Self(self.0.clone())
            }
        }

        impl<R: ?Sized> fmt::Debug for $name<R> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.0.name).finish()
            }
        }
    };
}

function_of_a_request! {
    /// What a request costs a rule, in permits: bytes, tokens, rows. Without one, a request costs one permit.
    ///
    /// Rules that are given clones of one `Cost` have the same cost.
    ///
    /// ```
    /// use ringgate::Cost;
    ///
    /// let bytes = Cost::new("bytes", |body: &Vec<u8>| body.len() as u64);
    /// # let _ = bytes;
    /// ```
    Cost, u64
}

function_of_a_request! {
    /// Whether a rule is about a request at all.
    ///
    /// ```
    /// use ringgate::Condition;
    ///
    /// let login = Condition::new("login", |path: &str| path == "/login");
    /// # let _ = login;
    /// ```
    Condition, bool
}

/// Which tier of a rule a request is in, by the tier's name; the rule's own quota is for names that it
/// does not know, and for none.
///
/// ```
/// use ringgate::TierOf;
///
/// struct User {
///     plan: String,
/// }
///
/// let plan = TierOf::new("plan", |user: &User| Some(user.plan.as_str()));
/// # let _ = plan;
/// ```
pub struct TierOf<R: ?Sized>(pub(super) Named<TierFunction<R>>);

type TierFunction<R> = dyn for<'a> Fn(&'a R) -> Option<&'a str> + Send + Sync;

impl<R: ?Sized> TierOf<R> {
    /// Names a function of a request.
    pub fn new(
        name: impl Into<Arc<str>>,
        function: impl for<'a> Fn(&'a R) -> Option<&'a str> + Send + Sync + 'static,
    ) -> Self {
        Self(Named::new(name.into(), Arc::new(function)))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }
}

impl<R: ?Sized> Clone for TierOf<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R: ?Sized> fmt::Debug for TierOf<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TierOf").field(&self.0.name).finish()
    }
}
