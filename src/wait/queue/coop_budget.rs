use core::sync::atomic::Ordering;

use crate::sync::AtomicU64;

/// The number of times in a row that one task was admitted without waiting, so that a task in a tight loop yields to others.
///
/// The word is `{ task: 61 bits, admissions: 3 bits }`.
#[derive(Debug)]
pub(super) struct CoopBudget(AtomicU64);

/// Admissions in a row after which a task yields.
const BUDGET: u64 = 4;

const COUNT_BITS: u32 = 3;

/// Whether the word counts admissions of this task, of whose number it has the low 61 bits.
const fn is_of(word: u64, task: u64) -> bool {
    word >> COUNT_BITS == task << COUNT_BITS >> COUNT_BITS
}

const fn admissions(word: u64) -> u64 {
    word & ((1 << COUNT_BITS) - 1)
}

impl CoopBudget {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Whether the task has used its budget and must yield first. If so, its budget starts again.
    pub(super) fn is_exhausted(&self, task: u64) -> bool {
        // Relaxed: the count only decides which task runs first, so a lost update is harmless.
        let word = self.0.load(Ordering::Relaxed);
        let exhausted = is_of(word, task) && admissions(word) >= BUDGET;
        if exhausted {
            // Relaxed: as for the load above.
            self.0.store(task << COUNT_BITS, Ordering::Relaxed);
        }
        exhausted
    }

    /// Counts an admission of the task.
    pub(super) fn record(&self, task: u64) {
        // Relaxed: as in `is_exhausted`.
        let word = self.0.load(Ordering::Relaxed);
        let count = if is_of(word, task) {
            admissions(word) + 1
        } else {
            1
        };
        // Relaxed: as in `is_exhausted`.
        self.0
            .store((task << COUNT_BITS) | count.min(BUDGET), Ordering::Relaxed);
    }
}
