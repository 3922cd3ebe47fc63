//! The limiters of this node: those of local rules, and those that decide if the store does not answer.

use alloc::vec::Vec;
use core::cell::LazyCell;
use core::fmt;
use core::time::Duration;

use super::counts::CountedSlot;
use super::plan::{CheckPlan, Target};
use super::planner::SharedPlanner;
use crate::clock::Clock;
use crate::receipt::Receipt;
use crate::rules::condition::Cost;
use crate::rules::evaluate::extractor::{Extracted, Handling};
use crate::rules::evaluate::reservation::state_charge::StateCharger;
use crate::rules::rule::mode::Mode;
use crate::rules::rule::on_error::OnError;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId};
use crate::time::Nanos;

/// A quota without capacity in a limiter of this node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullQuota {
    /// Its position among the [quotas](SharedPlanner::quotas) of the request.
    pub(crate) quota: usize,
    pub(crate) remaining: u64,
    pub(crate) retry_after: Option<Duration>,
}

/// A charge to a limiter of this node.
#[derive(Debug)]
pub(crate) struct NodeCharge {
    target: usize,
    state: u16,
    extracted: Extracted,
    receipt: Receipt,
}

impl NodeCharge {
    const fn is_slot(&self) -> bool {
        matches!(self.extracted.handling, Handling::Hold)
    }
}

/// A slot in flight that a limiter of this node counts. Dropping it releases the slot.
pub(crate) struct NodeSlot {
    state: StateCharger,
    charge: NodeCharge,
    _counted: CountedSlot,
}

impl Drop for NodeSlot {
    fn drop(&mut self) {
        let NodeCharge {
            extracted, receipt, ..
        } = &self.charge;
        // It fails only if the key was reset, and the slot is not held any more.
        let _ = self.state.refund(extracted, receipt);
    }
}

impl fmt::Debug for NodeSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NodeSlot").field(&self.charge).finish()
    }
}

/// The charge for a quota of an admitted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChargedBy {
    Nothing,
    Lease,
    Store,
}

impl<R: ?Sized> SharedPlanner<R> {
    /// The quotas of these targets that have no capacity in this node's limiters.
    pub(crate) fn peek_local(&self, plan: &CheckPlan, which: impl Fn(usize) -> bool) -> Vec<FullQuota> {
        let (now, mut full) = (self.clock.now(), Vec::new());
        for (at, target) in plan.targets.iter().enumerate() {
            if !which(at) || !self.is_counted(target) {
                continue;
            }
            let (state, extracted) = (self.state(target), &target.extracted);
            let capacity = state.capacity_left(extracted, state.find(extracted), now).permits;
            if extracted.enforced && (extracted.is_denied() || capacity < extracted.permits) {
                self.name_full(plan, target, &mut full);
            }
        }
        full
    }

    /// Charges these targets to this node's limiters, all or none. Rules without a limiter on this node are not charged.
    pub(crate) fn charge_local(
        &self,
        plan: &CheckPlan,
        which: impl Fn(usize) -> bool,
    ) -> Result<Vec<NodeCharge>, Vec<FullQuota>> {
        // All targets are checked before any is charged.
        let mut full = self.peek_local(plan, &which);
        if !full.is_empty() {
            return Err(full);
        }
        let now = self.clock.now();
        let targets = plan.targets.iter().enumerate();
        let targets = targets.filter(|&(at, target)| which(at) && self.is_counted(target));
        let shard = ShardId::current();
        let mut charges = Vec::new();
        for (at, target) in targets {
            let (state, extracted) = (self.state(target), &target.extracted);
            let taken = match extracted.is_denied() {
                true => Err(false),
                false => state.charge(extracted, state.find(extracted), now),
            };
            match taken {
                Ok(taken) => charges.push(NodeCharge {
                    target: at,
                    state: target.state,
                    extracted: *extracted,
                    receipt: taken.receipt,
                }),
                Err(_) if !extracted.enforced => state.count(shard, RuleEvent::ShadowDenied),
                Err(_) => {
                    self.undo_local(charges);
                    self.name_full(plan, target, &mut full);
                    return Err(full);
                }
            }
        }
        Ok(charges)
    }

