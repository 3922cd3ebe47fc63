//! The tables of the page.

use super::answers::{of_rule, whom};
use super::table::CellKind::{Alarm, Figure, Head, Text, Time};
use super::table::{CellKind, Row, table};
use super::text::{bytes, key, number, percent, plain, quota_of, time};
use crate::report::{Report, WhatIfReport};

/// Keys that are visible before the list is unfolded.
const LISTED: usize = 10;

pub(super) fn keys(data: &Report) -> String {
    if data.keys.is_empty() {
        return "<p>No request has a key.</p>".to_owned();
    }
    let several = data.rules.len() > 1;
    let rows = data.keys.iter().zip(data.charts()).map(|(row, chart)| {
        let (class, attributes) = match chart {
            Some(index) => (" class=\"has-chart\"", format!(r#" data-chosen="{index}""#)),
            None => ("", String::new()),
        };
        let instant = |ms: Option<i64>| ms.map_or_else(|| "–".to_owned(), time);
        let mut cells = vec![
            ("Key", Head, format!("<span{class}>{}</span>", key(&row.key))),
            ("Requests", Figure, number(row.requests)),
            ("Denied", Figure, number(row.denied)),
            ("Denial rate", Figure, percent(row.denied, row.requests)),
            ("Peak demand", Figure, number(row.worst)),
            ("First denied", Time, instant(row.first_denied)),
            ("Last denied", Time, instant(row.last_denied)),
        ];
        if several {
            cells.insert(1, ("Rule", Text, key(&row.rule)));
        }
        (attributes, cells)
    });
    let rows: Vec<Row> = rows.collect();
    let caption = "In order of denials, then of peak demand; times in <span class=\"zone\">UTC</span>. “Peak demand” is the most permits that were requested in any window.";
    table("keys", caption, if several { 2 } else { 1 }, LISTED, &rows)
}

/// The simulated limits as a table to unfold.
pub(super) fn limits(data: &Report, index: usize, tried: &WhatIfReport) -> String {
    let mut html = format!(
        "<details><summary>All simulated limits{}, as a table</summary>\n",
        of_rule(data, &tried.rule)
    );
    html += &format!(
        "<table id=\"limits-{index}\"><thead><tr><th scope=\"col\" class=\"name\">Limit</th><th scope=\"col\">Requests denied</th>\
             <th scope=\"col\">Denial rate</th><th scope=\"col\">Keys denied</th><th scope=\"col\">Denial rate</th></tr></thead>\n<tbody>\n"
    );
    for ((&limit, &denied), &keys_denied) in tried.limits.iter().zip(&tried.denied).zip(&tried.keys_denied) {
        html += &format!(
            "<tr><th scope=\"row\" class=\"name\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            number(limit),
            number(denied),
            percent(denied, tried.requests),
            number(keys_denied),
            percent(keys_denied, tried.keys)
        );
    }
    html + "</tbody></table></details>"
}

pub(super) fn rules(data: &Report) -> String {
    let rows = data.rules.iter().map(|rule| {
        let mut algorithm = plain(&rule.algorithm);
        if let Some(form) = &rule.form {
            algorithm += &format!(", {}", plain(form));
        } else if let Some(cells) = rule.cells {
            algorithm += &format!(", {cells}\u{a0}cells");
        }
        if rule.shadow {
            algorithm.push_str(", in shadow");
        }
        (
            String::new(),
            vec![
                ("Rule", Head, key(&rule.name)),
                ("Quota", Text, quota_of(rule)),
                ("Algorithm", Text, algorithm),
                ("Key", Text, whom(rule)),
                ("Keys", Figure, number(rule.keys)),
                ("Requests", Figure, number(rule.requests)),
                ("Admitted", Figure, number(rule.admitted)),
                ("Denied", Figure, number(rule.denied)),
                ("Denial rate", Figure, percent(rule.denied, rule.requests)),
                ("Peak usage", alarm(rule.worst, rule.limit), number(rule.worst)),
                ("Bound", Figure, number(rule.bound)),
                ("State", Figure, bytes(rule.bytes)),
            ],
        )
    });
    let rows: Vec<Row> = rows.collect();
    let mut caption = WORST.to_owned();
    if data.rules.len() > 1 {
        caption.push_str(
            " “Admitted” counts requests that all rules admitted, “denied” those that this rule denied.",
        );
    }
    table("rules", &caption, 4, usize::MAX, &rows)
}

/// The meaning of three columns.
const WORST: &str = "“Peak usage” is the most permits that one key was admitted in any window, “bound” the most that the algorithm can \
                     admit in one, “state” the memory of one key.";

/// Marks a peak above the limit.
fn alarm(worst: u64, limit: u64) -> CellKind {
    if worst > limit { Alarm } else { Figure }
}

pub(super) fn compare(data: &Report) -> String {
    if data.compare.is_empty() {
        return String::new();
    }
    let several = data.rules.len() > 1;
    let rows = data.compare.iter().map(|row| {
        let limit = data.rule(&row.rule).map_or(u64::MAX, |rule| rule.limit);
        let mut cells = vec![
            ("Algorithm", Head, plain(&row.algorithm)),
            ("Admitted", Figure, number(row.admitted)),
            ("Denied", Figure, number(row.denied)),
            (
                "Denial rate",
                Figure,
                percent(row.denied, data.requests_of(&row.rule)),
            ),
            ("Peak usage", alarm(row.worst, limit), number(row.worst)),
            ("Bound", Figure, number(row.bound)),
            ("State", Figure, bytes(row.bytes)),
        ];
        if several {
            cells.insert(1, ("Rule", Text, key(&row.rule)));
        }
        (String::new(), cells)
    });
    let rows: Vec<Row> = rows.collect();
    format!(
        "<section aria-labelledby=\"compare-heading\">\n<h2 id=\"compare-heading\">Comparison of algorithms</h2>\n{}\n</section>",
        table(
            "compare",
            &format!("Each rule by itself. {WORST}"),
            if several { 2 } else { 1 },
            usize::MAX,
            &rows
        ),
    )
}
