//! W3C extended logs, as IIS and CloudFront write them: `#Fields:` names the values of the lines after it.

use memchr::memchr;

use crate::failure::Failure;
use crate::input::format::columns::{Columns, Part, Standard};
use crate::input::format::realign::aligned;
use crate::input::format::{LogFormat, ParseResult, Parsed, WantedFields};
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

const STANDARD: &[Standard] = &[
    ("client", "c-ip", Part::Address),
    ("user", "cs-username", Part::Whole),
    ("method", "cs-method", Part::Whole),
    ("path", "cs-uri-stem", Part::Whole),
    ("path", "cs-uri", Part::Path),
    ("target", "cs-uri cs-uri-stem", Part::Whole),
    ("protocol", "cs-version cs-protocol-version", Part::Whole),
    ("status", "sc-status", Part::Whole),
    ("size", "sc-bytes", Part::Whole),
    ("agent", "cs(User-Agent)", Part::Whole),
    ("referer", "cs(Referer)", Part::Whole),
    ("vhost", "x-host-header cs-host cs(Host)", Part::Whole),
];

const FIELDS: &[u8] = b"#Fields:";

/// Values between spaces or tabs.
#[derive(Debug)]
pub(crate) struct W3c {
    wanted: WantedFields,
    /// The columns of the last `#Fields:`, and their number.
    columns: Option<(Columns, usize)>,
}

impl W3c {
    /// For an input with these first lines.
    ///
    /// # Errors
    ///
    /// When the first `#Fields:` does not have a wanted field.
    pub(crate) fn new(lines: &[(usize, Vec<u8>)], wanted: &WantedFields) -> Result<Self, Failure> {
        let mut format = Self {
            wanted: wanted.clone(),
            columns: None,
        };
        let Some((_, line)) = lines.iter().find(|(_, line)| line.starts_with(FIELDS)) else {
            return Err(Failure::new(
                "no #Fields: in the first lines of a W3C extended log (expected names of the values)",
            ));
        };
        format.fields(line)?;
        Ok(format)
    }

    fn fields(&mut self, line: &[u8]) -> Result<(), Failure> {
        let text = String::from_utf8_lossy(&line[FIELDS.len()..]);
        let names: Vec<&str> = text.split_ascii_whitespace().collect();
        if let Some((number, name)) = names
            .iter()
            .enumerate()
            .find(|(number, name)| names[..*number].contains(name))
        {
            return Err(Failure::new(format!(
                "invalid #Fields: field {} is {name:?} again (expected each name once)",
                number + 1
            )));
        }
        let columns = Columns::new(
            "the W3C extended log",
            &names,
            &[STANDARD],
            &["date time", "timestamp"],
            &self.wanted,
        )?;
        if !columns.has_time() {
            return Err(Failure::new(format!(
                "no date and time among #Fields: {} (expected both, or --time-field)",
                names.join(" ")
            )));
        }
        self.columns = Some((columns.with_missing_dash(true), names.len()));
        Ok(())
    }
}

impl LogFormat for W3c {
    fn parse(&mut self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> ParseResult {
        if line.starts_with(FIELDS) {
            self.columns = None;
            self.fields(line)
                .map_err(|failure| Unreadable::line(failure.to_string()))?;
            return Ok(Parsed::Other);
        }
        if line.first() == Some(&b'#') {
            return Ok(Parsed::Other);
        }
        let Some((columns, count)) = &self.columns else {
            return Err(Unreadable::line("no readable #Fields: before the line"));
        };
        let delimiter = if memchr(b'\t', line).is_some() {
            b'\t'
        } else {
            b' '
        };
        let values: Vec<&[u8]> = line.trim_ascii_end().split(|&byte| byte == delimiter).collect();
        let read = |values: &[&[u8]], row: &mut Row| {
            columns.fill(|column| values.get(column).copied(), timestamps, row)
        };
        let form = (*count, delimiter, "#Fields");
        aligned(&values, form, self.wanted.time_place, row, read)
    }
}
