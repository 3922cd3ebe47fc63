//! What shared rules do, for those who watch.

use super::{Plan, SharedPlan};
#[cfg(feature = "observe")]
use crate::rules::set::live_counts::LiveCounts;
use crate::rules::set::sharded_counts::{RuleEvent, ShardId};

impl<R: ?Sized> SharedPlan<R> {
    /// Counts a request that this node decides alone, for the rules that the store was asked about. `asked`: which of the
    /// cases it may have been asked about.
    pub(crate) fn count_by_node(&self, plan: &Plan, asked: impl Fn(usize) -> bool) {
        let me = ShardId::current();
        for (at, case) in plan.cases.iter().enumerate() {
            if asked(at) && case.subject.permits > 0 && !case.subject.denied {
                self.group(case).count(me, RuleEvent::ByNode);
            }
        }
    }

    /// What each rule has done on this node, as it goes on.
    #[cfg(feature = "observe")]
    pub(crate) fn live_counts(&self) -> LiveCounts<'_> {
        LiveCounts::shared(&self.here.rules)
    }
}
