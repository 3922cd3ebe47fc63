use alloc::format;
use core::time::Duration;

use super::fields::{MapReader, quota, text, whole};
use super::file_error::FileError;
use super::keywords::{A_DURATION, A_QUOTA, A_WHOLE_NUMBER, BLOCK};
use super::parse::node::{Node, Value};
use crate::error::ConfigError;
use crate::quota::Quota;
use crate::rules::rule::block::Block;

/// Reads the field `block` of a rule. The rule set checks its ranges.
pub(super) fn block(node: &Node) -> Result<Block, FileError> {
    let mut map = MapReader::of(node, BLOCK, "block", "a map with after and for");
    let after = map.required("after", A_QUOTA, STAND_IN, |node| quota("after", node));
    let lasting = map.required("for", A_DURATION, Block::MIN, |node| duration("for", node));
    let mut block = Block::new(after, lasting);
    if map.field("factor").is_some() {
        let factor = map.optional("factor", factor);
        let mut duration = |name| map.required(name, A_DURATION, Block::MIN, |node| duration(name, node));
        let (ceiling, forgive_after) = (duration("ceiling"), duration("forgive_after"));
        block = block.escalate(factor.unwrap_or(2), ceiling, forgive_after);
    } else if let Some(alone) = map.field("ceiling").or_else(|| map.field("forgive_after")) {
        let error = ConfigError::new(
            "block",
            "a ceiling or forgive_after without factor",
            "a factor beside them",
        );
        map.accept::<()>("factor", Err(FileError::value(alone.at, error)));
    }
    if map.optional("extend", extend) == Some(true) {
        block = block.extend_on_retry();
    }
    map.finish(block)
}

/// The quota of a block without a valid one, which is not used.
const STAND_IN: Quota = Quota::of_period(1, Block::MIN);

/// Reads a factor. A rule set takes the factor 1 of a [`Block`] for none.
fn factor(node: &Node) -> Result<u32, FileError> {
    let factor = u32::try_from(whole("factor", node)?);
    match factor.map_err(|_| node.unexpected("factor", A_WHOLE_NUMBER))? {
        0 | 1 => Err(node.unexpected("factor", "a whole number, at least 2")),
        factor => Ok(factor),
    }
}

fn extend(node: &Node) -> Result<bool, FileError> {
    match node.value {
        Value::Bool(extend) => Ok(extend),
        Value::Whole(_) | Value::Text(_) | Value::List(_) | Value::Map(_) | Value::Other(_) => {
            Err(node.unexpected("extend", "true or false"))
        }
    }
}

/// Reads a duration, which is written as the window of a quota.
fn duration(name: &'static str, node: &Node) -> Result<Duration, FileError> {
    let quota: Result<Quota, ConfigError> = format!("1/{}", text(node, name, A_DURATION)?).parse();
    match quota {
        Ok(quota) => Ok(quota.window()),
        Err(_) => Err(node.unexpected(name, A_DURATION)),
    }
}
