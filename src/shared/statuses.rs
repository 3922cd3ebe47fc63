//! The statuses of a request's quotas after the decision, as far as this node knows them.

use alloc::vec::Vec;
use core::time::Duration;

use super::convert::longest_reset;
use super::plan::{PlannedQuota, Route, Target};
use super::rules::SharedRules;
use crate::rules::{DecidedBy, QuotaStatus};

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
        let mut statuses = Vec::new();
        for target in &plan.targets {
            let own = target.quotas();
            let quotas = self.planner.quotas(&plan).skip(own.start).take(own.len());
            for (quota, planned) in own.zip(quotas) {
                if !planned.extracted.enforced {
                    continue;
                }
                let same = |status: &&QuotaStatus| {
                    !status.is_block && status.rule == *planned.name && status.quota == planned.quota_now()
                };
                let local = || {
                    let (room, reset) = self.planner.room_on_node(target, quota)?;
                    Some(with_room(&planned, room, reset))
                };
                let status = match target.route {
                    _ if known.iter().any(|status| same(&status)) => known.iter().find(same).cloned(),
                    Route::Denied => Some(planned.unknown_status()),
                    Route::Undecided => None,
                    Route::Local => local(),
                    Route::Lease if decided_by != DecidedBy::Fallback => {
                        self.lease_status(target, quota, &planned)
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

    fn lease_status(&self, target: &Target, quota: usize, planned: &PlannedQuota<'_>) -> Option<QuotaStatus> {
        let table = &self.leases.as_ref()?.table;
        let known = table.remaining(target.lease_key(quota))?;
        let remaining = known.min(planned.capacity());
        let reset = longest_reset(planned).filter(|_| remaining < planned.capacity());
        Some(with_room(planned, remaining, reset))
    }
}

fn with_room(planned: &PlannedQuota<'_>, remaining: u64, reset_after: Option<Duration>) -> QuotaStatus {
    QuotaStatus {
        remaining,
        retry_after: (planned.extracted.permits <= remaining).then_some(Duration::ZERO),
        reset_after,
        ..planned.unknown_status()
    }
}
