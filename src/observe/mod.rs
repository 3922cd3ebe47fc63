//! Metrics and events of rules.
//!
//! Neither changes a decision. [`Observer`] exports the counts that every rule set keeps, when they are scraped.
//! [`DenialEvents`] emits a sample of denials, after the decision, when the caller passes them to it.
//!
//! No label contains a key or a part of a key, so each rule has at most eleven series for any number of keys. No client's data gets
//! into a log, unless the caller passes parts of a request to [`DenialEvents::emit_with`], which redacts them by default.

mod denial_events;
mod event_parts;
mod observer;
mod rule_metrics;
mod rule_series;
mod suppressed;

pub use denial_events::DenialEvents;
pub use event_parts::EventParts;
pub use observer::Observer;
