//! Formats of words between spaces, in a fixed order.

use crate::failure::Failure;
use crate::input::format::columns::{Columns, Standard};
use crate::input::format::{LogFormat, ParseResult, Parsed, WantedFields};
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

/// Splits a line into words.
type SplitLine = for<'l> fn(&'l [u8], &mut Vec<&'l [u8]>) -> Result<Split, Unreadable>;

/// The words of a format.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// The format for messages, as in "an access log of ALB".
    pub(crate) title: &'static str,
    /// The names of the words, with spaces between them.
    pub(crate) names: &'static str,
    pub(crate) standard: &'static [&'static [Standard]],
    /// The name of the time.
    pub(crate) time: &'static str,
    /// The smallest and the largest number of words. More may follow if the format has grown.
    pub(crate) least: usize,
    pub(crate) most: usize,
    /// Whether the words are those of the format.
    pub(crate) is: fn(&[&[u8]]) -> bool,
    /// Splits a line into the words.
    pub(crate) split: SplitLine,
    /// Whether "-" is a missing value.
    pub(crate) dash_is_missing: bool,
    /// Whether a detection needs an address in the place of the client.
    pub(crate) by_client: bool,
}

/// Words of any number between spaces; the other parts of a layout are those that most formats have.
pub(crate) const SPACED: Layout = Layout {
    title: "",
    names: "",
    standard: &[],
    time: "time",
    least: 0,
    most: usize::MAX,
    is: |_| true,
    split: by_spaces,
    dash_is_missing: true,
    by_client: false,
};

/// The end of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Split {
    Whole,
    /// The place of a quotation mark that is not closed. The word behind it is left out.
    Cut(usize),
    /// The line is no request.
    Other,
}

/// A format of words.
#[derive(Debug)]
pub(crate) struct WordFormat {
    layout: &'static Layout,
    columns: Columns,
    strict: bool,
}

impl WordFormat {
    /// # Errors
    ///
    /// When the format does not have a wanted field.
    pub(crate) fn new(layout: &'static Layout, wanted: &WantedFields) -> Result<Self, Failure> {
        let names: Vec<&str> = layout.names.split(' ').collect();
        let columns = Columns::new(layout.title, &names, layout.standard, &[layout.time], wanted)?;
        Ok(Self {
            layout,
            columns: columns.with_missing_dash(layout.dash_is_missing),
            strict: false,
        })
    }

    /// Whether a line is of a format: it has the right number of words, and an address where the format needs one.
    pub(crate) fn is(layout: &'static Layout, line: &[u8], timestamps: &mut TimestampParser) -> bool {
        let client = layout.by_client.then(|| ("client".to_owned(), 0));
        let wanted = WantedFields {
            fields: client.into_iter().collect(),
            time_place: 1,
            ..WantedFields::default()
        };
        Self::new(layout, &wanted).is_ok_and(|format| {
            let mut format = Self {
                strict: true,
                ..format
            };
            format.parse(line, timestamps, &mut Row::default()).is_ok()
        })
    }

    /// Whether the words are those of the format.
    fn check(&self, words: &[&[u8]]) -> Result<(), Unreadable> {
        let Layout {
            title, least, most, ..
        } = *self.layout;
        if !(least..=most).contains(&words.len()) {
            let count = words.len();
            let expected = match most {
                usize::MAX => format!("at least {least}"),
                most => format!("{least} to {most}"),
            };
            return Err(Unreadable::line(format!(
                "line has {count} words (expected {expected}, as in {title})"
            )));
        }
        match (self.layout.is)(words) {
            true => Ok(()),
            false => Err(Unreadable::line(format!("not the words of {title}"))),
        }
    }
}

impl LogFormat for WordFormat {
    fn parse(&mut self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> ParseResult {
        let mut words = Vec::with_capacity(32);
        let split = (self.layout.split)(line, &mut words)?;
        // A client may send a quotation mark to a server that does not escape it, and a long line may be cut. Then the words
        // before that are those of the format if the time and the needed fields are among them.
        match (split, self.check(&words)) {
            (Split::Other, _) => return Ok(Parsed::Other),
            (Split::Cut(at), Ok(())) if self.strict => {
                return Err(Unreadable::at(at, "unclosed quotation mark"));
            }
            (_, Err(reason)) if self.strict || words.len() < self.columns.needed() => return Err(reason),
            (Split::Whole | Split::Cut(_), _) => {}
        }
        self.columns
            .fill(|column| words.get(column).copied(), timestamps, row)?;
        Ok(Parsed::Request)
    }
}

/// The place of the quotation mark that ends a text: one that no backslash escapes, and behind which `ends` holds, because some
/// servers do not escape those in a value.
#[inline]
pub(crate) fn closing(text: &[u8], ends: impl Fn(&[u8]) -> bool) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        match text[at] {
            b'"' if ends(&text[at + 1..]) => return Some(at),
            b'"' => at += 1,
            _ => at += 2,
        }
    }
}

/// Splits a line at spaces. A word may be `"quoted"`, where a backslash escapes a byte, or `[in brackets]`; both are removed. The
/// word behind a quotation mark that is not closed was cut, and is left out.
pub(crate) fn by_spaces<'l>(line: &'l [u8], words: &mut Vec<&'l [u8]>) -> Result<Split, Unreadable> {
    let mut at = 0;
    while at < line.len() {
        let to_space = || memchr::memchr(b' ', &line[at..]).map_or(line.len(), |length| at + length);
        let (start, end) = match line[at] {
            b'"' => match closing(&line[at + 1..], |rest| matches!(rest, [] | [b' ', ..])) {
                Some(length) => (at + 1, at + 1 + length),
                None => return Ok(Split::Cut(at)),
            },
            b'[' => match memchr::memchr(b']', &line[at..]) {
                Some(length) if matches!(line.get(at + length + 1), None | Some(b' ')) => {
                    (at + 1, at + length)
                }
                // An address in brackets before a port.
                _ => (at, to_space()),
            },
            _ => (at, to_space()),
        };
        words.push(&line[start..end]);
        // Behind the word, its closing mark and a space.
        at = end + usize::from(start > at) + 1;
    }
    Ok(Split::Whole)
}

#[cfg(test)]
mod tests {
    use super::{Split, by_spaces};

    #[test]
    fn words_are_split_at_spaces_outside_of_quotes() {
        for (line, expected, cut) in [
            (r#"a "b c" [d e] f"#, &["a", "b c", "d e", "f"][..], None),
            (r#""x \" y" "" -"#, &[r#"x \" y"#, "", "-"], None),
            (r#""say "hi" you" z"#, &[r#"say "hi"#, r#"you""#, "z"], None),
            ("[a [b]c [::1]:80", &["[a", "[b]c", "[::1]:80"], None),
            (r#"a "b"#, &["a"], Some(2)),
        ] {
            let mut words = Vec::new();
            let end = cut.map_or(Split::Whole, Split::Cut);
            assert_eq!(by_spaces(line.as_bytes(), &mut words), Ok(end), "{line}");
            let expected: Vec<&[u8]> = expected.iter().map(|word| word.as_bytes()).collect();
            assert_eq!(words, expected, "{line}");
        }
    }
}
