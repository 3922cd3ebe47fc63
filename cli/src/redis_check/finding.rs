//! A finding: the state of one thing, its meaning for the limits, and what to type.

use serde::Serialize;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    /// A limitation that most users should remove.
    Warning,
    /// A bound does not hold, or calls are errors.
    Problem,
}

/// The state of one thing, its meaning for the limits, and what to type; the fields are those of the JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    /// The nodes that it concerns; empty if it concerns all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) nodes: Vec<String>,
    pub(super) found: String,
    pub(super) means: &'static str,
    #[serde(rename = "do", skip_serializing_if = "String::is_empty")]
    pub(super) advice: String,
}

impl Finding {
    pub(super) fn new(
        check: &'static str,
        level: Level,
        found: impl Into<String>,
        means: &'static str,
    ) -> Self {
        Self {
            check,
            level,
            nodes: Vec::new(),
            found: found.into(),
            means,
            advice: String::new(),
        }
    }

    pub(super) fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }
}

/// Merges equal findings of several nodes, and keeps findings of the same check together.
pub(super) fn merge(findings: Vec<Finding>, nodes: usize) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::new();
    for finding in findings {
        let is_equal = |other: &&mut Finding| {
            (other.check, other.level, &other.found) == (finding.check, finding.level, &finding.found)
        };
        match merged.iter_mut().find(is_equal) {
            Some(equal) => equal.nodes.extend(finding.nodes),
            None => merged.push(finding),
        }
    }
    for finding in merged.iter_mut().filter(|finding| finding.nodes.len() == nodes) {
        finding.nodes.clear();
    }
    let order: Vec<&str> = merged.iter().map(|finding| finding.check).collect();
    merged.sort_by_key(|finding| order.iter().position(|check| *check == finding.check));
    merged
}
