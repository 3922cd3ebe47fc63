//! The fields of a report that text and tables show; the charts read the others from the report.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(super) struct Data {
    pub(super) sources: Vec<String>,
    pub(super) lines: u64,
    pub(super) requests: u64,
    pub(super) denied: u64,
    pub(super) unreadable: u64,
    /// The times of the first and of the last request, in milliseconds since 1970.
    pub(super) from: i64,
    pub(super) to: i64,
    /// The step of the series in milliseconds.
    pub(super) step: u64,
    pub(super) rules: Vec<Rule>,
    /// In descending order of denials.
    pub(super) keys: Vec<Key>,
    pub(super) chosen: Vec<Chosen>,
    pub(super) what_if: Vec<WhatIf>,
    pub(super) compare: Vec<Compared>,
    #[serde(default)]
    pub(super) warnings: Vec<String>,
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Rule {
    pub(super) name: String,
    pub(super) limit: u64,
    /// Milliseconds, possibly with a fraction.
    pub(super) window: f64,
    pub(super) algorithm: String,
    pub(super) cells: Option<u64>,
    /// The name of the key; "all" for one limit for all requests.
    pub(super) key: String,
    pub(super) shadow: bool,
    pub(super) requests: u64,
    pub(super) admitted: u64,
    pub(super) denied: u64,
    pub(super) worst: u64,
    pub(super) bound: u64,
    pub(super) bytes: u64,
    pub(super) keys: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Key {
    pub(super) rule: String,
    pub(super) key: String,
    pub(super) requests: u64,
    pub(super) denied: u64,
    pub(super) first_denied: Option<i64>,
    pub(super) last_denied: Option<i64>,
    /// The most permits that were requested in one window.
    pub(super) worst: u64,
}

/// A key with a sliding count.
#[derive(Debug, Deserialize)]
pub(super) struct Chosen {
    pub(super) rule: String,
    pub(super) key: String,
    /// Milliseconds since 1970, and the permits that were requested in the window that ends there.
    pub(super) asked: Vec<(i64, u64)>,
}

/// The denials of other limits.
#[derive(Debug, Deserialize)]
pub(super) struct WhatIf {
    pub(super) rule: String,
    /// Ascending.
    pub(super) limits: Vec<u64>,
    pub(super) denied: Vec<u64>,
    pub(super) keys_denied: Vec<u64>,
    /// All requests and keys.
    pub(super) requests: u64,
    pub(super) keys: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Compared {
    pub(super) rule: String,
    pub(super) algorithm: String,
    pub(super) admitted: u64,
    pub(super) denied: u64,
    pub(super) worst: u64,
    pub(super) bound: u64,
    pub(super) bytes: u64,
}

impl Data {
    pub(super) fn rule(&self, name: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.name == name)
    }

    /// The requests that a rule applied to.
    pub(super) fn requests_of(&self, name: &str) -> u64 {
        self.rule(name).map_or(self.requests, |rule| rule.requests)
    }

    /// For each key, the position of its sliding count. The order tells apart keys whose names were cut to the same text.
    pub(super) fn charts(&self) -> Vec<Option<usize>> {
        let mut left: Vec<Option<&Chosen>> = self.chosen.iter().map(Some).collect();
        let chart = |key: &Key| {
            let is = |chosen: &Chosen| chosen.key == key.key && chosen.rule == key.rule;
            let found = left.iter().position(|chosen| chosen.is_some_and(is))?;
            left[found] = None;
            Some(found)
        };
        self.keys.iter().map(chart).collect()
    }
}

impl Rule {
    /// Whether all requests share one limit.
    pub(super) fn is_for_all(&self) -> bool {
        self.key == "all"
    }
}

impl Chosen {
    /// The first time with the largest count, and the count.
    pub(super) fn peak(&self) -> Option<(i64, u64)> {
        let higher = |best: (i64, u64), next: (i64, u64)| if next.1 > best.1 { next } else { best };
        self.asked.iter().copied().reduce(higher)
    }
}

impl WhatIf {
    /// The smallest limit that denies at most one percent of the requests, and its denials.
    pub(super) fn one_per_cent(&self) -> Option<(u64, u64)> {
        let mut tried = self.limits.iter().copied().zip(self.denied.iter().copied());
        tried.find(|&(_, denied)| u128::from(denied) * 100 <= u128::from(self.requests))
    }
}
