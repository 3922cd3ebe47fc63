//! The report as one HTML page without other files. Its text and tables need no script.
//!
//! The templates in `cli/templates` have the sentences and tables. `page.js` reads the report that the page carries, and draws
//! the charts. Text from a log is never markup: the templates and [`text`] escape it, and the script uses figures and copies of
//! elements only.

mod text;
mod copy;

use askama::Template;
use askama::filters::Safe;

use crate::failure::Failure;
use crate::report::{ComparisonReport, KeyReport, Report, RuleReport, WhatIfReport};

use super::Point;

const STYLE: Safe<&str> = Safe(include_str!("page.css"));
/// The script, which must not contain the end of its element.
const SCRIPT: Safe<&str> = Safe(concat!(
    "\n(() => {\n'use strict';\n",
    include_str!("text.js"),
    include_str!("chart.js"),
    include_str!("page.js"),
    "})();\n",
));
/// The hash of the script, the only one that the page allows; `ci/page.sh` prints it after a change.
const SCRIPT_HASH: Safe<&str> = Safe("sha256-Uh8LF+iOCU0nSoBY0pHUQZHWYO10faQo6DMvnfo9PJA=");

/// A page and the methods that its templates call.
#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    data: &'a Report,
    json: &'a str,
}

/// Renders a report, which the page carries as JSON.
///
/// # Errors
///
/// When the page is too large for the memory.
pub(crate) fn render(data: &Report, json: &str) -> Result<String, Failure> {
    let page = Page { data, json };
    page.render()
        .map_err(|error| Failure::io("cannot render the page", &error))
}

impl Page<'_> {
    /// The length of a step of the chart over time, in milliseconds.
    fn step(&self) -> f64 {
        self.data.step as f64
    }

    /// The key that was denied most.
    fn most_denied(&self) -> Option<&KeyReport> {
        self.data.keys.first().filter(|most| most.denied > 0)
    }

    /// The highest count of that key, and its time.
    fn highest_peak(&self) -> Option<Point> {
        let chart = (*self.data.charts().first()?)?;
        self.data.chosen[chart].peak()
    }

    /// The rules with other limits that were tried.
    fn tried(&self) -> Vec<&WhatIfReport> {
        let tried = self.data.what_if.iter();
        tried.filter(|tried| !tried.limits.is_empty()).collect()
    }

    /// The first three of them, that of the key that was denied most before the others.
    fn answered(&self) -> Vec<(&WhatIfReport, &RuleReport)> {
        let first = self.data.keys.first().map(|most| &most.rule);
        let tried = self.tried().into_iter();
        let mut tried: Vec<_> = tried
            .filter_map(|tried| Some((tried, self.data.rule(&tried.rule)?)))
            .collect();
        tried.sort_by_key(|(tried, _)| Some(&tried.rule) != first);
        tried.truncate(3);
        tried
    }

    /// Names a rule if there are several.
    fn of_rule(&self, name: &str) -> Safe<String> {
        Safe(match self.data.rules.len() {
            0..=1 => String::new(),
            _ => format!(" for rule {}", text::key(name)),
        })
    }

    /// Whether an algorithm admitted more than the limit.
    fn is_above_limit(&self, row: &ComparisonReport) -> bool {
        let rule = self.data.rule(&row.rule);
        rule.is_some_and(|rule| row.worst > rule.limit)
    }
}
