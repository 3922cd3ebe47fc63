use core::sync::atomic::Ordering;

use crate::sync::AtomicU64;

/// Who took permits last, and how often in a row, while there was no line: so that a task in a tight loop lets others
/// run.
#[derive(Debug)]
pub(super) struct Streak(AtomicU64);

/// How often in a row a task takes at once before it gives way.
const MOST: u64 = 4;

/// The bits of the count.
const BITS: u32 = 3;

impl Streak {
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Whether the task has taken so often in a row that it is to give way first; its row then begins anew.
    pub(super) fn is_over(&self, task: u64) -> bool {
        // Relaxed throughout: a number that decides nothing but who runs first, and a lost count makes no difference.
        let seen = self.0.load(Ordering::Relaxed);
        let over = seen >> BITS == task << BITS >> BITS && seen & ((1 << BITS) - 1) >= MOST;
        if over {
            self.0.store(task << BITS, Ordering::Relaxed);
        }
        over
    }

    /// Notes that the task has taken permits.
    pub(super) fn note(&self, task: u64) {
        // Relaxed: as in `is_over`.
        let seen = self.0.load(Ordering::Relaxed);
        let same = seen >> BITS == task << BITS >> BITS;
        let count = if same { (seen & ((1 << BITS) - 1)) + 1 } else { 1 };
        self.0.store((task << BITS) | count.min(MOST), Ordering::Relaxed);
    }
}