    /// Takes the slots in flight out of the charges of an admitted request.
    pub(crate) fn take_slots(&self, charges: &mut Vec<NodeCharge>) -> Vec<NodeSlot> {
        let slots = charges.extract_if(.., |charge| charge.is_slot());
        let slot = |charge: NodeCharge| {
            let state = &self.local.states[usize::from(charge.state)];
            NodeSlot {
                state: state.charger(),
                _counted: self.counted_slot_of(state.quotas[0].rule),
                charge,
            }
        };
        slots.map(slot).collect()
    }

    /// Refunds charges of an admitted request, and returns how many permits could not be refunded.
    pub(crate) fn refund_local(&self, charges: Vec<NodeCharge>) -> u64 {
        self.refund_charges(charges, true)
    }

    /// Refunds charges of a request that was not admitted.
    pub(crate) fn undo_local(&self, charges: Vec<NodeCharge>) {
        self.refund_charges(charges, false);
    }

    fn refund_charges(&self, charges: Vec<NodeCharge>, of_admitted: bool) -> u64 {
        let (shard, mut lost) = (ShardId::current(), 0);
        for charge in charges {
            let state = &self.local.states[usize::from(charge.state)];
            let permits = charge.extracted.permits;
            if !state.refund(&charge.extracted, &charge.receipt, permits) {
                state.count_state(shard, RuleEvent::Forfeited(permits));
                lost += permits;
            } else if of_admitted {
                state.count(shard, RuleEvent::Refunded(permits));
            }
        }
        lost
    }

    /// The quotas of a target in the limiter of this node, without a charge. The caller checks that the node has a limiter for it.
    pub(crate) fn local_room(
        &self,
        plan: &CheckPlan,
        target: usize,
        member: usize,
    ) -> (u64, Option<Duration>) {
        let target = &plan.targets[target];
        let peek = self.state(target).peek(&target.extracted, self.clock.now());
        peek.get().remaining_and_reset_in(member)
    }

    /// Whether a target has a limiter on this node that is charged.
    pub(crate) fn is_counted_here(&self, plan: &CheckPlan, target: usize) -> bool {
        self.is_counted(&plan.targets[target])
    }

    /// Replaces the charges of this cost by the actual amount. Returns the most permits that one limiter could not refund.
    pub(crate) fn settle_local(&self, charges: Vec<NodeCharge>, cost: &Cost<R>, actual: u64) -> u64 {
        let now = self.clock.now();
        let mut forfeited = 0;
        for charge in charges {
            let state = &self.local.states[usize::from(charge.state)];
            if !state.extractor.has_cost(cost) {
                continue;
            }
            let extracted = &charge.extracted;
            match extracted.permits.checked_sub(actual) {
                Some(0) => {}
                Some(excess) if state.refund(extracted, &charge.receipt, excess) => {
                    state.count(ShardId::current(), RuleEvent::Refunded(excess));
                }
                Some(excess) => {
                    state.count_state(ShardId::current(), RuleEvent::Forfeited(excess));
                    forfeited = excess.max(forfeited);
                }
                None => {
                    state.charge_debt(extracted.key, extracted.limit, now, actual - extracted.permits);
                }
            }
        }
        forfeited
    }

    /// Whether the rules of a state have this cost.
    pub(crate) fn has_cost(&self, state: u16, cost: &Cost<R>) -> bool {
        self.local.states[usize::from(state)].extractor.has_cost(cost)
    }

    /// The time of this node's limiters.
    pub(crate) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Counts these targets of an admitted request: the charged ones, and those that need no charge.
    pub(crate) fn count_local(
        &self,
        plan: &CheckPlan,
        charges: &[NodeCharge],
        which: impl Fn(usize) -> bool,
    ) {
        let shard = ShardId::current();
        for (at, target) in plan.targets.iter().enumerate() {
            let is_charged = || charges.iter().any(|charge| charge.target == at);
            if which(at) && (!self.is_counted(target) || is_charged()) {
                self.state(target)
                    .count(shard, RuleEvent::Admitted(target.extracted.permits));
            }
        }
    }

    /// Counts a target of an admitted request.
    #[inline]
    pub(crate) fn count_admitted(&self, target: &Target) {
        self.state(target)
            .count(ShardId::current(), RuleEvent::Admitted(target.extracted.permits));
    }

