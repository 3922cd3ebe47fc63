//! CSV: values between delimiters, with names in the first line.
//!
//! The crate csv reads `"a"b` as `ab`. Here such a line is unreadable, so that no value is guessed.

use alloc::borrow::Cow;

use memchr::memchr;

use crate::failure::Failure;
use crate::input::format::named::fields::NamedFields;
use crate::input::format::realign::aligned;
use crate::input::format::{LogFormat, ParseResult, Parsed, WantedFields, sample};
use crate::input::row::{Row, Unreadable, shown};
use crate::input::time::timestamp::TimestampParser;

/// The format of values between delimiters.
#[derive(Debug)]
pub(crate) struct Csv {
    header: Header,
    named: NamedFields,
    /// The columns of the named fields.
    places: Vec<usize>,
    /// The number of fields that rules name.
    wanted: usize,
}

impl Csv {
    /// For an input with these first lines.
    ///
    /// # Errors
    ///
    /// When the header cannot be read, names a column twice, lacks a wanted field, or no column is known to be the time.
    pub(crate) fn new(lines: &[(usize, Vec<u8>)], wanted: &WantedFields) -> Result<Self, Failure> {
        let (line, rest) = match lines.split_first() {
            Some(((_, line), rest)) => (&line[..], rest),
            None => (&b""[..], lines),
        };
        let header =
            Header::parse(line).map_err(|error| Failure::new(format!("invalid CSV header: {error}")))?;
        let position = |name: &str| header.names.iter().position(|known| known == name);
        let values = |name: &str| {
            let Some(column) = position(name) else {
                return Vec::new();
            };
            // In a line with more values than columns the value may be that of either side.
            let of_line = |(_, line): &(usize, Vec<u8>)| {
                let (values, _) = split(line, header.delimiter);
                let extra = values.len().saturating_sub(header.names.len());
                let last = values.get(column + extra).filter(|_| extra > 0);
                let both = values.get(column).into_iter().chain(last);
                both.map(|value| value.trim_ascii().to_vec()).collect::<Vec<_>>()
            };
            let found: Vec<Vec<u8>> = sample(rest).into_iter().flat_map(of_line).collect();
            // A column without a readable value still has its name.
            if found.is_empty() {
                vec![b"?".to_vec()]
            } else {
                found
            }
        };
        let named = NamedFields::resolve(wanted, &header.names, values)?;
        let mut places = Vec::new();
        for name in named.columns.names() {
            let Some(column) = position(name) else {
                return Err(Failure::argument(
                    "field",
                    format!("{name:?}"),
                    format!("a column of the header: {}", header.names.join(", ")),
                ));
            };
            if let Some(other) = header.names[column + 1..].iter().position(|known| known == name) {
                return Err(Failure::new(format!(
                    "invalid CSV header: the columns {} and {} are both called {name:?} (expected each name once)",
                    column + 1,
                    column + 2 + other
                )));
            }
            places.push(column);
        }
        Ok(Self {
            header,
            named,
            places,
            wanted: wanted.time_place,
        })
    }
}

