//! Metrics and events of rules.
//!
//! Neither changes a decision. [`Observer`] exports the counts that a rule set keeps anyway, when they are scraped.
//! [`DenialEvents`] emits a sample of denials, after the decision, when the caller hands them in.
//!
//! No label and no field contains a key or a part of one. So the number of series is six or seven for each rule, however
//! many keys there are, and no client's data gets into a log.

mod denial_events;
mod observer;
mod rule_metrics;
mod rule_series;
mod suppressed;

pub use denial_events::DenialEvents;
pub use observer::Observer;
