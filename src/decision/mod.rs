//! Decisions, and read-only views of a state.

mod admitted;
mod answer;
mod denied;
mod peek;
mod state_ref;

pub use admitted::Admitted;
pub use denied::Denied;
pub use peek::Peek;

pub(crate) use answer::{answer, take_up_to};
#[cfg(feature = "striped")]
pub(crate) use denied::never;
pub(crate) use state_ref::{NextEntry, StateRef};
