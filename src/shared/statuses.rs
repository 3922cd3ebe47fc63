//! The statuses of a request's quotas after the decision, as far as this node knows them.

use alloc::vec::Vec;
use core::time::Duration;

use super::answer::DecidedBy;
use super::convert::{longest_reset, unknown_status};
use super::rules::SharedRules;
use crate::rules::{PlannedQuota, QuotaStatus, Route, Step};

impl<R: ?Sized> SharedRules<R> {
    /// The statuses of all enforced quotas of a request, without a call of the store.
    ///
    /// `known` came with the decision. For a lease, the remaining permits are those of the lease plus those that the
    /// store had left for others at its last answer. A quota that this node knows nothing about is left out.
    pub(crate) fn statuses_after(
        &self,
        request: &R,
        known: &[QuotaStatus],
        decided_by: DecidedBy,
    ) -> Vec<QuotaStatus> {
        let plan = self.planner.plan(request, 1);
        let steps: Vec<Step> = self.planner.steps(&plan).collect();
        let mut statuses = Vec::new();
        for step in &steps {
            let quotas = self.planner.quotas(&plan).skip(step.first).take(step.quotas);
            for (at, planned) in quotas.enumerate() {
                if !planned.enforced {
                    continue;
                }
                let same = |status: &&QuotaStatus| {
                    !status.is_block && status.rule == *planned.name && status.quota == planned.quota
                };
                let local = || {
                    let counted = self.planner.is_counted_here(&plan, step.target);
                    counted.then(|| {
                        let (room, reset) = self.planner.local_room(&plan, step.target, at);
                        with_room(&planned, room, reset)
                    })
                };
                let status = match step.route {
                    _ if known.iter().any(|status| same(&status)) => known.iter().find(same).cloned(),
                    Route::Listed => Some(unknown_status(&planned)),
                    Route::Free => None,
                    Route::Local => local(),
                    Route::Lease if decided_by != DecidedBy::Fallback => {
                        self.lease_status(step, at, &planned)
                    }
                    Route::Lease | Route::Store if decided_by == DecidedBy::Fallback => local(),
                    Route::Lease | Route::Store => None,
                };
                statuses.extend(status);
            }
        }
        let blocks = known.iter().filter(|status| status.is_block);
        statuses.extend(blocks.cloned());
        statuses
    }

    fn lease_status(&self, step: &Step, quota: usize, planned: &PlannedQuota<'_>) -> Option<QuotaStatus> {
        let table = &self.leases.as_ref()?.table;
        let known = table.remaining(step.lease_key(quota))?;
        let remaining = known.min(planned.capacity());
        let reset = longest_reset(planned).filter(|_| remaining < planned.capacity());
        Some(with_room(planned, remaining, reset))
    }
}

fn with_room(planned: &PlannedQuota<'_>, remaining: u64, reset_after: Option<Duration>) -> QuotaStatus {
    QuotaStatus {
        remaining,
        retry_after: (planned.permits <= remaining).then_some(Duration::ZERO),
        reset_after,
        ..unknown_status(planned)
    }
}
