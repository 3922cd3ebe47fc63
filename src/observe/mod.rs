//! Metrics and events of rules.
//!
//! Neither changes a decision. [`Observer`] exports the counts that every rule set keeps, when they are scraped.
//! [`DenialEvents`] emits a sample of denials, after the decision, when the caller passes them to it.
//!
//! No label and no field contains a key or a part of a key. So each rule has six or seven series for any number of keys, and no
//! client's data gets into a log.

mod denial_events;
mod observer;
mod rule_metrics;
mod rule_series;
mod suppressed;

pub use denial_events::DenialEvents;
pub use observer::Observer;
