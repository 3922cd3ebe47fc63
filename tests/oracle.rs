//! Every algorithm compared with an exact log of all admissions, by the readings that decided them, and with
//! brute-force models that count from such a log.
//!
//! These tests have one caller, and time is an input. `models.rs` and `stress.rs` test threads.
#![cfg(not(ringgate_loom))]
// Thousands of histories without threads would take hours under Miri.
#![cfg(not(miri))]

#[expect(dead_code, reason = "what only the tests of limiters use")]
mod common;

#[path = "oracle/answers.rs"]
mod answers;
#[path = "oracle/bounds.rs"]
mod bounds;
#[path = "oracle/equal.rs"]
mod equal;
#[path = "common/exact.rs"]
mod exact;
#[path = "oracle/idle.rs"]
mod idle;
#[path = "oracle/long.rs"]
mod long;
#[path = "common/moves.rs"]
mod moves;
#[path = "common/random.rs"]
mod random;
#[path = "oracle/reclaim.rs"]
mod reclaim;
#[path = "oracle/refunds.rs"]
mod refunds;
#[path = "oracle/subjects.rs"]
mod subjects;
#[path = "oracle/walk.rs"]
mod walk;
