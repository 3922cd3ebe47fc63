//! The leases of a node: their states, their managers, and the task that reports to the store.

mod clock;
mod dirty_set;
mod flusher;
mod manager;
mod release;
mod state;
mod stats;
mod table;
mod terms;

pub(super) use clock::{TermClock, nanos};
<<<<<<< HEAD
pub(crate) use flusher::jittered;
pub(super) use flusher::run;
=======
pub(super) use flusher::{jittered, run};
>>>>>>> main

pub(super) use release::WithheldLease;
pub(super) use state::SpendResult;
pub use stats::LeaseStats;
pub(super) use table::LeaseTable;
pub(super) use terms::Lease;
