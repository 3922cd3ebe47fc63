//! Timestamps as logs write them.

pub(crate) mod calendar;
pub(crate) mod infer_year;
pub(crate) mod timestamp;
