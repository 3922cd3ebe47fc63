//! What shared rules do, for those who watch.

use super::{Plan, SharedPlan};
use crate::rules::counts::{Me, Outcome};
#[cfg(feature = "observe")]
use crate::rules::live_counts::LiveCounts;

impl<R: ?Sized> SharedPlan<R> {
    /// Counts a request that this node decides alone, for the rules that the store was asked about. `asked`: which of the
    /// cases it may have been asked about.
    pub(crate) fn count_by_node(&self, plan: &Plan, asked: impl Fn(usize) -> bool) {
        let me = Me::new();
        for (at, case) in plan.cases.iter().enumerate() {
            if asked(at) && case.subject.permits > 0 && !case.subject.refused {
                self.group(case).count(me, Outcome::ByNode);
            }
        }
    }

    /// What each rule has done on this node, as it goes on.
    #[cfg(feature = "observe")]
    pub(crate) fn live_counts(&self) -> LiveCounts<'_> {
        LiveCounts::shared(&self.here.names)
    }
}
