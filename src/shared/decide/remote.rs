//! Decisions that need the store: about quotas that it keeps, and about leases that need a grant first.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::await_grant::LeaseOutcome;
use super::{NodeCharges, Remote, is_local};
use crate::rules::{Admitted, Block, DecidedBy, Denied, DeniedValues, OnError, QuotaStatus, Reason};
use crate::shared::charges::{Charges, Decision, Details, StoreCharge, admitted};
use crate::shared::convert::{block_requests, block_status, blocks_of, counter_request, remote_status};
use crate::shared::plan::{ChargedBy, CheckPlan, DeniedQuota, PlannedQuota, Route, Target};
use crate::shared::rules::SharedRules;
use crate::shared::store::{CheckResult, CounterRequest, CounterStatus, Counting, StoreError};

/// The receipt of a block that a denial has begun.
const BLOCK_BEGAN: (u64, u64) = (1, 0);

/// Whether a denial of the store has a quota without room, and is not only because of a reserve.
fn names_full(requests: &[CounterRequest], denied: &CheckResult) -> bool {
    let mut all = requests.iter().zip(&denied.statuses);
    all.any(|(request, status)| request.is_enforced() && !status.has_room)
}

impl<R: ?Sized> SharedRules<R> {
    /// Decides: charges the states and leases of this node, and then asks the store about all other quotas together.
    pub(crate) async fn decide(&self, plan: CheckPlan) -> Decision<R> {
        let remote = Remote {
            plan: &plan,
            quotas: self.planner.quotas(&plan).collect(),
        };
        self.leases_cover(&plan, false)?;
        let mut charged = self.charge_states(&plan)?;
        let (mut asked, mut error): (Vec<usize>, Option<StoreError>) = (Vec::new(), None);
        let mut requests: Vec<CounterRequest> = Vec::new();
        for target in &plan.targets {
            for at in target.quotas() {
                let outcome = match target.route {
                    Route::Store => LeaseOutcome::AskStore { reserve: 0 },
                    Route::Lease => self.by_lease(&remote.quotas[at], target, at, &mut charged).await,
                    Route::Undecided | Route::Denied | Route::Local => continue,
                };
                let reserve = match outcome {
                    LeaseOutcome::Covered => continue,
                    LeaseOutcome::Denied(status) => {
                        self.count_denied_by_lease();
                        return Err(self.deny(&plan, alloc::vec![(at, status)]));
                    }
                    LeaseOutcome::AskStore { reserve } => reserve,
                    LeaseOutcome::Failed(failed) => {
                        error = Some(failed);
                        0
                    }
                };
                asked.push(at);
                let request = counter_request(&remote.quotas[at]).with_reserve(reserve);
                requests.push(match (&self.slots, request.counting()) {
                    (Some(keeper), Counting::Slots) => {
                        error = error.or_else(|| keeper.error_at_end());
                        request.with_slot(keeper.name())
                    }
                    _ => request,
                });
            }
        }
        if requests.is_empty() {
            return Ok(self.admit_on_node(&plan, charged));
        }
        let mut blocks = blocks_of(&remote.quotas, &asked);
        // A rule in the shadow begins no block.
        blocks.retain(|&(quota, _)| remote.quotas[quota].extracted.enforced);
        requests.extend(block_requests(&remote.quotas, &blocks, plan.violates));
        if let Some(error) = error {
            return self.fall_back(&remote, &asked, requests, charged, error);
        }
        if let Some(leases) = &self.leases
            && plan.by(Route::Lease).next().is_some()
        {
            leases.table.counts().remote.add_one();
        }
        let mut result = self.ask(&requests).await;
        let withheld = match &result {
            Ok(denied) if !denied.is_admitted => self.withhold_own(&remote, &asked, &mut requests, denied),
            Ok(_) | Err(_) => None,
        };
        if let Some(withheld) = &withheld {
            match self.give_back(withheld).await {
                Ok(()) => result = self.ask(&requests).await,
                // The store has denied the request, so `OnError` does not decide about it.
                Err(_) if result.as_ref().is_ok_and(|denied| names_full(&requests, denied)) => {}
                Err(error) => result = Err(error),
            }
        }
        match result {
            Err(error) => self.fall_back(&remote, &asked, requests, charged, error),
            Ok(result) if result.is_admitted => Ok(self.admit(&remote, &asked, requests, charged, &result)),
            Ok(result) => Err(self.deny_by_store(&remote, &asked, &blocks, &result)),
        }
    }

