//! What shared rules do, for those who watch.

use super::{Case, Plan, SharedPlan};
use crate::rules::counts::{Me, Outcome};
#[cfg(feature = "observe")]
use crate::rules::live_counts::LiveCounts;

impl<R: ?Sized> SharedPlan<R> {
    /// Counts a request that this node decides alone, for the rules that the store was asked about.
    pub(crate) fn count_by_node(&self, plan: &Plan) {
        let me = Me::new();
        let asked = |case: &&Case| case.subject.permits > 0 && !case.subject.refused;
        for case in plan.cases.iter().filter(asked) {
            self.group(case).count(me, Outcome::ByNode);
        }
    }

    /// What each rule has done on this node, as it goes on.
    #[cfg(feature = "observe")]
    pub(crate) fn live_counts(&self) -> LiveCounts<'_> {
        LiveCounts::shared(&self.here.names)
    }
}
