//! The interface of a log format; each format is a file in this folder.

pub(crate) mod columns;
pub(crate) mod common;
pub(crate) mod layouts;
pub(crate) mod nginx;
pub(crate) mod pattern;
pub(crate) mod realign;
pub(crate) mod w3c;
pub(crate) mod words;
pub(crate) mod named;
pub(crate) mod wrapper;

use core::fmt::Debug;

use crate::failure::Failure;
use crate::input::lines::{LONGEST, without_zeros};
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

/// The fields that rules name, and the field of the time where it is given.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedFields {
    /// The names, each with its place in a row.
    pub(crate) fields: Vec<(String, usize)>,
    /// The place of the time's text, behind all fields that rules name. Details follow it.
    pub(crate) time_place: usize,
    /// The value of `--time-field`.
    pub(crate) time: Option<String>,
    /// The places of costs, in which "-" is 0.
    pub(crate) costs: Vec<usize>,
    /// The place of a field that an alias says is the client, so that its addresses have no port.
    pub(crate) client_place: Option<usize>,
}

impl WantedFields {
    /// Whether the field at a place is a detail. A detail never makes a line unreadable.
    pub(crate) const fn is_detail(&self, place: usize) -> bool {
        place > self.time_place
    }
}

/// The first lines of an input that are not blank, with their numbers from 1.
pub(crate) type FirstLines = [(usize, Vec<u8>)];

/// The meaning of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// A request, which is in the row.
    Request,
    /// No request: a directive, a part of a longer line, or a line that a pattern does not match.
    Other,
}

/// The result of parsing a line.
pub(crate) type ParseResult = Result<Parsed, Unreadable>;

/// How complete the times of a format are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimeKind {
    Absent,
    WithoutYear,
    Full,
}

impl TimeKind {
    /// Parses the time of a line around a message.
    pub(crate) fn read(self, text: &[u8], timestamps: &mut TimestampParser) -> Option<i64> {
        match self {
            Self::WithoutYear => timestamps.syslog(text),
            Self::Absent | Self::Full => timestamps.detected(text),
        }
    }
}

/// A parser of the lines of one input.
pub(crate) trait LogFormat: Debug {
    /// Reads the wanted fields and the time of a line into an empty row.
    ///
    /// # Errors
    ///
    /// When the line is not a request in this format.
    fn parse(&mut self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> ParseResult;

    /// How complete the times are.
    fn time_kind(&self) -> TimeKind {
        TimeKind::Full
    }

    /// Whether the first line that is not blank names the fields.
    fn has_header(&self) -> bool {
        false
    }

    /// The fields that were chosen by their names, as in `client is "ip"`; empty if the format has fixed ones.
    fn describe(&self) -> String {
        String::new()
    }

    /// Facts that the lines after the first ones have shown.
    ///
    /// # Errors
    ///
    /// When they contradict the first lines, so that requests were counted wrongly.
    fn late_notes(&mut self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }

    /// A field of the input with the address that a proxy forwards.
    fn forwarded(&self) -> Option<String> {
        None
    }

    /// Whether further wanted fields leave the meaning of each line as it is.
    fn takes_fields(&self) -> bool {
        true
    }

    /// Ends the input.
    ///
    /// # Errors
    ///
    /// When the last message of the input is incomplete.
    fn finish(&mut self) -> Result<(), Unreadable> {
        Ok(())
    }
}

/// Lines that detection looks at.
const INSPECTED: usize = 1000;

/// The first lines of an input that are not blank, with their numbers from 1. A line that is too long is unreadable, so it says
/// nothing about the others.
pub(crate) fn first_lines(start: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let lines = (1..).zip(start.split(|&byte| byte == b'\n'));
    lines
        .map(|(number, line)| (number, without_zeros(line.strip_suffix(b"\r").unwrap_or(line))))
        .filter(|(_, line)| !line.trim_ascii().is_empty() && line.len() <= LONGEST)
        .take(INSPECTED)
        .map(|(number, line)| (number, line.to_vec()))
        .collect()
}

/// Lines whose formats and values are compared.
const SAMPLED: usize = 100;

/// The first ones of some lines, and as many that are spread over the others.
pub(crate) fn sample<T>(lines: &[T]) -> Vec<&T> {
    if lines.len() <= SAMPLED {
        return lines.iter().collect();
    }
    let (first, rest) = lines.split_at(SAMPLED / 2);
    let step = rest.len().div_ceil(SAMPLED / 2);
    first.iter().chain(rest.iter().step_by(step)).collect()
}
