//! Formats of words between spaces, in a fixed order.

use crate::failure::Failure;
use crate::input::format::columns::{Columns, Standard};
use crate::input::format::{LogFormat, Parsed, WantedFields};
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

/// The words of a format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// The format for messages, as in "an access log of ALB".
    pub(crate) title: &'static str,
    pub(crate) names: &'static [&'static str],
    pub(crate) standard: &'static [Standard],
    /// Names of the time, in the order of preference.
    pub(crate) times: &'static [&'static str],
    /// The smallest and the largest number of words. More may follow if the format has grown.
    pub(crate) least: usize,
    pub(crate) most: usize,
    /// Whether the words are those of the format.
    pub(crate) is: fn(&[&[u8]]) -> bool,
}

/// A format of words.
#[derive(Debug)]
pub(crate) struct WordFormat {
    layout: Layout,
    columns: Columns,
    words: Vec<(usize, usize)>,
    strict: bool,
}

impl WordFormat {
    /// # Errors
    ///
    /// When the format does not have a wanted field.
    pub(crate) fn new(layout: Layout, wanted: &WantedFields) -> Result<Self, Failure> {
        let columns = Columns::new(layout.title, layout.names, layout.standard, layout.times, wanted)?;
        Ok(Self {
            layout,
            columns: columns.with_missing_dash(),
            words: Vec::new(),
            strict: false,
        })
    }

    /// The format for a detection: it has no lines but those with the right number of words.
    pub(crate) const fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// Whether the words are those of the format.
    fn check(&self, words: &[&[u8]]) -> Result<(), Unreadable> {
        let Layout {
            title, least, most, ..
        } = self.layout;
        if !(least..=most).contains(&words.len()) {
            let count = words.len();
            let expected = if most == usize::MAX {
                format!("at least {least}")
            } else {
                format!("{least} to {most}")
            };
            return Err(Unreadable::line(format!(
                "line has {count} words (expected {expected}, as in {title})"
            )));
        }
        if !(self.layout.is)(words) {
            return Err(Unreadable::line(format!("not the words of {title}")));
        }
        Ok(())
    }
}

impl LogFormat for WordFormat {
    fn parse(
        &mut self,
        line: &[u8],
        timestamps: &mut TimestampParser,
        row: &mut Row,
    ) -> Result<Parsed, Unreadable> {
        let cut = split(line, &mut self.words);
        let words: Vec<&[u8]> = self.words.iter().map(|&(start, end)| &line[start..end]).collect();
        // A client may send a quotation mark to a server that does not escape it, and a long line may be cut. Then the words
        // before that are those of the format if the time and the needed fields are among them.
        match self.check(&words) {
            Ok(()) if cut.is_none() || !self.strict => {}
            Ok(()) => return Err(Unreadable::at(cut.unwrap_or(0), "unclosed quotation mark")),
            Err(reason) if self.strict || words.len() < self.columns.needed() => return Err(reason),
            Err(_) => {}
        }
        self.columns
            .fill(|column| words.get(column).copied(), timestamps, row)?;
        Ok(Parsed::Request)
    }
}

/// Splits a line at spaces. A word may be `"quoted"`, where a backslash escapes a byte, or `[in brackets]`; both are
/// removed. Returns the place of a quotation mark that is not closed; the word behind it was cut, and is left out.
pub(crate) fn split(line: &[u8], words: &mut Vec<(usize, usize)>) -> Option<usize> {
    words.clear();
    let mut at = 0;
    while at < line.len() {
        let to_space = || memchr::memchr(b' ', &line[at..]).map_or(line.len(), |length| at + length);
        let (start, end) = match line[at] {
            b'"' => {
                let mut end = at + 1;
                // A quotation mark ends the word only before a space: some servers do not escape those in a value.
                while end < line.len()
                    && !(line[end] == b'"' && matches!(line.get(end + 1), None | Some(b' ')))
                {
                    end += if line[end] == b'\\' { 2 } else { 1 };
                }
                if end >= line.len() {
                    return Some(at);
                }
                (at + 1, end)
            }
            b'[' => match memchr::memchr(b']', &line[at..]) {
                Some(length) if matches!(line.get(at + length + 1), None | Some(b' ')) => {
                    (at + 1, at + length)
                }
                // An address in brackets before a port.
                _ => (at, to_space()),
            },
            _ => (at, to_space()),
        };
        words.push((start, end));
        // Behind the word, its closing mark and a space.
        at = end + usize::from(start > at) + 1;
    }
    None
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Layout, WordFormat, split};
    use crate::input::format::{LogFormat, Parsed, WantedFields};
    use crate::input::row::Row;
    use crate::input::time::infer_year::YearInference;
    use crate::input::time::timestamp::{TimestampFormat, TimestampParser};

    /// The time of a line and these fields, without those that are missing.
    pub(crate) fn fields(
        format: &mut dyn LogFormat,
        line: &str,
        places: usize,
    ) -> Result<(i64, Vec<Option<String>>), String> {
        let mut timestamps = TimestampParser::new(TimestampFormat::Auto, YearInference::new(None, 0), 0);
        let mut row = Row::new(places + 1);
        match format.parse(line.as_bytes(), &mut timestamps, &mut row) {
            Ok(Parsed::Request) => {}
            Ok(Parsed::Other) => return Err("no request".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
        let text = |at| row.get(at).map(|text| String::from_utf8_lossy(text).into_owned());
        Ok((row.time, (0..places).map(text).collect()))
    }

    pub(crate) fn wanted(names: &[&str]) -> WantedFields {
        WantedFields {
            fields: names
                .iter()
                .zip(0..)
                .map(|(name, place)| ((*name).to_owned(), place))
                .collect(),
            time_place: names.len(),
            time: None,
        }
    }

    /// The sample has these values, and the neighbours are no lines of the format.
    pub(crate) fn check(
        layout: Layout,
        (line, time): (&str, i64),
        expected: &[(&str, Option<&str>)],
        neighbours: &[&str],
    ) {
        let names: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
        let mut format = WordFormat::new(layout, &wanted(&names)).expect("known fields");
        let values = expected
            .iter()
            .map(|(_, value)| value.map(str::to_owned))
            .collect();
        assert_eq!(fields(&mut format, line, names.len()), Ok((time, values)));
        let mut format = format.strict();
        for other in neighbours {
            fields(&mut format, other, names.len()).expect_err(other);
        }
        let error = WordFormat::new(layout, &wanted(&["nowhere"])).expect_err("an unknown field");
        assert!(error.to_string().contains("client"), "{error}");
    }

    #[test]
    fn words_are_split_at_spaces_outside_of_quotes() {
        let words = |line: &str| {
            let mut words = Vec::new();
            let cut = split(line.as_bytes(), &mut words);
            let words = words.iter().map(|&(from, to)| line[from..to].to_owned());
            (words.collect::<Vec<_>>(), cut)
        };
        let expect = |words: &[&str]| (words.iter().map(ToString::to_string).collect::<Vec<_>>(), None);
        assert_eq!(words(r#"a "b c" [d e] f"#), expect(&["a", "b c", "d e", "f"]));
        assert_eq!(words(r#""x \" y" "" -"#), expect(&[r#"x \" y"#, "", "-"]));
        assert_eq!(
            words(r#""say "hi" you" z"#),
            expect(&[r#"say "hi"#, r#"you""#, "z"])
        );
        assert_eq!(words("[a [b]c [::1]:80"), expect(&["[a", "[b]c", "[::1]:80"]));
        assert_eq!(words(r#"a "b"#), (vec!["a".to_owned()], Some(2)));
    }
}
