//! Readers and writers that move a limited number of bytes per window (feature `wait`).
//!
//! [`Throttled`] wraps a reader, a writer or both. Each direction has a limiter that only the connection uses, a limiter or
//! rules that connections share in equal parts, or both. The [guide](crate::guide::per_connection) has an example.

mod builder;
mod direction;
mod error;
mod local_limit;
mod pending_turn;
mod quantum;
mod read_ahead;
#[cfg(feature = "rules")]
mod rules;
mod shared_limit;
mod throttled;

pub use builder::ThrottledBuilder;
pub use local_limit::LocalLimit;
pub use throttled::Throttled;
