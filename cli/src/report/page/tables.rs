//! The tables of the page.

use super::answers::{of_rule, whom};
use super::table::{CellKind, Table};
use super::text::{append, bytes, key, number, percent, plain, quota_of, time};
use crate::report::{Report, WhatIfReport};

/// Keys that are visible before the list is unfolded.
const LISTED: usize = 10;

pub(super) fn keys(data: &Report) -> String {
    if data.keys.is_empty() {
        return "<p>No request has a key.</p>".to_owned();
    }
    let several = data.rules.len() > 1;
    let mut headers = vec![
        "Key",
        "Requests",
        "Denied",
        "Denial rate",
        "Peak demand",
        "First denied",
        "Last denied",
    ];
    if several {
        headers.insert(1, "Rule");
    }
    let mut table = Table::new(&headers).folded_after(LISTED);
    for (row, chart) in data.keys.iter().zip(data.charts()) {
        let (class, attributes) = match chart {
            Some(index) => (" class=\"has-chart\"", format!(r#" data-chosen="{index}""#)),
            None => ("", String::new()),
        };
        let instant = |ms: Option<i64>| (CellKind::Time, ms.map_or_else(|| "–".to_owned(), time));
        let mut cells = vec![
            (CellKind::Head, format!("<span{class}>{}</span>", key(&row.key))),
            (CellKind::Figure, number(row.requests)),
            (CellKind::Figure, number(row.denied)),
            (CellKind::Figure, percent(row.denied, row.requests)),
            (CellKind::Figure, number(row.worst)),
            instant(row.first_denied),
            instant(row.last_denied),
        ];
        if several {
            cells.insert(1, (CellKind::Text, key(&row.rule)));
        }
        table.row(&attributes, &cells);
    }
    let caption = "In order of denials, then of peak demand; times in <span class=\"zone\">UTC</span>. “Peak demand” is the most permits that were requested in any window.";
    table.html("keys", caption, if several { 2 } else { 1 })
}

/// The simulated limits as a table to unfold.
pub(super) fn limits(data: &Report, index: usize, tried: &WhatIfReport) -> String {
    let mut html = format!(
        "<details><summary>All simulated limits{}, as a table</summary>\n",
        of_rule(data, &tried.rule)
    );
    append(
        &mut html,
        format_args!(
            "<table id=\"limits-{index}\"><thead><tr><th scope=\"col\" class=\"name\">Limit</th><th scope=\"col\">Requests denied</th>\
             <th scope=\"col\">Denial rate</th><th scope=\"col\">Keys denied</th><th scope=\"col\">Denial rate</th></tr></thead>\n<tbody>\n"
        ),
    );
    for ((&limit, &denied), &keys_denied) in tried.limits.iter().zip(&tried.denied).zip(&tried.keys_denied) {
        append(
            &mut html,
            format_args!(
                "<tr><th scope=\"row\" class=\"name\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                number(limit),
                number(denied),
                percent(denied, tried.requests),
                number(keys_denied),
                percent(keys_denied, tried.keys),
            ),
        );
    }
    html + "</tbody></table></details>"
}

pub(super) fn rules(data: &Report) -> String {
    let headers = [
        "Rule",
        "Quota",
        "Algorithm",
        "Key",
        "Keys",
        "Requests",
        "Admitted",
        "Denied",
        "Denial rate",
        "Peak usage",
        "Bound",
        "State",
    ];
    let mut table = Table::new(&headers);
    for rule in &data.rules {
        let mut algorithm = plain(&rule.algorithm);
        if let Some(form) = &rule.form {
            append(&mut algorithm, format_args!(", {}", plain(form)));
        } else if let Some(cells) = rule.cells {
            append(&mut algorithm, format_args!(", {cells}\u{a0}cells"));
        }
        if rule.shadow {
            algorithm.push_str(", in shadow");
        }
        table.row(
            "",
            &[
                (CellKind::Head, key(&rule.name)),
                (CellKind::Text, quota_of(rule)),
                (CellKind::Text, algorithm),
                (CellKind::Text, whom(rule)),
                (CellKind::Figure, number(rule.keys)),
                (CellKind::Figure, number(rule.requests)),
                (CellKind::Figure, number(rule.admitted)),
                (CellKind::Figure, number(rule.denied)),
                (CellKind::Figure, percent(rule.denied, rule.requests)),
                (alarm(rule.worst, rule.limit), number(rule.worst)),
                (CellKind::Figure, number(rule.bound)),
                (CellKind::Figure, bytes(rule.bytes)),
            ],
        );
    }
    let mut caption = WORST.to_owned();
    if data.rules.len() > 1 {
        caption.push_str(
            " “Admitted” counts requests that all rules admitted, “denied” those that this rule denied.",
        );
    }
    table.html("rules", &caption, 4)
}

/// The meaning of three columns.
const WORST: &str = "“Peak usage” is the most permits that one key was admitted in any window, “bound” the most that the algorithm can \
                     admit in one, “state” the memory of one key.";

/// Marks a peak above the limit.
fn alarm(worst: u64, limit: u64) -> CellKind {
    if worst > limit {
        CellKind::Alarm
    } else {
        CellKind::Figure
    }
}

pub(super) fn compare(data: &Report) -> String {
    if data.compare.is_empty() {
        return String::new();
    }
    let several = data.rules.len() > 1;
    let mut headers = vec![
        "Algorithm",
        "Admitted",
        "Denied",
        "Denial rate",
        "Peak usage",
        "Bound",
        "State",
    ];
    if several {
        headers.insert(1, "Rule");
    }
    let mut table = Table::new(&headers);
    for row in &data.compare {
        let limit = data.rule(&row.rule).map_or(u64::MAX, |rule| rule.limit);
        let mut cells = vec![
            (CellKind::Head, plain(&row.algorithm)),
            (CellKind::Figure, number(row.admitted)),
            (CellKind::Figure, number(row.denied)),
            (CellKind::Figure, percent(row.denied, data.requests_of(&row.rule))),
            (alarm(row.worst, limit), number(row.worst)),
            (CellKind::Figure, number(row.bound)),
            (CellKind::Figure, bytes(row.bytes)),
        ];
        if several {
            cells.insert(1, (CellKind::Text, key(&row.rule)));
        }
        table.row("", &cells);
    }
    format!(
        "<section aria-labelledby=\"compare-heading\">\n<h2 id=\"compare-heading\">Comparison of algorithms</h2>\n{}\n</section>",
        table.html(
            "compare",
            &format!("Each rule by itself. {WORST}"),
            if several { 2 } else { 1 }
        ),
    )
}
