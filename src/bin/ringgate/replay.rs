//! A replay: reading, judging, and what is found then.

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::HashSet;

use ringgate::Algorithm;
use serde_json::Number;

use crate::alone::{Compare, WhatIf, ladder};
use crate::by_key::ByKey;
use crate::calendar::millis;
use crate::chosen;
use crate::failure::Failure;
use crate::intake::{Intake, Reading};
use crate::judge::{self, Judged};
use crate::plan::{Entry, Plan};
use crate::progress::Progress;
use crate::report::{Chosen, ComparedFound, KeyShown, Report, RuleFound, SeriesFound, VERSION, WhatIfFound};
use crate::rule_arg::ALL;
use crate::span::Span;
use crate::survey::{KeyFound, Survey};

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
    let windows = plan.entries.iter().map(Entry::window);
    let span = Span::new(intake.first, intake.last, windows)?;
    let mut judged = judge::judge(plan, &mut intake, span, progress)?;
    let mut notes = intake.notes();
    for (rule, count) in &judged.overflowed {
        notes.push(format!(
            "rule {rule:?} had no room for a key {count} times: what then became of the request is what its on_full says; \
             its capacity is too small for this input"
        ));
    }
    let requests = judged.events.records();
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
        let mut by_key = ByKey::of(&mut judged, entry, place)?;
        let mut survey = Survey::new(entry.window());
        by_key.visit(&mut survey, progress, "counting by key")?;
        report.rules.push(found(entry, &by_key, &survey)?);
        if depth.compare {
            compare(entry, &mut by_key, span, progress, &mut report, &mut notes)?;
        }
        if depth.charts {
            let what_if = what_if(entry, &mut by_key, &survey, span, progress)?;
            report.what_if.push(what_if);
        }
        top.extend(survey.into_top().into_iter().map(|found| (place, found)));
    }
    // Stable, so that of equals those of the first rule come first.
    top.sort_by_key(|(_, found)| Reverse(found.rank()));
    top.truncate(LISTED);
    list(&mut report, plan, &mut intake, &top)?;
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

fn found(entry: &Entry, by_key: &ByKey, survey: &Survey) -> Result<RuleFound, Failure> {
    let algorithm = entry.counting.build(entry.quota)?;
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
        bound: algorithm.bound(),
        bytes: 8 * algorithm.words() as u64,
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

fn compare(
    entry: &Entry,
    by_key: &mut ByKey,
    span: Span,
    progress: &mut Progress,
    report: &mut Report,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let mut compare = Compare::new(entry.counting, entry.quota, entry.window(), span);
    by_key.visit(&mut compare, progress, "comparing algorithms")?;
    for (algorithm, error) in compare.left_out {
        notes.push(format!(
            "rule {:?} cannot be compared by {algorithm}: {error}",
            entry.name
        ));
    }
    report
        .compare
        .extend(compare.algorithms.into_iter().map(|one| ComparedFound {
            rule: entry.name.clone(),
            algorithm: one.algorithm.to_string(),
            admitted: one.admitted,
            denied: one.denied,
            worst: one.worst,
            bound: one.bound,
            bytes: one.bytes,
        }));
    Ok(())
}

fn what_if(
    entry: &Entry,
    by_key: &mut ByKey,
    survey: &Survey,
    span: Span,
    progress: &mut Progress,
) -> Result<WhatIfFound, Failure> {
    let limits = ladder(
        entry.counting.enough(survey.asked_in_two),
        entry.quota.limit(),
        LIMITS,
    );
    let mut what_if = WhatIf::new(entry.counting, entry.quota.window(), limits, span);
    by_key.visit(&mut what_if, progress, "trying other limits")?;
    let denials: Vec<_> = what_if.denials().collect();
    Ok(WhatIfFound {
        rule: entry.name.clone(),
        limits: denials.iter().map(|denials| denials.limit).collect(),
        denied: denials.iter().map(|denials| denials.requests).collect(),
        keys_denied: denials.iter().map(|denials| denials.keys).collect(),
        requests: by_key.requests(),
        keys: survey.keys,
    })
}

/// Names the keys.
fn list(
    report: &mut Report,
    plan: &Plan,
    intake: &mut Intake,
    top: &[(usize, KeyFound)],
) -> Result<(), Failure> {
    let hashes: HashSet<u64> = top.iter().map(|(_, found)| found.key).collect();
    let names = intake.names.find(&hashes)?;
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
            asked: curves.asked,
            admitted: curves.admitted,
        }
    });
    report.chosen = chosen.collect();
    Ok(())
}
