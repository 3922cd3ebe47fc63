//! The report: all findings as text and as JSON.

use serde::Serialize;

use super::finding::{Finding, Level};

/// The findings about a server or a cluster; the fields are those of the JSON object.
#[derive(Debug, Serialize)]
pub(crate) struct CheckReport {
    /// The address, without a password.
    pub(super) server: String,
    pub(super) findings: Vec<Finding>,
}

impl CheckReport {
    /// Whether a finding is a problem.
    pub(crate) fn has_problem(&self) -> bool {
        self.count(Level::Problem) > 0
    }

    /// The number of findings of a level.
    fn count(&self, level: Level) -> usize {
        let of_level = self.findings.iter().filter(|finding| finding.level == level);
        of_level.count()
    }

    /// A paragraph for each finding, and the number of findings of each level.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\n", self.server);
        for finding in &self.findings {
            let level = format!("{:?}", finding.level).to_lowercase();
            text += &format!("{level:<8} {}: ", finding.check);
            if !finding.nodes.is_empty() {
                text += &format!("{}: ", finding.nodes.join(", "));
            }
            text += &format!("{}\n{:9}{}\n", finding.found, "", finding.means);
            if !finding.advice.is_empty() {
                text += &format!("{:9}-> {}\n", "", finding.advice);
            }
        }
        let [problems, warnings] = [Level::Problem, Level::Warning].map(|level| self.count(level));
        text + &format!("\nproblems: {problems}, warnings: {warnings}\n")
    }
}
