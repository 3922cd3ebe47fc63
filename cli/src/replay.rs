//! A replay: reading, judging, and what is found then.

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::HashSet;

use ringgate::{Algorithm, Quota};
use serde_json::Number;

use crate::alone::{self, Trial, ladder};
use crate::args::AlgorithmName;
use crate::by_key::ByKey;
use crate::calendar::millis;
use crate::chosen;
use crate::failure::Failure;
use crate::intake::Reading;
use crate::judge::{self, Judged};
use crate::names::Names;
use crate::plan::{Entry, Plan};
use crate::progress::Progress;
use crate::report::{Chosen, ComparedFound, KeyShown, Report, RuleFound, SeriesFound, VERSION, WhatIfFound};
use crate::rule_arg::ALL;
use crate::span::Span;
use crate::survey::KeyFound;

/// What is to be found besides the verdicts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depth {
    /// Other limits, and curves.
    pub(crate) charts: bool,
    /// Other algorithms.
    pub(crate) compare: bool,
}

/// Limits that are tried of each rule, about.
const LIMITS: u32 = 60;

/// Keys that are listed, and those of which there are curves.
const LISTED: usize = 50;
const CURVES: usize = 10;

/// Replays the inputs by all rules.
///
/// # Errors
///
/// When an input cannot be read, holds no request, or is longer than a limiter counts.
pub(crate) fn replay(
    plan: &Plan,
    reading: Reading,
    depth: Depth,
    progress: &mut Progress,
) -> Result<(Report, Vec<String>), Failure> {
    let sources = reading.sources.iter().map(|source| source.name()).collect();
    let mut intake = {
        let layout = plan.fields.layout();
        reading.take(&layout, progress)?
    };
    let mut notes = intake.notes();
    let windows = plan.entries.iter().map(Entry::window);
    let span = Span::new(intake.first, intake.last, windows)?;
    let mut judged = judge::judge(plan, intake.events, intake.names.at_most(), span, progress)?;
    for (rule, count) in &judged.overflowed {
        notes.push(format!(
            "rule {rule:?} had no room for a key {count} times: what then became of the request is what its on_full says; \
             its capacity is too small for this input"
        ));
    }
    let requests = judged.requests();
    let denied = judged.series.denied.iter().sum();
    let mut report = Report {
        version: VERSION,
        sources,
        lines: intake.lines,
        requests,
        admitted: requests - denied,
        denied,
        unreadable: intake.unreadable.count,
        from: millis(span.first),
        to: millis(span.last),
        step: judged.series.step,
        rules: Vec::new(),
        series: series(&judged, &plan.entries),
        keys: Vec::new(),
        chosen: Vec::new(),
        what_if: Vec::new(),
        compare: Vec::new(),
        notes: Vec::new(),
    };
    let mut top = Vec::new();
    for (place, entry) in plan.entries.iter().enumerate() {
        let mut by_key = ByKey::of(&mut judged, entry, place, progress)?;
        report.rules.push(found(entry, &by_key)?);
        if depth.compare {
            let compared = compare(entry, &mut by_key, span, progress)?;
            report.compare.extend(compared.found);
            notes.extend(compared.notes);
        }
        if depth.charts {
            let what_if = what_if(entry, &mut by_key, span, progress)?;
            report.what_if.push(what_if);
        }
        top.extend(by_key.survey.top().into_iter().map(|found| (place, found)));
    }
    // Stable, so that of equals those of the first rule come first.
    top.sort_by_key(|(_, found)| Reverse(found.rank()));
    top.truncate(LISTED);
    list(&mut report, plan, &mut intake.names, &top)?;
    if depth.charts {
        curves(&mut report, plan, &mut judged, &top, span)?;
    }
    report.notes = notes;
    Ok((report, intake.unreadable.examples))
}

fn series(judged: &Judged, entries: &[Entry]) -> SeriesFound {
    let of_rules = entries.iter().zip(&judged.series.by_rule);
    SeriesFound {
        requests: judged.series.requests.clone(),
        denied: judged.series.denied.clone(),
        by_rule: of_rules
            .map(|(entry, denied)| (entry.name.clone(), denied.clone().into()))
            .collect(),
    }
}

fn found(entry: &Entry, by_key: &ByKey) -> Result<RuleFound, Failure> {
    let survey = &by_key.survey;
    let name = entry.counting.algorithm;
    Ok(RuleFound {
        name: entry.name.clone(),
        quota: entry.quota.to_string(),
        limit: entry.quota.limit(),
        window: in_millis(entry.quota.window()),
        algorithm: name.to_string(),
        cells: name.has_cells().then(|| entry.counting.cells()),
        key: entry.key.as_ref().map_or(ALL, |(name, _)| name).to_string(),
        shadow: entry.shadow,
        requests: by_key.requests(),
        admitted: survey.admitted,
        denied: survey.denied,
        worst: survey.worst,
        bound: entry.bound()?,
        bytes: 8 * entry.words(),
        keys: survey.keys,
    })
}

