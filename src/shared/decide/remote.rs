//! Decisions that need the store: about quotas that it keeps, and about leases that need a grant first.

use alloc::vec::Vec;

use super::NodeCharges;
use super::await_grant::LeaseOutcome;
use super::question::Question;
use crate::rules::{Admitted, DecidedBy, Denied, DeniedValues, OnError, QuotaStatus, Reason};
use crate::shared::charges::{Charges, Decision, Details, StoreCharge, admitted};
use crate::shared::convert::{block_status, counter_request, remote_status};
use crate::shared::plan::{CheckPlan, DeniedQuota, PlannedQuota, Route, Source, Target};
use crate::shared::rules::SharedRules;
use crate::shared::store::{CheckResult, CounterStatus, Counting, StoreError};

/// The receipt of a block that a denial has begun.
const BLOCK_BEGAN: (u64, u64) = (1, 0);

impl<R: ?Sized> SharedRules<R> {
    /// Decides: charges the states and leases of this node, and then asks the store about all other quotas together.
    pub(crate) async fn decide(&self, plan: CheckPlan) -> Decision<R> {
        self.leases_cover(&plan, false)?;
        let mut charged = self.charge_states(&plan)?;
        let mut question = Question::new(&plan, self.planner.quotas(&plan).collect());
        let mut error: Option<StoreError> = None;
        for target in &plan.targets {
            for quota in target.quotas() {
                let planned = &question.quotas[quota];
                let outcome = match target.route {
                    Route::Store => LeaseOutcome::AskStore { reserve: 0 },
                    Route::Lease => self.by_lease(planned, target, quota, &mut charged).await,
                    Route::Undecided | Route::Denied | Route::Local => continue,
                };
                let reserve = match outcome {
                    LeaseOutcome::Covered => continue,
                    LeaseOutcome::Denied(status) => {
                        self.count_denied_by_lease();
                        return Err(self.deny(&plan, alloc::vec![(quota, status)]));
                    }
                    LeaseOutcome::AskStore { reserve } => reserve,
                    LeaseOutcome::Failed(failed) => {
                        error = Some(failed);
                        0
                    }
                };
                let request = self.named(counter_request(planned)).with_reserve(reserve);
                if let (Some(keeper), Counting::Slots) = (&self.slots, request.counting()) {
                    error = error.or_else(|| keeper.error_at_end());
                }
                question.add(quota, request);
            }
        }
        if question.requests.is_empty() {
            return Ok(self.admit_on_node(&plan, charged));
        }
        question.add_blocks();
        if let Some(error) = error {
            return self.fall_back(question, charged, error);
        }
        if let Some(leases) = &self.leases
            && plan.by(Route::Lease).next().is_some()
        {
            leases.table.counts().remote.add_one();
        }
        let mut result = self.ask(&question.requests).await;
        let withheld = match &result {
            Ok(denied) if !denied.is_admitted => self.withhold_own(&mut question, denied),
            Ok(_) | Err(_) => None,
        };
        if let Some(withheld) = &withheld {
            match self.give_back(withheld).await {
                Ok(()) => result = self.ask(&question.requests).await,
                // The store has denied the request, so `OnError` does not decide about it.
                Err(_) if result.as_ref().is_ok_and(|denied| question.names_full(denied)) => {}
                Err(error) => result = Err(error),
            }
        }
        match result {
            Err(error) => self.fall_back(question, charged, error),
            Ok(result) if result.is_admitted => Ok(self.admit(question, charged, &result)),
            Ok(result) => Err(self.deny_by_store(&question, &result)),
        }
    }

