//! logfmt: `time=2015-05-17T10:05:03Z ip=1.2.3.4 msg="a text"`.

use alloc::borrow::Cow;

use crate::failure::Failure;
use crate::input::format::named::fields::NamedFields;
use crate::input::format::named::object::decoded;
use crate::input::format::named::servers::{Messages, is_of_request};
use crate::input::format::words::closing;
use crate::input::format::{LogFormat, ParseResult, Parsed, WantedFields, sample};
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

/// The format of pairs of names and values.
#[derive(Debug)]
pub(crate) struct Logfmt {
    named: NamedFields,
    messages: Messages,
}

impl Logfmt {
    /// For an input with these first lines.
    ///
    /// # Errors
    ///
    /// When no field is known to be the time.
    pub(crate) fn new(lines: &[(usize, Vec<u8>)], wanted: &WantedFields) -> Result<Self, Failure> {
        // As in JSON, the meaning of fields is that in lines about requests.
        let is_request =
            |(_, line): &&(usize, Vec<u8>)| pairs(line).0.iter().any(|(name, _)| is_of_request(name));
        let requests: Vec<(usize, Vec<u8>)> = lines.iter().filter(is_request).cloned().collect();
        if requests.is_empty() {
            return Self::of(lines, wanted, None);
        }
        Self::of(&requests, wanted, Some(true)).or_else(|_| Self::of(lines, wanted, Some(false)))
    }

    fn of(lines: &[(usize, Vec<u8>)], wanted: &WantedFields, told: Option<bool>) -> Result<Self, Failure> {
        let mut all: Vec<String> = lines.iter().flat_map(|(_, line)| names(line)).collect();
        all.sort_unstable();
        all.dedup();
        let values = |name: &str| {
            let all = sample(lines).into_iter().flat_map(|(_, line)| pairs(line).0);
            let of_name = all.filter(|(known, _)| *known == name.as_bytes());
            of_name.map(|(_, value)| value.into_owned()).collect()
        };
        Ok(Self {
            named: NamedFields::resolve(wanted, &all, values)?,
            messages: Messages::new(told),
        })
    }
}

impl LogFormat for Logfmt {
    fn parse(&mut self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> ParseResult {
        let columns = &self.named.columns;
        let (pairs, cut) = pairs(line);
        let mut values = vec![None; columns.names().len()];
        let mut of_request = false;
        for (name, value) in pairs {
            of_request = of_request || is_of_request(name);
            let mut known = columns.names().iter();
            match known.position(|known| known.as_bytes() == name) {
                Some(column) if values[column].is_none() => values[column] = Some(value),
                Some(column) if column < columns.needed() => {
                    let name = &columns.names()[column];
                    return Err(Unreadable::line(format!("the field {name:?} is there twice")));
                }
                // Of a detail, the first value counts.
                Some(_) | None => {}
            }
        }
        if let Some(start) = cut
            && values[..columns.needed()].iter().any(Option::is_none)
        {
            return Err(Unreadable::at(start, "unclosed quotation mark"));
        }
        let has_client = self.named.client().is_some_and(|column| values[column].is_some());
        let of_request = (of_request || cut.is_none()).then_some(of_request);
        if self.messages.is_message(line, has_client, || of_request) {
            return Ok(Parsed::Other);
        }
        columns.fill(|column| values[column].as_deref(), timestamps, row)?;
        Ok(Parsed::Request)
    }

    fn late_notes(&mut self) -> Result<Vec<String>, Failure> {
        let notes = self.messages.notes()?;
        Ok(notes.into_iter().chain(self.named.note()).collect())
    }

    fn describe(&self) -> String {
        self.named.describe()
    }

    fn forwarded(&self) -> Option<String> {
        self.named.forwarded()
    }
}

/// The names of a line's fields; none if the line begins with another word, or has fewer than three fields.
pub(crate) fn names(line: &[u8]) -> Vec<String> {
    let first = line.trim_ascii_start();
    let end = first.iter().position(|byte| b" =\"\t{[".contains(byte));
    if end.is_none_or(|end| end == 0 || first[end] != b'=') {
        return Vec::new();
    }
    match pairs(line) {
        (pairs, None) if pairs.len() >= 3 => {
            let names = pairs
                .iter()
                .map(|(name, _)| String::from_utf8_lossy(name).into_owned());
            names.collect()
        }
        _ => Vec::new(),
    }
}

/// The name and the value of a field.
type Pair<'l> = (&'l [u8], Cow<'l, [u8]>);

/// The pairs of names and values. A value in quotation marks has escapes as in JSON, and ends at a quotation mark before a space.
/// Words without a value are skipped. Returns also the place of a quotation mark that is not closed; the value behind it was cut,
/// and is left out.
fn pairs(line: &[u8]) -> (Vec<Pair<'_>>, Option<usize>) {
    let (mut pairs, mut at) = (Vec::new(), 0);
    let end = |at: usize, ends: &[u8]| {
        let length = line[at..].iter().position(|byte| ends.contains(byte));
        length.map_or(line.len(), |length| at + length)
    };
    while at < line.len() {
        let name = &line[at..end(at, b" =\"\t")];
        let value = at + name.len() + 1;
        if matches!(line[at], b' ' | b'\t') {
            at += 1;
        } else if name.is_empty() || line.get(value - 1) != Some(&b'=') {
            at = end(at, b" \t");
        } else if line.get(value) == Some(&b'"') {
            let ends = |rest: &[u8]| matches!(rest, [] | [b' ' | b'\t', ..]);
            let Some(length) = closing(&line[value + 1..], ends) else {
                return (pairs, Some(value));
            };
            at = value + length + 2;
            pairs.push((name, decoded(&line[value..at])));
        } else {
            at = end(value, b" \t");
            pairs.push((name, Cow::Borrowed(&line[value..at])));
        }
    }
    (pairs, None)
}
