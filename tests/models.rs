//! Models of every concurrent protocol.
//!
//! Every model runs in three ways: up to its bound on preemptions under loom (`ci/loom.sh`), many times with real
//! threads under plain `cargo test`, and with many seeds under Miri (`ci/miri.sh`).
//!
//! `harness` asserts of every execution:
//!
//! - *bound*: no interval of one window holds more than the bound, by the stamps of the receipts;
//! - *order*: the answers are those of the same calls one after the other, in some order that keeps
//!   the order within each thread, judged by the same policy over plain cells (entering a cell
//!   counts as a step of its own); not asserted where helpers may fill in a later time than a
//!   sleeper would have;
//! - *rest*: after eight windows of silence (the longest of several is shorter) the state admits
//!   everything again, and nothing more.

extern crate alloc;

#[path = "models/harness.rs"]
mod harness;

// The module that the crate is built of. It names nothing of the crate but `sync`.
#[path = "../src/shared/lease/state/mod.rs"]
#[expect(dead_code, reason = "the crate uses all of it")]
mod lease_state;
use ringgate::sync;

#[path = "models/counter_ring.rs"]
mod counter_ring;
#[path = "models/gcra.rs"]
mod gcra;
#[path = "models/keyed.rs"]
mod keyed;
#[path = "models/lease.rs"]
mod lease;
#[cfg(feature = "rules")]
#[path = "models/rules.rs"]
mod rules;
#[cfg(feature = "striped")]
#[path = "models/striped.rs"]
mod striped;
#[path = "models/timestamp_ring.rs"]
mod timestamp_ring;
#[cfg(all(feature = "tokio", feature = "rules"))]
#[path = "models/wait.rs"]
mod wait;
