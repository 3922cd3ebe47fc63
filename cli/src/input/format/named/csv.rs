//! CSV: values between delimiters, with names in the first line.

use memchr::memchr;

use crate::failure::Failure;
use crate::input::format::named::fields::NamedFields;
use crate::input::format::realign::realign;
use crate::input::format::{LogFormat, Parsed, WantedFields, sample};
use crate::input::row::{Row, Unreadable, shown};
use crate::input::time::timestamp::TimestampParser;

/// The format of values between delimiters.
#[derive(Debug)]
pub(crate) struct Csv {
    header: Header,
    /// For each column, its place in a row.
    places: Vec<Option<usize>>,
    named: NamedFields,
    /// The place of the time. Details follow it.
    time_place: usize,
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
                let mut values = Vec::new();
                split(line, header.delimiter, |_, value| values.push(value.to_vec()));
                let extra = values.len().saturating_sub(header.names.len());
                let last = values.get(column + extra).cloned();
                values
                    .into_iter()
                    .nth(column)
                    .into_iter()
                    .chain(last.filter(|_| extra > 0))
            };
            let found: Vec<Vec<u8>> = sample(rest).into_iter().flat_map(of_line).collect();
            // A column without a readable value still has its name.
            if found.is_empty() {
                vec![b"?".to_vec()]
            } else {
                found
            }
        };
        let (named, fields) = NamedFields::resolve(wanted, &header.names, values)?;
        let mut places = vec![None; header.names.len()];
        for (name, place) in fields {
            let Some(column) = position(&name) else {
                return Err(Failure::argument(
                    "field",
                    format!("{name:?}"),
                    format!("a column of the header: {}", header.names.join(", ")),
                ));
            };
            if let Some(other) = header.names[column + 1..].iter().position(|known| *known == name) {
                return Err(Failure::new(format!(
                    "invalid CSV header: the columns {} and {} are both called {name:?} (expected each name once)",
                    column + 1,
                    column + 2 + other
                )));
            }
            places[column] = Some(place);
        }
        Ok(Self {
            header,
            places,
            named,
            time_place: wanted.time_place,
        })
    }
}

