//! States that are saved in one process and restored in another: the format of the file, and its errors.
//!
//! | to | see |
//! |---|---|
//! | save a table of keys, and restore it | [`KeyedRateLimiter::save`], [`KeyedBuilder::restore`] |
//! | save a rule set, and restore it | [`RuleSet::save`], [`RuleSetBuilder::restore`] |
//! | save one limiter | [`RateLimiter::save`](crate::RateLimiter::save) |
#![doc = ""]
#![doc = include_str!("format.md")]
//!
//! [`KeyedRateLimiter::save`]: crate::KeyedRateLimiter::save
//! [`KeyedBuilder::restore`]: crate::keyed::KeyedBuilder::restore
//! [`RuleSet::save`]: crate::RuleSet::save
//! [`RuleSetBuilder::restore`]: crate::rules::RuleSetBuilder::restore

mod error;
mod header;
mod reader;
mod writer;

pub use error::RestoreError;
pub(crate) use header::Header;
pub(crate) use reader::Reader;
pub(crate) use writer::SavedWriter;
