use alloc::boxed::Box;
use alloc::sync::Arc;

use super::extractor::Extracted;
use super::key_hashes::Seeds;
use super::rule_state::RuleState;
use super::state_decision::StateDecision;
use crate::rules::set::clock_origin::ClockOrigin;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId, ShardedCounts};
use crate::time::Nanos;

/// A rule set without its clock: the states that decide, and the names and counts of the rules.
pub(crate) struct RuleStates<R: ?Sized> {
    /// The names and counts, in the order in which the rules were added.
    pub(crate) rules: Box<[NamedCounts]>,
    pub(crate) states: Box<[Arc<RuleState<R>>]>,
    pub(crate) seeds: Seeds,
    pub(crate) origin: ClockOrigin,
    /// Whether a state limits requests in flight.
    pub(crate) has_slots: bool,
    /// Whether a state is the block of a rule.
    pub(crate) has_blocks: bool,
}

/// The name and the counts of a rule.
#[derive(Clone, Debug)]
pub(crate) struct NamedCounts {
    pub(crate) name: Arc<str>,
    pub(crate) counts: ShardedCounts,
}

impl<R: ?Sized> Clone for RuleStates<R> {
    fn clone(&self) -> Self {
        Self {
            rules: self.rules.clone(),
            states: self.states.clone(),
            seeds: self.seeds.clone(),
            origin: self.origin,
            has_slots: self.has_slots,
            has_blocks: self.has_blocks,
        }
    }
}

/// A decision by the only state of a rule set, which reads only the key of a request.
pub(crate) struct KeyDecision {
    /// The fingerprint of the key.
    pub(super) key: u64,
    pub(super) decision: StateDecision,
}

impl<R: ?Sized> RuleStates<R> {
    /// Decides a request by its only state, if this state reads only the key of a request. `None` if nothing is decided.
    ///
    /// An admission that [`admitted_at`](KeyDecision::admitted_at) returns is complete. Otherwise
    /// [`conclude_by_key`](Self::conclude_by_key) completes the decision.
    #[inline(always)]
    pub(crate) fn decide_by_key(&self, request: &R, now: impl FnOnce() -> Nanos) -> Option<KeyDecision> {
        let [state] = &*self.states else {
            return None;
        };
        let key = state.extractor.only_key(request, &self.seeds)?;
        let decision = state.decide(&Extracted::of_key(key), now);
        if decision.is_admitted_by_entry() {
            state.count(ShardId::current(), RuleEvent::Admitted(1));
        }
        Some(KeyDecision { key, decision })
    }
}

impl KeyDecision {
    /// The reading of the clock, if the request was admitted, and not by the overflow policy.
    #[inline(always)]
    pub(crate) fn admitted_at(&self) -> Option<Nanos> {
        self.decision.is_admitted_by_entry().then_some(self.decision.at)
    }
}
