use alloc::sync::Arc;
use alloc::vec::Vec;
use std::collections::HashMap;

use crate::rules::evaluate::extractor::NO_KEY;
use crate::rules::evaluate::rule_state::RuleState;
use crate::rules::evaluate::storage::StateStorage;
use crate::time::Nanos;

/// A new state, and the old states whose counts must be charged to it.
pub(crate) struct CarryOver<R: ?Sized> {
    new: Arc<RuleState<R>>,
    /// The states that it replaces. They have counted the same requests, so a key is charged the maximum of the permits that it has
    /// spent in each of them.
    old: Vec<Arc<RuleState<R>>>,
    /// States of earlier reloads that have not been carried over to `old`, or not in full. A key is charged the sum of the permits that
    /// it has spent in them.
    earlier: Vec<Arc<RuleState<R>>>,
    /// The permits that were charged for the catch-all of each [enforced](Self::enforced) state, and the times of these charges.
    /// Empty before [`bar_keys`](Self::bar_keys).
    overflow: Vec<(u64, Nanos)>,
}

/// The permits that each key has spent, and the latest time in its words.
type SpentByKey = HashMap<u64, (u64, Nanos)>;

impl<R: ?Sized> CarryOver<R> {
    pub(crate) const fn new(
        new: Arc<RuleState<R>>,
        old: Vec<Arc<RuleState<R>>>,
        earlier: Vec<Arc<RuleState<R>>>,
    ) -> Self {
        Self {
            new,
            old,
            earlier,
            overflow: Vec::new(),
        }
    }

    /// The states that are enforced in addition to the new state, until it has been charged.
    pub(crate) fn enforced(&self) -> impl Iterator<Item = &Arc<RuleState<R>>> {
        self.old.iter().chain(&self.earlier)
    }

    /// *bar*: charges the new catch-all, and bars the keys that may have spent these permits from an entry of their own. Returns
    /// whether there are such keys. Another call does nothing, and returns false.
    ///
    /// By now, every thread that charges an old state must also charge the new one.
    pub(crate) fn bar_keys(&mut self, now: Nanos) -> bool {
        if !self.overflow.is_empty() {
            return false;
        }
        let overflow = self.enforced().map(|old| self.new.inherit_overflow(old, now));
        self.overflow = overflow.collect();
        self.overflow.iter().any(|&(permits, _)| permits > 0)
    }

    /// *carry over*: charges the new state. Returns false if its words cannot hold all of the permits.
    ///
    /// By now, every thread that may enter a barred key must see that it is barred.
    pub(crate) fn complete(&self, now: Nanos) -> bool {
        if let StateStorage::Keyed(to) = &*self.new.storage {
            // A key whose permits have expired by now is not charged, so it must not begin at an older time, at which they count.
            // Claim: rules 6, no key begins before the carry-over.
            to.table().begin_after(now);
        }
        let (mut all, mut is_complete) = (SpentByKey::default(), true);
        for (index, (old, &overflow)) in self.enforced().zip(&self.overflow).enumerate() {
            is_complete &= self.new.holds_overflow(overflow);
            for (key, (permits, at)) in self.new.spent_in(old, overflow, now) {
                let (before, latest) = all.get(&key).copied().unwrap_or((0, at));
                let is_replaced = index < self.old.len();
                let permits = if is_replaced {
                    // Claim: rules reloading, a state gets the largest count of its predecessors.
                    before.max(permits)
                } else {
                    before.saturating_add(permits)
                };
                all.insert(key, (permits, at.max(latest)));
            }
        }
        // A key without permits that still count must not take an entry from a key that has some.
        for (key, (permits, at)) in all.into_iter().filter(|&(_, (permits, _))| permits > 0) {
            // A log that overwrites its slots loses permits that the new state had before.
            let total = permits.saturating_add(self.new.usage_peek(key, at).spent());
            self.new.charge_debt_of_any_tier(key, None, at, permits);
            is_complete &= self.new.keeps(total, self.new.usage_peek(key, at).spent());
        }
        is_complete
    }
}

impl<R: ?Sized> RuleState<R> {
    /// Charges this catch-all the permits that still count in the catch-all of `old`, and bars the keys that may have spent them.
    /// Returns the permits, and the time of the charge.
    fn inherit_overflow(&self, old: &Self, now: Nanos) -> (u64, Nanos) {
        let (StateStorage::Keyed(from), StateStorage::Keyed(to)) = (&*old.storage, &*self.storage) else {
            return (0, now);
        };
        let (spent, at) = from.overflow(&old.algorithms.usage, now);
        let permits = self.algorithms.carried(&old.algorithms, spent);
        if permits > 0 {
            to.inherit_overflow(from, self.algorithms.unlimited(), permits, at, now);
        }
        (permits, at)
    }

    /// Whether the catch-all could hold all permits that it was charged at that time.
    fn holds_overflow(&self, (permits, at): (u64, Nanos)) -> bool {
        match &*self.storage {
            StateStorage::Keyed(store) if permits > 0 => {
                let (spent, _) = store.overflow(&self.algorithms.usage, at);
                self.keeps(permits, spent)
            }
            StateStorage::Keyed(_) | StateStorage::Single(_) => true,
        }
    }

    /// Whether words that hold `spent` permits after a charge keep the charged `permits` for a window.
    fn keeps(&self, permits: u64, spent: u64) -> bool {
        // Claim: rules reloading, a ring keeps no more permits than its highest limit.
        permits <= spent && spent <= self.algorithms.most_kept()
    }

    /// The permits of each key that still count in `old`. The permits of its catch-all count for each key that it may have admitted, and
    /// that has an entry in this table.
    fn spent_in(&self, old: &Self, overflow: (u64, Nanos), now: Nanos) -> SpentByKey {
        let mut spent = SpentByKey::default();
        let mut add_key = |key: u64| {
            let at = old.storage.latest_time(&old.algorithms.usage, key).max(now);
            let permits = old.usage_peek(key, at).spent();
            spent.insert(key, (self.algorithms.carried(&old.algorithms, permits), at));
        };
        match (&*old.storage, &*self.storage) {
            (StateStorage::Keyed(from), StateStorage::Keyed(to)) => {
                from.table().for_each_key(add_key);
                let (permits, at) = overflow;
                to.table().for_each_key(|key| {
                    if permits > 0 && from.is_marked(key, now) {
                        let entry = spent.entry(key).or_insert((0, at));
                        *entry = (entry.0.saturating_add(permits), entry.1.max(at));
                    }
                });
            }
            // A successor has the same key, so both states have no key.
            (StateStorage::Single(_), StateStorage::Single(_) | StateStorage::Keyed(_))
            | (StateStorage::Keyed(_), StateStorage::Single(_)) => add_key(NO_KEY),
        }
        spent
    }
}
