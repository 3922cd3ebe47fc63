//! The keys of requests: what stands for them, and what they are called.

use core::hash::Hasher;
use std::hash::DefaultHasher;

use crate::row::{Row, shown};

/// Stands for the values of a key: the same in every run, and hard to make two of. 62 bits are enough to tell keys
/// apart.
pub(crate) fn hash<V: AsRef<[u8]>>(column: usize, values: impl Iterator<Item = Option<V>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(u8::try_from(column % 256).unwrap_or(0));
    for value in values {
        match value {
            // The length keeps "ab", "c" apart from "a", "bc"; no value has this one.
            None => hasher.write_u32(u32::MAX),
            Some(value) => {
                let value = value.as_ref();
                hasher.write_u32(u32::try_from(value.len()).unwrap_or(u32::MAX - 1));
                hasher.write(value);
            }
        }
    }
    // The low bits are for others.
    hasher.finish() & !LOW
}

/// Bits of a key that are always zero.
const LOW: u64 = 0b11;

/// Stands where a key has no value.
pub(crate) const NONE: &str = "(none)";

/// Characters that are kept of a key's name.
const NAME: usize = 200;

/// The name of a key, as it is shown.
pub(crate) fn name(row: &Row, fields: &[usize]) -> String {
    let values: Vec<String> = fields
        .iter()
        .map(|&field| row.get(field).map_or_else(|| NONE.into(), shown))
        .collect();
    let mut name = values.join(",");
    if let Some((end, _)) = name.char_indices().nth(NAME) {
        name.truncate(end);
        name.push('…');
    }
    name
}
