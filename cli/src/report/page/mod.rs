//! The report as one HTML page without other files. Its text and tables need no script.
//!
//! Sentences and tables are rendered here. `page.js` reads the report that the page carries, and draws the charts. Text
//! from a log is never markup: here [`text`] escapes it, and the script uses figures and copies of elements only.

mod text;
mod table;
mod copy;
mod answers;
mod tables;

use self::answers::{answers, whom};
use self::tables::{compare, keys, limits, rules};
use self::text::{UTC, duration, embedded, key, number, plain, quota_of, span};
use crate::report::{ChosenReport, Report, WhatIfReport};

const PAGE: &str = include_str!("page.html");
const SLIDING: &str = include_str!("sliding.html");
const WHAT_IF: &str = include_str!("what_if.html");
const STYLE: &str = include_str!("page.css");
/// The script, which must not contain the end of its element.
const SCRIPT: &str = concat!(
    "\n(() => {\n'use strict';\n",
    include_str!("text.js"),
    include_str!("chart.js"),
    include_str!("page.js"),
    "})();\n",
);
/// The hash of the script, the only one that the page allows; `ci/page.sh` prints it after a change.
const SCRIPT_HASH: &str = "sha256-Uh8LF+iOCU0nSoBY0pHUQZHWYO10faQo6DMvnfo9PJA=";

/// Renders a report, which the page carries as JSON.
pub(crate) fn render(data: &Report, json: &str) -> String {
    let heading = heading(data);
    fill(PAGE, |name| match name {
        "script hash" => SCRIPT_HASH.to_owned(),
        "style" => STYLE.to_owned(),
        "title" => format!("{heading} · ringgate replay"),
        "heading" => heading.clone(),
        "about" => about(data),
        "answers" => answers(data),
        "traffic rules" => rule_choice(
            "traffic-rule",
            "Denied by",
            "any rule",
            &names_of(data.rules.iter().map(|rule| &rule.name)),
        ),
        "keys" => keys(data),
        "sliding" => sliding(data),
        "what if" => what_if(data),
        "rules" => rules(data),
        "compare" => compare(data),
        "notes" => notes(data),
        "data" => embedded(json),
        "script" => SCRIPT.to_owned(),
        name => unreachable!("{name} is no place of the page"),
    })
}

/// Replaces each `{{name}}` of a template once. The content may contain braces.
fn fill(template: &str, mut content: impl FnMut(&str) -> String) -> String {
    let mut html = String::with_capacity(1 << 17);
    let mut rest = template;
    while let Some((before, (name, after))) = rest
        .split_once("{{")
        .and_then(|(before, after)| Some((before, after.split_once("}}")?)))
    {
        html.push_str(before);
        html.push_str(&content(name));
        rest = after;
    }
    html.push_str(rest);
    html
}

/// Plain text for the heading and the title.
fn heading(data: &Report) -> String {
    let rules = data.rules.iter();
    let said: Vec<String> = rules
        .take(3)
        .map(|rule| format!("{} for {}", quota_of(rule), whom(rule)))
        .collect();
    match data.rules.len() {
        0..=3 => said.join(", "),
        rules => format!("{} rules", number(rules as u64)),
    }
}

fn about(data: &Report) -> String {
    let sources: Vec<String> = data.sources.iter().take(3).map(|source| key(source)).collect();
    let more = match data.sources.len().saturating_sub(3) {
        0 => String::new(),
        more => format!(" and {} more", number(more as u64)),
    };
    format!(
        "What would have become of the {} of {}{more}, {}.",
        match data.requests {
            1 => "1 request".to_owned(),
            requests => format!("{} requests", number(requests)),
        },
        sources.join(", "),
        span(data.from, data.to),
    )
}

fn names_of<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    names.map(String::as_str).collect()
}

/// A choice among two or more rules by their positions. `all` is the first option, if not empty.
fn rule_choice(id: &str, label: &str, all: &str, names: &[&str]) -> String {
    if names.len() < 2 {
        return String::new();
    }
    let mut html = format!(r#"<div class="controls"><label>{label} <select id="{id}">"#);
    if !all.is_empty() {
        html += &format!(r#"<option value="">{all}</option>"#);
    }
    for (index, name) in names.iter().enumerate() {
        html += &format!(r#"<option value="{index}">{}</option>"#, plain(name));
    }
    html + "</select></label></div>"
}

fn sliding(data: &Report) -> String {
    if data.chosen.is_empty() {
        return String::new();
    }
    let mut options = String::new();
    for (index, chosen) in data.chosen.iter().enumerate() {
        options += &format!(r#"<option value="{index}">{}"#, plain(&chosen.key));
        if data.rules.len() > 1 {
            options += &format!(" ({})", plain(&chosen.rule));
        }
        options.push_str("</option>");
    }
    fill(SLIDING, |name| match name {
        "options" => options.clone(),
        _ => data.chosen.iter().enumerate().map(details).collect(),
    })
}

/// A table for each field of the denied requests of a key.
fn details((index, chosen): (usize, &ChosenReport)) -> String {
    let mut html = String::new();
    for report in &chosen.details {
        let title = match report.field.as_str() {
            "path" => "Denied, by path",
            "status" => "Denied, by status in the log",
            _ => "Denied, by user agent",
        };
        html += &format!(r#"<table data-of="{index}" hidden><caption>{title}</caption><tbody>"#);
        for (value, denied) in &report.denied {
            html += &format!(
                r#"<tr><th class="name" scope="row">{}</th><td>{}</td></tr>"#,
                key(value),
                number(*denied)
            );
        }
        html.push_str("</tbody></table>\n");
    }
    html
}

fn what_if(data: &Report) -> String {
    let tried: Vec<&WhatIfReport> = data
        .what_if
        .iter()
        .filter(|tried| !tried.limits.is_empty())
        .collect();
    if tried.is_empty() {
        return String::new();
    }
    fill(WHAT_IF, |name| match name {
        "what-if rules" => rule_choice(
            "what-if-rule",
            "Rule",
            "",
            &names_of(tried.iter().map(|tried| &tried.rule)),
        ),
        _ => tried
            .iter()
            .enumerate()
            .map(|(index, tried)| limits(data, index, tried))
            .collect(),
    })
}

fn notes(data: &Report) -> String {
    let mut html = format!(
        "<p>{} lines were read, {} of them unreadable. All times are in {UTC}. A window ends at the moment that is looked at and \
         begins its length before, that instant excluded. The chart over time has a step of {}. A marked part of a key is \
         the escape sequence of a character that does not print.</p>",
        number(data.lines),
        number(data.unreadable),
        duration(data.step as f64),
    );
    for note in &data.notes {
        html += &format!("\n<p>Note: {}.</p>", plain(note));
    }
    html
}

#[cfg(test)]
mod tests;