    /// Admits a request that the store has charged.
    fn admit(
        &self,
        question: Question<'_>,
        charged: NodeCharges<'_, R>,
        result: &CheckResult,
    ) -> Admitted<Charges<R>> {
        let source_of = |target: &Target| match question.status(result, target.quotas().start) {
            Some(status) => status.is_charged.then_some(Source::Store),
            None => charged.source_of(target),
        };
        self.planner.charge_fallbacks(question.plan, source_of);
        let quotas = question.included.iter().map(|&quota| &question.quotas[quota]);
        let statuses = quotas.clone().zip(&result.statuses).map(remote_status).collect();
        let (mut in_store, mut slots, mut counted) = (Vec::new(), Vec::new(), Vec::new());
        // `zip` leaves out the requests for blocks, which come last and were not charged.
        for ((planned, request), status) in quotas.zip(question.requests).zip(&result.statuses) {
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
    fn deny_by_store(&self, question: &Question<'_>, result: &CheckResult) -> Denied<'static> {
        let quotas = &question.quotas;
        let is_full = |quota: usize| match question.status(result, quota) {
            Some(status) => !status.has_room,
            None => quotas[quota].extracted.is_denied(),
        };
        self.planner.count_shadow_denied(question.plan, is_full);
        let (others, full): (Vec<_>, Vec<_>) =
            question.enforced(result).partition(|(_, status)| status.has_room);
        for &(quota, status) in &full {
            self.close_lease(question.plan, quota, status);
        }
        let mut rules: Vec<u16> = full.iter().map(|&(quota, _)| quotas[quota].rule).collect();
        let mut blocked: Vec<QuotaStatus> = Vec::new();
        let of_blocks = &result.statuses[question.included.len()..];
        for (&(quota, block), status) in question.blocks.iter().zip(of_blocks) {
            let planned = &quotas[quota];
            if !status.has_room {
                rules.push(planned.rule);
                blocked.push(block_status(planned, block, status));
            }
            if status.receipt == BLOCK_BEGAN {
                self.planner.count_block(planned.rule);
            }
        }
        self.planner.count_denied(&rules);
        let of = |(quota, status): (usize, &CounterStatus)| remote_status((&quotas[quota], status));
        let mut statuses: Vec<QuotaStatus> = full.into_iter().map(of).chain(blocked).collect();
        let violations = statuses.len();
        statuses.extend(others.into_iter().map(of));
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
    fn close_lease(&self, plan: &CheckPlan, quota: usize, status: &CounterStatus) {
        let target = plan.target_of(quota);
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
        question: Question<'_>,
        mut charged: NodeCharges<'_, R>,
        error: StoreError,
    ) -> Decision<R> {
        let (plan, quotas) = (question.plan, &question.quotas);
        let is_asked = |target: &Target| question.has(target);
        self.planner.count_fallback(plan, is_asked);
        let deny = |reason, full: Vec<DeniedQuota>| {
            let error = Some(error.clone());
            self.deny_by(DecidedBy::Fallback, reason, quotas, full, error)
        };
        let is_denied = |(quota, planned): &(usize, &PlannedQuota<'_>)| {
            let denies = planned.extracted.permits > 0 && planned.on_error == OnError::Deny;
            planned.extracted.enforced && denies && is_asked(plan.target_of(*quota))
        };
        let denied = quotas.iter().enumerate().filter(is_denied);
        let denied: Vec<DeniedQuota> = denied
            .map(|(quota, planned)| (quota, planned.unknown_status()))
            .collect();
        if !denied.is_empty() {
            return Err(deny(Reason::Unavailable, denied));
        }
        // The state of a target decides about all of its quotas.
        charged.refund(|quota| is_asked(plan.target_of(quota)));
        if let Some(node) = &self.leases {
            for target in plan.by(Route::Lease).filter(|target| is_asked(target)) {
                for quota in target.quotas() {
                    node.table.charge_fallback_of_key(target.lease_key(quota));
                }
            }
        }
        let fallback = self.planner.charge_on_node(plan, is_asked);
        let mut fallback = fallback.map_err(|full| deny(Reason::Spent, full))?;
        fallback.count_admitted();
        self.planner.count_without_state(plan, is_asked);
        let source_of = |target: &Target| match is_asked(target) {
            true => Some(Source::State),
            false => charged.source_of(target),
        };
        self.planner.charge_fallbacks(plan, source_of);
        let (spends, states) = charged.keep();
        let asked = question.included.iter().map(|&quota| &quotas[quota]);
        // `zip` leaves out the requests for blocks, which come last: the states of this node count no violations.
        let in_store = asked.zip(question.requests);
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
