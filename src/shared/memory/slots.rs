//! The slots in flight of a counter of a store in memory.

use alloc::collections::BTreeSet;
use std::collections::HashMap;

use crate::shared::store::SlotId;

/// The slots of a counter. Times are in nanoseconds of the store's clock.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// The time at which each slot ends.
    ends: HashMap<SlotId, u64>,
    by_end: BTreeSet<(u64, SlotId)>,
}

impl Slots {
    /// Removes the slots that have ended at `now`.
    pub(super) fn advance(&mut self, now: u64) {
        while let Some(&(ends, slot)) = self.by_end.first()
            && ends <= now
        {
            self.release(slot);
        }
    }

    /// Whether no slot is held at `now`.
    pub(super) fn is_expired(&self, now: u64) -> bool {
        self.by_end.last().is_none_or(|&(ends, _)| ends <= now)
    }

    pub(super) fn held(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Adds a slot, or renews it.
    pub(super) fn renew(&mut self, slot: SlotId, ends: u64) {
        self.release(slot);
        self.ends.insert(slot, ends);
        self.by_end.insert((ends, slot));
    }

    /// Removes a slot, if it is held.
    pub(super) fn release(&mut self, slot: SlotId) {
        if let Some(ends) = self.ends.remove(&slot) {
            self.by_end.remove(&(ends, slot));
        }
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}
