use alloc::sync::Arc;
use core::fmt;
use std::sync::{Mutex, PoisonError};

use crossbeam_utils::CachePadded;

use super::counts::RuleCounts;
use crate::sync::Tally;

/// An event that is counted for a rule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RuleEvent {
    Admitted(u64),
    Denied,
    ShadowDenied,
    Overflowed,
    Refunded(u64),
    Forfeited(u64),
    Blocked,
    SlotHeld,
    SlotReleased,
    ByNode,
}

/// The counts of one rule, in one shard for each thread, so that threads do not write to the same cache line. Clones share them.
#[derive(Clone)]
pub(crate) struct ShardedCounts(Arc<[CachePadded<Shard>; SHARDS]>);

/// The counts of one rule that one thread, or a group of threads, has made.
#[derive(Debug, Default)]
struct Shard {
    admitted: Tally,
    charged: Tally,
    denied: Tally,
    shadow_denied: Tally,
    overflowed: Tally,
    refunded: Tally,
    forfeited: Tally,
    blocks: Tally,
    by_node: Tally,
    slots_held: Tally,
    slots_released: Tally,
}

/// The number of shards that belong to one thread each. All further threads share one more shard.
const OWN_SHARDS: usize = 63;

const SHARDS: usize = OWN_SHARDS + 1;

impl ShardedCounts {
    pub(crate) fn new() -> Self {
        // An array would be built on the stack, of which it takes 8 KiB.
        let shards: Arc<[_]> = (0..SHARDS).map(|_| CachePadded::default()).collect();
        Self(shards.try_into().expect("as many shards"))
    }

    /// Whether both are the counts of one rule.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether no other clone is left. If it returns true, the caller sees all that the others have counted.
    pub(crate) fn is_only_clone(&mut self) -> bool {
        // Acquire, within `get_mut`: pairs with the Release of the last other clone's drop.
        Arc::get_mut(&mut self.0).is_some()
    }

    #[inline(always)]
    pub(crate) fn add(&self, shard: ShardId, event: RuleEvent) {
        let counts = &self.0[shard.index];
        match event {
            RuleEvent::Admitted(permits) => {
                shard.add(&counts.admitted, 1);
                shard.add(&counts.charged, permits);
            }
            RuleEvent::Denied => shard.add(&counts.denied, 1),
            RuleEvent::ShadowDenied => shard.add(&counts.shadow_denied, 1),
            RuleEvent::Overflowed => shard.add(&counts.overflowed, 1),
            RuleEvent::Refunded(permits) => shard.add(&counts.refunded, permits),
            RuleEvent::Forfeited(permits) => shard.add(&counts.forfeited, permits),
            RuleEvent::Blocked => shard.add(&counts.blocks, 1),
            RuleEvent::SlotHeld => shard.add(&counts.slots_held, 1),
            RuleEvent::SlotReleased => shard.add(&counts.slots_released, 1),
            RuleEvent::ByNode => shard.add(&counts.by_node, 1),
        }
    }

    fn sum_of(&self, pick: fn(&Shard) -> &Tally) -> u64 {
        self.0.iter().map(|shard| pick(shard).get()).sum()
    }

    /// The slots in flight that are held now.
    pub(crate) fn slots_in_flight(&self) -> u64 {
        // Releases are read first, so that no slot is seen released and not held.
        let released = self.sum_of(|counts| &counts.slots_released);
        self.sum_of(|counts| &counts.slots_held).saturating_sub(released)
    }

    pub(crate) fn sum(&self) -> RuleCounts {
        let sum = |pick| self.sum_of(pick);
        RuleCounts {
            admitted: sum(|counts| &counts.admitted),
            charged: sum(|counts| &counts.charged),
            denied: sum(|counts| &counts.denied),
            shadow_denied: sum(|counts| &counts.shadow_denied),
            overflowed: sum(|counts| &counts.overflowed),
            refunded: sum(|counts| &counts.refunded),
            forfeited: sum(|counts| &counts.forfeited),
            blocks: sum(|counts| &counts.blocks),
            by_node: sum(|counts| &counts.by_node),
        }
    }
}

impl fmt::Debug for ShardedCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sum().fmt(f)
    }
}

/// The index of the calling thread's shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShardId {
    index: usize,
}

impl ShardId {
    #[inline]
    pub(crate) fn current() -> Self {
        // A thread whose thread-local values are being dropped has released its shard.
        let index = OWN_SHARD.try_with(|own| own.0).unwrap_or(OWN_SHARDS);
        Self { index }
    }

    /// The index of the shard. Every shard but the last belongs to one thread.
    pub(crate) const fn index(self) -> usize {
        self.index
    }

    #[inline]
    fn add(self, tally: &Tally, amount: u64) {
        if self.index < OWN_SHARDS {
            tally.add_alone(amount);
        } else {
            tally.add(amount);
        }
    }
}

/// A shard that belongs to this thread while it runs.
struct OwnShard(usize);

std::thread_local! {
    static OWN_SHARD: OwnShard = OwnShard::acquire();
}

/// The shards that belong to a thread, one bit each.
static IN_USE: Mutex<u64> = Mutex::new(0);

impl OwnShard {
    fn acquire() -> Self {
        // A poisoned lock is used, because no code under this lock can panic.
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        let index = (in_use.trailing_ones() as usize).min(OWN_SHARDS);
        if index < OWN_SHARDS {
            *in_use |= 1 << index;
        }
        Self(index)
    }
}

impl Drop for OwnShard {
    fn drop(&mut self) {
        let index = self.0;
        if index < OWN_SHARDS {
            // The lock orders this thread's counts before those of the next thread with this shard.
            *IN_USE.lock().unwrap_or_else(PoisonError::into_inner) &= !(1 << index);
        }
    }
}
