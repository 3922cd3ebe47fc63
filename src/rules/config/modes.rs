use alloc::format;
use core::time::Duration;

use super::file_error::FileError;
use super::node::{Node, Value};
use super::reader::{missing, only, text, whole};
use super::words::{A_MODE, A_PERIOD, LEASE, MODES, SYNC};
use crate::quota::Quota;
use crate::rules::Mode;

/// What a rule's field `mode` says: a word, or a map of one word to what it needs.
pub(super) fn mode(node: &Node) -> Result<Mode, FileError> {
    let mode = match &node.value {
        Value::Text(word) => {
            let known = MODES.iter().find(|(known, _)| known == word);
            return known
                .map(|&(_, mode)| mode)
                .ok_or_else(|| node.not_allowed("mode", A_MODE));
        }
        Value::Map(entries) => match &entries[..] {
            [entry] if entry.name == "lease" => {
                let permits = number(&entry.node, LEASE, "lease", "permits")?;
                (Mode::Lease { permits }, &entry.node)
            }
            [entry] if entry.name == "sync" => {
                let pending = number(&entry.node, SYNC, "sync", "pending")?;
                let period = period(&entry.node)?;
                (Mode::Sync { period, pending }, &entry.node)
            }
            _ => return Err(node.not_allowed("mode", A_MODE)),
        },
        _ => return Err(node.not_allowed("mode", A_MODE)),
    };
    let (mode, given) = mode;
    // What is wrong with it is one of its fields.
    mode.validate().map_err(|error| {
        let place = given.field(error.field).map_or(given.at, |field| field.at);
        FileError::value(place, error)
    })?;
    Ok(mode)
}

fn number(map: &Node, fields: &[&str], of: &'static str, field: &'static str) -> Result<u64, FileError> {
    only(map, fields, of, "a map")?;
    let given = map
        .field(field)
        .ok_or_else(|| missing(map, field, "a number of permits"))?;
    whole(field, given)
}

fn period(map: &Node) -> Result<Duration, FileError> {
    let given = map
        .field("period")
        .ok_or_else(|| missing(map, "period", A_PERIOD))?;
    // As the window of a quota is read.
    let quota: Result<Quota, _> = format!("1/{}", text(given, "period", A_PERIOD)?).parse();
    quota
        .map(Quota::window)
        .map_err(|_| given.not_allowed("period", A_PERIOD))
}
