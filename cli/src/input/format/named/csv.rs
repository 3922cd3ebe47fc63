//! CSV: values between delimiters, with names in the first line.

use memchr::{memchr, memchr2};

use crate::failure::Failure;
use crate::input::format::named::fields::NamedFields;
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
            let mut places = vec![None; header.names.len()];
            places[column] = Some(0);
            let mut row = Row::new(1);
            let value = |(_, line): &(usize, Vec<u8>)| {
                row.clear();
                header.read(line, &places, &mut row).ok()?;
                row.get(0).map(<[u8]>::to_vec)
            };
            let found: Vec<Vec<u8>> = sample(rest).into_iter().filter_map(value).collect();
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
        self.header.read(line, &self.places, row)?;
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
        split(line, delimiter, |_, value| {
            names.push(String::from_utf8_lossy(value).trim().to_string());
        })?;
        Ok(Self { delimiter, names })
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
        split(line, self.delimiter, |column, value| {
            if let Some(&Some(place)) = places.get(column) {
                row.set(place, value);
            }
            count = column + 1;
        })?;
        if count == self.names.len() {
            return Ok(());
        }
        Err(Unreadable::line(format!(
            "line has {count} values (expected {}, as in the header)",
            self.names.len()
        )))
    }
}

/// Calls `each` with the number and the text of each value. Within quotation marks a delimiter is text, and two quotation
/// marks are one.
fn split(line: &[u8], delimiter: u8, mut each: impl FnMut(usize, &[u8])) -> Result<(), Unreadable> {
    let mut rest = line;
    for column in 0.. {
        let value;
        let after;
        if let [b'"', text @ ..] = rest {
            let mut unescaped = Vec::new();
            let mut text = text;
            loop {
                let Some(end) = memchr(b'"', text) else {
                    let at = line.len() - rest.len();
                    let what = format!("unclosed quotation mark before \"{}\"", shown(&rest[1..]));
                    return Err(Unreadable::at(at, what));
                };
                unescaped.extend_from_slice(&text[..end]);
                text = &text[end + 1..];
                match text {
                    [b'"', more @ ..] => {
                        unescaped.push(b'"');
                        text = more;
                    }
                    _ => break,
                }
            }
            after = text;
            value = Some(unescaped);
        } else {
            let end = memchr(delimiter, rest).unwrap_or(rest.len());
            each(column, &rest[..end]);
            after = &rest[end..];
            value = None;
        }
        if let Some(value) = value {
            each(column, &value);
        }
        match after {
            [] => return Ok(()),
            [next, more @ ..] if *next == delimiter => rest = more,
            _ => {
                let at = line.len() - after.len();
                let until = memchr2(delimiter, b'"', after).unwrap_or(after.len());
                let what = format!(
                    "unexpected \"{}\" after a closing quotation mark",
                    shown(&after[..until])
                );
                return Err(Unreadable::at(at, what));
            }
        }
    }
    Ok(())
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
            (
                "\"1\"x,2",
                "column 4: unexpected \"x\" after a closing quotation mark",
            ),
            ("\"\"\",2", "column 1: unclosed quotation mark"),
        ] {
            let error = values("a,b", line).expect_err(line);
            assert!(error.starts_with(said), "{line}: {error}");
        }
    }
}
