//! What was found, what it means and what to do.

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    /// To be known.
    Note,
    /// To be thought about.
    Warning,
    /// A promise is broken, or will be.
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

/// One of the things that were looked at; its fields are those of the JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) level: Level,
    /// The nodes of a cluster that it is about, if not all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) nodes: Vec<String>,
    pub(super) found: String,
    /// For ringgate's promises.
    pub(super) means: String,
    #[serde(rename = "do", skip_serializing_if = "String::is_empty")]
    pub(super) advice: String,
}

impl Finding {
    pub(super) fn new(
        check: &'static str,
        level: Level,
        found: impl Into<String>,
        means: impl Into<String>,
    ) -> Self {
        Self {
            check,
            level,
            nodes: Vec::new(),
            found: found.into(),
            means: means.into(),
            advice: String::new(),
        }
    }

    /// With what to do.
    pub(super) fn advise(self, advice: impl Into<String>) -> Self {
        Self {
            advice: advice.into(),
            ..self
        }
    }
}

/// What several nodes have in common is said once; `nodes`: how many there are.
pub(super) fn merged(of: Vec<(String, Finding)>, nodes: usize) -> Vec<Finding> {
    let mut merged: Vec<Finding> = Vec::new();
    for (node, finding) in of {
        let same = merged.iter_mut().find(|other| {
            (other.check, other.level, &other.found, &other.means)
                == (finding.check, finding.level, &finding.found, &finding.means)
        });
        match same {
            Some(same) => same.nodes.push(node),
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
    // What is about one thing stands together.
    let order: Vec<&str> = merged.iter().map(|finding| finding.check).collect();
    let place = |check: &str| order.iter().position(|other| *other == check);
    merged.sort_by_key(|finding| place(finding.check));
    merged
}

#[cfg(test)]
mod tests {
    use super::{Finding, Level, merged};

    #[test]
    fn what_nodes_have_in_common_is_said_once() {
        let finding = |check, found: &str| Finding::new(check, Level::Ok, found, "");
        let of = [
            ("a", "x", "1"),
            ("a", "y", "2"),
            ("b", "x", "1"),
            ("b", "y", "3"),
            ("c", "x", "1"),
            ("c", "y", "2"),
        ];
        let of = of.map(|(node, check, found)| (node.to_owned(), finding(check, found)));
        let merged = merged(of.to_vec(), 3);
        let said: Vec<_> = merged
            .iter()
            .map(|finding| (finding.check, &*finding.found, finding.nodes.join(" ")))
            .collect();
        let expected = [("x", "1", ""), ("y", "2", "a c"), ("y", "3", "b")];
        assert_eq!(
            said,
            expected.map(|(check, found, nodes)| (check, found, nodes.to_owned()))
        );
    }
}
