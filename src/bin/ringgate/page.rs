//! A report as one HTML page that needs nothing else: no network, no library, and for its words and tables no script.
//!
//! Sentences and tables are written here; `page.js` reads the same report, which the page carries, and draws it. What comes
//! from a log is never markup: here it goes through [`text`], there it is a figure, or a copy of what was written here.

mod data;
mod table;
mod text;

use std::io;

use self::data::{Data, Rule, WhatIf};
use self::table::{Column, Table};
use self::text::{append, bytes, duration, embedded, key, number, percent, plain, span, time};
use crate::failure::Failure;

const PAGE: &str = include_str!("page/page.html");
const SLIDING: &str = include_str!("page/sliding.html");
const WHAT_IF: &str = include_str!("page/what_if.html");
const STYLE: &str = include_str!("page/page.css");
/// The script, which may not hold what would end its element.
const SCRIPT: &str = concat!(
    "\n(() => {\n'use strict';\n",
    include_str!("page/text.js"),
    include_str!("page/chart.js"),
    include_str!("page/page.js"),
    "})();\n",
);
/// The one script that the page lets its browser run; `ci/page.sh` says what it is after a change.
const SCRIPT_HASH: &str = "sha256-2/UwuSIhHJ78qH+Zc/1XrUkPVS//URKef7L7CRfheps=";

/// Keys that are listed before the rest is asked for.
const LISTED: usize = 10;

/// Rules whose limits are answered for at the top.
const ANSWERED: usize = 3;

/// The page for a report in JSON, as `--json` prints it.
///
/// # Errors
///
/// When that is no report.
pub(crate) fn render(json: &str) -> Result<String, Failure> {
    let data: Data = serde_json::from_str(json)
        .map_err(|error| Failure::io("the report cannot be made a page", io::Error::from(error)))?;
    let heading = heading(&data);
    Ok(fill(PAGE, |name| match name {
        "script hash" => SCRIPT_HASH.to_owned(),
        "style" => STYLE.to_owned(),
        "title" => format!("{heading} · ringgate replay"),
        "heading" => heading.clone(),
        "about" => about(&data),
        "answers" => answers(&data),
        "traffic rules" => rule_choice("traffic-rule", "Denied by", "any rule", data.rules.iter().map(|rule| &rule.name)),
        "keys" => keys(&data),
        "sliding" => sliding(&data),
        "what if" => what_if(&data),
        "rules" => rules(&data),
        "compare" => compare(&data),
        "notes" => notes(&data),
        "data" => embedded(json),
        "script" => SCRIPT.to_owned(),
        name => unreachable!("{name} is no place of the page"),
    }))
}

/// Replaces each `{{name}}` of a template, once: what is put in may hold braces of its own.
fn fill(template: &str, mut content: impl FnMut(&str) -> String) -> String {
    let mut html = String::with_capacity(1 << 17);
    let mut rest = template;
    while let Some((before, (name, after))) =
        rest.split_once("{{").and_then(|(before, after)| Some((before, after.split_once("}}")?)))
    {
        html.push_str(before);
        html.push_str(&content(name));
        rest = after;
    }
    html.push_str(rest);
    html
}

/// A limit as words: 20 per 60 s, 100 per h.
fn quota(limit: u64, window: f64) -> String {
    let window = duration(window);
    let window = window.strip_prefix("1\u{a0}").unwrap_or(&window);
    format!("{}\u{a0}per\u{a0}{window}", number(limit))
}

/// Text only, for the title too.
fn heading(data: &Data) -> String {
    let rules = data.rules.iter();
    let said: Vec<String> =
        rules.take(3).map(|rule| format!("{} for each {}", quota(rule.limit, rule.window), plain(&rule.key))).collect();
    match data.rules.len() {
        0..=3 => said.join(", "),
        rules => format!("{} rules", number(rules as u64)),
    }
}

fn about(data: &Data) -> String {
    let sources: Vec<String> = data.sources.iter().take(3).map(|source| key(source)).collect();
    let more = match data.sources.len().saturating_sub(3) {
        0 => String::new(),
        more => format!(" and {} more", number(more as u64)),
    };
    format!(
        "What would have become of the {} requests of {}{more}, {}.",
        number(data.requests),
        sources.join(", "),
        span(data.from, data.to),
    )
}