    /// Admits a request that the store has charged.
    fn admit(
        &self,
        remote: &Remote<'_>,
        asked: &[usize],
        requests: Vec<CounterRequest>,
        charged: NodeCharges<'_, R>,
        result: &CheckResult,
    ) -> Admitted<Charges<R>> {
        let charged_by = |quota| {
            let found = asked.iter().position(|&at| at == quota);
            match found.map(|at| result.statuses[at].is_charged) {
                Some(true) => ChargedBy::Store,
                Some(false) => ChargedBy::Nothing,
                None => charged.charged_by(quota),
            }
        };
        self.planner
            .charge_fallbacks(remote.plan, |target| !is_local(target), charged_by);
        let quotas = asked.iter().map(|&at| &remote.quotas[at]);
        let statuses = quotas.clone().zip(&result.statuses).map(remote_status).collect();
        let (mut in_store, mut slots, mut counted) = (Vec::new(), Vec::new(), Vec::new());
        // `zip` leaves out the requests for blocks, which come last and were not charged.
        for ((planned, request), status) in quotas.zip(requests).zip(&result.statuses) {
            if !status.is_charged {
                continue;
            }
            if request.counting() == Counting::Slots {
                counted.push(self.planner.counted_slot(planned.rule));
                slots.push(request);
            } else {
                in_store.push(StoreCharge::new(planned, request, Some(*status)));
            }
        }
        let (spends, states) = charged.keep();
        let details = Details {
            statuses,
            error: None,
            in_store,
            store_time: Some(result.at),
            states,
            slots: self.slots.as_ref().and_then(|keeper| keeper.hold(slots, counted)),
        };
        admitted(DecidedBy::Store, spends, Some(details))
    }

