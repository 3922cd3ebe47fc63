use alloc::format;
use core::time::Duration;

use super::fields::{missing, only_fields, text, whole};
use super::file_error::FileError;
use super::keywords::{A_DURATION, A_QUOTA, A_WHOLE_NUMBER, BLOCK};
use super::parse::node::{Node, Value};
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::rules::rule::block::Block;

/// Reads the field `block` of a rule, and checks its ranges.
pub(super) fn block(node: &Node) -> Result<Block, FileError> {
    only_fields(node, BLOCK, "block", "a map with after and for")?;
    let after = node
        .field("after")
        .ok_or_else(|| missing(node, "after", A_QUOTA))?;
    let quota: Result<Quota, ConfigError> = text(after, "after", A_QUOTA)?.parse();
    let quota = quota.map_err(|error| FileError::value(after.at, error))?;
    let lasting = duration(node, "for")?.ok_or_else(|| missing(node, "for", A_DURATION))?;
    let mut block = Block::new(quota, lasting);
    if let Some(factor) = node.field("factor") {
        let given = u32::try_from(whole("factor", factor)?);
        let given = given.map_err(|_| factor.unexpected("factor", A_WHOLE_NUMBER))?;
        let needed = |name| duration(node, name)?.ok_or_else(|| missing(node, name, A_DURATION));
        block = block.escalate(given, needed("ceiling")?, needed("forgive_after")?);
        if given < 2 {
            let error = ConfigError::new("factor", format!("{given}"), "a whole number, at least 2");
            return Err(FileError::value(factor.at, error));
        }
    } else if let Some(alone) = node.field("ceiling").or_else(|| node.field("forgive_after")) {
        let error = ConfigError::new(
            "block",
            "a ceiling or forgive_after without factor",
            "a factor beside them",
        );
        return Err(FileError::value(alone.at, error));
    }
    if let Some(extend) = node.field("extend") {
        block = match extend.value {
            Value::Bool(true) => block.extend_on_retry(),
            Value::Bool(false) => block,
            Value::Whole(_) | Value::Text(_) | Value::List(_) | Value::Map(_) | Value::Other(_) => {
                return Err(extend.unexpected("extend", "true or false"));
            }
        };
    }
    block.validate().map_err(|error| {
        let at = node.field(error.field).map_or(node.at, |field| field.at);
        FileError::value(at, error)
    })?;
    Ok(block)
}

/// Reads a duration, which is written as the window of a quota.
fn duration(block: &Node, name: &'static str) -> Result<Option<Duration>, FileError> {
    let Some(node) = block.field(name) else {
        return Ok(None);
    };
    let quota: Result<Quota, ConfigError> = format!("1/{}", text(node, name, A_DURATION)?).parse();
    match quota {
        Ok(quota) => Ok(Some(quota.window())),
        Err(_) => Err(node.unexpected(name, A_DURATION)),
    }
}
