//! JSON: one object a line, with named fields.

use alloc::collections::BTreeMap;

use memchr::memmem;
use serde::de::IgnoredAny;

use crate::failure::Failure;
use crate::input::format::named::fields::NamedFields;
use crate::input::format::named::object::{self, Fault};
use crate::input::format::named::paths::{Open, Paths};
use crate::input::format::named::servers::{
    ACCESS_OF_CADDY, CADDY, Messages, has_all, is_access, is_of_request,
};
use crate::input::format::{LogFormat, ParseResult, Parsed, WantedFields, sample};
use crate::input::row::{Row, Unreadable, shown};
use crate::input::time::timestamp::TimestampParser;

/// The format of one object a line.
#[derive(Debug)]
pub(crate) struct Json {
    named: NamedFields,
    /// The paths of the named fields, and their values in a line.
    paths: Paths,
    values: Row,
    /// The fields of a server's lines; empty if the server is unknown.
    marks: &'static [&'static str],
    messages: Messages,
}

impl Json {
    /// For an input with these first lines.
    ///
    /// # Errors
    ///
    /// When no field is known to be the time, or rules name too many fields.
    pub(crate) fn new(
        lines: &[(usize, Vec<u8>)],
        wanted: &WantedFields,
        marks: &'static [&'static str],
    ) -> Result<Self, Failure> {
        // The meaning of fields is that in lines about requests. Other messages have fields of the same names.
        let requests: Vec<(usize, Vec<u8>)> = lines
            .iter()
            .filter(|(_, line)| is_request(line, marks) == Some(true))
            .cloned()
            .collect();
        if requests.is_empty() {
            return match marks {
                [] => Self::of(lines, wanted, &[], None),
                // Of another server with these fields.
                _ => Self::new(lines, wanted, &[]),
            };
        }
        match Self::of(&requests, wanted, marks, Some(true)) {
            Err(_) if marks.is_empty() => Self::of(lines, wanted, marks, Some(false)),
            read => read,
        }
    }

    fn of(
        lines: &[(usize, Vec<u8>)],
        wanted: &WantedFields,
        marks: &'static [&'static str],
        told: Option<bool>,
    ) -> Result<Self, Failure> {
        // Several lines: lines may lack fields.
        let paths = lines.iter().flat_map(|(_, line)| object::names(line, true));
        let mut all: Vec<String> = paths.map(|path| shown(&path)).collect();
        let fault = |(number, line): &(usize, Vec<u8>)| Some((*number, invalid(line)?, shown(line)));
        if let (true, Some((number, fault, line))) = (all.is_empty(), lines.first().and_then(fault)) {
            return Err(Failure::new(format!(
                "line {number}: {fault} (expected one object a line): {line}"
            )));
        }
        all.sort_unstable();
        all.dedup();
        let looked_at = sample(lines);
        let values = |name: &str| {
            let paths = Paths::new([(name, 0)].into_iter());
            let mut row = Row::default();
            let value = |(_, line): &(usize, Vec<u8>)| {
                row.clear();
                parse(line, &paths, &mut row).ok()?;
                row.get(0).map(<[u8]>::to_vec)
            };
            looked_at.iter().copied().filter_map(value).collect::<Vec<_>>()
        };
        let named = NamedFields::resolve(wanted, &all, values)?;
        let fields = named.columns.names();
        if fields.len() > Paths::MOST {
            return Err(Failure::argument(
                "number of fields in rules",
                wanted.fields.len().to_string(),
                format!("at most {} for JSON", Paths::MOST - 1),
            ));
        }
        let mut paths = Paths::new(fields.iter().zip(0..));
        for (number, path) in paths.all.iter().enumerate() {
            paths.details |= Open::from(path.place >= named.columns.needed()) << number;
        }
        Ok(Self {
            paths,
            values: Row::default(),
            named,
            marks,
            messages: Messages::new(told),
        })
    }

    /// Whether the line lacks the client, or all fields of rules if none is the client.
    fn lacks_client(&self) -> bool {
        let lacks = |column: usize| self.values.get(column).is_none();
        match self.named.client() {
            Some(column) => lacks(column),
            None => (0..self.named.of_rules).all(lacks),
        }
    }
}

