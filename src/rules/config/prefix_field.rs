use alloc::vec::Vec;

use super::fields::{MapReader, whole};
use super::file_error::FileError;
use super::keywords::PREFIX;
use super::parse::node::{Node, Value};
use crate::error::ConfigError;
use crate::rules::key::Key;

/// Each key of one file that a rule gives other prefixes, and the key with these. Rules with the same key and the same prefixes
/// have clones of one key, so that they can share a state.
pub(super) struct PrefixedKeys<R: ?Sized>(Vec<(Key<R>, Key<R>)>);

impl<R: ?Sized> PrefixedKeys<R> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Reads the field `prefix` of a rule, and returns the key with these prefixes.
    pub(super) fn key(&mut self, node: &Node, key: Option<&Key<R>>) -> Result<Key<R>, FileError> {
        let mut map = MapReader::of(node, PREFIX, "prefix", "a map with ipv4, ipv6 or both");
        if let Value::Map(fields) = &node.value
            && fields.is_empty()
        {
            return Err(node.unexpected("prefix", "a map with ipv4, ipv6 or both"));
        }
        let invalid = |given, expected: &str| node.invalid("prefix", given, expected);
        let key = key.ok_or_else(|| invalid("given for a rule without a key", "a rule with a key"))?;
        let own = key
            .prefixes()
            .ok_or_else(|| invalid("given for a key that is no address", "a key of addresses"))?;
        let mut bits = |field, own, range| {
            let bits = map.optional(field, |node| {
                let bits = u8::try_from(whole(field, node)?);
                bits.map_err(|_| node.unexpected(field, range))
            });
            bits.unwrap_or(own)
        };
        let ipv4 = bits("ipv4", own.ipv4(), "1 to 32 bits of an IPv4 address");
        let ipv6 = bits("ipv6", own.ipv6(), "1 to 128 bits of an IPv6 address");
        map.finish(())?;
        let prefixed = key.with_prefixes(ipv4, ipv6);
        let prefixed = prefixed.map_err(|error| {
            let field = match error.field {
                "ipv4_prefix" => "ipv4",
                _ => "ipv6",
            };
            let at = node.field(field).map_or(node.at, |field| field.at);
            FileError::value(at, ConfigError { field, ..error })
        })?;
        let mut known = self.0.iter();
        let same = |(of, known): &&(Key<R>, Key<R>)| of.is_same(key) && known.name() == prefixed.name();
        if let Some((_, known)) = known.find(same) {
            return Ok(known.clone());
        }
        self.0.push((key.clone(), prefixed.clone()));
        Ok(prefixed)
    }
}
