use alloc::sync::Arc;
use alloc::vec::Vec;
use std::collections::HashMap;

use crate::rules::evaluate::extractor::NO_KEY;
use crate::rules::evaluate::rule_state::RuleState;
use crate::rules::evaluate::storage::StateStorage;
use crate::time::Nanos;

/// A new state, and the old states whose counts must be charged to it.
pub(crate) struct CarryOver<R: ?Sized> {
    pub(crate) new: Arc<RuleState<R>>,
    /// The states that it replaces. They have counted the same requests, so a key is charged the maximum of the permits that it has
    /// spent in each of them.
    pub(crate) old: Vec<Arc<RuleState<R>>>,
    /// States of earlier reloads that have not been carried over to `old` yet. A key is charged the sum of the permits that it has
    /// spent in them.
    pub(crate) earlier: Vec<Arc<RuleState<R>>>,
    /// States that are no longer enforced, and whose counts did not all fit into their successors.
    pub(crate) retained: Vec<Arc<RuleState<R>>>,
}

impl<R: ?Sized> CarryOver<R> {
    /// The states that are enforced in addition to the new state, until it has been charged.
    pub(crate) fn enforced(&self) -> impl Iterator<Item = &Arc<RuleState<R>>> {
        self.old.iter().chain(&self.earlier)
    }

    /// Charges the new state, before it is in force, the permits of old states whose condition or cost differs from its own. Until
    /// the carry-over is complete, these states do not limit the same requests as the new one.
    pub(crate) fn carry_over_early(&self, now: Nanos) {
        let differs = |old: &&Arc<RuleState<R>>| !self.new.extractor.has_scope_of(&old.extractor);
        let early: Vec<_> = self.enforced().filter(differs).cloned().collect();
        self.new.carry_over(&[], &early, now);
    }

    /// Charges the new state. Returns false if its words cannot hold all of the permits.
    ///
    /// By now, every thread that charges an old state must also charge the new one.
    pub(crate) fn complete(&self, now: Nanos) -> bool {
        let earlier: Vec<_> = self.earlier.iter().chain(&self.retained).cloned().collect();
        self.new.carry_over(&self.old, &earlier, now)
    }
}

/// The permits that each key has spent, and the latest time in its words.
type SpentByKey = HashMap<u64, (u64, Nanos)>;

impl<R: ?Sized> RuleState<R> {
    /// Charges each key the maximum of the permits that still count in each of `old`, plus all permits that still count in `earlier`.
    /// Returns false if the words cannot hold all of them.
    fn carry_over(&self, old: &[Arc<Self>], earlier: &[Arc<Self>], now: Nanos) -> bool {
        let mut is_complete = true;
        let mut most = SpentByKey::default();
        for state in old {
            let mut spent = SpentByKey::default();
            is_complete &= self.add_spent(state, now, &mut spent);
            for (key, (permits, at)) in spent {
                let entry = most.entry(key).or_insert((0, at));
                // Claim: rules reloading, a state gets the largest count of its predecessors.
                *entry = (entry.0.max(permits), entry.1.max(at));
            }
        }
        for state in earlier {
            is_complete &= self.add_spent(state, now, &mut most);
        }
        // A key without permits that still count must not take an entry from a key that has some.
        for (key, (permits, at)) in most.into_iter().filter(|&(_, (permits, _))| permits > 0) {
            self.charge_debt_of_any_tier(key, None, at, permits);
            is_complete &= self.usage_peek(key, at).spent() >= permits;
        }
        is_complete
    }

    /// Adds the permits of each key that still count in `old`. Returns false if the catch-all of this table cannot hold
    /// the permits of the old one.
    fn add_spent(&self, old: &Self, now: Nanos, spent: &mut SpentByKey) -> bool {
        let mut add = |key: u64, permits: u64, at: Nanos| {
            let entry = spent.entry(key).or_insert((0, at));
            *entry = (entry.0.saturating_add(permits), entry.1.max(at));
        };
        let mut add_key = |key: u64| {
            let at = old.storage.latest_time(&old.algorithms.usage, key).max(now);
            let spent = old.usage_peek(key, at).spent();
            add(key, self.algorithms.carried(&old.algorithms, spent), at);
        };
        match (&*old.storage, &*self.storage) {
            (StateStorage::Keyed(from), StateStorage::Keyed(to)) => {
                // Claim: rules 6, no key begins before the carry-over.
                to.table().begin_after(now);
                from.table().for_each_key(add_key);
                let (unlimited, usage) = (self.algorithms.unlimited(), &self.algorithms.usage);
                let carried = |spent| self.algorithms.carried(&old.algorithms, spent);
                let shared = to.inherit_overflow(from, unlimited, usage, &old.algorithms.usage, carried, now);
                if let Some((permits, at)) = shared.spent {
                    // These keys already have an entry in this table, and the old catch-all may have admitted them before.
                    to.table().for_each_key(|key| {
                        if from.is_marked(key, now) {
                            add(key, permits, at);
                        }
                    });
                }
                shared.is_complete
            }
            // A successor has the same key, so both states have no key.
            (StateStorage::Single(_), StateStorage::Single(_) | StateStorage::Keyed(_))
            | (StateStorage::Keyed(_), StateStorage::Single(_)) => {
                add_key(NO_KEY);
                true
            }
        }
    }
}
