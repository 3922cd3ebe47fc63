//! Models of every concurrent protocol.
//!
//! Each model runs in three ways: under loom up to its bound on preemptions (`ci/loom.sh`), many times with real
//! threads under plain `cargo test`, and with a seed for each commit under Miri (`ci/miri.sh`).
//!
//! `harness` asserts these properties of each execution:
//!
//! - *bound*: no window holds more than the bound, by the times of the receipts.
//! - *order*: the answers equal those of the same calls in some sequential order that keeps the order within each
//!   thread. The reference is the same algorithm over plain cells. Entering a cell counts as a separate step. Models in
//!   which a helping thread may store a later time do not assert this property.
//! - *rest*: after eight windows of silence, the state admits the whole limit again, and no more.

extern crate alloc;

#[path = "models/harness.rs"]
mod harness;

#[path = "../src/debug.rs"]
mod debug;
// This is the module of the crate itself. Of the crate it uses only `sync` and `debug`.
#[path = "../src/shared/lease/state/mod.rs"]
#[expect(dead_code, reason = "the crate uses all of it")]
mod lease_state;
use ringgate::sync;

#[cfg(feature = "rules")]
#[path = "models/block.rs"]
mod block;
#[cfg(feature = "std")]
#[path = "models/calendar.rs"]
mod calendar;
#[path = "models/counter_ring.rs"]
mod counter_ring;
#[path = "models/gcra.rs"]
mod gcra;
#[path = "models/grouped_ring.rs"]
mod grouped_ring;
#[path = "models/keyed.rs"]
mod keyed;
#[path = "models/lease.rs"]
mod lease;
#[path = "models/log_limiter.rs"]
mod log_limiter;
#[path = "models/pause.rs"]
mod pause;
#[cfg(feature = "rules")]
#[path = "models/rules.rs"]
mod rules;
#[cfg(feature = "striped")]
#[path = "models/striped.rs"]
mod striped;
#[path = "models/timestamp_ring.rs"]
mod timestamp_ring;
#[cfg(all(feature = "wait", feature = "rules"))]
#[path = "models/wait.rs"]
mod wait;
