//! Lines by a regular expression with named groups.

use regex::bytes::{CaptureLocations, Regex};

use crate::failure::Failure;
use crate::input::format::columns::{Columns, Part, REQUEST, Standard};
use crate::input::format::nginx::{self, Form};
use crate::input::format::{LogFormat, ParseResult, Parsed, TimeKind, WantedFields};
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
    /// The forms of a line, in the order in which they are tried. Of several, a line that has none is unreadable. Of one, it is
    /// no request.
    forms: Vec<Form>,
    columns: Columns,
    groups: CaptureLocations,
    /// The groups that must be equal by the longest values, of a usual line and of others, and those values.
    fixed: [Vec<usize>; 2],
    longest: CaptureLocations,
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
        let form = Form {
            shortest: regex,
            longest: None,
        };
        Ok(Self::new(vec![form], columns, Vec::new()))
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
        Ok(Self::new(expressions.forms, columns, expressions.fixed))
    }

    /// Whether the expression matches a line.
    pub(crate) fn matches(&self, line: &[u8]) -> bool {
        self.forms[0].shortest.is_match(line)
    }

    fn new(forms: Vec<Form>, columns: Columns, fixed: Vec<usize>) -> Self {
        let groups = forms[0].shortest.capture_locations();
        let of_others = columns.of_rules().chain(fixed.iter().copied()).collect();
        Self {
            longest: groups.clone(),
            groups,
            forms,
            columns,
            fixed: [fixed, of_others],
        }
    }
}

impl LogFormat for Pattern {
    fn parse(&mut self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> ParseResult {
        let (groups, others) = (&mut self.groups, &mut self.longest);
        let mut forms = self.forms.iter().enumerate();
        let Some((number, form)) =
            forms.find(|(_, form)| form.shortest.captures_read(groups, line).is_some())
        else {
            return match self.forms.len() {
                1 => Ok(Parsed::Other),
                _ => Err(Unreadable::line("not a line of --log-format")),
            };
        };
        if let Some(longest) = &form.longest
            && longest.captures_read(others, line).is_some()
            && self.fixed[number.min(1)]
                .iter()
                .any(|&group| groups.get(group + 1) != others.get(group + 1))
        {
            return Err(Unreadable::line(
                "several meanings by --log-format, because a value has the text between two values",
            ));
        }
        let group = |column: usize| groups.get(column + 1).map(|(start, end)| &line[start..end]);
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
