//! The counts of shared rules on this node.

use super::{CheckPlan, SharedPlanner};
#[cfg(feature = "observe")]
use crate::rules::set::live_counts::LiveCounts;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId};

impl<R: ?Sized> SharedPlanner<R> {
    /// Counts a request that this node decides because the store did not answer. `asked` says for which targets the store
    /// was asked.
    pub(crate) fn count_fallback(&self, plan: &CheckPlan, asked: impl Fn(usize) -> bool) {
        let shard = ShardId::current();
        for (at, target) in plan.targets.iter().enumerate() {
            if asked(at) && target.subject.permits > 0 && !target.subject.denied {
                self.group(target).count(shard, RuleEvent::ByNode);
            }
        }
    }

    /// The counts of each rule on this node, as they change.
    #[cfg(feature = "observe")]
    pub(crate) fn live_counts(&self) -> LiveCounts<'_> {
        LiveCounts::shared(&self.local.rules)
    }
}
