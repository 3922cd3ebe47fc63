//! Inputs: opening, decompressing, splitting into lines, and reading the fields of a line.
//!
//! A new log format has three parts:
//!
//! 1. Words in a fixed order are a `Layout` in `input/format/layouts.rs`. A header before a message of another format is a
//!    `Header` in `input/format/wrapper/header.rs`. Other lines need a file in `input/format/` with a type that implements
//!    [`LogFormat`](format::LogFormat), or `Envelope` around a message.
//! 2. A value of [`FormatArg`](choice::FormatArg). The compiler then asks for its row in `choice`: the place in the detection, the
//!    reason, and how its lines are told and read.
//! 3. A line with its fields in `cli/tests/replay/inputs/lines.txt`, lines in `formats_that_people_bring_are_read`
//!    (`cli/tests/replay/inputs/brought_formats.rs`), and in both lists of `damaged_lines_of_any_format_are_counted`
//!    (`cli/tests/replay/inputs/own_formats.rs`), where each format reads damaged lines of every other one.

pub(crate) mod choice;
pub(crate) mod client;
pub(crate) mod detect;
pub(crate) mod format;
mod gzip;
pub(crate) mod lines;
pub(crate) mod open;
pub(crate) mod refuse;
pub(crate) mod row;
pub(crate) mod source;
pub(crate) mod time;
pub(crate) mod zstd;
