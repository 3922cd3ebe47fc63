//! The rule for a limit, to be copied: as TOML, as code and as an argument.

use crate::input::client::Prefixes;
use crate::report::RuleReport;

/// An element to unfold with the rule for another limit.
pub(super) fn rule(rule: &RuleReport, limit: u64) -> String {
    let mut blocks = vec![("A rules file", toml(rule, limit)), ("Rust", code(rule, limit))];
    // An argument has no calendar and no prefix.
    if rule.period.is_none() && prefixes(rule).is_none() {
        blocks.push(("The command line", argument(rule, limit)));
    }
    let blocks: String = blocks
        .iter()
        .map(|(title, text)| format!("<p>{title}</p>\n<pre><code>{}</code></pre>\n", escaped(text)))
        .collect();
    let left_out = match &rule.left_out[..] {
        [] => String::new(),
        parts => format!(
            "<p>The figures and this copy leave out a part of the rule: {}.</p>\n",
            escaped(&parts.join(", "))
        ),
    };
    format!("<details class=\"copy\"><summary>This limit as a rule</summary>\n{left_out}{blocks}</details>\n")
}

/// A text of several lines without markup. Characters that do not print are escape sequences.
fn escaped(text: &str) -> String {
    let mut html = String::new();
    for char in text.chars() {
        match char {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '\n' | '"' | '\'' | '\\' => html.push(char),
            _ => html.extend(char.escape_debug()),
        }
    }
    html
}

/// The window as a quota has it: whole seconds, or the largest unit below.
fn window(rule: &RuleReport) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 1 microsecond to 366 days"
    )]
    let micros = (rule.millis() * 1e3).round() as u64;
    match (micros % 1_000_000, micros % 1_000) {
        (0, _) => format!("{}s", micros / 1_000_000),
        (_, 0) => format!("{}ms", micros / 1_000),
        _ => format!("{micros}us"),
    }
}

/// A text in quotation marks, with escapes that TOML and Rust share for what a name may have.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            _ => quoted.push(char),
        }
    }
    quoted + "\""
}

fn toml(rule: &RuleReport, limit: u64) -> String {
    let mut lines = vec!["[[rules]]".to_owned(), format!("name = {}", quoted(&rule.name))];
    match calendar(rule) {
        Some((period, zone)) => lines.extend([
            format!("calendar = {}", quoted(&format!("{limit}/{period}"))),
            format!("time_zone = {}", quoted(zone)),
        ]),
        None => lines.extend([
            format!("quota = {}", quoted(&format!("{limit}/{}", window(rule)))),
            format!("algorithm = {}", quoted(&rule.algorithm)),
        ]),
    }
    lines.extend(rule.cells.map(|cells| format!("cells = {cells}")));
    lines.extend(rule.burst.map(|burst| format!("burst = {burst}")));
    if !rule.is_for_all() {
        let (key, prefixes) = match prefixes(rule) {
            Some((key, prefixes)) => (key, Some(prefixes)),
            None => (rule.key.as_str(), None),
        };
        lines.push(format!("key = {}", quoted(key)));
        lines.extend(prefixes.map(|[ipv4, ipv6]| format!("prefix = {{ ipv4 = {ipv4}, ipv6 = {ipv6} }}")));
    }
    lines.extend(rule.cost.iter().map(|cost| format!("cost = {}", quoted(cost))));
    lines.extend(rule.when.iter().map(|when| format!("when = {}", quoted(when))));
    lines.join("\n")
}

/// The periods of a calendar, and their time zone.
fn calendar(rule: &RuleReport) -> Option<(&str, &str)> {
    rule.period.as_deref()?.split_once(", ")
}

/// The name of the key and its prefixes, which the library has added to it.
fn prefixes(rule: &RuleReport) -> Option<(&str, [u8; 2])> {
    let (key, prefixes) = Prefixes::of_name(&rule.key)?;
    Some((key, prefixes.bits()))
}

fn code(rule: &RuleReport, limit: u64) -> String {
    let variant: String = rule.algorithm.split('-').map(capitalized).collect();
    let name = quoted(&rule.name);
    let mut lines = match calendar(rule) {
        Some((period, zone)) => vec![
            format!(
                "let quota: CalendarQuota = {}.parse()?;",
                quoted(&format!("{limit}/{period}"))
            ),
            format!(
                "let rule = Rule::calendar({name}, quota.in_zone({})?)",
                quoted(zone)
            ),
        ],
        None => vec![
            format!(
                "let quota: Quota = {}.parse()?;",
                quoted(&format!("{limit}/{}", window(rule)))
            ),
            format!("let rule = Rule::new({name}, quota)"),
            format!("    .algorithm(RuleAlgorithm::{variant})"),
        ],
    };
    lines.extend(rule.cells.map(|cells| format!("    .cells({cells})")));
    lines.extend(rule.burst.map(|burst| format!("    .burst({burst})")));
    if !rule.is_for_all() {
        lines.push(match prefixes(rule) {
            Some((key, [ipv4, ipv6])) => format!(
                "    .by(&key.with_prefixes({ipv4}, {ipv6})?) // Key::address({}, ..)",
                quoted(key)
            ),
            None => format!("    .by(&key) // Key::new({}, ..)", quoted(&rule.key)),
        });
    }
    lines.extend(
        rule.cost
            .iter()
            .map(|cost| format!("    .cost(&cost) // Cost::new({}, ..)", quoted(cost))),
    );
    lines.extend(
        rule.when
            .iter()
            .map(|when| format!("    .when(&condition) // Condition::new({}, ..)", quoted(when))),
    );
    lines.join("\n") + ";"
}

fn capitalized(word: &str) -> String {
    let mut word = word.to_owned();
    if let Some(first) = word.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    word
}

fn argument(rule: &RuleReport, limit: u64) -> String {
    // Within quotation marks a word is no keyword.
    let text = |text: &str| {
        let text = text.replace('"', "\\\"");
        match text.contains(char::is_whitespace) {
            true => format!("\"{text}\""),
            false => text,
        }
    };
    let mut parts = vec![format!("{limit}/{} by {}", window(rule), text(&rule.key))];
    parts.extend(rule.cost.iter().map(|cost| format!("cost {}", text(cost))));
    parts.extend(rule.when.iter().map(|when| format!("when {}", text(when))));
    parts.push(format!("algorithm {}", rule.algorithm));
    parts.extend(rule.cells.map(|cells| format!("cells {cells}")));
    parts.extend(rule.burst.map(|burst| format!("burst {burst}")));
    // In a shell, a quotation mark within single ones ends them.
    format!(
        "ringgate replay --rule '{}' access.log",
        parts.join(" ").replace('\'', "'\\''")
    )
}
