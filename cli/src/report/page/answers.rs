//! The key that was denied most, when, and the limit that denies at most one percent of the requests.

use super::copy;
use super::text::{UTC, duration, key, number, percent, plain, quota_of, span, time};
use crate::report::{Report, RuleReport, WhatIfReport};

/// The number of rules with an answer.
const ANSWERED: usize = 3;

/// The key that was denied most, when, and the limit that denies at most one percent of the requests.
pub(super) fn answers(data: &Report) -> String {
    let mut html = String::new();
    for warning in &data.warnings {
        html += &format!(
            "<p class=\"warning\" role=\"alert\"><b>Warning:</b> {}.</p>\n",
            plain(warning)
        );
    }
    match data.keys.first().filter(|most| most.denied > 0) {
        None => html.push_str(r#"<p id="most-limited">No request was denied.</p>"#),
        Some(most) => {
            let rule = data.rule(&most.rule);
            let key_words = match rule {
                Some(rule) if rule.is_for_all() => "All requests together were".to_owned(),
                Some(rule) => format!("The {} <b>{}</b> was", plain(&rule.key), key(&most.key)),
                None => format!("The key <b>{}</b> was", key(&most.key)),
            };
            html += &format!(
                r#"<p id="most-limited">{key_words} denied most often{}: <b>{}</b> of {} requests ({}) were denied"#,
                of_rule(data, &most.rule),
                number(most.denied),
                number(most.requests),
                percent(most.denied, most.requests)
            );
            if let (Some(first), Some(last)) = (most.first_denied, most.last_denied) {
                html += &format!(", <b>{}</b>", span(first, last));
            }
            html.push('.');
            if let Some(rule) = rule {
                html += &format!(
                    " At the peak, {} permits were requested in {}",
                    number(most.worst),
                    duration(rule.millis())
                );
                if let Some((at, _)) = data.charts()[0].and_then(|index| data.chosen[index].peak()) {
                    html += &format!(", up to {}\u{a0}{UTC}", time(at));
                }
                html.push('.');
            }
            html.push_str("</p>");
        }
    }
    // The rule of that key comes first.
    let first = data.keys.first().map_or("", |most| &most.rule);
    let mut tried: Vec<(&WhatIfReport, &RuleReport)> = data
        .what_if
        .iter()
        .filter_map(|tried| Some((tried, data.rule(&tried.rule)?)))
        .collect();
    tried.sort_by_key(|(tried, _)| tried.rule != first);
    for (tried, rule) in tried.iter().take(ANSWERED) {
        html.push_str(&limit_answer(data, rule, tried));
    }
    if tried.len() > ANSWERED {
        html.push_str(r##"<p>Limits of further rules are <a href="#what-if-heading">below</a>.</p>"##);
    }
    let denied = data.denied;
    let facts = [
        ("Requests", number(data.requests)),
        (
            "Denied",
            format!(
                "{} <small>{}</small>",
                number(denied),
                percent(denied, data.requests)
            ),
        ),
        match &data.rules[..] {
            [rule] => ("Keys", number(rule.keys)),
            rules => ("Rules", number(rules.len() as u64)),
        },
        ("Unreadable lines", number(data.unreadable)),
    ];
    html.push_str("\n<dl class=\"facts\">\n");
    for (name, value) in facts {
        html += &format!("<div><dt>{name}</dt><dd>{value}</dd></div>\n");
    }
    html + "</dl>"
}

/// Names a rule if there are several.
pub(super) fn of_rule(data: &Report, name: &str) -> String {
    match data.rules.len() {
        0..=1 => String::new(),
        _ => format!(" for rule {}", key(name)),
    }
}

fn limit_answer(data: &Report, rule: &RuleReport, tried: &WhatIfReport) -> String {
    let window = rule.period.clone().unwrap_or_else(|| duration(rule.millis()));
    let share = |denied| {
        format!(
            "{} of {} ({})",
            number(denied),
            number(tried.requests),
            percent(denied, tried.requests)
        )
    };
    let of_rule = of_rule(data, &rule.name);
    let instead = if tried.one_per_cent().is_some_and(|(limit, _)| limit == rule.limit) {
        format!(" per {window}, the one that was replayed,")
    } else {
        format!(" instead of {}", quota_of(rule))
    };
    match (tried.one_per_cent(), tried.limits.last().zip(tried.denied.last())) {
        (Some((limit, denied)), _) => format!(
            "<p class=\"limit-answer\">A limit of <b>{}</b>{instead}{of_rule} would have denied at most 1&nbsp;% of the requests: \
             {}.</p>\n{}",
            number(limit),
            share(denied),
            copy::rule(rule, limit),
        ),
        (None, Some((&limit, &denied))) => format!(
            r#"<p class="limit-answer">No limit that was tried{of_rule} would have denied at most 1&nbsp;% of the requests; the largest, {} per {window}, denies {}.</p>"#,
            number(limit),
            share(denied),
        ),
        (None, None) => String::new(),
    }
}

/// The key of a rule as text.
pub(super) fn whom(rule: &RuleReport) -> String {
    if rule.is_for_all() {
        "all together".to_owned()
    } else {
        format!("each {}", plain(&rule.key))
    }
}
