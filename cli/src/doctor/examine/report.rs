//! All findings, as text and as JSON.

use core::fmt::Write;
use std::io;

use serde::Serialize;

use super::clock::Seen;
use super::finding::{Finding, Level};
use super::kind::Kind;
use super::latency::{Figures, millis};
use crate::failure::Failure;

/// What was found at a server, or in a cluster; its fields are those of the JSON object.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Its address, without a password.
    pub(super) server: String,
    kind: Option<&'static str>,
    version: Option<String>,
    pub(super) findings: Vec<Finding>,
    pub(super) latency: Vec<Figures>,
    pub(super) clocks: Vec<Clock>,
}

/// What was seen of one server's clock.
#[derive(Debug, Serialize)]
pub(super) struct Clock {
    pub(super) server: String,
    #[serde(flatten)]
    pub(super) seen: Seen,
}

/// Columns of text.
const WIDTH: usize = 100;
/// Before the text of a finding.
const INDENT: usize = 22;

impl Report {
    pub(super) const fn new(server: String) -> Self {
        Self {
            server,
            kind: None,
            version: None,
            findings: Vec::new(),
            latency: Vec::new(),
            clocks: Vec::new(),
        }
    }

    pub(super) fn of(server: String, kind: Option<Kind>) -> Self {
        let (name, version) = kind.map(|kind| (kind.name, kind.version)).unzip();
        Self {
            kind: name,
            version,
            ..Self::new(server)
        }
    }

    /// With one more finding.
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
            .map_err(|error| Failure::io("the result cannot be written as JSON", io::Error::from(error)))?;
        Ok(object + "\n")
    }

    /// A paragraph for each finding, a table of latencies, and how many findings there are of each level.
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
        if !self.latency.is_empty() {
            line(
                &mut text,
                format_args!(
                    "\n{:<14} {:>10} {:>10} {:>10} {:>8}",
                    "latency", "p50", "p99", "max", "answers"
                ),
            );
            for Figures {
                what,
                answers,
                p50_us,
                p99_us,
                max_us,
                ..
            } in &self.latency
            {
                let [p50, p99, max] = [p50_us, p99_us, max_us].map(|micros| millis(*micros));
                line(
                    &mut text,
                    format_args!("{what:<14} {p50:>10} {p99:>10} {max:>10} {answers:>8}"),
                );
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
    writeln!(text, "{content}").expect("a String takes whatever is written");
}

/// Words in lines of one width, under each other.
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