impl LogFormat for Csv {
    fn parse(
        &mut self,
        line: &[u8],
        timestamps: &mut TimestampParser,
        row: &mut Row,
    ) -> Result<Parsed, Unreadable> {
        if let Err(reason) = self.header.read(line, &self.places, row) {
            self.read_odd(line, timestamps, row).ok_or(reason)?;
            return Ok(Parsed::Request);
        }
        self.named.complete(timestamps, row)?;
        Ok(Parsed::Request)
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

impl Csv {
    /// Reads a line with another number of values than the header: a value has delimiters and no quotation marks, or the line was
    /// cut within a quoted value behind the needed ones. `None` if the needed values are unknown.
    fn read_odd(&self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> Option<()> {
        let mut values = Vec::new();
        let cut = split(line, self.header.delimiter, |_, value| {
            values.push(value.to_vec())
        });
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let mut read = |values: &[&[u8]], row: &mut Row| {
            for (value, place) in values.iter().zip(&self.places) {
                if let Some(place) = *place {
                    row.set(place, value);
                }
            }
            self.named.complete(timestamps, row)
        };
        if cut.is_none() {
            let columns = (self.header.names.len(), self.header.delimiter);
            return realign(&values, columns, self.time_place, row, read);
        }
        let is_needed = |place: &Option<usize>| place.is_some_and(|place| place <= self.time_place);
        let last = self.places.iter().rposition(is_needed);
        row.clear();
        let has_needed = last.is_none_or(|last| last < values.len()) && values.len() < self.places.len();
        has_needed.then(|| read(&values, row))?.ok()
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
        let mut names = Vec::new();
        let cut = split(line, delimiter, |_, value| {
            names.push(String::from_utf8_lossy(value).trim().to_string());
        });
        match cut {
            Some(at) => Err(unclosed(line, at)),
            None => Ok(Self { delimiter, names }),
        }
    }

    /// Reads the wanted columns into a row; `places` has the place of each column.
    ///
    /// # Errors
    ///
    /// When the number of values differs from the header, or a quotation mark is not closed.
    pub(crate) fn read(
        &self,
        line: &[u8],
        places: &[Option<usize>],
        row: &mut Row,
    ) -> Result<(), Unreadable> {
        let mut count = 0;
        let cut = split(line, self.delimiter, |column, value| {
            if let Some(&Some(place)) = places.get(column) {
                row.set(place, value);
            }
            count = column + 1;
        });
        if let Some(at) = cut {
            return Err(unclosed(line, at));
        }
        if count == self.names.len() {
            return Ok(());
        }
        Err(Unreadable::line(format!(
            "line has {count} values (expected {}, as in the header)",
            self.names.len()
        )))
    }
}

fn unclosed(line: &[u8], at: usize) -> Unreadable {
    let what = format!("unclosed quotation mark before \"{}\"", shown(&line[at + 1..]));
    Unreadable::at(at, what)
}

/// Calls `each` with the number and the text of each value. Within quotation marks a delimiter is text, and two quotation
/// marks are one. A single one is text too unless the value ends behind it; a value with such a one and no end was never quoted.
/// Returns the place of a quotation mark that is not
/// closed; the value behind it was cut, and is left out.
fn split(line: &[u8], delimiter: u8, mut each: impl FnMut(usize, &[u8])) -> Option<usize> {
    let mut rest = line;
    for column in 0.. {
        let after = match quoted(rest, delimiter) {
            Value::Quoted(value, behind) => {
                each(column, &value);
                behind
            }
            Value::Cut => return Some(line.len() - rest.len()),
            Value::Plain => {
                let end = memchr(delimiter, rest).unwrap_or(rest.len());
                each(column, &rest[..end]);
                &rest[end..]
            }
        };
        match after {
            [] => return None,
            [_, more @ ..] => rest = more,
        }
    }
    None
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

#[cfg(test)]
mod tests {
    use super::Header;
    use crate::input::row::Row;

    fn values(header: &str, line: &str) -> Result<Vec<Option<String>>, String> {
        let header = Header::parse(header.as_bytes()).map_err(|error| error.to_string())?;
        let places: Vec<_> = (0..header.names.len()).map(Some).collect();
        let mut row = Row::new(places.len());
        header
            .read(line.as_bytes(), &places, &mut row)
            .map_err(|error| error.to_string())?;
        let text = |at| row.get(at).map(|text| String::from_utf8_lossy(text).into_owned());
        Ok((0..places.len()).map(text).collect())
    }

    #[test]
    fn values_are_split_at_delimiters() {
        for (header, line, expected) in [
            ("a,b,c", "1,2,3", ["1", "2", "3"]),
            ("a,b,c", ",,", ["", "", ""]),
            (
                "a,b,c",
                r#""1,5","say ""hi""","""#.trim_end_matches('"'),
                ["1,5", "say \"hi\"", ""],
            ),
            ("a,b,c", r#"1,"",x"y"#, ["1", "", "x\"y"]),
            ("a,b,c", r#""1"x,2,3"#, ["\"1\"x", "2", "3"]),
            ("a,b,c", r#"1,"say "hi" you",2"#, ["1", "say \"hi\" you", "2"]),
            ("a\tb\tc", "1,5\t2\t3", ["1,5", "2", "3"]),
            ("a;b;c", "1,5;2;3", ["1,5", "2", "3"]),
            (r#""a,x";b|y;c"#, "1;2;3", ["1", "2", "3"]),
        ] {
            let expected = expected.map(|text| Some(text.to_string()));
            assert_eq!(values(header, line), Ok(expected.to_vec()), "{line}");
        }
        assert_eq!(
            Header::parse(b"\"time\", client ").map(|header| header.names),
            Ok(vec!["time".to_string(), "client".to_string()])
        );
        assert_eq!(values("alone", "1"), Ok(vec![Some("1".into())]));
    }

    #[test]
    fn invalid_lines_are_errors() {
        for (line, said) in [
            ("1", "line has 1 values (expected 2, as in the header)"),
            ("1,2,3", "line has 3 values"),
            ("1,\"2", "column 3: unclosed quotation mark before \"2\""),
            ("\"\"\",2", "column 1: unclosed quotation mark"),
        ] {
            let error = values("a,b", line).expect_err(line);
            assert!(error.starts_with(said), "{line}: {error}");
        }
    }
}
