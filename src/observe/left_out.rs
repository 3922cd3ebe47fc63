use core::array;

use crossbeam_utils::CachePadded;

use crate::rules::Me;
use crate::sync::{AtomicU64, Ordering, Tally};

/// How many events were left out, and how many of these somebody has been told of.
///
/// Counted on several lines, since many threads may be refused at once; those that meet on one are slower for it, and
/// count no less.
pub(super) struct LeftOut {
    lines: [CachePadded<Tally>; LINES],
    told: AtomicU64,
}

const LINES: usize = 16;

impl LeftOut {
    pub(super) fn new() -> Self {
        Self {
            lines: array::from_fn(|_| CachePadded::default()),
            told: AtomicU64::new(0),
        }
    }

    pub(super) fn add_one(&self) {
        self.lines[Me::new().line() % LINES].add_one();
    }

    /// How many were left out that nobody has been told of. Each is told once.
    pub(super) fn tell(&self) -> u64 {
        let all: u64 = self.lines.iter().map(|line| line.get()).sum();
        // Relaxed: a number for people, that orders nothing. Lines only grow, so `all` is never more than there are.
        // If our number comes before a larger one, the other teller tells the difference. If it comes after, all that
        // we have seen has been told, and we tell nothing.
        let told = self.told.fetch_max(all, Ordering::Relaxed);
        all.saturating_sub(told)
    }
}
