//! One line of comma-separated values, by the names in the first line.

use memchr::{memchr, memchr2};

use crate::row::{Row, Unreadable, shown};

/// What the first line says.
#[derive(Debug)]
pub(crate) struct Header {
    delimiter: u8,
    pub(crate) names: Vec<String>,
}

impl Header {
    /// Reads the first line; the delimiter is the one of comma, tab, semicolon and bar that comes first outside of
    /// quotation marks.
    ///
    /// # Errors
    ///
    /// When it cannot be split.
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

    /// Reads the wanted columns, of which `places` has the places in a row, by their numbers.
    ///
    /// # Errors
    ///
    /// When the line has other than as many values as the header, or a quotation mark does not end.
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
            "the line has {count} values, but allowed is as many as the first line: {}",
            self.names.len()
        )))
    }
}

/// Hands out the values with their numbers. Within quotation marks delimiters are text, and two of them are one.
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
                    let what = format!(
                        "the quotation mark before \"{}\" has no end in the line",
                        shown(&rest[1..])
                    );
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
                    "after a closing quotation mark comes \"{}\"",
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
    use crate::row::Row;

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
    fn values_are_split_where_they_end() {
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
    fn what_cannot_be_split_is_refused() {
        for (line, said) in [
            (
                "1",
                "the line has 1 values, but allowed is as many as the first line: 2",
            ),
            ("1,2,3", "the line has 3 values"),
            ("1,\"2", "column 3: the quotation mark before \"2\" has no end"),
            ("\"1\"x,2", "column 4: after a closing quotation mark comes \"x\""),
            ("\"\"\",2", "column 1: the quotation mark"),
        ] {
            let error = values("a,b", line).expect_err(line);
            assert!(error.starts_with(said), "{line}: {error}");
        }
    }
}