/// Whether a line is a request, by the fields of a server or, if that is unknown, by usual ones; `None` if it is no object.
fn is_request(line: &[u8], marks: &[&str]) -> Option<bool> {
    if marks == CADDY {
        if memmem::find(line, ACCESS_OF_CADDY).is_some() {
            return Some(true);
        }
        let paths = Paths::new(["logger", "msg", "status"].into_iter().zip(0..));
        let mut row = Row::default();
        parse(line, &paths, &mut row).ok()?;
        return Some(is_access(row.get(0), row.get(1), row.get(2)));
    }
    if marks.is_empty() {
        return object::has_name(line, is_of_request);
    }
    let names = names(line);
    (!names.is_empty()).then(|| has_all(&names, marks))
}

impl LogFormat for Json {
    fn parse(&mut self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> ParseResult {
        if !self.marks.is_empty() && is_request(line, self.marks) == Some(false) {
            return Ok(Parsed::Other);
        }
        self.values.clear();
        parse(line, &self.paths, &mut self.values)?;
        let has_client = !self.lacks_client();
        // A server's lines were told above.
        if self.marks.is_empty()
            && self
                .messages
                .is_message(line, has_client, || is_request(line, &[]))
        {
            return Ok(Parsed::Other);
        }
        let value = |column: usize| self.values.get(column);
        self.named.columns.fill(value, timestamps, row)?;
        Ok(Parsed::Request)
    }

    fn late_notes(&mut self) -> Result<Vec<String>, Failure> {
        let notes = self.messages.notes()?;
        Ok(notes.into_iter().chain(self.named.note()).collect())
    }

    fn forwarded(&self) -> Option<String> {
        self.named.forwarded()
    }

    fn describe(&self) -> String {
        self.named.describe()
    }
}

/// Reads the wanted fields of an object into an empty row. A null field is missing. A value that is no JSON and is not needed
/// is skipped, so that a client cannot hide by its user agent.
///
/// # Errors
///
/// When the line is not a JSON object, or its faults concern a needed field.
pub(crate) fn parse(line: &[u8], paths: &Paths, row: &mut Row) -> Result<(), Unreadable> {
    match object::parse(line, paths, row) {
        Ok(()) => Ok(()),
        Err(Fault::Twice(path, at)) => {
            let name = paths.all[path].steps.join(".");
            Err(Unreadable::at(at, format!("the field {name:?} is there twice")))
        }
        // In an object without faults a field may be missing.
        Err(fault) => match (invalid(line), fault) {
            (Some(reason), _) => Err(reason),
            (None, Fault::Missing) => Ok(()),
            (None, _) => Err(Unreadable::line("objects or arrays in more than 100 others")),
        },
    }
}

/// The reason why a line is no JSON object.
fn invalid(line: &[u8]) -> Option<Unreadable> {
    let text = match str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => return Some(Unreadable::at(error.valid_up_to(), "not UTF-8")),
    };
    // Values are skipped: lone surrogates and huge numbers in them are no errors.
    let error = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text).err()?;
    let said = error.to_string().replace("expected a map", "expected an object");
    let what = said.split(" at line ").next().unwrap_or_default();
    // serde_json counts columns from 1, and reports 0 if it has read nothing.
    let at = error.column().max(1) - 1;
    Some(Unreadable::at(at, format!("no JSON object: {what}")))
}

/// The names of an object's fields; none if the line is not an object.
pub(crate) fn names(line: &[u8]) -> Vec<String> {
    object::names(line, false)
        .iter()
        .map(|name| shown(name))
        .collect()
}
