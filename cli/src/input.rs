//! Inputs: opening, decompressing, splitting into lines, and reading the fields of a line.
//!
//! A log format is a file with a type that implements [`LogFormat`](log_format::LogFormat), a value of
//! [`FormatArg`](detect::FormatArg) and an arm in `detect`.

pub(crate) mod common;
pub(crate) mod common_field;
pub(crate) mod csv;
pub(crate) mod detect;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod log_format;
pub(crate) mod named_fields;
pub(crate) mod row;
pub(crate) mod source;
pub(crate) mod syslog;
pub(crate) mod time;
pub(crate) mod zstd;
