//! JSON: one object a line, with named fields.

use alloc::collections::BTreeMap;
use core::fmt;

use memchr::memmem;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::input::format::named::faulty;
use crate::input::format::named::fields::NamedFields;
use crate::input::format::named::paths::{Open, PathStep, Paths};
use crate::input::format::named::servers::{ACCESS_OF_CADDY, CADDY, has_all, has_request, is_access};
use crate::input::format::{LogFormat, Parsed, WantedFields, sample};
use crate::input::row::{Row, Unreadable, shown};
use crate::input::time::timestamp::TimestampParser;

/// The format of one object a line.
#[derive(Debug)]
pub(crate) struct Json {
    paths: Paths,
    named: NamedFields,
    /// The fields of a server's lines; empty if the server is unknown.
    marks: &'static [&'static str],
    /// Whether lines about requests are known by their fields.
    has_requests: bool,
    /// The place of the client, and that of the time, which follows all other fields of rules.
    client: Option<usize>,
    time_place: usize,
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
            return Self::of(lines, wanted, &[], false);
        }
        match Self::of(&requests, wanted, marks, true) {
            Err(_) if marks.is_empty() => Self::of(lines, wanted, marks, false),
            read => read,
        }
    }

    fn of(
        lines: &[(usize, Vec<u8>)],
        wanted: &WantedFields,
        marks: &'static [&'static str],
        has_requests: bool,
    ) -> Result<Self, Failure> {
        // Several lines: lines may lack fields.
        let mut all: Vec<String> = lines.iter().flat_map(|(_, line)| names(line)).collect();
        all.sort_unstable();
        all.dedup();
        let looked_at = sample(lines);
        let values = |name: &str| {
            let paths = Paths::new([(name, 0)].into_iter());
            let mut row = Row::new(1);
            let value = |(_, line): &(usize, Vec<u8>)| {
                row.clear();
                parse(line, &paths, &mut row).ok()?;
                row.get(0).map(<[u8]>::to_vec)
            };
            looked_at.iter().copied().filter_map(value).collect::<Vec<_>>()
        };
        let (named, fields) = NamedFields::resolve(wanted, &all, values)?;
        if fields.len() > Paths::MOST {
            return Err(Failure::argument(
                "number of fields in rules",
                wanted.fields.len().to_string(),
                format!("at most {} for JSON", Paths::MOST - 1),
            ));
        }
        let mut paths = Paths::new(fields.into_iter());
        for (number, path) in paths.all.iter().enumerate() {
            paths.details |= Open::from(wanted.is_detail(path.place)) << number;
        }
        let client = wanted.fields.iter().find(|(name, _)| name == "client");
        Ok(Self {
            paths,
            named,
            marks,
            has_requests,
            client: client.map(|(_, place)| *place),
            time_place: wanted.time_place,
        })
    }

    /// Whether a row lacks the client, or all fields of rules if none is the client.
    fn lacks_client(&self, row: &Row) -> bool {
        match self.client {
            Some(place) => row.get(place).is_none(),
            None => (0..self.time_place).all(|place| row.get(place).is_none()),
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
        let mut row = Row::new(3);
        parse(line, &paths, &mut row).ok()?;
        return Some(is_access(row.get(0), row.get(1), row.get(2)));
    }
    let names = names(line);
    if names.is_empty() {
        return None;
    }
    Some(match marks {
        [] => has_request(&names),
        marks => has_all(&names, marks),
    })
}

impl LogFormat for Json {
    fn parse(
        &mut self,
        line: &[u8],
        timestamps: &mut TimestampParser,
        row: &mut Row,
    ) -> Result<Parsed, Unreadable> {
        if !self.marks.is_empty() && is_request(line, self.marks) == Some(false) {
            return Ok(Parsed::Other);
        }
        parse(line, &self.paths, row)?;
        if self.has_requests && self.lacks_client(row) && is_request(line, self.marks) == Some(false) {
            return Ok(Parsed::Other);
        }
        self.named.complete(timestamps, row)?;
        Ok(Parsed::Request)
    }

