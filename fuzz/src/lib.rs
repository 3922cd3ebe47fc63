//! The parts that all fuzz targets share: an arbitrary algorithm, arbitrary times, and the reference implementations that
//! decisions are compared with.

#[expect(dead_code, reason = "the targets use their own copy of the rest")]
#[path = "../../tests/common/mod.rs"]
mod common;
#[expect(
    dead_code,
    reason = "lower limits, and queries that the targets check by decisions"
)]
#[path = "../../tests/common/exact.rs"]
mod exact;
mod reference;
mod setting;
mod time;

pub use reference::{Event, Reference};
pub use ringgate::AnyAlgorithm as Any;
pub use setting::{Kind, Setting};
pub use time::{HORIZON, Step};

use ringgate::sync::AtomicU64;
use std::sync::atomic::Ordering;

/// Returns the words of a fresh state.
pub fn fresh(words: usize) -> Vec<AtomicU64> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

/// Copies the words. A trial on the copy does not change the original.
pub fn copy(words: &[AtomicU64]) -> Vec<AtomicU64> {
    words
        .iter()
        .map(|word| AtomicU64::new(word.load(Ordering::Relaxed)))
        .collect()
}