impl LogFormat for Csv {
    /// A line may have another number of values than the header: a value has delimiters and no quotation marks, or the line was cut
    /// within a quoted value behind the needed ones.
    fn parse(&mut self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> ParseResult {
        let Header { delimiter, names } = &self.header;
        let (values, cut) = split(line, *delimiter);
        let values: Vec<&[u8]> = values.iter().map(AsRef::as_ref).collect();
        let read = |values: &[&[u8]], row: &mut Row| {
            let value = |field: usize| values.get(self.places[field]).map(|value| value.trim_ascii());
            self.named.columns.fill(value, timestamps, row)
        };
        let Some(at) = cut else {
            let form = (names.len(), *delimiter, "the header");
            return aligned(&values, form, self.wanted, row, read);
        };
        let mut needed = self.places[..self.named.columns.needed()].iter();
        if values.len() >= names.len() || needed.any(|column| *column >= values.len()) {
            return Err(unclosed(line, at));
        }
        let mut read = read;
        read(&values, row).map_err(|_| unclosed(line, at))?;
        Ok(Parsed::Request)
    }

    fn late_notes(&mut self) -> Result<Vec<String>, Failure> {
        Ok(self.named.note().into_iter().collect())
    }

    fn describe(&self) -> String {
        self.named.describe()
    }

    fn forwarded(&self) -> Option<String> {
        self.named.forwarded()
    }

    fn has_header(&self) -> bool {
        true
    }
}

/// The first line: the delimiter and the names of the columns.
#[derive(Debug)]
pub(crate) struct Header {
    delimiter: u8,
    pub(crate) names: Vec<String>,
}

impl Header {
    /// Parses the first line. The delimiter is the first comma, tab, semicolon or bar outside of quotation marks.
    ///
    /// # Errors
    ///
    /// When a quotation mark is not closed.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, Unreadable> {
        let mut quoted = false;
        let delimiter = line.iter().copied().find(|&byte| {
            quoted ^= byte == b'"';
            !quoted && matches!(byte, b',' | b'\t' | b';' | b'|')
        });
        let delimiter = delimiter.unwrap_or(b',');
        let (values, cut) = split(line, delimiter);
        let names = values
            .iter()
            .map(|value| String::from_utf8_lossy(value).trim().to_owned());
        match cut {
            Some(at) => Err(unclosed(line, at)),
            None => Ok(Self {
                delimiter,
                names: names.collect(),
            }),
        }
    }
}

fn unclosed(line: &[u8], at: usize) -> Unreadable {
    let what = format!("unclosed quotation mark before \"{}\"", shown(&line[at + 1..]));
    Unreadable::at(at, what)
}

/// The values of a line. Within quotation marks a delimiter is text, and two quotation marks are one. A single one is text too
/// unless the value ends behind it; a value with such a one and no end was never quoted. Spaces may precede a quotation mark.
/// Returns also the place of a quotation mark that is not closed; the value behind it was cut, and is left out.
fn split(line: &[u8], delimiter: u8) -> (Vec<Cow<'_, [u8]>>, Option<usize>) {
    let (mut values, mut rest) = (Vec::new(), line);
    loop {
        let spaces = rest.iter().take_while(|&&byte| byte == b' ').count();
        if rest[spaces..].starts_with(b"\"") {
            rest = &rest[spaces..];
        }
        let after = match quoted(rest, delimiter) {
            Value::Quoted(value, behind) => {
                values.push(Cow::Owned(value));
                behind
            }
            Value::Cut => return (values, Some(line.len() - rest.len())),
            Value::Plain => {
                let end = memchr(delimiter, rest).unwrap_or(rest.len());
                values.push(Cow::Borrowed(&rest[..end]));
                &rest[end..]
            }
        };
        match after {
            [] => return (values, None),
            [_, more @ ..] => rest = more,
        }
    }
}

/// The form of a value.
enum Value<'l> {
    Plain,
    /// The value without its quotation marks, and the text behind it.
    Quoted(Vec<u8>, &'l [u8]),
    /// The line ends within the quotation marks.
    Cut,
}

fn quoted(text: &[u8], delimiter: u8) -> Value<'_> {
    let [b'"', rest @ ..] = text else {
        return Value::Plain;
    };
    let (mut rest, mut value, mut has_single) = (rest, Vec::new(), false);
    loop {
        let Some(end) = memchr(b'"', rest) else {
            return if has_single { Value::Plain } else { Value::Cut };
        };
        value.extend_from_slice(&rest[..end]);
        rest = &rest[end + 1..];
        match rest {
            [] => return Value::Quoted(value, rest),
            [next, ..] if *next == delimiter => return Value::Quoted(value, rest),
            [b'"', more @ ..] => rest = more,
            _ => has_single = true,
        }
        value.push(b'"');
    }
}
