//! A key with a second key for the requests that lack the first.

use alloc::format;
use alloc::sync::Arc;

use super::key::Key;
use super::key_list::{ListEntries, of_second};
use super::key_missing::Missing;
use crate::keyed::SeededState;

impl<R: ?Sized + 'static> Key<R> {
    /// Returns a key that counts a request by this key, or by `other` if the request lacks this key: for example by the user, or
    /// by the address of a client that has not logged in. Its name is `a or b`, or that of both if they have the same.
    ///
    /// A value of this key and a value of `other` are never the same key. A request that lacks both is treated as `other` says, unless
    /// [`on_missing`](Self::on_missing) of the new key is called. A request whose part with this key is ambiguous, such as a
    /// forwarding header that cannot be read, is denied.
    ///
    /// An entry of a list is a value of this key, or of `other` if this key cannot read it. An entry of `other` stands for
    /// requests that are counted by `other`. [`with_prefixes`](Self::with_prefixes) changes the prefixes of this key. Shared
    /// rules count by the parts of the key that the request is counted by, if both keys have parts for shared rules.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::net::IpAddr;
    /// use ringgate::rules::RuleSetBuilder;
    /// use ringgate::{Key, ManualClock, Rule};
    ///
    /// struct Request {
    ///     user: Option<&'static str>,
    ///     client: IpAddr,
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let user = Key::text("user", |request: &Request| request.user);
    /// let client = Key::address("client", |request: &Request| Some(request.client));
    /// let rules = RuleSetBuilder::new()
    ///     .rule(Rule::new("each", "1/s".parse()?).by(&user.or(&client)))
    ///     .build_with(ManualClock::new(), [1, 2, 3, 4])?;
    /// let request = |user| Request { user, client: [192, 0, 2, 1].into() };
    /// assert!(rules.check(&request(Some("alice"))).is_ok());
    /// assert!(rules.check(&request(Some("bob"))).is_ok());
    /// assert!(rules.check(&request(None)).is_ok());
    /// assert!(rules.check(&request(None)).is_err());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let name = match self.name == other.name {
            true => Arc::clone(&self.name),
            false => format!("{} or {}", self.name, other.name).into(),
        };
        let (first, second) = (self.clone(), other.clone());
        let hash = move |request: &R, seeds: &SeededState| {
            if let Some(hash) = first.hash(request, seeds) {
                return Some(hash);
            }
            if first.missing(request).is_ambiguous {
                return None;
            }
            second.hash(request, seeds).map(|hash| of_second(hash, seeds))
        };
        let key = Self::of_hash(name, Arc::new(hash));
        let key = match (self.parts.clone(), other.parts.clone()) {
            (Some(one), Some(other)) => {
                let first = self.clone();
                key.shared_as(move |request, parts| match first.has(request) {
                    true => one(request, parts),
                    false => other(request, parts.begin()),
                })
            }
            (None, _) | (_, None) => key,
        };
        let hash_without = other.hash_without.clone().map(|hash| {
            let tagged = move |request: &R, seeds: &SeededState| of_second(hash(request, seeds), seeds);
            Arc::new(tagged) as Arc<_>
        });
        let (first, second) = (self.clone(), other.clone());
        let in_first = self.clone();
        let prefixes = self.prefixes.clone().map(|(own, make)| {
            let (first, second) = (self.clone(), other.clone());
            let make_both = move |name, on_missing, prefixes| {
                let first = make(Arc::clone(&first.name), first.on_missing, prefixes);
                Self {
                    name,
                    on_missing,
                    ..first.or(&second)
                }
            };
            (own, Arc::new(make_both) as Arc<_>)
        });
        Self {
            missing: Some(Arc::new(move |request, on_missing| {
                let of_first = first.missing(request);
                match of_first.is_ambiguous {
                    true => of_first,
                    false => Missing::first_denial([second.missing(request)].into_iter(), on_missing),
                }
            })),
            entries: ListEntries::Either(
                Arc::new([self.entries.clone(), other.entries.clone()]),
                Arc::new(move |request| in_first.has(request)),
            ),
            prefixes,
            hash_without,
            ..key
        }
    }
}
