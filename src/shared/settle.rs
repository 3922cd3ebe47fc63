//! Settling a charge: the reserved amount is replaced by the actual one.

use alloc::vec::Vec;

use super::answer::{Admitted, Details};
use super::convert::counter_request;
use super::rules::SharedRules;
use super::store::{CheckResult, CounterRequest, CounterStatus, Counting, StoreError};
use crate::receipt::Settled;
use crate::rules::{CheckPlan, Cost, PlannedQuota};

/// The permits that could not be settled: refunded too late, or too many for a counter.
#[derive(Clone, Copy, Debug, Default)]
struct Unsettled {
    forfeited: u64,
    forgiven: u64,
}

/// The changes to make in the store.
#[derive(Debug, Default)]
struct StoreChanges {
    refunds: Vec<CounterRequest>,
    refunded: Vec<CounterStatus>,
    debts: Vec<CounterRequest>,
}

impl<R: ?Sized> SharedRules<R> {
    /// Replaces what an admitted request was charged by the `actual` amount, for the rules with this cost.
    ///
    /// An excess is refunded as by [`refund`](Self::refund). A shortfall is charged in the store as debt, whether there is
    /// room or not, and delays later requests: at most the limit if the rule keeps a log. Rules with another cost keep their
    /// charge. The limiters that decide when the store does not answer stay as they are, unless they have decided about the
    /// request.
    ///
    /// `request` must be the one that was admitted.
    ///
    /// # Errors
    ///
    /// When the store does not answer. The permits may have been settled then.
    ///
    /// # Concurrency
    ///
    /// Refunds and debts are separate steps. If the future is dropped, the remaining steps are not made.
    pub fn settle<'a>(
        &'a self,
        admitted: Admitted,
        request: &R,
        cost: &Cost<R>,
        actual: u64,
    ) -> impl Future<Output = Result<Settled, StoreError>> + Send + use<'a, R> {
        let plan = self.plan_to_settle(request);
        let changes = self.settle_on_node(admitted, &plan, cost, actual);
        async move { self.settle_in_store(changes).await }
    }

    /// The plan of a request, as settling needs it.
    pub(crate) fn plan_to_settle(&self, request: &R) -> CheckPlan {
        let mut plan = self.planner.plan(request, 1);
        self.planner.hash_keys(&mut plan, request);
        plan
    }

    /// Settles a request by its plan.
    pub(crate) async fn settle_planned(
        &self,
        admitted: Admitted,
        plan: &CheckPlan,
        cost: &Cost<R>,
        actual: u64,
    ) -> Result<Settled, StoreError> {
        let changes = self.settle_on_node(admitted, plan, cost, actual);
        self.settle_in_store(changes).await
    }

    /// Refunds what this node can refund by itself. Returns the rest of the charge, which the store refunds.
    pub(crate) fn refund_on_node(&self, admitted: Admitted) -> Option<Admitted> {
        let Admitted {
            decided_by,
            spends,
            details,
        } = admitted;
        self.return_to_leases(&spends);
        let mut details = details?;
        self.planner.refund_local(core::mem::take(&mut details.charges));
        details.result.is_some().then(|| Admitted {
            decided_by,
            spends: smallvec::SmallVec::new(),
            details: Some(details),
        })
    }

    fn settle_on_node(
        &self,
        admitted: Admitted,
        plan: &CheckPlan,
        cost: &Cost<R>,
        actual: u64,
    ) -> (StoreChanges, Unsettled, Option<u64>) {
        let (mut changes, mut unsettled) = (StoreChanges::default(), Unsettled::default());
        let Admitted { spends, details, .. } = admitted;
        let quotas: Vec<PlannedQuota<'_>> = self.planner.quotas(plan).collect();
        for spend in &spends {
            let planned = quotas.get(spend.quota as usize);
            let Some(planned) = planned.filter(|planned| self.planner.has_cost(planned.state, cost)) else {
                continue;
            };
            match spend.permits.checked_sub(actual) {
                Some(0) => {}
                Some(excess) => {
                    let excess = super::answer::LeaseSpend {
                        permits: excess,
                        ..*spend
                    };
                    let lost = self.return_to_leases(core::slice::from_ref(&excess));
                    unsettled.forfeited = unsettled.forfeited.max(lost);
                }
                None => changes.owe(counter_request(planned), actual - spend.permits, &mut unsettled),
            }
        }
        let mut at = None;
        if let Some(details) = details {
            let Details {
                requests,
                result,
                charges,
                ..
            } = *details;
            let lost = self.planner.settle_local(charges, cost, actual);
            unsettled.forfeited = unsettled.forfeited.max(lost);
            at = result.as_ref().map(CheckResult::at);
            let charged = result
                .iter()
                .flat_map(|result| requests.iter().zip(result.statuses()));
            for (request, status) in charged.filter(|(_, status)| status.is_charged()) {
                let of = |planned: &&PlannedQuota<'_>| {
                    **planned.name == *request.rule() && planned.index == request.quota_index()
                };
                let planned = quotas.iter().find(of);
                if !planned.is_some_and(|planned| self.planner.has_cost(planned.state, cost)) {
                    continue;
                }
                match request.permits().checked_sub(actual) {
                    Some(0) => {}
                    Some(excess) => {
                        changes.refunds.push(request.clone().with_permits(excess));
                        changes.refunded.push(*status);
                    }
                    None => changes.owe(request.clone(), actual - request.permits(), &mut unsettled),
                }
            }
        }
        (changes, unsettled, at)
    }

    async fn settle_in_store(
        &self,
        (changes, mut unsettled, at): (StoreChanges, Unsettled, Option<u64>),
    ) -> Result<Settled, StoreError> {
        if !changes.refunds.is_empty() {
            let charged = CheckResult::admitted(at.unwrap_or(0), changes.refunded);
            let lost = self.store.refund(&changes.refunds, &charged).await?;
            self.count_refunds(&changes.refunds, Some(&charged), lost);
            unsettled.forfeited = unsettled.forfeited.max(lost);
        }
        if !changes.debts.is_empty() {
            self.store.charge(&changes.debts).await?;
        }
        Ok(match (unsettled.forfeited, unsettled.forgiven) {
            (0, 0) => Settled::Exact,
            (0, forgiven) => Settled::Forgiven(forgiven),
            (forfeited, _) => Settled::Forfeited(forfeited),
        })
    }
}

/// The largest debt of one counter. Stores count up to 2^53.
const MOST_OWED: u64 = 1 << 40;

impl StoreChanges {
    fn owe(&mut self, request: CounterRequest, debt: u64, unsettled: &mut Unsettled) {
        let most = match request.counting() {
            Counting::Log => request.limit(),
            Counting::Cells(_) => MOST_OWED,
            // As long as a window or a burst is refilled.
            Counting::Gcra(burst) => burst.max(request.limit()),
            // These have no cost, so they are not settled.
            Counting::Slots | Counting::Violations => 0,
        };
        unsettled.forgiven = unsettled.forgiven.max(debt.saturating_sub(most));
        self.debts.push(request.with_permits(debt.min(most)));
    }
}
