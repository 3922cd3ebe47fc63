//! The violations of a rule by one key, and the block of the key, in a store in memory.

use core::time::Duration;

use crate::algorithm::{Reclaim, Violations};
use crate::rules::Block;
use crate::time::Nanos;

/// The word of one key, as a rule set of one process keeps it. Times are in nanoseconds of the store's clock.
#[derive(Debug)]
pub(super) struct KeyViolations {
    /// The algorithm of the block in the latest denial. Rules that were built later may have another block.
    algorithm: Violations,
    word: u64,
}

impl KeyViolations {
    pub(super) fn new(block: &Block) -> Self {
        Self {
            algorithm: block.violations(),
            word: 0,
        }
    }

    /// The time until the block ends. `None` if the key is not blocked.
    pub(super) fn blocked_for(&self, now: u64) -> Option<Duration> {
        let now = Nanos::new(now);
        let end = Violations::block_end(self.word, now)?;
        Some(end.saturating_since(now))
    }

    /// Counts a violation, or a retry if the key is blocked. Returns whether a block began.
    pub(super) fn violate(&mut self, block: &Block, now: u64) -> bool {
        self.algorithm = block.violations();
        let changed = self.algorithm.after_denial(self.word, Nanos::new(now));
        let (word, began) = changed.unwrap_or((self.word, false));
        self.word = word;
        began
    }

    /// Whether the word means as much as that of a new key.
    pub(super) fn is_expired(&self, now: u64) -> bool {
        self.algorithm.is_idle(self.word, Nanos::new(now))
    }

    pub(super) fn reset(&mut self) {
        self.word = 0;
    }
}
