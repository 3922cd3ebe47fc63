//! A replay: reading the inputs, evaluating the rules, and the report.

mod batch;
pub(crate) mod by_key;
pub(crate) mod details;
mod evaluator;
pub(crate) mod findings;
mod lazy_words;
pub(crate) mod lowest;
pub(crate) mod requests;
mod series;
pub(crate) mod simulate;
pub(crate) mod sliding_counts;
pub(crate) mod span;
mod survey;
mod window;

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::HashSet;

use ringgate::{Algorithm, Quota};
use serde_json::Number;

use crate::args::AlgorithmName;
use crate::failure::Failure;
use crate::input::time::calendar::millis;
use crate::key_names::KeyNames;
use crate::progress::Progress;
use crate::replay::by_key::ByKey;
use crate::replay::details::Details;
use crate::replay::evaluator::{Evaluated, evaluate};
use crate::replay::findings::Step;
use crate::replay::lowest::Search;
use crate::replay::requests::Inputs;
use crate::replay::simulate::{Simulation, ladder, simulate};
use crate::replay::sliding_counts::sliding_counts;
use crate::replay::span::Span;
use crate::replay::survey::{KeySummary, MAX_KEYS};
use crate::report::{
    ChosenReport, ComparisonReport, KeyReport, Report, RuleReport, SeriesReport, VERSION, WhatIfReport,
};
use crate::rules::algorithm::AlgorithmSpec;
use crate::rules::argument::ALL;
use crate::rules::{Plan, PlanEntry};

/// The optional parts of a report.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportParts {
    /// The data of charts: the denials with other limits, and sliding counts of the top keys.
    pub(crate) charts: bool,
    /// The comparison of algorithms.
    pub(crate) compare: bool,
}

/// Other numbers of cells for the algorithm `counter`, in the comparison. An entry of a table then takes 64, 128 and 512
/// bytes.
const OTHER_CELLS: [u64; 3] = [5, 13, 60];

/// The approximate number of simulated limits for each rule.
const LIMITS: u32 = 60;

/// The largest number of keys whose sliding counts are in a report.
const MAX_CURVES: usize = 10;

/// Evaluates all rules on the inputs. Returns the report and examples of unreadable lines.
///
/// # Errors
///
/// When an input cannot be read, no input has a request, or the log spans too much time.
pub(crate) fn replay(
    plan: &Plan,
    inputs: Inputs,
    parts: ReportParts,
    progress: &mut Progress,
) -> Result<(Report, Vec<String>), Failure> {
    let sources = inputs.sources.iter().map(|source| source.name()).collect();
    let mut requests = {
        let mut layout = plan.fields.layout();
        layout.details = parts.charts;
        inputs.read(&layout, progress)?
    };
    let mut notes = plan.notes.clone();
    notes.extend(requests.findings.notes());
    let mut warnings = requests.findings.warnings();
    let step = requests.findings.gaps.step();
    let span = requests.span(plan.windows())?;
    let mut evaluated = evaluate(plan, requests.events, requests.names.at_most(), span, progress)?;
    for (rule, count) in &evaluated.overflowed {
        notes.push(format!(
            "rule {rule:?} had no free entry for a key {count} times, so on_full decided; raise its capacity"
        ));
    }
    for (rule, count) in &evaluated.blocks {
        notes.push(format!(
            "rule {rule:?} blocked keys {count} times; peaks and other limits are computed as if no key was blocked"
        ));
    }
    let evaluated_requests = evaluated.requests();
    let denied = evaluated.series.denied.iter().sum();
    let mut report = Report {
        version: VERSION,
        sources,
        formats: requests.formats,
        lines: requests.lines,
        requests: evaluated_requests,
        admitted: evaluated_requests - denied,
        denied,
        unreadable: requests.unreadable.count,
        from: millis(span.first),
        to: millis(span.last),
        step: evaluated.series.step,
        rules: Vec::new(),
        series: series(&evaluated, &plan.entries),
        keys: Vec::new(),
        chosen: Vec::new(),
        what_if: Vec::new(),
        compare: Vec::new(),
        warnings: Vec::new(),
        notes: Vec::new(),
        truncated: !requests.findings.truncated.is_empty(),
    };
    let mut top = Vec::new();
    for (entry_index, entry) in plan.entries.iter().enumerate() {
        let mut by_key = ByKey::of(&mut evaluated, entry, entry_index, progress)?;
        report.rules.push(rule_report(entry, &by_key)?);
        warnings.extend(entry.warnings(by_key.requests(), by_key.survey.above, by_key.survey.largest));
        notes.extend(entry.always_holds(by_key.requests(), evaluated_requests));
        if let Some(step) = step.filter(|step| entry.is_coarse(*step)) {
            let (note, figures) = coarse(entry, &mut by_key, span, step, progress)?;
            match figures {
                Some(figures) => warnings.push(format!("{note}: {figures}")),
                None => notes.push(note),
            }
        }
        if parts.compare {
            let compared = compare(entry, &mut by_key, span, progress, &mut notes)?;
            report.compare.extend(compared);
        }
        if parts.charts {
            let what_if = what_if(entry, &mut by_key, span, progress)?;
            report.what_if.push(what_if);
        }
        top.extend(by_key.survey.top().map(|found| (entry_index, found)));
    }
    // The sort is stable, so equal ranks stay in the order of the rules.
    top.sort_by_key(|(_, found)| Reverse(found.rank));
    top.truncate(MAX_KEYS);
    list_top_keys(&mut report, plan, &mut requests.names, &top)?;
    if parts.charts {
        add_curves(&mut report, plan, &mut evaluated, (&top, &requests.details), span)?;
    }
    report.warnings = warnings;
    report.notes = notes;
    Ok((report, requests.unreadable.examples))
}

