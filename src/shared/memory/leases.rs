//! The leases of one counter of a store in memory.

use alloc::collections::{BTreeMap, BTreeSet};
use std::collections::HashMap;

/// The leases of a counter. Times are in nanoseconds of the store's clock.
#[derive(Debug, Default)]
pub(super) struct Leases {
    /// The registered permits, by the time at which they end: a multiple of a sixteenth of the time for which a lease is
    /// kept, so there are few such times.
    held: BTreeMap<u64, u64>,
    by_id: HashMap<u128, StoredLease>,
    /// The leases by the end of their terms.
    by_end: BTreeSet<(u64, u128)>,
}

/// A lease, as the store keeps it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StoredLease {
    pub(super) granted: u64,
    pub(super) sequence: u64,
    /// The end of the term.
    ends: u64,
    /// The permits that are registered, and the time at which they end. A budget has none.
    held: u64,
    held_until: u64,
}

/// The most leases that one call removes. Each call begins one at most, so fewer remain than were begun within a term.
const REMOVED_TOGETHER: usize = 4;

impl Leases {
    /// Removes all permits, and a few leases, that have ended at `now`.
    pub(super) fn advance(&mut self, now: u64) {
        while let Some(first) = self.held.first_entry()
            && *first.key() <= now
        {
            first.remove();
        }
        for _ in 0..REMOVED_TOGETHER {
            match self.by_end.first() {
                Some(&(ends, id)) if ends <= now => {
                    self.by_end.pop_first();
                    self.by_id.remove(&id);
                }
                _ => return,
            }
        }
    }

    /// The registered permits of all leases.
    pub(super) fn held(&self) -> u64 {
        self.held.values().sum()
    }

    /// The last time at which registered permits end.
    pub(super) fn held_until(&self) -> Option<u64> {
        self.held.keys().next_back().copied()
    }

    /// Whether nothing counts at `now`.
    pub(super) fn is_expired(&self, now: u64) -> bool {
        self.held_until().is_none_or(|until| until <= now)
            && self.by_end.last().is_none_or(|&(ends, _)| ends <= now)
    }

    /// Removes a lease and its permits, and returns it. `None`: the lease is unknown, or its term is over.
    pub(super) fn take(&mut self, id: u128, now: u64) -> Option<StoredLease> {
        let lease = *self.by_id.get(&id)?;
        if lease.ends <= now {
            return None;
        }
        self.by_id.remove(&id);
        self.by_end.remove(&(lease.ends, id));
        if let Some(held) = self.held.get_mut(&lease.held_until) {
            *held -= lease.held;
            if *held == 0 {
                self.held.remove(&lease.held_until);
            }
        }
        Some(lease)
    }

    /// Keeps a lease for a term, and its registered permits for a window longer.
    pub(super) fn insert(
        &mut self,
        id: u128,
        lease: StoredLease,
        held: u64,
        now: u64,
        (term, window): (u64, u64),
    ) {
        let mut lease = StoredLease {
            ends: now.saturating_add(term),
            held,
            ..lease
        };
        if held > 0 {
            // Claim: shared 5, the memory keeps permits registered for a window after the term.
            let keep = term.saturating_add(window);
            let part = keep.div_ceil(16).max(1);
            lease.held_until = now.saturating_add(keep).div_ceil(part).saturating_mul(part);
            *self.held.entry(lease.held_until).or_default() += held;
        }
        if let Some(ended) = self.by_id.insert(id, lease) {
            self.by_end.remove(&(ended.ends, id));
        }
        self.by_end.insert((lease.ends, id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Neither the permits of ended leases nor the leases themselves pile up.
    #[test]
    fn ended_leases_take_no_memory() {
        let (term, window) = (10, 1_000_000);
        let mut leases = Leases::default();
        for (now, id) in (0..100_000).zip(0_u128..) {
            leases.advance(now);
            leases.insert(id, StoredLease::default(), 1, now, (term, window));
            assert!(leases.held.len() <= 18, "{}", leases.held.len());
            assert!(leases.by_id.len() <= 11, "{}", leases.by_id.len());
            assert_eq!(leases.by_id.len(), leases.by_end.len());
        }
        assert_eq!(leases.held(), 100_000);
        // Those that end at once are removed by a few calls.
        for id in 0..1_000 {
            leases.insert(id, StoredLease::default(), 0, 100_000, (term, window));
        }
        for _ in 0..1_000 {
            leases.advance(200_000);
        }
        assert_eq!((leases.by_id.len(), leases.by_end.len()), (0, 0));
    }
}
