//! Refunds and settlements of the permits that a key was charged.

use super::decider::Decider;
use super::forward::Forward;
use super::on_full::OnFull;
use crate::algorithm::Reclaim;
use crate::receipt::{ChargedTo, Receipt, Settled};
use crate::sync::Shared;
use crate::table::{Entry, OccupiedWords, SeenWord};
use crate::time::Nanos;

impl<'a, A: Reclaim> Decider<'a, A> {
    /// Refunds `permits` of the receipt to `key`. Returns false if that is no longer possible.
    pub(crate) fn refund(self, key: u64, receipt: &Receipt, permits: u64) -> bool {
        match receipt.charged_to() {
            _ if permits == 0 => true,
            ChargedTo::Uncounted => true,
            ChargedTo::CatchAll(generation) => {
                let words = Shared::new(self.states.catch_all.get());
                // After clearing, the catch-all is fresh and holds nothing of the charge.
                generation == self.states.generation && self.algorithm.refund(words, receipt, permits)
            }
            ChargedTo::Entry(number, generation) => {
                // The charge is gone if the key has lost this entry, or if the table was cleared since.
                // Claim: rules 7, a release finds the entry by its number.
                let charged = self.insertion(key, receipt.at()).entry_numbered(number);
                let charged = charged.filter(|_| generation == self.states.generation);
                charged.is_some_and(|entry| self.refund_to(entry, key, receipt, permits))
            }
            // The charge is not in this table.
            ChargedTo::Words | ChargedTo::Limiter(_) => false,
        }
    }

    fn refund_to(self, entry: Entry<'a>, key: u64, receipt: &Receipt, permits: u64) -> bool {
        let Some(seen) = SeenWord::read(entry, key) else {
            return false;
        };
        let words = OccupiedWords::new(entry, key, &seen);
        match *self.on_full {
            OnFull::Forget => {
                let words = Forward::new(self.algorithm, words);
                self.algorithm.refund(&words, receipt, permits)
            }
            OnFull::Share | OnFull::Deny | OnFull::Admit => self.algorithm.refund(words, receipt, permits),
        }
    }

    /// Replaces the charge of a receipt by the `actual` cost, as far as possible.
    pub(crate) fn settle(
        self,
        key: u64,
        receipt: &Receipt,
        actual: u64,
        now: impl FnOnce() -> Nanos,
    ) -> Settled {
        match receipt.permits().checked_sub(actual) {
            Some(excess) if self.refund(key, receipt, excess) => Settled::Exact,
            Some(excess) => Settled::Forfeited(excess),
            None => {
                let missing = actual - receipt.permits();
                match missing - self.charge_what_is_left(key, now(), missing) {
                    0 => Settled::Exact,
                    forgiven => Settled::Forgiven(forgiven),
                }
            }
        }
    }

    /// Charges `permits` as far as the key has capacity left, and returns how many were charged.
    fn charge_what_is_left(self, key: u64, now: Nanos, permits: u64) -> u64 {
        loop {
            let permits = permits.min(self.peek(key, now).remaining());
            // A denial means that another thread took the capacity: read it again.
            if self.decide(key, || now, permits).is_ok() {
                return permits;
            }
        }
    }

    /// Charges as many of `permits` as the key's state can hold, and returns this number. A key that gets no entry is charged as its
    /// overflow policy admits. The algorithm must have no limit of its own, because a table charges by a decision.
    pub(crate) fn charge_debt(self, key: u64, now: Nanos, permits: u64) -> u64 {
        loop {
            let peek = self.peek(key, now);
            if peek.is_overflow() {
                // The catch-all may hold less than the debt. The key must not get an entry before the debt expires.
                let catch_all = Shared::new(self.states.catch_all.get());
                let end = self.algorithm.counts_until(catch_all, now, permits);
                self.states.table.region(key).mark_overflow(key, now, end);
            }
            let permits = permits.min(peek.remaining());
            // A denial means that another thread took the capacity: read it again.
            if self.decide(key, || now, permits).is_ok() {
                return permits;
            }
        }
    }
}
