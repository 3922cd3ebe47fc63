use alloc::sync::Arc;
use core::fmt;

use ::http::request::Parts;

use super::in_flight_slot::HeldSlots;
use crate::http::rules::HttpRules;
use crate::rules::Cost;

/// A charge that is refunded, or settled by the bytes of a body, and the slots in flight of the request.
///
/// Dropping it settles the rules that have the cost, by the bytes that were counted so far. Without a cost, the permits stay charged.
/// Then the slots are released, unless a [`SlotGuard`](super::SlotGuard) holds them.
#[expect(unnameable_types, reason = "an argument of a sealed trait")]
pub struct Reserved<S: HttpRules> {
    pub(super) rules: Arc<S>,
    pub(super) queue: S::Queue,
    pub(super) cost: Option<Cost<Parts>>,
    pub(super) charge: Option<S::Charge>,
    pub(super) bytes: u64,
    pub(super) slots: Option<Arc<HeldSlots<S>>>,
}

impl<S: HttpRules> Reserved<S> {
    /// Refunds the whole charge, and keeps the slots.
    pub(super) fn refund(&mut self) {
        if let Some(charge) = self.charge.take() {
            self.rules.refund(&self.queue, charge);
        }
    }
}

impl<S: HttpRules> fmt::Debug for Reserved<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reserved")
            .field("cost", &self.cost)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl<S: HttpRules> Drop for Reserved<S> {
    fn drop(&mut self) {
        if let (Some(cost), Some(charge)) = (self.cost.take(), self.charge.take()) {
            self.rules.settle(&self.queue, charge, &cost, self.bytes);
        }
        drop(self.slots.take());
    }
}
