use alloc::vec::Vec;
use core::fmt;

use super::state_charge::StateCharge;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId};

/// The slots of a request in flight. Dropping it releases them.
///
/// Each is released to the words that it was charged to, also after a reload, which keeps these words for the rule of the same
/// name. If the rule was removed, the words are dropped with the last slot.
pub(crate) struct HeldSlots<R: ?Sized>(Vec<StateCharge<R>>);

impl<R: ?Sized> HeldSlots<R> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn push(&mut self, slot: StateCharge<R>) {
        slot.state.count(ShardId::current(), RuleEvent::SlotHeld);
        self.0.push(slot);
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    pub(super) fn charges(&self) -> impl Iterator<Item = &StateCharge<R>> {
        self.0.iter()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<R: ?Sized> Drop for HeldSlots<R> {
    fn drop(&mut self) {
        for StateCharge {
            state,
            extracted,
            receipt,
        } in &self.0
        {
            // It fails only if the key was reset, and the slot is not held any more.
            let _ = state.refund(extracted, receipt, extracted.permits);
            state.count(ShardId::current(), RuleEvent::SlotReleased);
        }
    }
}

impl<R: ?Sized> fmt::Debug for HeldSlots<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HeldSlots").field(&self.0.len()).finish()
    }
}