fn series(evaluated: &Evaluated, entries: &[PlanEntry]) -> SeriesReport {
    let of_rules = entries.iter().zip(&evaluated.series.by_rule);
    SeriesReport {
        requests: evaluated.series.requests.clone(),
        denied: evaluated.series.denied.clone(),
        by_rule: of_rules
            .map(|(entry, denied)| (entry.name.clone(), denied.clone().into()))
            .collect(),
    }
}

fn rule_report(entry: &PlanEntry, by_key: &ByKey) -> Result<RuleReport, Failure> {
    let survey = &by_key.survey;
    Ok(RuleReport {
        name: entry.name.clone(),
        quota: entry.quota_text(),
        limit: entry.quota.limit(),
        period: entry.period(),
        window: in_millis(entry.quota.window()),
        algorithm: entry.algorithm_text(),
        cells: entry.cells(),
        form: entry.form(),
        key: entry.key.as_ref().map_or(ALL, |(name, _)| name).to_string(),
        cost: entry.cost_name.clone(),
        when: entry.condition.clone(),
        burst: entry.counting.burst,
        shadow: entry.shadow,
        left_out: entry.left_out.iter().map(ToString::to_string).collect(),
        requests: by_key.requests(),
        admitted: survey.admitted,
        denied: survey.denied,
        worst: survey.worst,
        bound: entry.bound()?,
        bytes: 8 * entry.words(),
        keys: survey.keys,
    })
}

/// A duration in milliseconds: a whole number, or one with a fraction.
pub(crate) fn in_millis(window: Duration) -> Number {
    if window.subsec_nanos().is_multiple_of(1_000_000) {
        // A window is at most 366 days, so its milliseconds fit.
        return Number::from(u64::try_from(window.as_millis()).unwrap_or(u64::MAX));
    }
    Number::from_f64(window.as_secs_f64() * 1e3).unwrap_or_else(|| Number::from(0))
}