/// Milliseconds: whole ones as they are, or with a fraction.
pub(crate) fn in_millis(window: Duration) -> Number {
    if window.subsec_nanos().is_multiple_of(1_000_000) {
        // At most 366 days.
        return Number::from(u64::try_from(window.as_millis()).unwrap_or(u64::MAX));
    }
    Number::from_f64(window.as_secs_f64() * 1e3).unwrap_or_else(|| Number::from(0))
}

/// What other algorithms would have made of an entry, and which of them cannot have its quota.
struct Compared {
    found: Vec<ComparedFound>,
    notes: Vec<String>,
}

fn compare(
    entry: &Entry,
    by_key: &mut ByKey,
    span: Span,
    progress: &mut Progress,
) -> Result<Compared, Failure> {
    let mut trials = Vec::new();
    let mut algorithms = Vec::new();
    let mut notes = Vec::new();
    for algorithm in AlgorithmName::ALL {
        match Trial::new(
            entry.counting.by(algorithm),
            entry.quota,
            span,
            Some(entry.window()),
        ) {
            Ok(trial) => {
                trials.push(trial);
                algorithms.push(algorithm);
            }
            Err(error) => {
                let rule = &entry.name;
                notes.push(format!(
                    "rule {rule:?} cannot be compared by {algorithm}: {error}"
                ));
            }
        }
    }
    let trials = alone::replay(trials, by_key, progress, "comparing algorithms")?;
    let found = trials
        .iter()
        .zip(algorithms)
        .map(|(trial, algorithm)| ComparedFound {
            rule: entry.name.clone(),
            algorithm: algorithm.to_string(),
            admitted: trial.admitted,
            denied: trial.denied,
            worst: trial.worst,
            bound: trial.policy.bound(),
            bytes: 8 * trial.policy.words() as u64,
        })
        .collect();
    Ok(Compared { found, notes })
}

fn what_if(
    entry: &Entry,
    by_key: &mut ByKey,
    span: Span,
    progress: &mut Progress,
) -> Result<WhatIfFound, Failure> {
    let top = entry.counting.enough(by_key.survey.asked_in_two);
    let limits = ladder(top, entry.quota.limit(), LIMITS);
    let trials = trials(entry, limits, span);
    let trials = alone::replay(trials, by_key, progress, "trying other limits")?;
    Ok(WhatIfFound {
        rule: entry.name.clone(),
        limits: trials.iter().map(|trial| trial.limit).collect(),
        denied: trials.iter().map(|trial| trial.denied).collect(),
        keys_denied: trials.iter().map(|trial| trial.keys_denied).collect(),
        requests: by_key.requests(),
        keys: by_key.survey.keys,
    })
}

/// The entry's algorithm with those limits that it can have.
pub(crate) fn trials(entry: &Entry, limits: impl IntoIterator<Item = u64>, span: Span) -> Vec<Trial> {
    let quotas = limits
        .into_iter()
        .filter_map(|limit| Quota::new(limit, entry.quota.window()).ok());
    quotas
        .filter_map(|quota| Trial::new(entry.counting, quota, span, None).ok())
        .collect()
}

/// Names the keys.
fn list(
    report: &mut Report,
    plan: &Plan,
    names: &mut Names,
    top: &[(usize, KeyFound)],
) -> Result<(), Failure> {
    let hashes: HashSet<u64> = top.iter().map(|(_, found)| found.key).collect();
    let names = names.find(&hashes)?;
    let shown = |(place, found): &(usize, KeyFound)| {
        let entry = &plan.entries[*place];
        let name = names.get(&found.key).filter(|_| entry.key.is_some());
        KeyShown {
            rule: entry.name.clone(),
            key: name.map_or(ALL, String::as_str).to_string(),
            requests: found.requests,
            denied: found.denied,
            first_denied: found.first_denied.map(millis),
            last_denied: found.last_denied.map(millis),
            worst: found.asked,
        }
    };
    report.keys = top.iter().map(shown).collect();
    Ok(())
}

fn curves(
    report: &mut Report,
    plan: &Plan,
    judged: &mut Judged,
    top: &[(usize, KeyFound)],
    span: Span,
) -> Result<(), Failure> {
    let keys: Vec<(usize, u64)> = top
        .iter()
        .take(CURVES)
        .map(|(place, found)| (*place, found.key))
        .collect();
    let curves = chosen::curves(judged, &plan.entries, &keys, span)?;
    let shown = report.keys.iter().zip(keys).zip(curves);
    let chosen = shown.map(|((shown, (place, _)), curves)| {
        let quota = plan.entries[place].quota;
        Chosen {
            rule: shown.rule.clone(),
            key: shown.key.clone(),
            limit: quota.limit(),
            window: in_millis(quota.window()),
            asked: curves.whole.asked,
            admitted: curves.whole.admitted,
            near: curves.near,
        }
    });
    report.chosen = chosen.collect();
    Ok(())
}
