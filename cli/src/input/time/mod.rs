//! Timestamps as logs write them.

pub(crate) mod calendar;
pub(crate) mod clf_time;
pub(crate) mod infer_year;
pub(crate) mod timestamp;
