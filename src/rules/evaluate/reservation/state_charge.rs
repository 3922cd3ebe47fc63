use alloc::sync::Arc;

use crate::receipt::{Receipt, Settled};
use crate::rules::evaluate::extractor::Extracted;
use crate::rules::evaluate::rule_state::RuleState;
use crate::rules::evaluate::rule_states::RuleStates;
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
        let shares_words = |other: &&Arc<RuleState<R>>| other.shares_storage_with(&state);
        let is_in_force = in_force.states.iter().any(|other| shares_words(&other));
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
        // The words of a retired state may have been carried over already, so its successors are charged, too.
        let is_retired = |other: &Arc<RuleState<R>>| other.retired && shares_words(&other);
        let is_replaced = !is_in_force || in_force.states.iter().any(is_retired);
        let is_successor =
            |other: &&Arc<RuleState<R>>| !shares_words(other) && other.shares_counts_with(&state);
        let successors = in_force
            .states
            .iter()
            .filter(|other| is_replaced && is_successor(other));
        // Claim: rules reloading, debt is charged to a successor by the limit of its request.
        let of_successors =
            successors.map(|successor| successor.charge_debt_of_any_tier(key, limit.lowered(), now, debt));
        let here = is_in_force.then(|| state.charge_debt(key, limit, now, debt));
        // If several states are charged, the result is the least that one of them was charged. If none is, no rule in force
        // counts the debt.
        let charged = of_successors.chain(here).min().unwrap_or(debt);
        match debt - charged {
            0 => Settled::Exact,
            forgiven => Settled::Forgiven(forgiven),
        }
    }
}
