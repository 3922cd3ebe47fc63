#![doc = include_str!("protocol.md")]

mod bucket;
mod counts;
mod entry;
mod find;
mod inheritance;
mod insert;
mod layout;
mod memory;
mod probe;
mod queries;
mod region;
mod words;

pub use counts::TableCounts;

pub(crate) use counts::Event;
pub(crate) use entry::Entry;
pub(crate) use insert::{InsertOutcome, Insertion, NoEntry};
pub(crate) use memory::Table;
pub(crate) use queries::View;
pub(crate) use words::AloneWords;
pub(crate) use words::{OccupiedWords, SeenWord};
