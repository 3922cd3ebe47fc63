//! The report of a replay as tables for a terminal.

use core::fmt::Display;

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
        let shadow = if rule.shadow { " (shadow)" } else { "" };
        row([
            ("rule", &format!("{}{shadow}", rule.name)),
            ("quota", &rule.quota),
            ("algorithm", &rule.label()),
            ("key", &rule.key),
            ("keys", &rule.keys),
            ("requests", &rule.requests),
            ("admitted", &rule.admitted),
            ("denied", &rule.denied),
            ("peak usage", &rule.worst),
            ("bound", &rule.bound),
            ("bytes/key", &rule.bytes),
        ])
    });
    text += &table(4, rules);
    let compared = report.compare.iter().map(|one| {
        row([
            ("rule", &one.rule),
            ("algorithm", &one.algorithm),
            ("admitted", &one.admitted),
            ("denied", &one.denied),
            ("peak usage", &one.worst),
            ("bound", &one.bound),
            ("bytes/key", &one.bytes),
        ])
    });
    text += &table(2, compared);
    let several = report.rules.len() > 1;
    let denied = report
        .keys
        .iter()
        .filter(|key| key.denied > 0)
        .take(LISTED)
        .map(|key| {
            let mut cells = row([
                ("most denied", &key.key),
                ("rule", &key.rule),
                ("requests", &key.requests),
                ("denied", &key.denied),
                ("peak demand", &key.worst),
                (
                    "first denied",
                    &key.first_denied.map(of_millis).unwrap_or_default(),
                ),
            ]);
            if !several {
                cells.remove(1);
            }
            cells
        });
    text + &table(if several { 2 } else { 1 }, denied)
}

/// The cells of a row, with the names of their columns.
pub(crate) fn row<const N: usize>(cells: [(&'static str, &dyn Display); N]) -> Vec<(&'static str, String)> {
    cells.map(|(name, cell)| (name, cell.to_string())).into()
}

fn of_millis(millis: i64) -> String {
    calendar::text(millis.saturating_mul(1_000_000))
}

/// A table after a blank line; nothing without rows. The first `left` columns are aligned left.
pub(crate) fn table(left: usize, rows: impl Iterator<Item = Vec<(&'static str, String)>>) -> String {
    let mut lines: Vec<Vec<String>> = Vec::new();
    for row in rows {
        let (names, cells): (Vec<String>, Vec<String>) = row
            .into_iter()
            .map(|(name, cell)| (name.to_owned(), cell))
            .unzip();
        if lines.is_empty() {
            lines.push(names);
        }
        lines.push(cells);
    }
    let columns = match lines.first() {
        Some(names) => 0..names.len(),
        None => return String::new(),
    };
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = columns.map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::from("\n");
    for cells in &lines {
        let mut line = String::new();
        for (column, (cell, &width)) in cells.iter().zip(&widths).enumerate() {
            if column > 0 {
                line += "  ";
            }
            line += &match column < left {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
