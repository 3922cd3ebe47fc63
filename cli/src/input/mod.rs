//! Inputs: opening, decompressing, splitting into lines, and reading the fields of a line.
//!
//! A new log format has four parts:
//!
//! 1. A file in `input/format/` with a type that implements [`LogFormat`](format::LogFormat). Words in a fixed order need only a
//!    `Layout` of `words.rs`. A header before a message of another format is an `Envelope` of `wrapper/mod.rs` instead.
//! 2. A value of [`FormatArg`](choice::FormatArg). The compiler then points at the matches that need an arm, in `choice` and
//!    `open`.
//! 3. A case in [`detect`], in the place where no other format accepts the line first.
//! 4. Lines in `cli/tests/replay/inputs/formats.rs`. Each format is also read with the lines of every other one there.

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
