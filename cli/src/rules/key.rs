//! The keys of requests: their hashes and their names.

use core::hash::Hasher;
use std::hash::DefaultHasher;

use crate::input::client::{self, Prefixes};
use crate::input::row::{Row, shown};

/// Hashes the values of a key, equally in every run and for every address of one client. Its 62 bits tell keys apart.
pub(crate) fn hash<V: AsRef<[u8]>>(
    column: usize,
    prefixes: Prefixes,
    values: impl Iterator<Item = Option<V>>,
) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(u8::try_from(column % 256).unwrap_or(0));
    for value in values {
        match value {
            // The length tells "ab", "c" from "a", "bc". No value has this length.
            None => hasher.write_u32(u32::MAX),
            Some(value) => {
                // A client has one key, however its address is written and whichever of its network it is.
                let client = client::counted(value.as_ref(), prefixes);
                let value = client.as_ref().map_or(value.as_ref(), String::as_bytes);
                hasher.write_u32(u32::try_from(value.len()).unwrap_or(u32::MAX - 1));
                hasher.write(value);
            }
        }
    }
    // The low bits are left to `replay::by_key`.
    hasher.finish() & !LOW
}

/// The bits of a hash that are always zero.
const LOW: u64 = 0b11;

/// The name of a missing value.
pub(crate) const NONE: &str = "(none)";

/// The longest name in characters.
const NAME: usize = 200;

/// The name of a key for reports.
pub(crate) fn name(row: &Row, fields: &[usize], prefixes: Prefixes) -> String {
    let values: Vec<String> = fields
        .iter()
        .map(|&field| {
            row.get(field).map_or_else(
                || NONE.into(),
                |value| client::counted(value, prefixes).unwrap_or_else(|| shown(value)),
            )
        })
        .collect();
    let mut name = values.join(",");
    if let Some((end, _)) = name.char_indices().nth(NAME) {
        name.truncate(end);
        name.push('…');
    }
    name
}