/// Who was limited most, when, and what limit would have denied at most one request in a hundred.
fn answers(data: &Data) -> String {
    let mut html = String::new();
    match data.keys.first().filter(|most| most.denied > 0) {
        None => html.push_str(r#"<p id="most-limited">Nobody was limited: not one request was denied.</p>"#),
        Some(most) => {
            let rule = data.rule(&most.rule);
            append(
                &mut html,
                format_args!(
                    r#"<p id="most-limited">The {} <b>{}</b> was limited most{}: <b>{}</b> of its {} requests ({}) were denied"#,
                    rule.map_or_else(|| "key".to_owned(), |rule| plain(&rule.key)),
                    key(&most.key),
                    of_rule(data, &most.rule),
                    number(most.denied),
                    number(most.requests),
                    percent(most.denied, most.requests),
                ),
            );
            if let (Some(first), Some(last)) = (most.first_denied, most.last_denied) {
                append(&mut html, format_args!(", <b>{}</b>", span(first, last)));
            }
            html.push('.');
            let peak = data.chosen(most).and_then(|index| data.chosen[index].peak());
            if let (Some((at, count)), Some(rule)) = (peak, rule) {
                append(
                    &mut html,
                    format_args!(
                        " At its peak it asked {} times in {}, up to {}\u{a0}UTC.",
                        number(count),
                        duration(rule.window),
                        time(at),
                    ),
                );
            }
            html.push_str("</p>");
        }
    }
    // That key's rule first.
    let first = data.keys.first().map_or("", |most| &most.rule);
    let mut tried: Vec<(&WhatIf, &Rule)> =
        data.what_if.iter().filter_map(|tried| Some((tried, data.rule(&tried.rule)?))).collect();
    tried.sort_by_key(|(tried, _)| tried.rule != first);
    for (tried, rule) in tried.iter().take(ANSWERED) {
        html.push_str(&limit_answer(data, rule, tried));
    }
    if tried.len() > ANSWERED {
        append(
            &mut html,
            format_args!(
                r##"<p>The limits of {} more rules are <a href="#what-if-heading">further down</a>.</p>"##,
                number((tried.len() - ANSWERED) as u64)
            ),
        );
    }
    let denied = data.series.denied.iter().sum();
    let facts = [
        ("Requests", number(data.requests)),
        ("Denied", format!("{} <small>{}</small>", number(denied), percent(denied, data.requests))),
        match &data.rules[..] {
            [rule] => ("Keys", number(rule.keys)),
            rules => ("Rules", number(rules.len() as u64)),
        },
        ("Lines not understood", number(data.unreadable)),
    ];
    html.push_str("\n<dl class=\"facts\">\n");
    for (name, value) in facts {
        append(&mut html, format_args!("<div><dt>{name}</dt><dd>{value}</dd></div>\n"));
    }
    html + "</dl>"
}

/// Names a rule where there are several.
fn of_rule(data: &Data, name: &str) -> String {
    match data.rules.len() {
        0..=1 => String::new(),
        _ => format!(" for rule {}", key(name)),
    }
}

fn limit_answer(data: &Data, rule: &Rule, tried: &WhatIf) -> String {
    let window = duration(rule.window);
    let share = |denied| {
        format!("{} of {} ({})", number(denied), number(tried.requests), percent(denied, tried.requests))
    };
    let of_rule = of_rule(data, &rule.name);
    let instead = if tried.one_per_cent().is_some_and(|(limit, _)| limit == rule.limit) {
        format!(" per {window}, the one that was replayed,")
    } else {
        format!(" instead of {}", quota(rule.limit, rule.window))
    };
    match (tried.one_per_cent(), tried.limits.last().zip(tried.denied.last())) {
        (Some((limit, denied)), _) => format!(
            r#"<p class="limit-answer">A limit of <b>{}</b>{instead}{of_rule} would have denied at most 1&nbsp;% of the requests: {}.</p>"#,
            number(limit),
            share(denied),
        ),
        (None, Some((&limit, &denied))) => format!(
            r#"<p class="limit-answer">No limit that was tried{of_rule} would have denied at most 1&nbsp;% of the requests; the largest, {} per {window}, denies {}.</p>"#,
            number(limit),
            share(denied),
        ),
        (None, None) => String::new(),
    }
}

/// A choice among rules, by their positions; nothing where there is none. `all` comes first where it makes sense.
fn rule_choice<'a>(id: &str, label: &str, all: &str, names: impl ExactSizeIterator<Item = &'a String>) -> String {
    if names.len() < 2 {
        return String::new();
    }
    let mut html = format!(r#"<div class="controls"><label>{label} <select id="{id}">"#);
    if !all.is_empty() {
        append(&mut html, format_args!(r#"<option value="">{all}</option>"#));
    }
    for (index, name) in names.enumerate() {
        append(&mut html, format_args!(r#"<option value="{index}">{}</option>"#, plain(name)));
    }
    html + "</select></label></div>"
}

fn keys(data: &Data) -> String {
    if data.keys.is_empty() {
        return "<p>No key was limited.</p>".to_owned();
    }
    let several = data.rules.len() > 1;
    let mut headers = vec!["Key", "Requests", "Denied", "Share", "Worst", "First denied", "Last denied"];
    if several {
        headers.insert(1, "Rule");
    }
    let mut table = Table::new(&headers).folded_after(LISTED);
    for row in &data.keys {
        let (class, attributes) = match data.chosen(row) {
            Some(index) => (" class=\"has-chart\"", format!(r#" data-chosen="{index}""#)),
            None => ("", String::new()),
        };
        let instant = |ms: Option<i64>| (Column::Time, ms.map_or_else(|| "–".to_owned(), time));
        let mut cells = vec![
            (Column::Head, format!("<span{class}>{}</span>", key(&row.key))),
            (Column::Figure, number(row.requests)),
            (Column::Figure, number(row.denied)),
            (Column::Figure, percent(row.denied, row.requests)),
            (Column::Figure, number(row.worst)),
            instant(row.first_denied),
            instant(row.last_denied),
        ];
        if several {
            cells.insert(1, (Column::Text, key(&row.rule)));
        }
        table.row(&attributes, &cells);
    }
    let listed = data.keys.len();
    let caption = format!(
        "The {} that {} denied most often; times in UTC. “Worst” is the most that was admitted in any one window.",
        if listed == 1 { "key".to_owned() } else { format!("{} keys", number(listed as u64)) },
        if listed == 1 { "was" } else { "were" },
    );
    table.html("keys", &caption, if several { 2 } else { 1 })
}

fn sliding(data: &Data) -> String {
    if data.chosen.is_empty() {
        return String::new();
    }
    let mut options = String::new();
    for (index, chosen) in data.chosen.iter().enumerate() {
        append(&mut options, format_args!(r#"<option value="{index}">{}"#, plain(&chosen.key)));
        if data.rules.len() > 1 {
            append(&mut options, format_args!(" ({})", plain(&chosen.rule)));
        }
        options.push_str("</option>");
    }
    fill(SLIDING, |_| options.clone())
}

fn what_if(data: &Data) -> String {
    let tried: Vec<&WhatIf> = data.what_if.iter().filter(|tried| !tried.limits.is_empty()).collect();
    if tried.is_empty() {
        return String::new();
    }
    fill(WHAT_IF, |name| match name {
        "what-if rules" => rule_choice("what-if-rule", "Rule", "", tried.iter().map(|tried| &tried.rule)),
        _ => tried.iter().enumerate().map(|(index, tried)| limits(data, index, tried)).collect(),
    })
}

/// The limits that were tried, as a table to be opened.
fn limits(data: &Data, index: usize, tried: &WhatIf) -> String {
    let rule = data.rule(&tried.rule);
    let keys = rule.map_or(0, |rule| rule.keys);
    let mut html = format!("<details><summary>All limits that were tried{}, as a table</summary>\n", of_rule(data, &tried.rule));
    append(
        &mut html,
        format_args!(
            "<table id=\"limits-{index}\"><thead><tr><th scope=\"col\" class=\"name\">Limit</th><th scope=\"col\">Requests denied</th>\
             <th scope=\"col\">Share</th><th scope=\"col\">Keys denied</th><th scope=\"col\">Share</th></tr></thead>\n<tbody>\n"
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
                percent(keys_denied, keys),
            ),
        );
    }
    html + "</tbody></table></details>"
}

fn rules(data: &Data) -> String {
    let headers = ["Rule", "Quota", "Algorithm", "Per", "Keys", "Admitted", "Denied", "Share", "Worst", "Bound", "State"];
    let mut table = Table::new(&headers);
    for rule in &data.rules {
        table.row("", &[
            (Column::Head, key(&rule.name)),
            (Column::Text, quota(rule.limit, rule.window)),
            (Column::Text, plain(&rule.algorithm)),
            (Column::Text, plain(&rule.key)),
            (Column::Figure, number(rule.keys)),
            (Column::Figure, number(rule.admitted)),
            (Column::Figure, number(rule.denied)),
            (Column::Figure, percent(rule.denied, rule.admitted + rule.denied)),
            (alarm(rule.worst, rule.limit), number(rule.worst)),
            (Column::Figure, number(rule.bound)),
            (Column::Figure, bytes(rule.bytes)),
        ]);
    }
    table.html("rules", WORST, 4)
}

/// What the columns of the worst case mean.
const WORST: &str = "“Worst” is the most that one key was admitted in any window, “bound” the most that the algorithm \
                     ever admits in one, “state” the memory of all keys’ counts.";

/// Shows where more than the limit was admitted.
fn alarm(worst: u64, limit: u64) -> Column {
    if worst > limit { Column::Alarm } else { Column::Figure }
}

fn compare(data: &Data) -> String {
    if data.compare.is_empty() {
        return String::new();
    }
    let several = data.rules.len() > 1;
    let mut headers = vec!["Algorithm", "Admitted", "Denied", "Share", "Worst", "Bound", "State"];
    if several {
        headers.insert(1, "Rule");
    }
    let mut table = Table::new(&headers);
    for row in &data.compare {
        let limit = data.rule(&row.rule).map_or(u64::MAX, |rule| rule.limit);
        let mut cells = vec![
            (Column::Head, plain(&row.algorithm)),
            (Column::Figure, number(row.admitted)),
            (Column::Figure, number(row.denied)),
            (Column::Figure, percent(row.denied, row.admitted + row.denied)),
            (alarm(row.worst, limit), number(row.worst)),
            (Column::Figure, number(row.bound)),
            (Column::Figure, bytes(row.bytes)),
        ];
        if several {
            cells.insert(1, (Column::Text, key(&row.rule)));
        }
        table.row("", &cells);
    }
    format!(
        "<section aria-labelledby=\"compare-heading\">\n<h2 id=\"compare-heading\">The algorithms side by side</h2>\n{}\n</section>",
        table.html("compare", WORST, if several { 2 } else { 1 }),
    )
}

fn notes(data: &Data) -> String {
    format!(
        "<p>{} lines were read, {} of them not understood. All times are UTC. A window ends at the moment that is looked at and \
         begins a window’s length before it, that instant excluded. The chart over time has a step of {}. A key that is written in \
         marked escape sequences holds characters that do not print.</p>",
        number(data.lines),
        number(data.unreadable),
        duration(data.step as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::{SCRIPT, render};
    use serde_json::json;

    /// A report about one rule and one key, both of one name.
    fn report(name: &str) -> String {
        json!({
            "version": 1, "sources": [name], "lines": 1_001, "requests": 1_000, "unreadable": 1,
            "from": 1_431_857_100_000_i64, "to": 1_431_857_159_000_i64, "step": 60_000,
            "rules": [{
                "name": name, "quota": "2/60s", "limit": 2, "window": 60_000, "algorithm": "classic", "key": name,
                "admitted": 980, "denied": 20, "worst": 3, "bound": 4, "bytes": 8, "keys": 1,
            }],
            "series": {"requests": [1_000], "denied": [20], "by_rule": {name: [20]}},
            "keys": [{
                "rule": name, "key": name, "requests": 900, "denied": 20,
                "first_denied": 1_431_857_103_000_i64, "last_denied": 1_431_857_104_000_i64, "worst": 3,
            }],
            "chosen": [{
                "rule": name, "key": name, "limit": 2, "window": 60_000,
                "asked": [[1_431_857_100_000_i64, 1], [1_431_857_103_000_i64, 23], [1_431_857_104_000_i64, 23]],
                "admitted": [[1_431_857_100_000_i64, 1]],
            }],
            "what_if": [{
                "rule": name, "limits": [1, 2, 7, 9], "denied": [40, 20, 10, 9], "keys_denied": [1, 1, 1, 1], "requests": 1_000,
            }],
            "compare": [],
        })
        .to_string()
    }

    fn page(name: &str) -> String {
        render(&report(name)).expect("it is a report")
    }

    #[test]
    fn the_page_answers_who_when_and_what_limit() {
        let html = page("client").replace('\u{a0}', " ");
        for said in [
            "<title>2 per 60 s for each client · ringgate replay</title>",
            r#"The client <b><bdi class="key">client</bdi></b> was limited most: <b>20</b> of its 900 requests (2.22 %) were denied"#,
            r#"<b>between <time datetime="2015-05-17T10:05:03Z">2015-05-17 10:05:03</time> and "#,
            r#"At its peak it asked 23 times in 60 s, up to <time datetime="2015-05-17T10:05:03Z">"#,
            "A limit of <b>7</b> instead of 2 per 60 s would have denied at most 1&nbsp;% of the requests: 10 of 1,000 (1.00 %).",
            r#"<td role="cell" class="alarm" data-label="Worst">3</td>"#,
        ] {
            assert!(html.contains(said), "{said} is not in {html}");
        }
        // Of which nothing is to be found in the script.
        let (html, _) = html.rsplit_once("<script>").expect("there is a script");
        assert!(!html.contains("{{") && !html.contains("}}"), "a place is not filled");
    }

    #[test]
    fn what_comes_from_a_log_is_never_markup() {
        let usual = page("client").matches('<').count();
        for name in [
            "</script><script>alert(1)</script>",
            "</title><img src=x onerror=alert(1)>",
            "\"><b>\"'&lt;",
            "<!--<script>",
            "{{data}}{{script}}",
            "\u{202e}\0\u{1b}[31m",
        ] {
            let marks = name.chars().filter(|c| c.escape_debug().len() > 1 && !"\"'".contains(*c)).count();
            let html = page(name);
            // An escape sequence has an element of its own, but in the title, the heading and a choice.
            let expected = usual + marks * 2 * html.matches("<bdi class=\"key\">").count();
            assert_eq!(html.matches('<').count(), expected, "{name}");
            assert!(!html.contains('\u{202e}') && !html.contains('\0') && !html.contains('\u{1b}'), "{name}");
        }
    }

    #[test]
    fn nobody_limited_and_no_limit_good_enough_are_said() {
        let report = report("client").replace("[40,20,10,9]", "[40,20,12,11]");
        let html = render(&report).expect("it is a report").replace('\u{a0}', " ");
        let said = "No limit that was tried would have denied at most 1&nbsp;% of the requests; the largest, 9 per 60 s, denies 11 of 1,000 (1.10 %).";
        assert!(html.contains(said), "{html}");

        let mut report: serde_json::Value = serde_json::from_str(&report).expect("it is JSON");
        for list in ["keys", "chosen", "what_if"] {
            report[list] = json!([]);
        }
        let html = render(&report.to_string()).expect("it is a report");
        assert!(html.contains("Nobody was limited: not one request was denied."));
        assert!(!html.contains("<input") && !html.contains("<table class=\"stack\" id=\"keys\""), "charts of nothing");
    }

    #[test]
    fn what_is_no_report_is_refused() {
        for json in ["", "[]", "{}", r#"{"version":1}"#] {
            let error = render(json).expect_err("it is no report").to_string();
            assert!(error.starts_with("the report cannot be made a page: "), "{error}");
        }
    }

    #[test]
    fn the_script_stays_in_its_element() {
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--"));
    }
}
