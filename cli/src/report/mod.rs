//! The report of a replay: the JSON object that is printed and rendered as a page.

pub(crate) mod page;
pub(crate) mod tables;

use serde::Serialize;
use serde_json::Number;

use crate::replay::details::FieldReport;
use crate::replay::sliding_counts::{Point, SlidingCounts};

/// The version of the object. Added fields keep it, renamed fields change it.
pub(crate) const VERSION: u32 = 1;

/// The results of a replay. Times are milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) version: u32,
    /// The names of the inputs.
    pub(crate) sources: Vec<String>,
    /// The formats of the inputs that are not empty, with the reason for each.
    pub(crate) formats: Vec<String>,
    pub(crate) lines: u64,
    pub(crate) requests: u64,
    /// Requests that all rules admitted, and those that one or more denied.
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    pub(crate) unreadable: u64,
    /// The times of the first and of the last request.
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// The length of one step of the series, which begins at `from`.
    pub(crate) step: i64,
    pub(crate) rules: Vec<RuleReport>,
    pub(crate) series: SeriesReport,
    /// The keys of all rules with the most denials, then those with the highest peaks, in descending order.
    pub(crate) keys: Vec<KeyReport>,
    /// The sliding counts of the first keys.
    pub(crate) chosen: Vec<ChosenReport>,
    /// Each rule by itself with other limits.
    pub(crate) what_if: Vec<WhatIfReport>,
    /// Each rule by itself with every algorithm.
    pub(crate) compare: Vec<ComparisonReport>,
    /// Reasons to doubt the figures, and notes about the input and the rules.
    pub(crate) warnings: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// Whether an input ended within compressed data, so that the figures are those of its beginning.
    pub(crate) truncated: bool,
}

/// A rule, or one of its quotas if it has several.
#[derive(Debug, Serialize)]
pub(crate) struct RuleReport {
    pub(crate) name: String,
    pub(crate) quota: String,
    pub(crate) limit: u64,
    /// The periods of a calendar and their time zone, such as `month from 5, Europe/Berlin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) period: Option<String>,
    /// Milliseconds, possibly with a fraction. For a calendar, those of the shortest period.
    pub(crate) window: Number,
    pub(crate) algorithm: String,
    /// Cells per window, if they do not depend on the limit.
    pub(crate) cells: Option<u64>,
    /// The form that a sliding window chose, in words: `one word of 16 cells in units of 4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) form: Option<String>,
    /// The name of the key; "all" for one limit for all requests.
    pub(crate) key: String,
    /// The field with the cost, and the condition.
    pub(crate) cost: Option<String>,
    pub(crate) when: Option<String>,
    /// The burst in permits, if it is set.
    pub(crate) burst: Option<u64>,
    /// Whether it is enforced for no key, or for a part of the keys.
    pub(crate) shadow: bool,
    /// The parts of the rule that other limits, other algorithms and the rule to copy leave out, as `tiers`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) left_out: Vec<String>,
    /// Requests that the rule applied to.
    pub(crate) requests: u64,
    /// Of these, those that all rules admitted, and those that this rule denied.
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    /// The most permits that were admitted to a key in any window.
    pub(crate) worst: u64,
    /// The most permits that the algorithm can admit in a window.
    pub(crate) bound: u64,
    /// The state of one key in bytes.
    pub(crate) bytes: u64,
    pub(crate) keys: u64,
}

impl RuleReport {
    /// The algorithm and the short name of its form: `sliding-window, one word`, or `counter, 60 cells`.
    pub(crate) fn label(&self) -> String {
        let form = self.form.as_ref().and_then(|form| form.split(" of ").next());
        match (form, self.cells) {
            (Some(form), _) => format!("{}, {form}", self.algorithm),
            (None, Some(cells)) => format!("{}, {cells} cells", self.algorithm),
            (None, None) => self.algorithm.clone(),
        }
    }
}

/// The requests of each interval of the log.
#[derive(Debug, Serialize)]
pub(crate) struct SeriesReport {
    pub(crate) requests: Vec<u64>,
    pub(crate) denied: Vec<u64>,
    pub(crate) by_rule: serde_json::Map<String, serde_json::Value>,
}

