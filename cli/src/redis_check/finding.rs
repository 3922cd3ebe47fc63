//! A finding: the state of one thing, its meaning for the limits, and advice.

use serde::Serialize;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    /// A limitation to know.
    Note,
    /// A limitation that most users should remove.
    Warning,
    /// A bound does not hold, or calls are errors.
    Problem,
}

impl Level {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// A finding; the fields are those of the JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    /// The nodes that it concerns; empty if it concerns all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) nodes: Vec<String>,
    pub(super) found: String,
    pub(super) means: String,
    #[serde(rename = "do", skip_serializing_if = "String::is_empty")]
    pub(super) advice: String,
}

impl Finding {
    pub(super) fn new(check: &'static str, level: Level, found: impl Into<String>) -> Self {
        Self {
            check,
            level,
            nodes: Vec::new(),
            found: found.into(),
            means: String::new(),
            advice: String::new(),
        }
    }

    pub(super) fn means(mut self, means: impl Into<String>) -> Self {
        self.means = means.into();
        self
    }

    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }
}

/// Merges equal findings of several nodes, and keeps findings of the same check together.
pub(super) fn merge(findings: Vec<(String, Finding)>, nodes: usize) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::new();
    for (node, finding) in findings {
        let equal = merged.iter_mut().find(|other| {
            (other.check, other.level, &other.found, &other.means)
                == (finding.check, finding.level, &finding.found, &finding.means)
        });
        match equal {
            Some(equal) => equal.nodes.push(node),
            None => merged.push(Finding {
                nodes: vec![node],
                ..finding
            }),
        }
    }
    for finding in &mut merged {
        if finding.nodes.len() == nodes {
            finding.nodes.clear();
        }
    }
    let order: Vec<&str> = merged.iter().map(|finding| finding.check).collect();
    merged.sort_by_key(|finding| order.iter().position(|check| *check == finding.check));
    merged
}

#[cfg(test)]
mod tests {
    use super::{Finding, Level, merge};

    #[test]
    fn equal_findings_are_merged() {
        let findings = [
            ("a", "x", "1"),
            ("a", "y", "2"),
            ("b", "x", "1"),
            ("b", "y", "3"),
            ("c", "x", "1"),
            ("c", "y", "2"),
        ];
        let findings =
            findings.map(|(node, check, found)| (node.to_owned(), Finding::new(check, Level::Ok, found)));
        let merged = merge(findings.to_vec(), 3);
        let merged: Vec<_> = merged
            .iter()
            .map(|finding| (finding.check, &*finding.found, finding.nodes.join(" ")))
            .collect();
        let expected = [("x", "1", ""), ("y", "2", "a c"), ("y", "3", "b")];
        assert_eq!(
            merged,
            expected.map(|(check, found, nodes)| (check, found, nodes.to_owned()))
        );
    }
}
