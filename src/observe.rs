//! What rules do, for those who watch: counters, and events for denials.
//!
//! Neither touches a decision. Counters are what a rule set counts anyway, read when somebody scrapes
//! ([`Observer`]); events are told by the caller, after the decision ([`DenialEvents`]).
//!
//! No label and no field holds a key or any part of one: the number of series is six or seven for each rule, however
//! many keys there are, and nothing about a client gets into a log.

mod denials;
mod left_out;
mod meters;
mod observer;
mod series;

pub use denials::DenialEvents;
pub use observer::Observer;
