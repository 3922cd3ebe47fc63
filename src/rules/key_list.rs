//! Lists of keys that a rule never limits, or always denies.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
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
    /// Each entry is one of the first key, or of the second if the first cannot read it. The function returns whether a request has
    /// the first key.
    Either(Arc<[Self; 2]>, Arc<HasKeyFn<R>>),
}

/// Feeds the hasher as the key with this text does, or returns an error about the text.
type HashTextFn = dyn Fn(&str, &mut KeyHasher) -> Result<(), String> + Send + Sync;
/// A function that tells whether a request has the key.
type HasKeyFn<R> = dyn Fn(&R) -> bool + Send + Sync;
/// A function that finds the address of a request in a list of networks.
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
    /// The second list is for requests without the first key.
    Either(Box<[Option<Self>; 2]>, Arc<HasKeyFn<R>>),
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

    /// Returns the network of an entry. An address in `deny` is denied with all addresses of its client. An address in `allow` is
    /// only itself, because the client could let others use the rest.
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
                let networks: Result<Vec<_>, _> = entries.iter().map(network).collect();
                KeyList::Addresses(Arc::clone(find), Networks::new(networks?))
            }
            Self::Either(both, has_first) => {
                let mut entries_of = [Vec::new(), Vec::new()];
                for entry in entries {
                    let one = core::slice::from_ref(entry);
                    let reads = |of: &Self| of.list(key, kind, one, seeds).map(|_| ());
                    let is_second = match reads(&both[0]) {
                        Ok(()) => false,
                        Err(error) => reads(&both[1]).map(|()| true).map_err(|_| error)?,
                    };
                    entries_of[usize::from(is_second)].push(entry.clone());
                }
                let mut lists = [None, None];
                for (at, entries) in entries_of.iter().enumerate() {
                    lists[at] = both[at].list(key, kind, entries, seeds)?;
                }
                let [first, second] = lists;
                let second = second.map(|list| list.of_second(seeds));
                KeyList::Either(Box::new([first, second]), Arc::clone(has_first))
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
            Self::Either(lists, has_first) => {
                let list = &lists[usize::from(!has_first(request))];
                list.as_ref().is_some_and(|list| list.contains(request, hash))
            }
        }
    }

    /// Returns this list for a key that is the second of two, whose values are hashed by [`of_second`].
    fn of_second(self, seeds: &SeededState) -> Self {
        match self {
            Self::Hashes(hashes) => {
                let mut moved = HashSet::with_hasher(seeds.clone());
                moved.extend(hashes.into_iter().map(|hash| of_second(hash, seeds)));
                Self::Hashes(moved)
            }
            Self::Addresses(..) => self,
            Self::Either(lists, has_first) => {
                let of_second = |list: Option<Self>| list.map(|list| list.of_second(seeds));
                Self::Either(Box::new(lists.map(of_second)), has_first)
            }
        }
    }
}

/// The hash of a value of the second key, whose own hash is given. It differs from that of an equal value of the first key.
pub(crate) fn of_second(hash: u64, seeds: &SeededState) -> u64 {
    let mut hasher = seeds.build_hasher();
    hasher.write(b"or");
    hasher.write_u64(hash);
    hasher.finish()
}

impl<R: ?Sized> Clone for ListEntries<R> {
    fn clone(&self) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            Self::Values(parse) => Self::Values(Arc::clone(parse)),
            Self::Addresses(find, prefixes) => Self::Addresses(Arc::clone(find), *prefixes),
            Self::Either(both, has_first) => Self::Either(Arc::clone(both), Arc::clone(has_first)),
        }
    }
}

impl<R: ?Sized> fmt::Debug for KeyList<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hashes(hashes) => f.debug_tuple("Hashes").field(&hashes.len()).finish(),
            Self::Addresses(_, networks) => f.debug_tuple("Addresses").field(networks).finish(),
            Self::Either(lists, _) => f.debug_tuple("Either").field(lists).finish(),
        }
    }
}
