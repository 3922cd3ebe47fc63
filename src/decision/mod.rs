//! Decisions, and read-only views of a state.

mod admitted;
mod answer;
mod denied;
mod owned_denied;
mod peek;
mod state_ref;

pub use admitted::Admitted;
pub use denied::Denied;
pub use owned_denied::OwnedDenied;
pub use peek::Peek;

pub(crate) use answer::{answer, answer_at, take_up_to};
pub(crate) use owned_denied::write_denial;
pub(crate) use state_ref::{NextEntry, StateRef};
