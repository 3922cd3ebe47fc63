//! The choice of the old state that a new state continues, and the check whether the new state can reuse its words.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::time::Duration;

use super::successor::Successors;
use crate::algorithm::Reclaim;
use crate::keyed::OnFull;
use crate::rules::evaluate::extractor::Extractor;
use crate::rules::evaluate::rule_state::{RuleState, StateQuota};
use crate::rules::key::Key;

impl<R: ?Sized> RuleState<R> {
    /// Whether a rule of the old state continues in this state, with the same key. Slots in flight, permits of a window
    /// and blocks do not continue each other.
    pub(crate) fn succeeds(&self, old: &Self, successors: &Successors<'_, R>) -> bool {
        let is_here = |rule: u16| self.quotas.iter().any(|new| new.rule == rule);
        let continues = |old: &StateQuota| successors.of(&old.name).is_some_and(|new| is_here(new.rule));
        self.extractor.has_key_of(&old.extractor) && self.is_of_kind(old) && old.quotas.iter().any(continues)
    }

    /// Whether a rule of this state continues: its successor has the same key, and both or none limit requests in flight.
    fn continues(&self, quota: &StateQuota, successors: &Successors<'_, R>) -> bool {
        successors.of(&quota.name).is_some_and(|next| {
            let rule = &successors.0[usize::from(next.rule)];
            let key = rule.key.as_ref().map(Key::name);
            key == self.extractor.key_name() && rule.kind.is_in_flight() == self.is_in_flight()
        })
    }

    /// Reuses the words of one of the `old` states, if both states interpret them in the same way. A state whose rules have kept
    /// their names is preferred. Returns whether there was such a state.
    ///
    /// A table of slots in flight is reused whatever the new capacity, because its slots are released there. So is a table of blocks.
    pub(crate) fn reuse_state(&mut self, old: &[&Arc<Self>], successors: &Successors<'_, R>) -> bool {
        let is_continued = |old: &Self, may_be_renamed: bool| {
            let mut quotas = core::iter::zip(&self.quotas, &old.quotas);
            !old.retired
                && (self.table_capacity == old.table_capacity || self.is_in_flight() || self.is_block())
                && self.lowers_time() == old.lowers_time()
                && self.quotas.len() == old.quotas.len()
                && quotas.all(|(new, old)| {
                    new.index == old.index
                        && (may_be_renamed || new.name == old.name)
                        && successors.of(&old.name).is_some_and(|next| next.rule == new.rule)
                })
        };
        let found = [false, true].into_iter().find_map(|may_be_renamed| {
            let mut candidates = old.iter().filter(|old| is_continued(old, may_be_renamed));
            candidates.find_map(|old| Some((old, self.algorithms.over_words_of(&old.algorithms)?)))
        });
        let Some((old, algorithms)) = found else {
            return false;
        };
        self.storage = Arc::clone(&old.storage);
        self.extractor.blocked.clone_from(&old.extractor.blocked);
        self.algorithms = Arc::new(algorithms);
        true
    }

    /// Whether a refund may lower the time of a word. An entry with such a word must not be reused before it is idle.
    fn lowers_time(&self) -> bool {
        self.on_full != OnFull::Forget && self.algorithms.usage.is_bucket()
    }

    /// Whether a rule of `old` was renamed to a rule of this state, which reuses the words of another old state.
    pub(crate) fn is_renamed_onto(&self, old: &Self) -> bool {
        let has_name = |old: &StateQuota| self.quotas.iter().any(|new| new.name == old.name);
        !self.shares_storage_with(old) && !old.quotas.iter().any(has_name)
    }

    /// Returns the state that is enforced in addition to its successors, for requests in `scope`. Its quotas have the names of the
    /// successors, so that its denials are theirs. Quotas without a successor have no limit.
    pub(crate) fn retire(&self, successors: &Successors<'_, R>, scope: &Extractor<R>) -> Self {
        let quotas: Box<[StateQuota]> = self
            .quotas
            .iter()
            .map(|old| match successors.of(&old.name) {
                Some(new) => StateQuota {
                    rule: new.rule,
                    name: new.name,
                    ..old.clone()
                },
                None => old.clone(),
            })
            .collect();
        let is_removed = |at: usize| !self.continues(&self.quotas[at], successors);
        self.as_retired(quotas, scope, self.algorithms.without_limits(is_removed))
    }

    /// The longest time for which a charge to the state can count.
    pub(crate) fn span(&self) -> Duration {
        self.algorithms.unlimited().span()
    }
}
