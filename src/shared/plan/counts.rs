//! The counts of shared rules on this node.

use super::compile::Planner;
use super::target::{CheckPlan, Target};
use crate::rules::set::sharded_counts::{RuleEvent, ShardId, ShardedCounts};

/// A slot in flight that the store holds for this node. It is counted for its rule until it is dropped.
#[derive(Debug)]
pub(crate) struct CountedSlot(ShardedCounts);

impl Drop for CountedSlot {
    fn drop(&mut self) {
        self.0.add(ShardId::current(), RuleEvent::SlotReleased);
    }
}

impl<R: ?Sized> Planner<R> {
    /// Counts a request that this node decides because the store did not answer. `is_asked` returns whether the store was
    /// asked about a target.
    pub(crate) fn count_fallback(&self, plan: &CheckPlan, is_asked: impl Fn(&Target) -> bool) {
        let shard = ShardId::current();
        for target in &plan.targets {
            if is_asked(target) && target.permits() > 0 && !target.extracted.is_denied() {
                self.state(target).count(shard, RuleEvent::ByNode);
            }
        }
    }

    /// Counts a slot that the store holds for this node.
    pub(crate) fn counted_slot(&self, rule: u16) -> CountedSlot {
        let counts = &self.on_node.states.rules[usize::from(rule)].counts;
        counts.add(ShardId::current(), RuleEvent::SlotHeld);
        CountedSlot(counts.clone())
    }

    /// Counts `permits` of an admitted request that were given back to one quota of a state, `lost` of them in vain.
    pub(crate) fn count_refund(&self, state: u16, member: u16, permits: u64, lost: u64) {
        let quota = &self.on_node.states.states[usize::from(state)].quotas[usize::from(member)];
        let counts = &self.on_node.states.rules[usize::from(quota.rule)].counts;
        let shard = ShardId::current();
        counts.add(shard, RuleEvent::Forfeited(lost));
        // Each rule counts a request once, by its first quota.
        if quota.index == Some(0) {
            counts.add(shard, RuleEvent::Refunded(permits.saturating_sub(lost)));
        }
    }
}