    /// Denies a request that the store has no room for. The caller refunds what was charged on this node.
    fn deny_by_store(
        &self,
        remote: &Remote<'_>,
        asked: &[usize],
        blocks: &[(usize, &Arc<Block>)],
        result: &CheckResult,
    ) -> Denied<'static> {
        let status_of = |quota| {
            let at = asked.iter().position(|&at| at == quota);
            at.map(|at| result.statuses[at])
        };
        let is_full = |quota: usize| match status_of(quota) {
            Some(status) => !status.has_room,
            None => remote.quotas[quota].extracted.is_denied(),
        };
        self.planner.count_shadow_denied(remote.plan, is_full);
        let statuses = asked.iter().copied().zip(&result.statuses);
        let full: Vec<(usize, &CounterStatus)> = statuses
            .filter(|&(at, status)| remote.quotas[at].extracted.enforced && !status.has_room)
            .collect();
        for &(quota, status) in &full {
            self.close_lease(remote, quota, status);
        }
        let mut rules: Vec<u16> = full.iter().map(|&(at, _)| remote.quotas[at].rule).collect();
        let mut blocked: Vec<QuotaStatus> = Vec::new();
        for (&(quota, block), status) in blocks.iter().zip(&result.statuses[asked.len()..]) {
            let planned = &remote.quotas[quota];
            if !status.has_room {
                rules.push(planned.rule);
                blocked.push(block_status(planned, block, status));
            }
            if status.receipt == BLOCK_BEGAN {
                self.planner.count_block(planned.rule);
            }
        }
        self.planner.count_denied(&rules);
        let of = |(at, status): (usize, &CounterStatus)| remote_status((&remote.quotas[at], status));
        let mut statuses: Vec<QuotaStatus> = full.into_iter().map(of).chain(blocked).collect();
        let violations = statuses.len();
        let others = asked.iter().copied().zip(&result.statuses);
        let others = others.filter(|&(at, status)| remote.quotas[at].extracted.enforced && status.has_room);
        statuses.extend(others.map(of));
        let values = DeniedValues {
            decided_by: DecidedBy::Store,
            reason: Reason::Spent,
            statuses,
            violations,
            store_time: Some(result.at),
            error: None,
        };
        Denied::of(values, self.now())
    }

    /// Makes the lease of a quota deny by itself for a while, because the store has no room.
    fn close_lease(&self, remote: &Remote<'_>, quota: usize, status: &CounterStatus) {
        let target = remote.plan.target_of(quota);
        if let Some(node) = &self.leases
            && target.route == Route::Lease
            && let Some(after) = status.retry_after
        {
            let key = target.lease_key(quota);
            node.table.close(key, status.remaining, target.permits(), after);
        }
    }

    /// Decides on this node about a request that the store did not answer.
    fn fall_back(
        &self,
        remote: &Remote<'_>,
        asked: &[usize],
        requests: Vec<CounterRequest>,
        mut charged: NodeCharges<'_, R>,
        error: StoreError,
    ) -> Decision<R> {
        let is_asked = |target: &Target| asked.iter().any(|&quota| target.quotas().contains(&quota));
        let is_target_asked = |quota: usize| is_asked(remote.plan.target_of(quota));
        self.planner.count_fallback(remote.plan, is_asked);
        let deny = |reason, full: Vec<DeniedQuota>| {
            let error = Some(error.clone());
            self.deny_by(DecidedBy::Fallback, reason, &remote.quotas, full, error)
        };
        let is_denied = |(quota, planned): &(usize, &PlannedQuota<'_>)| {
            let denies = planned.extracted.permits > 0 && planned.on_error == OnError::Deny;
            planned.extracted.enforced && denies && is_target_asked(*quota)
        };
        let denied = remote.quotas.iter().enumerate().filter(is_denied);
        let denied: Vec<DeniedQuota> = denied
            .map(|(quota, planned)| (quota, planned.unknown_status()))
            .collect();
        if !denied.is_empty() {
            return Err(deny(Reason::Unavailable, denied));
        }
        // The state of a target decides about all of its quotas.
        charged.refund(is_target_asked);
        if let Some(node) = &self.leases {
            for target in remote.plan.by(Route::Lease).filter(|target| is_asked(target)) {
                for quota in target.quotas() {
                    node.table.charge_fallback_of_key(target.lease_key(quota));
                }
            }
        }
        let fallback = self.planner.charge_on_node(remote.plan, is_asked);
        let mut fallback = fallback.map_err(|full| deny(Reason::Spent, full))?;
        fallback.count_admitted();
        self.planner.count_without_state(remote.plan, is_asked);
        let others = |target: &Target| !is_asked(target) && !is_local(target);
        let charged_by = |quota| charged.charged_by(quota);
        self.planner.charge_fallbacks(remote.plan, others, charged_by);
        let (spends, states) = charged.keep();
        let asked = asked.iter().map(|&at| &remote.quotas[at]);
        // `zip` leaves out the requests for blocks, which come last: the states of this node count no violations.
        let in_store = asked.zip(requests);
        let in_store = in_store.map(|(planned, request)| StoreCharge::new(planned, request, None));
        let details = Details {
            error: Some(error),
            in_store: in_store.collect(),
            // The charges of a fallback are not refunded, but its slots are held.
            states: Some(match states {
                Some(states) => states.with_slots_of(fallback),
                None => fallback.take_slots(),
            }),
            ..Details::default()
        };
        Ok(admitted(DecidedBy::Fallback, spends, Some(details)))
    }
}
