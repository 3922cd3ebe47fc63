//! The report: all findings as text and as JSON.

use core::fmt::Write;
use std::io;

use serde::Serialize;

use super::finding::{Finding, Level};
use super::scripts::Figures;
use crate::failure::Failure;

/// The findings about a server or a cluster; the fields are those of the JSON object.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    /// The address, without a password.
    pub(super) server: String,
    pub(super) kind: Option<&'static str>,
    pub(super) version: Option<String>,
    pub(super) findings: Vec<Finding>,
    pub(super) latency: Vec<Figures>,
}

/// Columns of the text form.
const WIDTH: usize = 100;
/// Columns before the text of a finding.
const INDENT: usize = 22;

impl Report {
    /// The number of findings of a level.
    pub(super) fn count(&self, level: Level) -> usize {
        let of_level = self.findings.iter().filter(|finding| finding.level == level);
        of_level.count()
    }

    /// One JSON object on one line.
    pub(super) fn json(&self) -> Result<String, Failure> {
        let object = serde_json::to_string(self)
            .map_err(|error| Failure::io("cannot write the report as JSON", io::Error::from(error)))?;
        Ok(object + "\n")
    }

    /// A paragraph for each finding, and the number of findings of each level.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n", self.server);
        for finding in &self.findings {
            let head = format!("{:<8} {:<12}", finding.level.name(), finding.check);
            let found = match finding.nodes.as_slice() {
                [] => finding.found.clone(),
                nodes => format!("{}: {}", nodes.join(", "), finding.found),
            };
            paragraph(&mut text, &head, &found);
            paragraph(&mut text, "", &finding.means);
            if !finding.advice.is_empty() {
                paragraph(&mut text, "", &format!("-> {}", finding.advice));
            }
        }
        let counts = Level::NAMES.map(|(level, name)| format!("{name}: {}", self.count(level)));
        text + "\n" + &counts.join(", ") + "\n"
    }
}

/// Appends words, wrapped and indented, after a head.
fn paragraph(text: &mut String, head: &str, words: &str) {
    let mut column = INDENT;
    write!(text, "{head:<INDENT$}").expect("writing to a String cannot fail");
    for word in words.split(' ') {
        let length = word.chars().count();
        if column > INDENT && column + 1 + length > WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(INDENT));
            column = INDENT;
        }
        if column > INDENT {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}
