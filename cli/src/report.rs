//! What a replay has found, as the JSON object that is printed and that the page is made of.

use serde::Serialize;
use serde_json::Number;

use crate::chosen::{Curves, Point};

/// The version of the object: fields may be added without a new one, not renamed.
pub(crate) const VERSION: u32 = 1;

/// All that a replay has found. Times are milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) version: u32,
    /// The names of the inputs.
    pub(crate) sources: Vec<String>,
    pub(crate) lines: u64,
    pub(crate) requests: u64,
    /// Requests that all rules admitted, and those that one refused or more.
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    pub(crate) unreadable: u64,
    /// The first request and the last.
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// Length of one step of the series; the first begins at `from`.
    pub(crate) step: i64,
    pub(crate) rules: Vec<RuleFound>,
    pub(crate) series: SeriesFound,
    /// The keys of all rules that were denied most, most denied first; then those that asked for most.
    pub(crate) keys: Vec<KeyShown>,
    /// The sliding counts of the first of them.
    pub(crate) chosen: Vec<Chosen>,
    /// Each rule by itself at other limits.
    pub(crate) what_if: Vec<WhatIfFound>,
    /// Each rule by itself by every algorithm.
    pub(crate) compare: Vec<ComparedFound>,
    /// What is to be known besides.
    pub(crate) notes: Vec<String>,
}

/// A rule, or one of its quotas where it has several.
#[derive(Debug, Serialize)]
pub(crate) struct RuleFound {
    pub(crate) name: String,
    pub(crate) quota: String,
    pub(crate) limit: u64,
    /// Milliseconds; a fraction where it is shorter than one.
    pub(crate) window: Number,
    pub(crate) algorithm: String,
    /// Cells per window, of an algorithm that has them.
    pub(crate) cells: Option<u64>,
    /// The name of its key; "all" when it counts all requests together.
    pub(crate) key: String,
    /// Whether it refuses nobody, or only a part of the keys.
    pub(crate) shadow: bool,
    /// Requests that it was about.
    pub(crate) requests: u64,
    /// Of these, those that all rules admitted, and those that it had no room for.
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    /// The most permits that were admitted to a key in a true window.
    pub(crate) worst: u64,
    /// The most that the algorithm ever admits in one.
    pub(crate) bound: u64,
    /// Bytes of state of one key.
    pub(crate) bytes: u64,
    pub(crate) keys: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct SeriesFound {
    pub(crate) requests: Vec<u64>,
    pub(crate) denied: Vec<u64>,
    pub(crate) by_rule: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Serialize)]
pub(crate) struct KeyShown {
    pub(crate) rule: String,
    pub(crate) key: String,
    pub(crate) requests: u64,
    pub(crate) denied: u64,
    pub(crate) first_denied: Option<i64>,
    pub(crate) last_denied: Option<i64>,
    /// The most permits that were asked for in a true window.
    pub(crate) worst: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Chosen {
    pub(crate) rule: String,
    pub(crate) key: String,
    pub(crate) limit: u64,
    /// Milliseconds.
    pub(crate) window: Number,
    /// Times, and the permits in the window that ends there; they hold until the next time.
    pub(crate) asked: Vec<Point>,
    pub(crate) admitted: Vec<Point>,
    /// Where there would be too many points, those above are the largest and the last of each stretch of time; these
    /// are around the time at which most was asked for.
    pub(crate) near: Option<Curves>,
}

#[derive(Debug, Serialize)]
pub(crate) struct WhatIfFound {
    pub(crate) rule: String,
    pub(crate) limits: Vec<u64>,
    pub(crate) denied: Vec<u64>,
    pub(crate) keys_denied: Vec<u64>,
    pub(crate) requests: u64,
    pub(crate) keys: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct ComparedFound {
    pub(crate) rule: String,
    pub(crate) algorithm: String,
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    pub(crate) worst: u64,
    pub(crate) bound: u64,
    pub(crate) bytes: u64,
}
