//! Inputs: opening, decompressing, splitting into lines, and reading the fields of a line.
//!
//! A log format is a file in `input/format/` with a type that implements [`LogFormat`](format::LogFormat), a value of
//! [`FormatArg`](choice::FormatArg), an arm in `open`, and a look at a line in `detect`.

pub(crate) mod choice;
pub(crate) mod client;
pub(crate) mod detect;
pub(crate) mod format;
pub(crate) mod lines;
pub(crate) mod open;
pub(crate) mod row;
pub(crate) mod source;
pub(crate) mod time;
pub(crate) mod zstd;
