//! The leases of a node: their state, what is managed behind each of them, and the task that reports to the store.

mod clock;
mod dirty_set;
mod flusher;
mod manager;
mod release;
mod state;
mod stats;
mod table;

pub(super) use clock::TermClock;
#[cfg(feature = "redis")]
pub(crate) use flusher::jittered;
pub(super) use flusher::run;
pub(super) use manager::Lease;
pub(super) use state::SpendResult;
pub use stats::LeaseStats;
pub(super) use table::LeaseTable;

use core::time::Duration;

/// The length in nanoseconds.
pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
