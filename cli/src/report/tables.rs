//! The report of a replay as tables for a terminal.

use crate::input::time::calendar;
use crate::report::Report;

/// The number of listed keys.
const LISTED: usize = 20;

/// Renders all tables.
pub(crate) fn render(report: &Report) -> String {
    let mut text = String::new();
    let mut totals: Vec<_> = report
        .warnings
        .iter()
        .map(|warning| ("warning", warning.clone()))
        .collect();
    totals.extend([
        ("requests", report.requests.to_string()),
        ("admitted", report.admitted.to_string()),
        ("denied", report.denied.to_string()),
        ("lines", report.lines.to_string()),
        ("unreadable", report.unreadable.to_string()),
        ("first", of_millis(report.from)),
        ("last", of_millis(report.to)),
    ]);
    totals.extend(report.formats.iter().map(|format| ("format", format.clone())));
    totals.extend(report.notes.iter().map(|note| ("note", note.clone())));
    for (name, value) in totals {
        text += &format!("{name:<10} {value}\n");
    }
    let rules = report.rules.iter().map(|rule| {
        vec![
            if rule.shadow {
                format!("{} (shadow)", rule.name)
            } else {
                rule.name.clone()
            },
            rule.quota.clone(),
            rule.label(),
            rule.key.clone(),
            rule.keys.to_string(),
            rule.requests.to_string(),
            rule.admitted.to_string(),
            rule.denied.to_string(),
            rule.worst.to_string(),
            rule.bound.to_string(),
            rule.bytes.to_string(),
        ]
    });
    let names = [
        "rule",
        "quota",
        "algorithm",
        "key",
        "keys",
        "requests",
        "admitted",
        "denied",
        "peak usage",
        "bound",
        "bytes/key",
    ];
    text += &table(&names, 4, rules);
    if !report.compare.is_empty() {
        let rows = report.compare.iter().map(|one| {
            vec![
                one.rule.clone(),
                one.algorithm.clone(),
                one.admitted.to_string(),
                one.denied.to_string(),
                one.worst.to_string(),
                one.bound.to_string(),
                one.bytes.to_string(),
            ]
        });
        let names = [
            "rule",
            "algorithm",
            "admitted",
            "denied",
            "peak usage",
            "bound",
            "bytes/key",
        ];
        text += &table(&names, 2, rows);
    }
    let denied: Vec<_> = report
        .keys
        .iter()
        .filter(|key| key.denied > 0)
        .take(LISTED)
        .collect();
    if !denied.is_empty() {
        let several = report.rules.len() > 1;
        let rows = denied.into_iter().map(|key| {
            let mut row = vec![key.key.clone()];
            row.extend(several.then(|| key.rule.clone()));
            row.extend([
                key.requests.to_string(),
                key.denied.to_string(),
                key.worst.to_string(),
                key.first_denied.map(of_millis).unwrap_or_default(),
            ]);
            row
        });
        let mut names = vec!["most denied"];
        names.extend(several.then_some("rule"));
        names.extend(["requests", "denied", "peak demand", "first denied"]);
        text += &table(&names, if several { 2 } else { 1 }, rows);
    }
    text
}

fn of_millis(millis: i64) -> String {
    calendar::text(millis.saturating_mul(1_000_000))
}

/// A table after a blank line. The first `left` columns are aligned left.
pub(crate) fn table(names: &[&str], left: usize, rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.collect();
    let widths: Vec<usize> = (0..names.len())
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.chain([names[column].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::from("\n");
    let mut line = |cells: &[String]| {
        let mut row = String::new();
        for (column, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
            if column > 0 {
                row += "  ";
            }
            row += &if column < left {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            };
        }
        text += row.trim_end();
        text.push('\n');
    };
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    line(&names);
    for row in &rows {
        line(row);
    }
    text
}