/// The results of all algorithms. Adds notes about those that do not support the quota.
fn compare(
    entry: &PlanEntry,
    by_key: &mut ByKey,
    span: Span,
    progress: &mut Progress,
    notes: &mut Vec<String>,
) -> Result<Vec<ComparisonReport>, Failure> {
    let own = entry.counting;
    if entry.calendar.is_some() {
        let rule = &entry.name;
        notes.push(format!(
            "no comparison of rule {rule:?}: no other algorithm has calendar periods"
        ));
        return Ok(Vec::new());
    }
    let mut candidates: Vec<(String, AlgorithmSpec)> = AlgorithmName::ALL
        .into_iter()
        .map(|algorithm| (algorithm.to_string(), own.by(algorithm)))
        .collect();
    // Counters with other numbers of cells: with fewer, a key takes less memory. With more, the counter denies fewer of the
    // requests that a log admits.
    let counter = own.by(AlgorithmName::Counter);
    candidates.extend(
        OTHER_CELLS
            .into_iter()
            .filter(|cells| Some(*cells) != counter.cells())
            .map(|cells| {
                let spec = AlgorithmSpec {
                    cells: Some(cells),
                    ..counter
                };
                (format!("{}, {cells} cells", AlgorithmName::Counter), spec)
            }),
    );
    let (mut simulations, mut names) = (Vec::new(), Vec::new());
    for (name, spec) in candidates {
        match spec.build(entry.quota) {
            Ok(policy) => {
                let (limit, window) = (entry.quota.limit(), Some(entry.window()));
                simulations.push(Simulation::new(spec, policy, limit, span, window));
                names.push(name);
            }
            Err(error) => {
                let rule = &entry.name;
                notes.push(format!("no comparison of rule {rule:?} with {name}: {error}"));
            }
        }
    }
    let simulations = simulate(simulations, by_key, progress, "comparing algorithms")?;
    let found: Vec<ComparisonReport> = simulations
        .iter()
        .zip(names)
        .map(|(simulation, algorithm)| ComparisonReport {
            rule: entry.name.clone(),
            algorithm,
            admitted: simulation.admitted,
            denied: simulation.denied,
            worst: simulation.worst,
            bound: simulation.policy.bound(),
            bytes: 8 * simulation.policy.words() as u64,
        })
        .collect();
    notes.extend(cells_note(entry, &found));
    Ok(found)
}

/// Explains why a sliding window or a counter denies more than a log, and with which number of cells it denies the fewest.
fn cells_note(entry: &PlanEntry, found: &[ComparisonReport]) -> Option<String> {
    let denied = |name: &str| {
        found
            .iter()
            .find(|row| row.algorithm == name)
            .map(|row| row.denied)
    };
    let algorithm = entry.counting.algorithm;
    if !matches!(algorithm, AlgorithmName::Counter | AlgorithmName::SlidingWindow) {
        return None;
    }
    let own = denied(&algorithm.to_string())?;
    let more = own.checked_sub(denied("log")?).filter(|more| *more > 0)?;
    let counter = AlgorithmName::Counter.to_string();
    let cells_of = |row: &ComparisonReport| match row.algorithm.split_once(", ") {
        Some((name, cells)) if name == counter => cells.split(' ').next()?.parse::<u64>().ok(),
        None if row.algorithm == counter => entry.counting.by(AlgorithmName::Counter).cells(),
        Some(_) | None => None,
    };
    // The fewest denials, and among equal ones the fewest cells.
    let fewer = found
        .iter()
        .filter(|row| row.denied < own)
        .filter_map(|row| Some((row.denied, cells_of(row)?)))
        .min();
    let fewer = fewer.map_or_else(String::new, |(denied, cells)| {
        format!("; with {cells} cells it would deny {denied}")
    });
    Some(format!(
        "rule {:?} denies {more} requests more than a log, because each of the {} counts in full until all of it \
         has left the window{fewer}",
        entry.name,
        entry.cells_text()
    ))
}

