//! Inputs: opening, decompressing, splitting into lines, and reading the fields of a line.
//!
//! A new log format has three parts:
//!
//! 1. Words in a fixed order are a `Layout` in `input/format/layouts.rs`. Other lines need a file in `input/format/` with a type
//!    that implements [`LogFormat`](format::LogFormat). A header before a message of another format is an `Envelope` of
//!    `wrapper/mod.rs` instead.
//! 2. A value of [`FormatArg`](choice::FormatArg). The compiler then asks for its row in `choice`: the place in the detection, the
//!    reason, and how its lines are told and read.
//! 3. Lines in `cli/tests/replay/inputs/formats.rs`. Each format is also read with the lines of every other one there.

pub(crate) mod choice;
pub(crate) mod client;
pub(crate) mod detect;
pub(crate) mod format;
pub(crate) mod lines;
pub(crate) mod open;
pub(crate) mod refuse;
pub(crate) mod row;
pub(crate) mod source;
pub(crate) mod time;
pub(crate) mod zstd;
