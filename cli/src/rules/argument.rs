//! Rules of the command line.

use ringgate::{Quota, Rule};

use crate::args::{AlgorithmName, Cells, CountArgs};
use crate::failure::Failure;
use crate::rules::fields::Fields;
use crate::rules::record_layout::Event;
use clap::ValueEnum;

/// The keywords that begin a part of a rule.
const PARTS: [&str; 7] = ["by", "cost", "when", "algorithm", "cells", "burst", "as"];

/// The key that stands for one limit for all requests.
pub(crate) const ALL: &str = "all";

/// A part of a rule, its value without quotation marks, and the place where the value begins.
type Part = (&'static str, String, usize);

/// A text without its quotation marks; `\"` is one that stays.
fn unquoted(text: &str) -> String {
    let pieces: Vec<String> = text.split("\\\"").map(|piece| piece.replace('"', "")).collect();
    pieces.join("\"")
}

/// Splits a rule into its parts. Within quotation marks a keyword is text.
fn split(text: &str) -> Result<Vec<Part>, Failure> {
    let mut parts: Vec<Part> = vec![("", String::new(), 0)];
    let (mut quoted, mut start) = (false, 0);
    for (at, char) in text.char_indices().chain([(text.len(), ' ')]) {
        quoted ^= char == '"' && !text[..at].ends_with('\\');
        if quoted || !char.is_whitespace() {
            continue;
        }
        let word = &text[start..at];
        let keyword = PARTS.iter().find(|part| **part == word);
        if let Some(part) = keyword
            && parts.iter().any(|(known, ..)| known == part)
        {
            let allowed = "each part once, and quotation marks around a value with this word";
            return Err(wrong(text, part, "there twice", allowed));
        }
        if let Some((part, value, begin)) = parts.last_mut() {
            let given = text[*begin..keyword.map_or(at, |_| start)].trim();
            // A condition keeps the spaces of its value.
            *value = match *part {
                "when" => unquoted(given),
                _ => unquoted(&given.split_whitespace().collect::<Vec<_>>().join(" ")),
            };
        }
        parts.extend(keyword.map(|part| (*part, String::new(), at)));
        start = at + char.len_utf8();
    }
    if quoted {
        return Err(wrong(
            text,
            "quotation mark",
            "not closed",
            "an even number of them",
        ));
    }
    Ok(parts)
}

/// Parses `20/60s by user cost size algorithm log as NAME`. Missing parts are taken from `otherwise`, and a missing condition is
/// `condition`.
///
/// # Errors
///
/// When a part is invalid; the error names it.
pub(crate) fn read(
    text: &str,
    otherwise: &CountArgs,
    condition: Option<&str>,
    fields: &Fields,
) -> Result<Rule<Event>, Failure> {
    let parts = split(text)?;
    if let Some((part, ..)) = parts.iter().skip(1).find(|(_, value, _)| value.is_empty()) {
        return Err(wrong(text, part, "empty", "a value for each part"));
    }
    let part = |name: &str| {
        let found = parts.iter().find(|(part, ..)| *part == name);
        found.map(|(_, value, _)| value.as_str())
    };
    let quota: Quota = part("").unwrap_or_default().parse()?;
    let number = |name: &str, value: &str| {
        value
            .parse::<u64>()
            .map_err(|_| wrong(text, name, &format!("{value:?}"), "a whole number"))
    };
    let algorithm = match part("algorithm") {
        Some(name) => AlgorithmName::from_str(name, false).map_err(|_| {
            let names = AlgorithmName::ALL.map(|name| name.to_string());
            wrong(text, "algorithm", &format!("{name:?}"), &names.join(", "))
        })?,
        None => otherwise.algorithm,
    };
    let mut rule = Rule::new(part("as").unwrap_or(text), quota).algorithm(algorithm.of_rule());
    // A default for all rules is ignored by rules without cells. Cells of one rule must fit its algorithm.
    let cells = match part("cells") {
        Some(cells) => Some(number("cells", cells)?),
        None => otherwise
            .cells
            .filter(|_| algorithm.cells() != Cells::None || algorithm == otherwise.algorithm),
    };
    if let Some(cells) = cells {
        rule = rule.cells(cells);
    }
    if let Some(burst) = part("burst") {
        rule = rule.burst(number("burst", burst)?);
    }
    // A part that the rule lacks is that of an option.
    let invalid = |name: &str, option: &str, given: &str, allowed: &str| match part(name) {
        Some(_) => wrong(text, option, &format!("{given:?}"), allowed),
        None => Failure::argument(format!("--{option}"), format!("{given:?}"), allowed),
    };
    let key = part("by").unwrap_or(&otherwise.key);
    if key != ALL {
        let allowed = "a field, or several with commas between them, or \"all\"";
        let known = fields.layout().key(key);
        let key = known.ok_or_else(|| invalid("by", "key", key, allowed))?;
        rule = rule.by(&key);
    }
    if let Some(cost) = part("cost").or(otherwise.cost.as_deref()) {
        let known = fields.layout().cost(cost);
        let cost = known.ok_or_else(|| invalid("cost", "cost", cost, "a field"))?;
        rule = rule.cost(&cost);
    }
    if let Some(when) = part("when").or(condition) {
        let allowed = "field, field=value, field!=value or field=prefix*, 64 in all";
        let known = fields.layout().condition(when);
        let condition = known.ok_or_else(|| invalid("when", "when", when, allowed))?;
        rule = rule.when(&condition);
    }
    Ok(rule)
}

/// Whether the limit of a valid rule has a unit of bytes: a word behind the number that is not the one before the window.
pub(crate) fn is_in_bytes(rule: &str) -> bool {
    let unit = rule.trim_start_matches(|char: char| !char.is_alphabetic() && char != '/');
    let word = unit.split_whitespace().next().unwrap_or_default();
    !unit.starts_with('/') && !["per", "in"].contains(&word.to_ascii_lowercase().as_str())
}

fn wrong(rule: &str, part: &str, given: &str, allowed: &str) -> Failure {
    Failure::argument(format!("--rule {rule:?}: {part}"), given, allowed)
}
