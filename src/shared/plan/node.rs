//! The states of this node: those of local rules, and those that decide if the store does not answer.

use alloc::vec::Vec;
use core::cell::LazyCell;
use core::time::Duration;

use super::compile::Planner;
use super::target::{CheckPlan, PlannedQuota, Target};
use crate::clock::Clock;
use crate::rules::QuotaStatus;
use crate::rules::condition::Cost;
use crate::rules::evaluate::denied::Violation;
use crate::rules::evaluate::extractor::Extracted;
use crate::rules::evaluate::reservation::Reservation;
use crate::rules::rule::mode::Mode;
use crate::rules::rule::on_error::OnError;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId};
use crate::time::Nanos;

/// A quota that has no room, by its position among the [quotas](super::compile::Planner::quotas) of the request, and its status.
pub(crate) type DeniedQuota = (usize, QuotaStatus);

/// The source of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A state of this node, or none because of [`OnError::Admit`].
    State,
    /// A lease of this node.
    Lease,
    Store,
}

impl<R: ?Sized> Planner<R> {
    /// The quotas of these targets that have no capacity in the states of this node.
    pub(crate) fn full_on_node(&self, plan: &CheckPlan, which: impl Fn(&Target) -> bool) -> Vec<DeniedQuota> {
        let now = self.on_node.clock.now();
        let violations = self.on_node.states.look(self.targets_on_node(plan, which), now);
        self.denied(plan, &violations, now)
    }

    /// Charges these targets to the states of this node, all or none, and does not count the admission. Rules without a state on
    /// this node are not charged.
    pub(crate) fn charge_on_node(
        &self,
        plan: &CheckPlan,
        which: impl Fn(&Target) -> bool,
    ) -> Result<Reservation<R>, Vec<DeniedQuota>> {
        let now = self.on_node.clock.now();
        let charged = self.on_node.states.charge(self.targets_on_node(plan, which), now);
        charged.map_err(|violations| self.denied(plan, &violations, now))
    }

    /// The states of these targets, unless none is charged on this node.
    fn targets_on_node(
        &self,
        plan: &CheckPlan,
        which: impl Fn(&Target) -> bool,
    ) -> impl Iterator<Item = (u16, Extracted)> {
        let targets = plan.targets.iter();
        let targets = targets.filter(move |target| which(target) && self.is_charged_on_node(target));
        targets.map(|target| (target.state, target.extracted))
    }

    /// The statuses of quotas that states of this node have denied. The limits are those of the rules, also if this node has a share
    /// of them.
    fn denied(&self, plan: &CheckPlan, violations: &[Violation], now: Nanos) -> Vec<DeniedQuota> {
        if violations.is_empty() {
            return Vec::new();
        }
        let quotas: Vec<PlannedQuota<'_>> = self.quotas(plan).collect();
        let denied = violations.iter().filter_map(|&violation| {
            let target = plan
                .targets
                .iter()
                .find(|target| target.state == violation.state)?;
            let position = target.quotas().start + usize::from(violation.quota);
            let states = &self.on_node.states;
            let status = QuotaStatus {
                quota: quotas[position].quota_now(),
                limit: quotas[position].limit,
                ..states.violated_status(violation, target.extracted, now)
            };
            Some((position, status))
        });
        denied.collect()
    }

    /// The permits that are left for one quota of a target, and the time until there are more. `None` if it has no state on this
    /// node that is charged.
    pub(crate) fn room_on_node(&self, target: &Target, quota: usize) -> Option<(u64, Option<Duration>)> {
        let peek = || {
            self.state(target)
                .peek(&target.extracted, self.on_node.clock.now())
        };
        let is_charged = self.is_charged_on_node(target);
        is_charged.then(|| peek().get().remaining_and_reset_in(target.member(quota)))
    }

    /// Whether the rules of a state have this cost.
    pub(crate) fn has_cost(&self, state: u16, cost: &Cost<R>) -> bool {
        self.on_node.states.states[usize::from(state)]
            .extractor
            .has_cost(cost)
    }

    /// Counts a target of an admitted request.
    #[inline]
    pub(crate) fn count_admitted(&self, target: &Target) {
        self.state(target)
            .count(ShardId::current(), RuleEvent::Admitted(target.permits()));
    }

    /// Counts an admitted request for those of these targets that have no state on this node.
    pub(crate) fn count_without_state(&self, plan: &CheckPlan, which: impl Fn(&Target) -> bool) {
        let targets = plan.targets.iter();
        for target in targets.filter(|target| which(target) && !self.is_charged_on_node(target)) {
            self.count_admitted(target);
        }
    }

    /// Whether the state of a target is charged on this node.
    fn is_charged_on_node(&self, target: &Target) -> bool {
        self.modes[usize::from(target.state)] == Mode::Local || self.on_error(target) != OnError::Admit
    }

    /// Counts the permits that were charged to leases and to the store, and charges those of the store to the fallback states, whether
    /// they have capacity or not. `source_of` returns the source that was charged for a target. `None`: nothing was charged, because a
    /// rule in the shadow would have denied the request, or because the request asks for no permits.
    pub(crate) fn charge_fallbacks(&self, plan: &CheckPlan, source_of: impl Fn(&Target) -> Option<Source>) {
        let (now, shard) = (LazyCell::new(|| self.on_node.clock.now()), ShardId::current());
        for target in &plan.targets {
            let (state, extracted) = (self.state(target), &target.extracted);
            let is_charged_here = match source_of(target) {
                // The caller has counted its admission.
                Some(Source::State) => continue,
                None if extracted.permits > 0 => {
                    // A rule in the shadow would have denied the request.
                    state.count(shard, RuleEvent::ShadowDenied);
                    continue;
                }
                // The lease charges its permits when it reports them to the store.
                Some(Source::Lease) => false,
                // A slot that the store holds is not charged here, where no release would reach it.
                Some(Source::Store) | None => !state.is_in_flight(),
            };
            state.count(shard, RuleEvent::Admitted(extracted.permits));
            if is_charged_here && self.on_error(target) != OnError::Admit {
                state.charge_debt(extracted.key, extracted.limit, *now, extracted.permits);
            }
        }
    }

    /// The fallback of a target. All rules of one state have the same.
    fn on_error(&self, target: &Target) -> OnError {
        let first = usize::from(self.state(target).quotas[0].rule);
        self.rules[first].rule.on_error
    }

    /// Counts a request that these rules have denied.
    pub(crate) fn count_denied(&self, rules: &[u16]) {
        self.on_node
            .states
            .count_denied(ShardId::current(), rules, |&rule| rule);
    }

    /// Counts a block of this rule that began.
    pub(crate) fn count_block(&self, rule: u16) {
        let counts = &self.on_node.states.rules[usize::from(rule)].counts;
        counts.add(ShardId::current(), RuleEvent::Blocked);
    }

    /// Counts a request that rules in shadow mode would have denied.
    pub(crate) fn count_shadow_denied(&self, plan: &CheckPlan, full: impl Fn(usize) -> bool) {
        for target in &plan.targets {
            if !target.extracted.enforced && target.quotas().any(&full) {
                self.state(target)
                    .count(ShardId::current(), RuleEvent::ShadowDenied);
            }
        }
    }
}
