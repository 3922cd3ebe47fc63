//! The limiters that decide if the store does not answer, without their rules, for charges that are made later.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use super::compile::Planner;
use crate::clock::{Clock, QuantaClock};
use crate::rules::evaluate::request_limit::RequestLimit;
use crate::rules::evaluate::rule_state::RuleState;
use crate::rules::evaluate::state_algorithms::StateAlgorithms;
use crate::rules::evaluate::storage::StateStorage;
use crate::rules::rule::on_error::OnError;

/// The fallback limiters of a node, for charges.
pub(crate) struct FallbackLimiters {
    /// One for each state of this node. `None` if the rule has no fallback limiter.
    states: Box<[Option<Fallback>]>,
    clock: QuantaClock,
}

/// The algorithms of a state, and its words.
type Fallback = (Arc<StateAlgorithms>, Arc<StateStorage>);

impl FallbackLimiters {
    /// The fallback limiters of these rules.
    pub(in crate::shared) fn new<R: ?Sized>(rules: &Planner<R>) -> Self {
        let state = |state: &Arc<RuleState<R>>| {
            let rule = &rules.rules[usize::from(state.quotas[0].rule)].rule;
            let fallback = || (Arc::clone(&state.algorithms), Arc::clone(&state.storage));
            (rule.on_error != OnError::Admit).then(fallback)
        };
        Self {
            states: rules.on_node.states.states.iter().map(state).collect(),
            clock: rules.on_node.clock.clone(),
        }
    }

    /// Charges a key with permits that were admitted elsewhere, whether there is capacity or not.
    pub(crate) fn charge(&self, state: u16, key: u64, limit: RequestLimit, permits: u64) {
        if let Some((algorithms, storage)) = &self.states[usize::from(state)] {
            let limit = (Some(limit.tier()), limit.lowered());
            algorithms.charge_debt(storage, key, limit, self.clock.now(), permits);
        }
    }
}

impl fmt::Debug for FallbackLimiters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FallbackLimiters").finish_non_exhaustive()
    }
}
