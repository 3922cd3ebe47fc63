//! All findings, as text and as JSON.

use core::fmt::Write;
use std::io;

use serde::Serialize;

use super::finding::{Finding, Level};
use super::latency::Figures;
use super::server::Product;
use crate::failure::Failure;

/// The findings about a server or a cluster; the fields are those of the JSON object.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The address, without a password.
    pub(super) server: String,
    kind: Option<&'static str>,
    version: Option<String>,
    pub(super) findings: Vec<Finding>,
    pub(super) latency: Vec<Figures>,
}

/// Columns of the text form.
const WIDTH: usize = 100;
/// Columns before the text of a finding.
const INDENT: usize = 22;

impl Report {
    pub(super) fn new(server: String, product: Option<Product>) -> Self {
        let (kind, version) = product.map(|product| (product.name, product.version)).unzip();
        Self {
            server,
            kind,
            version,
            findings: Vec::new(),
            latency: Vec::new(),
        }
    }

    pub(super) fn with(mut self, finding: Finding) -> Self {
        self.findings.push(finding);
        self
    }

    pub(super) fn has_problem(&self) -> bool {
        self.count(Level::Problem) > 0
    }

    fn count(&self, level: Level) -> usize {
        self.findings
            .iter()
            .filter(|finding| finding.level == level)
            .count()
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
            let head = format!("{:<8} {:<12} ", finding.level.name(), finding.check);
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
        let counts: Vec<String> = [Level::Problem, Level::Warning, Level::Note, Level::Ok]
            .into_iter()
            .map(|level| format!("{}: {}", level.name(), self.count(level)))
            .collect();
        line(&mut text, format_args!("\n{}", counts.join(", ")));
        text
    }
}

fn line(text: &mut String, content: core::fmt::Arguments<'_>) {
    writeln!(text, "{content}").expect("writing to a String cannot fail");
}

/// Appends words, wrapped and indented, after a head.
fn paragraph(text: &mut String, head: &str, words: &str) {
    let mut present = format!("{head:<INDENT$}");
    let mut empty = true;
    for word in words.split(' ') {
        if !empty && present.chars().count() + 1 + word.chars().count() > WIDTH {
            line(text, format_args!("{present}"));
            present = " ".repeat(INDENT);
            empty = true;
        }
        if !empty {
            present.push(' ');
        }
        present.push_str(word);
        empty = false;
    }
    line(text, format_args!("{present}"));
}
