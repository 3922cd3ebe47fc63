//! The counts of shared rules on this node.

use super::plan::CheckPlan;
use super::planner::SharedPlanner;
#[cfg(feature = "observe")]
use crate::rules::set::live_counts::LiveCounts;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId};

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

    /// The counts of each rule on this node, as they change.
    #[cfg(feature = "observe")]
    pub(crate) fn live_counts(&self) -> LiveCounts<'_> {
        LiveCounts::shared(&self.local.rules)
    }
}
