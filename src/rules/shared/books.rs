//! The limiters of this node, for whoever charges them later.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use super::SharedPlan;
use crate::clock::{Clock, QuantaClock};
use crate::rules::evaluate::rule_state::StateCharger;
use crate::rules::rule::on_error::OnError;

/// What the limiters that stand in for the store are charged by, without the rules.
pub(crate) struct LocalBooks {
    /// For each state of this node; `None`: nothing stands in.
    states: Box<[Option<StateCharger>]>,
    clock: QuantaClock,
}

impl LocalBooks {
    /// Charges a key what was admitted elsewhere, whether there is room or not.
    pub(crate) fn charge(&self, group: u16, key: u64, tier: usize, permits: u64) {
        if let Some(state) = &self.states[usize::from(group)] {
            state.charge_debt(key, Some(tier), self.clock.now(), permits);
        }
    }
}

impl fmt::Debug for LocalBooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalBooks").finish_non_exhaustive()
    }
}

impl<R: ?Sized> SharedPlan<R> {
    /// What charges the limiters that stand in for the store.
    pub(crate) fn books(&self) -> LocalBooks {
        let state = |group: &Arc<crate::rules::evaluate::rule_state::RuleState<R>>| {
            let rule = &self.rules[usize::from(group.quotas[0].rule)].rule;
            (rule.on_error != OnError::Admit).then(|| group.charger())
        };
        LocalBooks {
            states: self.here.states.iter().map(state).collect(),
            clock: self.clock.clone(),
        }
    }
}
