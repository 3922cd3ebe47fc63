//! The counts of shared rules on this node.

use alloc::sync::Arc;

use super::plan::CheckPlan;
use super::planner::SharedPlanner;
use crate::rules::set::live_counts::LiveCounts;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId, ShardedCounts};

/// A slot in flight of this node, which is counted for its rule until it is dropped.
#[derive(Debug)]
pub(crate) struct CountedSlot(Arc<ShardedCounts>);

impl Drop for CountedSlot {
    fn drop(&mut self) {
        self.0.add(ShardId::current(), RuleEvent::SlotReleased);
    }
}

impl<R: ?Sized> SharedPlanner<R> {
    /// Counts a request that this node decides because the store did not answer. `from_store` returns whether the store should have
    /// decided a target.
    pub(crate) fn count_fallback(&self, plan: &CheckPlan, from_store: impl Fn(usize) -> bool) {
        let shard = ShardId::current();
        for (at, target) in plan.targets.iter().enumerate() {
            if from_store(at) && target.extracted.permits > 0 && !target.extracted.is_denied() {
                self.state(target).count(shard, RuleEvent::ByNode);
            }
        }
    }

    /// Counts a slot that the store holds for this node.
    pub(crate) fn counted_slot(&self, rule: &str) -> Option<CountedSlot> {
        Some(self.counted_slot_of(self.rule_named(rule)?))
    }

    pub(super) fn counted_slot_of(&self, rule: u16) -> CountedSlot {
        let counts = &self.local.rules[usize::from(rule)].counts;
        counts.add(ShardId::current(), RuleEvent::SlotHeld);
        CountedSlot(Arc::clone(counts))
    }

    /// Counts `permits` of an admitted request that were given back to one quota of a rule, `lost` of them in vain.
    pub(crate) fn count_refund(&self, rule: &str, quota: usize, permits: u64, lost: u64) {
        if let Some(rule) = self.rule_named(rule) {
            self.count_refund_to(rule, quota, permits, lost);
        }
    }

    /// Counts as [`count_refund`](Self::count_refund) does, for one quota of a state.
    pub(crate) fn count_refund_of(&self, state: u16, member: usize, permits: u64, lost: u64) {
        let quota = &self.local.states[usize::from(state)].quotas[member];
        self.count_refund_to(quota.rule, quota.index, permits, lost);
    }

    fn count_refund_to(&self, rule: u16, quota: usize, permits: u64, lost: u64) {
        let (counts, shard) = (&self.local.rules[usize::from(rule)].counts, ShardId::current());
        counts.add(shard, RuleEvent::Forfeited(lost));
        // Each rule counts a request once, by its first quota.
        if quota == 0 {
            counts.add(shard, RuleEvent::Refunded(permits.saturating_sub(lost)));
        }
    }

    /// The position of the rule with this name.
    fn rule_named(&self, name: &str) -> Option<u16> {
        let position = self.local.rules.iter().position(|rule| &*rule.name == name)?;
        u16::try_from(position).ok()
    }

    /// The counts of each rule on this node, as they change.
    pub(crate) fn live_counts(&self) -> LiveCounts<'_> {
        LiveCounts::shared(&self.local)
    }
}
