//! Fields of formats that name them: which names the wanted fields and the time have in an input.

use crate::failure::Failure;
use crate::input::format::WantedFields;
use crate::input::row::{Row, Unreadable, shown};
use crate::input::time::timestamp::TimestampParser;

/// Names of the client's address, for rules that count by `client`.
const CLIENT: [&str; 10] = [
    "client",
    "remote_addr",
    "client_ip",
    "clientip",
    "remote_ip",
    "ip",
    "address",
    "client.ip",
    "addr",
    "host",
];

/// Names of the time, where `--time-field` is not given.
const TIME: [&str; 10] = [
    "time",
    "timestamp",
    "@timestamp",
    "ts",
    "datetime",
    "date",
    "time_iso8601",
    "time_local",
    "msec",
    "t",
];

/// How a row is completed after the fields of a line were read.
#[derive(Debug)]
pub(crate) struct NamedFields {
    /// The name of the time's field, and its place in a row.
    time: String,
    time_place: usize,
    /// Places with the value of another place: from the first to the second.
    copies: Vec<(usize, usize)>,
}

impl NamedFields {
    /// Finds the names of the wanted fields and of the time in an input with the fields `names`, of which `has` knows.
    /// Returns each name once, with its place in a row.
    ///
    /// # Errors
    ///
    /// When no field is known to be the time.
    pub(crate) fn resolve(
        wanted: &WantedFields,
        names: &[String],
        has: impl Fn(&str) -> bool + Copy,
    ) -> Result<(Self, Vec<(String, usize)>), Failure> {
        let time = wanted.time.as_deref().or_else(|| known(&TIME, has));
        let time = time.ok_or_else(|| no_time(names))?;
        let mut fields: Vec<(String, usize)> = Vec::new();
        let mut copies = Vec::new();
        let wanted_names = wanted.fields.iter().map(|name| match name.as_str() {
            "client" => known(&CLIENT, has).unwrap_or("client"),
            name => name,
        });
        for (name, place) in wanted_names.chain([time]).zip(0..) {
            match fields.iter().find(|(known, _)| known == name) {
                Some((_, first)) => copies.push((*first, place)),
                None => fields.push((name.to_owned(), place)),
            }
        }
        let named = Self {
            time: time.to_owned(),
            time_place: wanted.fields.len(),
            copies,
        };
        Ok((named, fields))
    }

    /// Completes a row: fields with the value of another field, and the time.
    ///
    /// # Errors
    ///
    /// When the time is missing or cannot be parsed.
    pub(crate) fn complete(&self, timestamps: &mut TimestampParser, row: &mut Row) -> Result<(), Unreadable> {
        const EXPECTED: &str = "a time such as 2015-05-17T10:05:03Z, 17/May/2015:10:05:03 +0000, 1431857103.5 or \
                                May 17 10:05:03, from 1678 to 2261";
        for &(from, to) in &self.copies {
            row.copy(from, to);
        }
        let Some(text) = row.get(self.time_place) else {
            return Err(Unreadable::missing(&self.time, EXPECTED));
        };
        match timestamps.read(text) {
            Some(time) => {
                row.time = time;
                Ok(())
            }
            None => Err(Unreadable::field(&self.time, text, EXPECTED)),
        }
    }
}

/// Whether one of the names is known to be that of a time.
pub(crate) fn has_time(names: &[String], wanted: &WantedFields) -> bool {
    let mut times = TIME.iter().copied().chain(wanted.time.as_deref());
    times.any(|time| names.iter().any(|name| name == time))
}

fn known(candidates: &[&'static str], has: impl Fn(&str) -> bool) -> Option<&'static str> {
    candidates.iter().copied().find(|name| has(name))
}

fn no_time(names: &[String]) -> Failure {
    let names: Vec<String> = names.iter().map(|name| shown(name.as_bytes())).collect();
    Failure::new(format!(
        "no time among the fields {} (expected one of {}, or --time-field)",
        names.join(", "),
        TIME.join(", ")
    ))
}
