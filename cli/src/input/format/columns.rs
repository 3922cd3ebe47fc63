//! Values in a fixed order: which of them are the wanted fields and the time.

use crate::failure::Failure;
use crate::input::client;
use crate::input::format::WantedFields;
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

/// The part of a value that a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// An address, without its port if it has one.
    Address,
    /// An address without its port, or another text.
    AddressOrText,
    /// An address before the last colon.
    AddressBeforePort,
    /// A word of a request such as `GET /path HTTP/1.1`.
    Word(usize),
    /// The path of a target, without scheme, host and query.
    Path,
    /// The path of the target of a request.
    PathOfRequest,
}

impl Part {
    /// The part that is the field at a place, where it is this part without an alias.
    pub(crate) fn at(self, place: usize, wanted: &WantedFields) -> Self {
        match self {
            Self::Whole if wanted.client_place == Some(place) => Self::AddressOrText,
            part => part,
        }
    }

    /// The part of a value; `None` if it is to be an address and is none.
    #[inline]
    pub(crate) fn of(self, text: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Whole => Some(text),
            Self::Address => client::address(text),
            Self::AddressOrText => Some(client::address(text).unwrap_or(text)),
            Self::AddressBeforePort => client::without_port(text),
            Self::Word(number) => Some(word(text, number)),
            Self::Path => Some(path(text)),
            Self::PathOfRequest => Some(path(word(text, 1))),
        }
    }
}

/// A field under the tool's own name, the names of its value in a format, in the order of preference and with spaces between
/// them, and the part of that value.
pub(crate) type Standard = (&'static str, &'static str, Part);

/// The first value that exists among those of a field.
pub(crate) fn find(
    standard: &[&[Standard]],
    field: &str,
    exists: impl Fn(&str) -> bool,
) -> Option<(&'static str, Part)> {
    let mut of_field = standard
        .iter()
        .copied()
        .flatten()
        .filter(|(ours, ..)| *ours == field);
    of_field.find_map(|(_, natives, part)| Some((natives.split(' ').find(|native| exists(native))?, *part)))
}

/// The parts of a value `request`.
pub(crate) const REQUEST: &[Standard] = &[
    ("method", "request", Part::Word(0)),
    ("target", "request", Part::Word(1)),
    ("path", "request", Part::PathOfRequest),
    ("protocol", "request", Part::Word(2)),
];

/// Places of the wanted values.
#[derive(Debug)]
pub(crate) struct Columns {
    takes: Vec<(usize, Part, usize)>,
    names: Vec<String>,
    /// The column of the time, or those of the date and of the time.
    time: Vec<usize>,
    /// Places from here on are not those of fields that rules name.
    time_place: usize,
    /// Whether "-" is a missing value, except in the places of costs.
    dash_is_missing: bool,
    costs: Vec<usize>,
}

const TIME: &str = "an existing time, as in 2015-05-17T10:05:03Z, 17/May/2015:10:05:03 +0000 or 1431857103.5";

impl Columns {
    /// Resolves the wanted fields among the values with these names. The time is the first of `times` that exists, unless
    /// `--time-field` is given; a name with a space is that of two columns, for the date and the time of day.
    ///
    /// # Errors
    ///
    /// When a wanted field does not exist, unless it is a detail.
    pub(crate) fn new<N: AsRef<str>>(
        title: &str,
        names: &[N],
        standard: &[&[Standard]],
        times: &[&str],
        wanted: &WantedFields,
    ) -> Result<Self, Failure> {
        let position = |name: &str| names.iter().position(|known| known.as_ref() == name);
        let mut takes = Vec::new();
        for (name, place) in &wanted.fields {
            let found = find(standard, name, |native| position(native).is_some());
            let (native, part) = found.unwrap_or((name, Part::Whole));
            let Some(column) = position(native) else {
                if wanted.is_detail(*place) {
                    continue;
                }
                let exists = |native| position(native).is_some();
                let standard = standard.iter().copied().flatten();
                let ours = standard.filter(|(_, natives, _)| natives.split(' ').any(exists));
                let all = names.iter().map(AsRef::as_ref).filter(|name| !name.is_empty());
                let mut known: Vec<&str> = Vec::new();
                for name in ours.map(|(ours, ..)| *ours).chain(all) {
                    if !known.contains(&name) {
                        known.push(name);
                    }
                }
                return Err(Failure::argument(
                    "field",
                    format!("{name:?}"),
                    format!("a field of {title}: {}", known.join(", ")),
                ));
            };
            takes.push((column, part.at(*place, wanted), *place));
        }
        let columns_of = |time: &str| -> Option<Vec<usize>> { time.split(' ').map(position).collect() };
        let time = match &wanted.time {
            Some(time) => columns_of(time).ok_or_else(|| {
                Failure::argument("--time-field", format!("{time:?}"), format!("a field of {title}"))
            })?,
            None => times.iter().find_map(|time| columns_of(time)).unwrap_or_default(),
        };
        Ok(Self {
            takes,
            names: names.iter().map(|name| name.as_ref().to_owned()).collect(),
            time,
            time_place: wanted.time_place,
            dash_is_missing: false,
            costs: wanted.costs.clone(),
        })
    }

