//! The statuses of a request's quotas after the decision, as far as this node knows them.

use alloc::vec::Vec;
use core::time::Duration;

use smallvec::SmallVec;

use super::convert::longest_reset;
use super::plan::{PlannedQuota, Route, Target};
use super::rules::SharedRules;
use crate::rules::evaluate::needed_state::RELEASE_CHECK;
use crate::rules::{DecidedBy, Denied, DeniedValues, QuotaStatus, Reason};

/// A quota that has denied a request which waits.
#[derive(Debug)]
pub(crate) struct DenyingQuota {
    /// The state of the quota.
    pub(crate) state: u64,
    /// The time until the request asks again.
    pub(crate) retry_after: Duration,
    /// A lower bound of the time until the quota admits the request. Zero if that may happen at any time.
    pub(crate) earliest_after: Duration,
    pub(crate) status: QuotaStatus,
}

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
                let same = |status: &&QuotaStatus| !status.is_block && is_of(status, &planned);
                let local = || {
                    let (room, reset) = self.planner.room_on_node(target, quota)?;
                    Some(with_room(&planned, room, reset))
                };
                let status = known.iter().find(same).cloned().or_else(|| match target.route {
                    Route::Denied => Some(planned.unknown_status()),
                    Route::Undecided => None,
                    Route::Local => local(),
                    Route::Lease if decided_by != DecidedBy::Fallback => {
                        self.lease_status(target, quota, &planned)
                    }
                    Route::Lease | Route::Store if decided_by == DecidedBy::Fallback => local(),
                    Route::Lease | Route::Store => None,
                });
                statuses.extend(status);
            }
        }
        let blocks = known.iter().filter(|status| status.is_block);
        statuses.extend(blocks.cloned());
        statuses
    }

    /// The states of this node that the request needs permits of, by the identifiers that wait queues use.
    pub(crate) fn needed_states(&self, request: &R) -> SmallVec<[u64; 4]> {
        let needed = self.planner.on_node.needed_states(request);
        needed.map(|needed| needed.state).collect()
    }

    /// The quotas that have denied a request which waits. `None` if the request is never admitted. A request asks again at least once
    /// a second for a slot in flight, which only a release frees, and in an outage.
    pub(crate) fn denying_states(&self, request: &R, denied: &Denied<'static>) -> Option<Vec<DenyingQuota>> {
        if denied.reason() == Reason::Listed {
            return None;
        }
        let plan = self.planner.plan(request, 1);
        let quotas: Vec<PlannedQuota<'_>> = self.planner.quotas(&plan).collect();
        let seeds = &self.planner.on_node.states.seeds;
        let by_fallback = denied.decided_by() == DecidedBy::Fallback;
        let mut denying = Vec::new();
        for status in denied.violations() {
            let (retry_after, earliest_after) = match status.retry_after {
                // The limiter of this node has decided. The store may admit the request as soon as it answers again.
                after if by_fallback => (after.unwrap_or(RELEASE_CHECK).min(RELEASE_CHECK), Duration::ZERO),
                None if status.quota.is_in_flight() && status.limit > 0 => (RELEASE_CHECK, Duration::ZERO),
                after => (after?, after?),
            };
            for planned in quotas.iter().filter(|planned| is_of(&status, planned)) {
                let state = &self.planner.on_node.states.states[usize::from(planned.state)];
                denying.push(DenyingQuota {
                    state: state.id(&planned.extracted, seeds),
                    retry_after,
                    earliest_after,
                    status: status.clone(),
                });
            }
        }
        Some(denying)
    }

    /// The denial of a request that waits behind others and was not decided, because quotas with these statuses have denied
    /// them. Without any, all enforced quotas count as violated.
    pub(crate) fn denied_behind(&self, request: &R, mut statuses: Vec<QuotaStatus>) -> Denied<'static> {
        let plan = self.planner.plan(request, 1);
        let quotas = self
            .planner
            .quotas(&plan)
            .filter(|planned| planned.extracted.enforced);
        match statuses.is_empty() {
            true => statuses.extend(quotas.map(|planned| planned.unknown_status())),
            // The other requests may have another cost.
            false => quotas.for_each(|planned| {
                let own = statuses.iter_mut().filter(|status| is_of(status, &planned));
                own.for_each(|status| status.permits = planned.extracted.permits);
            }),
        }
        let values = DeniedValues {
            decided_by: DecidedBy::Local,
            reason: Reason::Spent,
            violations: statuses.len(),
            statuses,
            store_time: None,
            error: None,
        };
        Denied::of(values, self.now())
    }

    fn lease_status(&self, target: &Target, quota: usize, planned: &PlannedQuota<'_>) -> Option<QuotaStatus> {
        let table = &self.leases.as_ref()?.table;
        let known = table.remaining(target.lease_key(quota))?;
        let remaining = known.min(planned.capacity());
        let reset = longest_reset(planned).filter(|_| remaining < planned.capacity());
        Some(with_room(planned, remaining, reset))
    }
}

/// Whether the status is that of the quota, or of the block of its rule.
fn is_of(status: &QuotaStatus, planned: &PlannedQuota<'_>) -> bool {
    status.rule == *planned.name && (status.is_block || status.quota == planned.quota_now())
}

fn with_room(planned: &PlannedQuota<'_>, remaining: u64, reset_after: Option<Duration>) -> QuotaStatus {
    QuotaStatus {
        remaining,
        retry_after: (planned.extracted.permits <= remaining).then_some(Duration::ZERO),
        reset_after,
        ..planned.unknown_status()
    }
}
