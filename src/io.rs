#![doc = include_str!("io.md")]

mod builder;
mod own;
mod place;
mod quantum;
mod shared;
mod side;
mod stash;
mod throttled;

pub use builder::ThrottledBuilder;
pub use throttled::Throttled;
