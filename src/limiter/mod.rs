//! One limiter: an algorithm, its words and a clock.
//!
#![doc = include_str!("protocol.md")]

#[cfg(feature = "quanta")]
mod default_clock;
mod inline;
mod policy;
mod rate_limiter;
mod saved;
mod with_limit;

pub use inline::InlineLimiter;
pub use policy::Policy;
pub use rate_limiter::{Promise, RateLimiter};
pub use saved::SavedState;
pub use with_limit::WithLimit;
