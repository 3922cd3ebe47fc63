use alloc::format;
use core::time::Duration;

use super::fields::{missing, only_fields, text, whole};
use super::file_error::FileError;
use super::keywords::{A_MODE, A_PERIOD, LEASE, MODES, SYNC};
use super::parse::node::{Node, Value};
use crate::quota::Quota;
use crate::rules::rule::mode::Mode;

/// Reads the field `mode` of a rule. The value is a word, or a map from one word to the fields of the mode.
pub(super) fn mode(node: &Node) -> Result<Mode, FileError> {
    let mode = match &node.value {
        Value::Text(word) => {
            let known = MODES.iter().find(|(known, _)| known == word);
            return known
                .map(|&(_, mode)| mode)
                .ok_or_else(|| node.unexpected("mode", A_MODE));
        }
        Value::Map(fields) => match &fields[..] {
            [entry] if entry.name == "lease" => {
                let permits = number(&entry.node, LEASE, "lease", "permits")?;
                (Mode::Lease { permits }, &entry.node)
            }
            [entry] if entry.name == "sync" => {
                let pending = number(&entry.node, SYNC, "sync", "pending")?;
                let period = period(&entry.node)?;
                (Mode::Sync { period, pending }, &entry.node)
            }
            _ => return Err(node.unexpected("mode", A_MODE)),
        },
        Value::Bool(_) | Value::Whole(_) | Value::List(_) | Value::Other(_) => {
            return Err(node.unexpected("mode", A_MODE));
        }
    };
    let (mode, given) = mode;
    mode.validate().map_err(|error| {
        let position = given.field(error.field).map_or(given.at, |field| field.at);
        FileError::value(position, error)
    })?;
    Ok(mode)
}

fn number(map: &Node, fields: &[&str], of: &'static str, field: &'static str) -> Result<u64, FileError> {
    only_fields(map, fields, of, "a map")?;
    let given = map
        .field(field)
        .ok_or_else(|| missing(map, field, "a number of permits"))?;
    whole(field, given)
}

fn period(map: &Node) -> Result<Duration, FileError> {
    let given = map
        .field("period")
        .ok_or_else(|| missing(map, "period", A_PERIOD))?;
    // A period is written as the window of a quota.
    let quota: Result<Quota, _> = format!("1/{}", text(given, "period", A_PERIOD)?).parse();
    quota
        .map(Quota::window)
        .map_err(|_| given.unexpected("period", A_PERIOD))
}
