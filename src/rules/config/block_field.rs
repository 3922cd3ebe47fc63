use super::fields::{MapReader, boolean, duration, quota, whole};
use super::file_error::FileError;
use super::keywords::{A_DURATION, A_QUOTA, BLOCK};
use super::parse::node::Node;
use crate::quota::Quota;
use crate::rules::rule::block::Block;

/// Reads the field `block` of a rule. The rule set checks its ranges.
pub(super) fn block(node: &Node) -> Result<Block, FileError> {
    let mut map = MapReader::of(node, BLOCK, "block", "a map with after and for");
    let after = map.required("after", A_QUOTA, STAND_IN, |node| quota("after", node));
    let duration = |map: &mut MapReader<'_>, name| {
        map.required(name, A_DURATION, Block::MIN, |node| {
            duration(name, node, A_DURATION)
        })
    };
    let lasting = duration(&mut map, "for");
    let mut block = Block::new(after, lasting);
    if map.field("factor").is_some() {
        let factor = map.optional("factor", factor);
        let ceiling = duration(&mut map, "ceiling");
        block = block.escalate(factor.unwrap_or(2), ceiling, duration(&mut map, "forgive_after"));
    } else if let Some(alone) = map.field("ceiling").or_else(|| map.field("forgive_after")) {
        let given = "a ceiling or forgive_after without factor";
        let error = alone.invalid("block", given, "a factor beside them");
        map.accept::<()>("factor", Err(error));
    }
    if map.optional("extend", |node| boolean("extend", node)) == Some(true) {
        block = block.extend_on_retry();
    }
    map.finish(block)
}

/// The quota of a block without a valid one, which is not used.
const STAND_IN: Quota = Quota::of_period(1, Block::MIN);

/// Reads a factor. A rule set takes the factor 1 of a [`Block`] for none.
fn factor(node: &Node) -> Result<u32, FileError> {
    let factor = u32::try_from(whole("factor", node)?)
        .ok()
        .filter(|factor| *factor > 1);
    factor.ok_or_else(|| node.unexpected("factor", "a whole number from 2 to 4294967295"))
}
