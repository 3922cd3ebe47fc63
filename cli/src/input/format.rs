//! The interface of a log format; each format is a file in this folder.

pub(crate) mod common;
pub(crate) mod common_field;
pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod named_fields;
pub(crate) mod syslog;

use core::fmt::Debug;

use crate::input::lines::Line;
use crate::input::row::{Row, Unreadable};
use crate::input::time::timestamp::TimestampParser;

/// The fields that rules name, and the field of the time where it is given.
#[derive(Clone, Debug)]
pub(crate) struct WantedFields {
    /// In the order of their places in a row.
    pub(crate) fields: Vec<String>,
    /// The value of `--time-field`.
    pub(crate) time: Option<String>,
}

/// A parser of the lines of one input.
pub(crate) trait LogFormat: Debug {
    /// Reads the wanted fields and the time of a line into an empty row.
    ///
    /// # Errors
    ///
    /// When the line is not a request in this format.
    fn parse(&self, line: &[u8], timestamps: &mut TimestampParser, row: &mut Row) -> Result<(), Unreadable>;

    /// Whether the first line that is not blank names the fields.
    fn has_header(&self) -> bool {
        false
    }

    /// Clears the row and reads a line into it.
    ///
    /// # Errors
    ///
    /// When the line is not a request in this format, or was cut because of its length.
    fn read(
        &self,
        line: Line<'_>,
        timestamps: &mut TimestampParser,
        row: &mut Row,
    ) -> Result<(), Unreadable> {
        row.clear();
        if !line.whole {
            return Err(Unreadable::line("line exceeds 64 KiB"));
        }
        self.parse(line.bytes, timestamps, row)
    }
}

/// Lines that detection looks at.
const INSPECTED: usize = 20;

/// The first lines of an input that are not blank.
pub(crate) fn first_lines(start: &[u8]) -> impl Iterator<Item = &[u8]> {
    start
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .take(INSPECTED)
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}
