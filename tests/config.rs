//! Rules from files: the meaning of every field, the errors and their positions, and files that change.
#![cfg(feature = "config")]
// Its dependencies build C or use the system, and it has no atomics of its own.
#![cfg(not(any(miri, ringgate_loom)))]

extern crate alloc;

#[path = "config/byte_units.rs"]
mod byte_units;
#[path = "config/calendar.rs"]
mod calendar;
#[path = "config/errors.rs"]
mod errors;
#[path = "config/fields.rs"]
mod fields;
#[path = "config/files.rs"]
mod files;
#[path = "config/lists.rs"]
mod lists;
#[path = "common/random.rs"]
mod random;
#[path = "config/mistakes.rs"]
mod mistakes;
#[path = "config/syntax.rs"]
mod syntax;
#[cfg(feature = "watch")]
#[path = "config/watch.rs"]
mod watch;

use ringgate::Key;
use ringgate::rules::{Condition, Cost, Extractors, FileFormat, RuleSetBuilder, TierOf};

/// The requests of these tests.
#[derive(Clone, Copy, Debug, Default)]
struct Request {
    user: &'static str,
    /// A key that is a number.
    number: u64,
    bytes: u64,
    upload: bool,
    plan: Option<&'static str>,
}

fn extractors() -> Extractors<Request> {
    let make = || {
        Extractors::new()
            .key(Key::text("user", |request: &Request| Some(request.user)))?
            .key(Key::value("number", |request: &Request| Some(request.number)))?
            .cost(Cost::new("bytes", |request: &Request| request.bytes))?
            .condition(Condition::new("upload", |request: &Request| request.upload))?
            .tier_of(TierOf::new("plan", |request: &Request| request.plan))
    };
    make().expect("names of their own")
}

fn read(format: FileFormat, text: &str) -> RuleSetBuilder<Request> {
    RuleSetBuilder::from_text(text, format, &extractors()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The line, the column and the message of the error.
fn invalid(format: FileFormat, text: &str) -> (usize, usize, String) {
    let error = match RuleSetBuilder::from_text(text, format, &extractors()) {
        Ok(rules) => panic!("this was read as {rules:?}:\n{text}"),
        Err(error) => error,
    };
    let (line, column) = error.position().unwrap_or((0, 0));
    let words = error.to_string();
    let place = format!("line {line}, column {column}: ");
    let words = words
        .strip_prefix(&place)
        .unwrap_or_else(|| panic!("no place in {words:?}"));
    (line, column, words.to_owned())
}

/// The position of the last mark of a text, and the text without marks.
fn marked(text: &str) -> (usize, usize, String) {
    let before = &text[..text.rfind('«').expect("a mark")].replace('«', "");
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
    (line, column, text.replace('«', ""))
}

/// The cases of a file: TOML and an expectation each. Empty lines are between them, and comments before some.
fn cases(file: &str) -> impl Iterator<Item = (&str, &str)> {
    file.trim().split("\n\n").map(|case| {
        let case = if case.starts_with('#') {
            &case[case.find('\n').expect(case) + 1..]
        } else {
            case
        };
        case.split_once("\n=> ").expect(case)
    })
}

/// Writes each name of TOML between these texts.
fn named(toml: &str, before: &str, after: &str) -> String {
    let (fields, last) = toml.rsplit_once(" = ").unwrap_or(("", toml));
    let names = fields.split(" = ").filter(|_| !fields.is_empty()).map(|field| {
        let rest = field.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
        format!("{rest}{before}{}{after}", &field[rest.len()..])
    });
    names.collect::<String>() + last
}

/// The fields of TOML as JSON writes them.
fn json_of(toml: &str) -> String {
    named(toml, "\"", "\": ").replace('\'', "\"").replace('\n', ", ")
}

/// The fields of TOML as YAML writes them: texts without quotes, unless they would be read as something else.
fn yaml_of(toml: &str) -> String {
    let is_plain = |text: &str| {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "/%._- ".contains(c);
        !text.is_empty() && text.chars().all(is_word) && text.parse::<f64>().is_err()
    };
    let fields = named(toml, "", ": ");
    let parts = fields
        .split('\'')
        .enumerate()
        .map(|(number, part)| match number % 2 {
            1 if !is_plain(part) => format!("'{part}'"),
            _ => part.to_owned(),
        });
    parts.collect::<String>().replace('\n', "\n  ")
}
