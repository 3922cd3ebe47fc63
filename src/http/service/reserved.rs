use alloc::sync::Arc;
use core::fmt;

use ::http::request::Parts;

use crate::http::rules::HttpRules;
use crate::rules::Cost;

/// A charge that is refunded, or settled by the bytes of a body, and the slots in flight that are released.
///
/// Dropping it settles the rules that have the cost, by the bytes that were counted so far. Without a cost, the permits stay charged.
/// Slots are released in both cases.
#[expect(unnameable_types, reason = "an argument of a sealed trait")]
pub struct Reserved<S: HttpRules> {
    pub(super) rules: Arc<S>,
    #[cfg(feature = "tokio")]
    pub(super) queue: Option<S::Queue>,
    pub(super) cost: Option<Cost<Parts>>,
    pub(super) charge: Option<S::Charge>,
    pub(super) bytes: u64,
}

impl<S: HttpRules> Reserved<S> {
    /// Refunds the whole charge, and keeps the slots.
    pub(super) fn refund(&mut self) {
        if let Some(charge) = self.charge.take() {
            self.charge = self.rules.refund(charge);
            self.recheck();
        }
    }

    /// Makes waiting requests check for the refunded permits, and for released slots.
    fn recheck(&self) {
        #[cfg(feature = "tokio")]
        if let Some(queue) = &self.queue {
            S::recheck(queue);
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
        if let Some(charge) = self.charge.take() {
            let has_freed = match &self.cost {
                Some(cost) => {
                    self.rules.settle(charge, cost, self.bytes);
                    true
                }
                None => S::release(charge),
            };
            if has_freed {
                self.recheck();
            }
        }
    }
}