    /// Whether a limiter of this node is charged at all.
    fn is_counted(&self, target: &Target) -> bool {
        self.modes[usize::from(target.state)] == Mode::Local || self.on_error(target) != OnError::Admit
    }

    /// Counts the permits that the store has admitted, and charges them to the fallback limiters, whether they have capacity or not.
    /// `which` selects the targets, and `charged` returns the charge for each quota.
    pub(crate) fn charge_fallbacks(
        &self,
        plan: &CheckPlan,
        which: impl Fn(usize) -> bool,
        charged: impl Fn(usize) -> ChargedBy,
    ) {
        let (now, shard) = (LazyCell::new(|| self.clock.now()), ShardId::current());
        let mut quota = 0;
        for (at, target) in plan.targets.iter().enumerate() {
            let (state, extracted) = (self.state(target), &target.extracted);
            let charged = charged(quota);
            if !which(at) {
                // The permits are counted elsewhere.
            } else if charged != ChargedBy::Nothing || extracted.permits == 0 {
                state.count(shard, RuleEvent::Admitted(extracted.permits));
                // The lease charges its permits when it reports them to the store. A slot that the store holds is not charged here,
                // where no release would reach it.
                let is_counted = charged != ChargedBy::Lease && !state.is_in_flight();
                if is_counted && self.on_error(target) != OnError::Admit {
                    state.charge_debt(extracted.key, extracted.limit, *now, extracted.permits);
                }
            } else {
                // A rule in the shadow would have denied the request.
                state.count(shard, RuleEvent::ShadowDenied);
            }
            quota += state.quotas.len();
        }
    }

    /// The fallback of a target. All rules of one state have the same.
    fn on_error(&self, target: &Target) -> OnError {
        let first = usize::from(self.state(target).quotas[0].rule);
        self.rules[first].rule.on_error
    }

    /// Adds the quotas of a target that have no capacity. Adds at least one.
    fn name_full(&self, plan: &CheckPlan, target: &Target, full: &mut Vec<FullQuota>) {
        let (state, extracted) = (self.state(target), &target.extracted);
        let before = plan
            .targets
            .iter()
            .take_while(|other| other.state != target.state)
            .map(|other| self.state(other).quotas.len());
        let first: usize = before.sum();
        let peek = state.peek(extracted, self.clock.now());
        let peek = peek.get();
        let retry_after = if extracted.is_denied() {
            None
        } else {
            peek.retry_after(extracted.permits)
        };
        let quotas = (0..state.quotas.len()).map(|position| FullQuota {
            quota: first + position,
            remaining: if extracted.is_denied() {
                0
            } else {
                peek.remaining_in(position)
            },
            retry_after,
        });
        let some = quotas
            .clone()
            .any(|quota| extracted.is_denied() || quota.remaining < extracted.permits);
        full.extend(
            quotas.filter(|quota| !some || extracted.is_denied() || quota.remaining < extracted.permits),
        );
    }

    /// Counts a request that these rules have denied.
    pub(crate) fn count_denied(&self, rules: &[u16]) {
        let shard = ShardId::current();
        for (at, &rule) in rules.iter().enumerate() {
            if !rules[..at].contains(&rule) {
                self.local.rules[usize::from(rule)]
                    .counts
                    .add(shard, RuleEvent::Denied);
            }
        }
    }

    /// Counts a block of this rule that began.
    pub(crate) fn count_block(&self, rule: u16) {
        let counts = &self.local.rules[usize::from(rule)].counts;
        counts.add(ShardId::current(), RuleEvent::Blocked);
    }

    /// Counts a request that rules in shadow mode would have denied.
    pub(crate) fn count_shadow_denied(&self, plan: &CheckPlan, full: impl Fn(usize) -> bool) {
        let shard = ShardId::current();
        let mut quota = 0;
        for target in &plan.targets {
            let state = self.state(target);
            if !target.extracted.enforced && (quota..quota + state.quotas.len()).any(&full) {
                state.count(shard, RuleEvent::ShadowDenied);
            }
            quota += state.quotas.len();
        }
    }
}