    fn forwarded(&self) -> Option<String> {
        self.named.forwarded()
    }

    fn describe(&self) -> String {
        self.named.describe()
    }
}

/// The beginning of an error about a field that an object has twice.
const TWICE: &str = "twice";

/// Reads the wanted fields of an object into an empty row. A null field is missing. A value that is no JSON and is not needed
/// is skipped, so that a client cannot hide by its user agent.
///
/// # Errors
///
/// When the line is not a JSON object, or its faults concern a needed field.
pub(crate) fn parse(line: &[u8], paths: &Paths, row: &mut Row) -> Result<(), Unreadable> {
    parse_valid(line, paths, row).or_else(|reason| {
        row.clear();
        faulty::parse(line, paths, row).ok_or(reason)
    })
}

/// Reads an object in which everything is valid.
fn parse_valid(line: &[u8], paths: &Paths, row: &mut Row) -> Result<(), Unreadable> {
    // One check of the whole line is faster than a check of each text.
    let text = str::from_utf8(line).map_err(|error| Unreadable::at(error.valid_up_to(), "not UTF-8"))?;
    let mut json = serde_json::Deserializer::from_str(text);
    let object = Object {
        paths,
        open: Open::MAX,
        depth: 0,
        seen: &mut 0,
        row,
    };
    object
        .deserialize(&mut json)
        .and_then(|()| json.end())
        .map_err(|error| {
            // serde_json counts columns from 1, and reports 0 if it has read nothing.
            let column = error.column().max(1);
            let said = error.to_string();
            let what = said.split(" at line ").next().unwrap_or_default();
            match what.strip_prefix(TWICE) {
                Some(name) => Unreadable::at(column - 1, format!("the field{name} is there twice")),
                None => Unreadable::at(column - 1, format!("no JSON object: {what}")),
            }
        })
}

/// The names of an object's fields; none if the line is not an object.
pub(crate) fn names(line: &[u8]) -> Vec<String> {
    // Values are skipped, as by `parse`: lone surrogates and huge numbers in them are no errors.
    match serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(line) {
        Ok(object) => object.into_keys().map(|name| shown(name.as_bytes())).collect(),
        Err(_) => faulty::names(line).iter().map(|name| shown(name)).collect(),
    }
}

/// A visitor of one JSON object, which keeps the values of the wanted paths.
struct Object<'p, 'r> {
    paths: &'p Paths,
    open: Open,
    depth: usize,
    /// The paths that were read.
    seen: &'r mut Open,
    row: &'r mut Row,
}

impl<'de> DeserializeSeed<'de> for Object<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let name = |open| Name {
            paths: self.paths,
            open,
            depth: self.depth,
        };
        while let Some(step) = map.next_key_seed(name(self.open))? {
            if step.here.is_none() && step.deeper == 0 {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let raw: &'de RawValue = map.next_value()?;
            if let Some(place) = step.here {
                let bit = 1 << step.path;
                let is_first = *self.seen & bit == 0;
                if !is_first && self.paths.details & bit == 0 {
                    let name = self.paths.all[step.path].steps.join(".");
                    return Err(serde::de::Error::custom(format!("{TWICE} {name:?}")));
                }
                *self.seen |= bit;
                // Of a detail, the first value counts.
                if is_first {
                    set(self.row, place, raw.get());
                }
            }
            // If the value is not an object, the field is missing.
            if step.deeper != 0 && raw.get().starts_with('{') {
                let inner = Object {
                    paths: self.paths,
                    open: step.deeper,
                    depth: self.depth + 1,
                    seen: self.seen,
                    row: self.row,
                };
                let mut json = serde_json::Deserializer::from_str(raw.get());
                let read = inner.deserialize(&mut json);
                // An object in which only details are wanted may have names that cannot be decoded.
                if step.deeper & !self.paths.details != 0 {
                    read.map_err(serde::de::Error::custom)?;
                }
            }
        }
        Ok(())
    }
}

