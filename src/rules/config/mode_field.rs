use super::fields::{MapReader, duration, whole};
use super::file_error::FileError;
use super::keywords::{A_MODE, A_PERIOD, LEASE, MODES, SYNC};
use super::parse::node::{Node, Value};
use crate::rules::rule::mode::Mode;

/// Reads the field `mode` of a rule. The value is a word, or a map from one word to the fields of the mode. The
/// rule set checks their ranges.
pub(super) fn mode(node: &Node) -> Result<Mode, FileError> {
    match &node.value {
        Value::Text(word) => {
            let known = MODES.iter().find(|(known, _)| known == word);
            known
                .map(|&(_, mode)| mode)
                .ok_or_else(|| node.unexpected("mode", A_MODE))
        }
        Value::Map(fields) => match &fields[..] {
            [entry] if entry.name == "lease" => {
                let mut map = MapReader::of(&entry.node, LEASE, "lease", "a map");
                let permits = map.required("permits", A_NUMBER, 1, |node| whole("permits", node));
                map.finish(Mode::Lease { permits })
            }
            [entry] if entry.name == "sync" => {
                let mut map = MapReader::of(&entry.node, SYNC, "sync", "a map");
                let pending = map.required("pending", A_NUMBER, 1, |node| whole("pending", node));
                let period = |node: &Node| duration("period", node, A_PERIOD);
                let period = map.required("period", A_PERIOD, Mode::MIN_PERIOD, period);
                map.finish(Mode::Sync { period, pending })
            }
            _ => Err(node.unexpected("mode", A_MODE)),
        },
        Value::Bool(_) | Value::Whole(_) | Value::List(_) | Value::Other(_) => {
            Err(node.unexpected("mode", A_MODE))
        }
    }
}

const A_NUMBER: &str = "a number of permits";
