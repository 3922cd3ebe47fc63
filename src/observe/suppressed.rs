use core::array;

use crossbeam_utils::CachePadded;

use crate::rules::ShardId;
use crate::sync::{AtomicU64, Ordering, Tally};

/// The number of suppressed events, and how many of these have been reported.
///
/// It is counted in several shards, because many threads may be denied at once. Threads that share a shard slow each other down,
/// and lose no count.
pub(super) struct Suppressed {
    shards: [CachePadded<Tally>; SHARDS],
    reported: AtomicU64,
}

const SHARDS: usize = 16;

impl Suppressed {
    pub(super) fn new() -> Self {
        Self {
            shards: array::from_fn(|_| CachePadded::default()),
            reported: AtomicU64::new(0),
        }
    }

    pub(super) fn add_one(&self) {
        self.shards[ShardId::current().index() % SHARDS].add_one();
    }

    /// Returns the number of suppressed events that were not reported yet. Each event is reported exactly once.
    pub(super) fn report(&self) -> u64 {
        let all: u64 = self.shards.iter().map(|shard| shard.get()).sum();
        // Relaxed: the number orders nothing. Shards only grow, so `all` is never too high. If our `fetch_max` precedes one with
        // a larger number, that one reports the difference. If it follows one, all events that we have counted were reported,
        // and we report none.
        let reported = self.reported.fetch_max(all, Ordering::Relaxed);
        all.saturating_sub(reported)
    }
}