/// Sets a field: a text without its quotation marks, another value as written.
fn set(row: &mut Row, place: usize, raw: &str) {
    let inner = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
    match inner {
        Some(text) if !text.contains('\\') => row.set(place, text.as_bytes()),
        // The text is valid JSON, but an escape may be a lone surrogate. Then the text is kept as written.
        Some(_) => match serde_json::from_str::<String>(raw) {
            Ok(text) => row.set(place, text.as_bytes()),
            Err(_) => row.set(place, raw.as_bytes()),
        },
        None if raw == "null" => {}
        // Caddy writes headers as arrays.
        None if raw.starts_with('[') => match serde_json::from_str::<[String; 1]>(raw) {
            Ok([text]) => row.set(place, text.as_bytes()),
            Err(_) => row.set(place, raw.as_bytes()),
        },
        None => row.set(place, raw.as_bytes()),
    }
}

/// A visitor for the name of a field, which borrows it.
struct Name<'p> {
    paths: &'p Paths,
    open: Open,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = PathStep;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<PathStep, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = PathStep;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<PathStep, E> {
        Ok(self.paths.step(self.open, self.depth, name))
    }
}

#[cfg(test)]
mod tests {
    use super::{names, parse};
    use crate::input::format::named::paths::Paths;
    use crate::input::row::Row;

    fn fields<const N: usize>(line: &[u8], wanted: [&str; N]) -> Result<[Option<String>; N], String> {
        let mut row = Row::new(N);
        let paths = Paths::new(wanted.into_iter().zip(0..));
        parse(line, &paths, &mut row).map_err(|error| error.to_string())?;
        Ok(core::array::from_fn(|at| {
            row.get(at).map(|text| String::from_utf8_lossy(text).into_owned())
        }))
    }

    #[test]
    fn values_are_parsed() {
        let line = r#" {"a": "x", "n":17.50,"t":true, "esc":"\u00e9\n\"", "none":null, "o":{"p":{"q":"deep"},"r":2},
            "o.r": "flat", "list":[1,"2"], "half":"\ud800"} "#;
        let some = |text: &str| Some(text.to_string());
        assert_eq!(
            fields(
                line.as_bytes(),
                [
                    "a", "n", "t", "esc", "none", "o.p.q", "o.r", "list", "o.x", "a.b", "absent"
                ]
            ),
            Ok([
                some("x"),
                some("17.50"),
                some("true"),
                some("\u{e9}\n\""),
                None,
                some("deep"),
                some("flat"),
                some(r#"[1,"2"]"#),
                None,
                None,
                None
            ])
        );
        assert_eq!(
            fields(br#"{"o":{"a.b":1,"a":{"b":2}}}"#, ["o.a.b"]),
            Ok([some("2")])
        );
        assert_eq!(names(br#"{"b":1,"a\n":2}"#), ["a\\n", "b"]);
        assert_eq!(names(br#"{"half":"\ud800","large":1e999}"#), ["half", "large"]);
    }

    #[test]
    fn errors_have_a_column() {
        for (line, said) in [
            (&b""[..], "column 1: no JSON object: EOF"),
            (b"[1]", "column 1: no JSON object: invalid type: sequence"),
            (b"{\"a\":1", "column 6: no JSON object: EOF"),
            (b"{\"a\":1}}", "column 8: no JSON object: trailing"),
            (b"{\"b\":\"\xff\",\"a\":\"", "column 7: not UTF-8"),
            (
                b"{\"a\":1,\"b\":2,\"a\":3}",
                "column 19: the field \"a\" is there twice",
            ),
            (b"{\"o\":{\"a\":{]}}", "column 12: no JSON object: key must be"),
        ] {
            let error = fields(line, ["a", "o.a.b"]).expect_err("no object");
            assert!(
                error.starts_with(said),
                "{}: {error}",
                String::from_utf8_lossy(line)
            );
        }
        // A depth that would overflow the stack is an error.
        let deep = format!("{{\"a\":{}", "[".repeat(60_000));
        for wanted in ["a", "b"] {
            assert!(
                fields(deep.as_bytes(), [wanted])
                    .expect_err("too deep")
                    .contains("EOF")
            );
        }
    }
}
