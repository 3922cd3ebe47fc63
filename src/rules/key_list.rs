//! Lists of keys that a rule never limits, or always denies.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::hash::{BuildHasher, Hasher};
use core::net::IpAddr;
use std::collections::HashSet;

use crate::error::ConfigError;
use crate::keyed::{KeyHasher, Network, Networks, Prefixes, SeededState};

/// How a key reads the entries of lists.
pub(crate) enum ListEntries<R: ?Sized> {
    /// The key is a function of a request that does not state the type of its values.
    Unknown,
    /// Each entry is one key.
    Values(Arc<HashTextFn>),
    /// Each entry is an address or a network.
    Addresses(Arc<FindAddressFn<R>>, Prefixes),
}

/// Feeds the hasher as the key with this text does, or returns an error about the text.
type HashTextFn = dyn Fn(&str, &mut KeyHasher) -> Result<(), String> + Send + Sync;
type FindAddressFn<R> = dyn Fn(&R) -> Option<IpAddr> + Send + Sync;

/// One of the two lists of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Allow,
    Deny,
}

/// A list of keys. It has at least one.
pub(crate) enum KeyList<R: ?Sized> {
    Hashes(HashSet<u64, SeededState>),
    Addresses(Arc<FindAddressFn<R>>, Networks),
}

impl ListKind {
    pub(crate) const fn field(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

impl<R: ?Sized> ListEntries<R> {
    /// Returns the hash of an entry that is one key.
    fn hash(parse: &HashTextFn, entry: &str, seeds: &SeededState) -> Result<u64, String> {
        let mut hasher = seeds.build_hasher();
        parse(entry, &mut hasher)?;
        Ok(hasher.finish())
    }

    /// Returns the network of an entry. A client that is denied is denied with all its addresses. A client that is never limited could
    /// lend these addresses to others, so only the address itself is free.
    fn network(entry: &str, kind: ListKind, prefixes: Prefixes) -> Result<Network, String> {
        let of_client = match kind {
            ListKind::Allow => None,
            ListKind::Deny => Some(prefixes),
        };
        Network::parse_entry(entry, of_client)
    }

    /// Reads the entries of a list. `None` if there are none.
    pub(crate) fn list(
        &self,
        key: &str,
        kind: ListKind,
        entries: &[String],
        seeds: &SeededState,
    ) -> Result<Option<KeyList<R>>, ConfigError> {
        let Some(first) = entries.first() else {
            return Ok(None);
        };
        let invalid = |entry: &str, error: String| {
            let expected = format!("a value of the key {key:?}: {error}");
            ConfigError::new(kind.field(), format!("{entry:?}"), expected)
        };
        Ok(Some(match self {
            Self::Unknown => return Err(invalid(first, String::from(UNKNOWN))),
            Self::Values(parse) => {
                let mut hashes = HashSet::with_hasher(seeds.clone());
                for entry in entries {
                    let hash = Self::hash(parse.as_ref(), entry, seeds);
                    hashes.insert(hash.map_err(|error| invalid(entry, error))?);
                }
                KeyList::Hashes(hashes)
            }
            Self::Addresses(find, prefixes) => {
                let network = |entry: &String| {
                    Self::network(entry, kind, *prefixes).map_err(|error| invalid(entry, error))
                };
                let networks: Result<alloc::vec::Vec<_>, _> = entries.iter().map(network).collect();
                KeyList::Addresses(Arc::clone(find), Networks::new(networks?))
            }
        }))
    }
}

/// The error about an entry for a key that does not say how its values are written.
const UNKNOWN: &str = "this key does not say how a text becomes a value, as a key of `Key::text`, `Key::value`, `Key::address` \
    or `parse_list_entry` does";

impl<R: ?Sized> KeyList<R> {
    /// Returns whether the list has the key of the request, whose hash is given.
    pub(crate) fn contains(&self, request: &R, hash: u64) -> bool {
        match self {
            Self::Hashes(hashes) => hashes.contains(&hash),
            Self::Addresses(find, networks) => {
                find(request).is_some_and(|address| networks.contains_client(address))
            }
        }
    }
}

impl<R: ?Sized> Clone for ListEntries<R> {
    fn clone(&self) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            Self::Values(parse) => Self::Values(Arc::clone(parse)),
            Self::Addresses(find, prefixes) => Self::Addresses(Arc::clone(find), *prefixes),
        }
    }
}

impl<R: ?Sized> Clone for KeyList<R> {
    fn clone(&self) -> Self {
        match self {
            Self::Hashes(hashes) => Self::Hashes(hashes.clone()),
            Self::Addresses(find, networks) => Self::Addresses(Arc::clone(find), networks.clone()),
        }
    }
}

impl<R: ?Sized> fmt::Debug for KeyList<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hashes(hashes) => f.debug_tuple("Hashes").field(&hashes.len()).finish(),
            Self::Addresses(_, networks) => f.debug_tuple("Addresses").field(networks).finish(),
        }
    }
}
