//! Lines by a regular expression with named groups.

use regex::bytes::{CaptureLocations, Regex};

use crate::failure::Failure;
use crate::input::format::columns::{Columns, Part, REQUEST, Standard};
use crate::input::format::{LogFormat, ParseResult, Parsed, TimeKind, WantedFields, nginx};
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

/// Names of groups that hold the address of a client.
const CLIENT: &[Standard] = &[
    ("client", "client", Part::AddressOrText),
    ("client", "address ip remote_addr", Part::Address),
];

const TIMES: &[&str] = &["time", "timestamp"];

/// A regular expression, whose groups are the fields.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    columns: Columns,
    groups: CaptureLocations,
    /// The expression to try on a line that `regex` does not match. A line that neither matches is unreadable. Without this
    /// expression, a line that `regex` does not match is no request.
    loose: Option<Regex>,
}

impl Pattern {
    /// The lines that an expression matches; others are no requests. The time is that of a group `time`, or of the line
    /// around the message.
    ///
    /// # Errors
    ///
    /// When the expression is invalid, or does not have a wanted field.
    pub(crate) fn of_expression(pattern: &str, wanted: &WantedFields) -> Result<Self, Failure> {
        let regex = Regex::new(pattern).map_err(|error| {
            Failure::argument(
                "--pattern",
                error,
                "a regular expression with groups such as (?<address>[0-9.]+)",
            )
        })?;
        let names: Vec<&str> = regex
            .capture_names()
            .skip(1)
            .map(Option::unwrap_or_default)
            .collect();
        let columns = Columns::new("--pattern", &names, &[CLIENT], TIMES, wanted)?;
        Ok(Self::new(regex, columns, None))
    }

    /// The lines of a `log_format` of nginx. The time is that of a variable, or of the line around the message.
    ///
    /// # Errors
    ///
    /// When the string is invalid, or does not have a wanted field.
    pub(crate) fn of_nginx(format: &str, wanted: &WantedFields) -> Result<Self, Failure> {
        let expressions = nginx::expression(format)?;
        let columns = Columns::new(
            "--log-format",
            &expressions.names,
            &[nginx::STANDARD, REQUEST],
            nginx::TIMES,
            wanted,
        )?;
        Ok(Self::new(expressions.exact, columns, Some(expressions.loose)))
    }

    /// Whether the expression matches a line.
    pub(crate) fn matches(&self, line: &[u8]) -> bool {
        self.regex.is_match(line)
    }

    fn new(regex: Regex, columns: Columns, loose: Option<Regex>) -> Self {
        Self {
            groups: regex.capture_locations(),
            regex,
            columns,
            loose,
        }
    }
}

impl LogFormat for Pattern {
    fn parse(&mut self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> ParseResult {
        if self.regex.captures_read(&mut self.groups, line).is_none() {
            match &self.loose {
                None => return Ok(Parsed::Other),
                Some(loose) if loose.captures_read(&mut self.groups, line).is_none() => {
                    return Err(Unreadable::line("not a line of --log-format"));
                }
                Some(_) => {}
            }
        }
        let group = |column: usize| self.groups.get(column + 1).map(|(start, end)| &line[start..end]);
        self.columns.fill(group, timestamps, row)?;
        Ok(Parsed::Request)
    }

    fn time_kind(&self) -> TimeKind {
        if self.columns.has_time() {
            TimeKind::Full
        } else {
            TimeKind::Absent
        }
    }
}
