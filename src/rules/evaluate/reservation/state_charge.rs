use alloc::sync::Arc;

#[cfg(feature = "shared")]
use crate::keyed::OnFull;
use crate::receipt::{Receipt, Settled};
use crate::rules::evaluate::extractor::Extracted;
#[cfg(feature = "shared")]
use crate::rules::evaluate::request_limit::RequestLimit;
use crate::rules::evaluate::rule_state::RuleState;
#[cfg(feature = "shared")]
use crate::rules::evaluate::rule_state::charge_debt;
use crate::rules::evaluate::rule_states::RuleStates;
#[cfg(feature = "shared")]
use crate::rules::evaluate::state_algorithms::StateAlgorithms;
#[cfg(feature = "shared")]
use crate::rules::evaluate::storage::{KeyDecider, StateStorage};
use crate::rules::set::sharded_counts::{RuleEvent, ShardId};
use crate::time::Nanos;

/// The charge to one state.
pub(crate) struct StateCharge<R: ?Sized> {
    pub(crate) state: Arc<RuleState<R>>,
    pub(crate) extracted: Extracted,
    pub(crate) receipt: Receipt,
}

impl<R: ?Sized> StateCharge<R> {
    pub(super) fn settle(self, actual: u64, now: Nanos, in_force: &RuleStates<R>) -> Settled {
        let Self {
            state,
            extracted,
            receipt,
        } = self;
        let Extracted {
            key, permits, limit, ..
        } = extracted;
        let is_in_force = in_force
            .states
            .iter()
            .any(|other| other.shares_storage_with(&state));
        if let Some(excess) = permits.checked_sub(actual) {
            // A charge to a replaced state is not refunded: its successors were charged the amount without a receipt.
            if excess == 0 {
                return Settled::Exact;
            }
            if is_in_force && state.refund(&extracted, &receipt, excess) {
                state.count(ShardId::current(), RuleEvent::Refunded(excess));
                return Settled::Exact;
            }
            state.count_state(ShardId::current(), RuleEvent::Forfeited(excess));
            return Settled::Forfeited(excess);
        }
        let debt = actual - permits;
        let charged = if is_in_force {
            state.charge_debt(key, limit, now, debt)
        } else {
            let successors = in_force
                .states
                .iter()
                .filter(|other| other.shares_counts_with(&state));
            // Claim: rules reloading, debt is charged to a successor by the limit of its request.
            let charged = successors
                .map(|successor| successor.charge_debt_of_any_tier(key, limit.lowered(), now, debt));
            // If there are several successors, the result is the least that one of them was charged. If there is none, nothing
            // is left to charge.
            // Claim: rules reloading, the least that a successor was charged is reported.
            charged.min().unwrap_or(debt)
        };
        match debt - charged {
            0 => Settled::Exact,
            forgiven => Settled::Forgiven(forgiven),
        }
    }
}

#[cfg(feature = "shared")]
impl<R: ?Sized> RuleState<R> {
    /// Charges this state, and refunds it, without a reference to its rules.
    pub(crate) fn charger(&self) -> StateCharger {
        StateCharger {
            algorithms: Arc::clone(&self.algorithms),
            storage: Arc::clone(&self.storage),
            on_full: self.on_full,
        }
    }
}

/// Charges debt to a state, and refunds it, without its rule set.
#[cfg(feature = "shared")]
pub(crate) struct StateCharger {
    algorithms: Arc<StateAlgorithms>,
    storage: Arc<StateStorage>,
    on_full: OnFull,
}

#[cfg(feature = "shared")]
impl StateCharger {
    /// Charges debt as [`RuleState::charge_debt`] does.
    pub(crate) fn charge_debt(&self, key: u64, limit: RequestLimit, now: Nanos, permits: u64) -> u64 {
        let limit = (Some(limit.tier()), limit.lowered());
        charge_debt(&self.algorithms, &self.storage, key, limit, now, permits)
    }

    /// Refunds a charge as [`RuleState::refund`] does.
    pub(crate) fn refund(&self, extracted: &Extracted, receipt: &Receipt) -> bool {
        let mut lower = None;
        let decider = KeyDecider {
            algorithm: self.algorithms.of(extracted.limit, &mut lower),
            on_full: self.on_full,
            key: extracted.key,
        };
        decider.refund(&self.storage, receipt, extracted.permits)
    }
}