/// One of the top keys.
#[derive(Debug, Serialize)]
pub(crate) struct KeyReport {
    pub(crate) rule: String,
    pub(crate) key: String,
    pub(crate) requests: u64,
    pub(crate) denied: u64,
    pub(crate) first_denied: Option<i64>,
    pub(crate) last_denied: Option<i64>,
    /// The most permits that were requested in any window.
    pub(crate) worst: u64,
}

/// The history of one key, for the chart of the page.
#[derive(Debug, Serialize)]
pub(crate) struct ChosenReport {
    pub(crate) rule: String,
    pub(crate) key: String,
    pub(crate) limit: u64,
    /// Milliseconds.
    pub(crate) window: Number,
    /// Times with the permits in the window that ends there, which hold until the next time.
    pub(crate) asked: Vec<Point>,
    pub(crate) admitted: Vec<Point>,
    /// With too many points, those above are the largest and the last of each stretch of time, and these are the points
    /// around the peak of the requests.
    pub(crate) near: Option<SlidingCounts>,
    /// Paths, status codes and user agents of its denied requests, where the log has them.
    pub(crate) details: Vec<FieldReport>,
}

/// The denied requests of a rule at other limits.
#[derive(Debug, Serialize)]
pub(crate) struct WhatIfReport {
    pub(crate) rule: String,
    /// Ascending.
    pub(crate) limits: Vec<u64>,
    pub(crate) denied: Vec<u64>,
    pub(crate) keys_denied: Vec<u64>,
    pub(crate) requests: u64,
    pub(crate) keys: u64,
}

/// One row of the comparison of algorithms.
#[derive(Debug, Serialize)]
pub(crate) struct ComparisonReport {
    pub(crate) rule: String,
    pub(crate) algorithm: String,
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    pub(crate) worst: u64,
    pub(crate) bound: u64,
    pub(crate) bytes: u64,
}

impl Report {
    pub(crate) fn rule(&self, name: &str) -> Option<&RuleReport> {
        self.rules.iter().find(|rule| rule.name == name)
    }

    /// The requests that a rule applied to.
    pub(crate) fn requests_of(&self, name: &str) -> u64 {
        self.rule(name).map_or(self.requests, |rule| rule.requests)
    }

    /// For each key, the position of its sliding count. The order distinguishes keys whose names were cut to one text.
    pub(crate) fn charts(&self) -> Vec<Option<usize>> {
        let mut left: Vec<Option<&ChosenReport>> = self.chosen.iter().map(Some).collect();
        let chart = |key: &KeyReport| {
            let is = |chosen: &ChosenReport| chosen.key == key.key && chosen.rule == key.rule;
            let found = left.iter().position(|chosen| chosen.is_some_and(is))?;
            left[found] = None;
            Some(found)
        };
        self.keys.iter().map(chart).collect()
    }
}

impl RuleReport {
    /// The window in milliseconds.
    pub(crate) fn millis(&self) -> f64 {
        self.window.as_f64().unwrap_or(0.0)
    }

    /// Whether all requests share one limit.
    pub(crate) fn is_for_all(&self) -> bool {
        self.key == "all"
    }
}

impl ChosenReport {
    /// The first time with the largest count, and the count.
    pub(crate) fn peak(&self) -> Option<Point> {
        let higher = |best: Point, next: Point| if next.1 > best.1 { next } else { best };
        self.asked.iter().copied().reduce(higher)
    }
}

impl WhatIfReport {
    /// The largest limit that was tried, and its denials.
    pub(crate) fn largest(&self) -> Option<(u64, u64)> {
        Some((*self.limits.last()?, *self.denied.last()?))
    }

    /// The lowest limit that was tried at which, and at all tried ones above it, at most one percent of the requests is denied; and
    /// its denials.
    pub(crate) fn one_per_cent(&self) -> Option<(u64, u64)> {
        let tried = self.limits.iter().copied().zip(self.denied.iter().copied());
        let few = |&(_, denied): &(u64, u64)| u128::from(denied) * 100 <= u128::from(self.requests);
        tried.rev().take_while(few).last()
    }
}