/// Returns a note that the times of the input are coarse for the window. Also returns the denials of a log, if they depend on the
/// exact times or differ from those of the rule.
fn coarse(
    entry: &PlanEntry,
    by_key: &mut ByKey,
    span: Span,
    step: Step,
    progress: &mut Progress,
) -> Result<(String, Option<String>), Failure> {
    let (own, window, unit) = (entry.counting, entry.quota.window(), step.name);
    let note = format!(
        "times are whole {unit}s, so all requests of a {unit} count at its beginning; for rule {:?} with its window of {}, \
         denials may differ from those at the exact times",
        entry.name,
        entry.window_text()
    );
    let log = own.by(AlgorithmName::Log);
    let longer = window + Duration::from_nanos(step.nanos.unsigned_abs());
    let mut simulations = Vec::new();
    for (spec, window) in [(own, window), (log, window), (log, longer)] {
        let limit = entry.quota.limit();
        let Ok(policy) = Quota::new(limit, window).and_then(|quota| spec.build(quota)) else {
            return Ok((note, None));
        };
        // The last argument, a window to measure, turns off `never_denies`, the shortcut for keys with little demand. It knows
        // the demand in two windows of the rule, not in two longer ones.
        simulations.push(Simulation::new(spec, policy, limit, span, Some(entry.window())));
    }
    let simulations = simulate(simulations, by_key, progress, "trying other times")?;
    let denied: Vec<u64> = simulations.iter().map(|simulation| simulation.denied).collect();
    let [own, log, longer] = denied[..] else {
        return Ok((note, None));
    };
    let figures = format!(
        "evaluated alone, the rule denies {own} requests and a log {log}; with a window longer by one {unit}, a log denies \
         {longer}. With exact times, a log is likely to deny between {} and {}",
        log.min(longer),
        log.max(longer)
    );
    Ok((note, (own != log || log != longer).then_some(figures)))
}

fn what_if(
    entry: &PlanEntry,
    by_key: &mut ByKey,
    span: Span,
    progress: &mut Progress,
) -> Result<WhatIfReport, Failure> {
    // No higher limit changes a result.
    let top = entry.counting.enough(by_key.survey.demand_in_two, entry.quota);
    let (requests, keys) = (by_key.requests(), by_key.survey.keys);
    let mut search = Search::new(entry, by_key, span);
    search.try_limits(ladder(top, entry.quota.limit(), LIMITS), progress)?;
    // The ladder has gaps. So this search also tries the limits between two steps, to find exactly the lowest limit that denies
    // at most one percent.
    search.lowest(
        |found| u128::from(found.denied) * 100 <= u128::from(requests),
        progress,
    )?;
    Ok(WhatIfReport {
        rule: entry.name.clone(),
        limits: search.supported().map(|found| found.limit).collect(),
        denied: search.supported().map(|found| found.denied).collect(),
        keys_denied: search.supported().map(|found| found.keys_denied).collect(),
        requests,
        keys,
    })
}

/// Lists the top keys with their names.
fn list_top_keys(
    report: &mut Report,
    plan: &Plan,
    names: &mut KeyNames,
    top: &[(usize, KeySummary)],
) -> Result<(), Failure> {
    let hashes: HashSet<u64> = top.iter().map(|(_, found)| found.rank.key.0).collect();
    let names = names.find(&hashes)?;
    let shown = |(entry_index, found): &(usize, KeySummary)| {
        let entry = &plan.entries[*entry_index];
        let name = names.get(&found.rank.key.0).filter(|_| entry.key.is_some());
        KeyReport {
            rule: entry.name.clone(),
            key: name.map_or(ALL, String::as_str).to_string(),
            requests: found.rank.requests,
            denied: found.rank.denied,
            first_denied: found.first_denied.map(millis),
            last_denied: found.last_denied.map(millis),
            worst: found.rank.peak_demand,
        }
    };
    report.keys = top.iter().map(shown).collect();
    Ok(())
}

fn add_curves(
    report: &mut Report,
    plan: &Plan,
    evaluated: &mut Evaluated,
    (top, details): (&[(usize, KeySummary)], &Details),
    span: Span,
) -> Result<(), Failure> {
    let keys: Vec<(usize, u64)> = top
        .iter()
        .take(MAX_CURVES)
        .map(|(entry_index, found)| (*entry_index, found.rank.key.0))
        .collect();
    let curves = sliding_counts(evaluated, &plan.entries, &keys, span)?;
    let details = details.of_keys(evaluated, &plan.entries, &keys)?;
    let shown = report.keys.iter().zip(keys).zip(curves).zip(details);
    let chosen = shown.map(|(((shown, (entry_index, _)), curves), details)| {
        let quota = plan.entries[entry_index].quota;
        ChosenReport {
            rule: shown.rule.clone(),
            key: shown.key.clone(),
            limit: quota.limit(),
            window: in_millis(quota.window()),
            asked: curves.whole.asked,
            admitted: curves.whole.admitted,
            near: curves.near,
            details,
        }
    });
    report.chosen = chosen.collect();
    Ok(())
}
