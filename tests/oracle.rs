//! Every algorithm against the exact oracle: a log of all admissions by the readings that decided them, and
//! brute-force models that count from such a log.
//!
//! Time is an input here, one caller at a time; threads are in `models.rs` and `stress.rs`.
#![cfg(not(ringgate_loom))]
// Miri: thousands of histories of plain numbers take hours, and no two threads meet in them.
#![cfg(not(miri))]

#[expect(dead_code, reason = "what only the tests of limiters use")]
mod common;

#[path = "oracle/answers.rs"]
mod answers;
#[path = "oracle/bounds.rs"]
mod bounds;
#[path = "oracle/buckets.rs"]
mod buckets;
#[path = "oracle/equal.rs"]
mod equal;
#[path = "oracle/idle.rs"]
mod idle;
#[path = "oracle/reclaim.rs"]
mod reclaim;
#[path = "oracle/reference.rs"]
mod reference;
#[path = "oracle/refunds.rs"]
mod refunds;
#[path = "oracle/subjects.rs"]
mod subjects;
#[path = "oracle/walk.rs"]
mod walk;