    /// The values with these names. `takes` has the wanted fields: the number of the value, its part, and the place in a row.
    /// The time is the value with the number `time`.
    pub(crate) fn of(
        names: Vec<String>,
        takes: Vec<(usize, Part, usize)>,
        time: usize,
        wanted: &WantedFields,
    ) -> Self {
        Self {
            takes,
            names,
            time: vec![time],
            time_place: wanted.time_place,
            costs: wanted.costs.clone(),
            dash_is_missing: false,
        }
    }

    /// The names of the values.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    pub(crate) const fn with_missing_dash(mut self, is_missing: bool) -> Self {
        self.dash_is_missing = is_missing;
        self
    }

    /// The columns that are the time or a field that rules name.
    pub(crate) fn of_rules(&self) -> impl Iterator<Item = usize> {
        let takes = self.takes.iter().filter(|take| take.2 < self.time_place);
        self.time.iter().copied().chain(takes.map(|take| take.0))
    }

    /// The number of columns up to the last one that is the time or a field that rules name.
    pub(crate) fn needed(&self) -> usize {
        self.of_rules().max().map_or(0, |last| last + 1)
    }

    /// Whether a column is known to be the time.
    pub(crate) fn has_time(&self) -> bool {
        !self.time.is_empty()
    }

    /// Reads the wanted fields and the time into a row. `value` returns the value of a column.
    ///
    /// # Errors
    ///
    /// When the time or an address is none.
    pub(crate) fn fill<'v>(
        &self,
        value: impl Fn(usize) -> Option<&'v [u8]>,
        timestamps: &mut TimestampParser,
        row: &mut Row,
    ) -> Result<(), Unreadable> {
        match self.time[..] {
            [] => {}
            [column] => {
                let name = &self.names[column];
                let text = value(column).ok_or_else(|| Unreadable::missing(name, TIME))?;
                let time = timestamps.read(text);
                row.time = time.ok_or_else(|| Unreadable::field(name, text, TIME))?;
            }
            [date, time, ..] => {
                let date = value(date).unwrap_or_default();
                let text = [date, b"T", value(time).unwrap_or_default(), b"Z"].concat();
                row.time = timestamps
                    .rfc3339(&text)
                    .ok_or_else(|| Unreadable::field("date and time", &text, TIME))?;
            }
        }
        for &(column, part, place) in &self.takes {
            let is_missing =
                |text: &[u8]| self.dash_is_missing && text == b"-" && !self.costs.contains(&place);
            let Some(text) = value(column).filter(|text| !is_missing(text)) else {
                continue;
            };
            let taken = part.of(text).ok_or_else(|| self.no_address(column, text))?;
            row.set(place, taken);
        }
        Ok(())
    }

    fn no_address(&self, column: usize, text: &[u8]) -> Unreadable {
        let name = &self.names[column];
        let what = if text.contains(&b',') {
            "one address"
        } else {
            "an address"
        };
        Unreadable::field(
            name,
            text,
            &format!("{what}; --key {name} takes the text as it is"),
        )
    }
}

/// A word of a request by its number; empty if there is none.
fn word(request: &[u8], number: usize) -> &[u8] {
    request
        .split(|&byte| byte == b' ')
        .nth(number)
        .unwrap_or_default()
}

/// The path of a target: `/p` of `/p?q` and of `https://host:443/p?q`.
fn path(target: &[u8]) -> &[u8] {
    let scheme =
        memchr::memmem::find(target, b"://").filter(|&at| target[..at].iter().all(u8::is_ascii_alphabetic));
    let target = match scheme {
        Some(at) if at > 0 => {
            let rest = &target[at + 3..];
            rest.iter()
                .position(|&byte| byte == b'/')
                .map_or(&b"/"[..], |slash| &rest[slash..])
        }
        _ => target,
    };
    &target[..memchr::memchr(b'?', target).unwrap_or(target.len())]
}
