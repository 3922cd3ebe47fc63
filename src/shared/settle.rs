//! Settling a charge: the reserved amount is replaced by the actual one.

use alloc::vec::Vec;

use super::charges::{Charges, Details, LeaseSpend, StoreCharge};
use super::convert::{counter_request, forfeited};
use super::plan::{CheckPlan, PlannedQuota};
use super::rules::SharedRules;
use super::store::{CounterRequest, Counting, StoreError};
use crate::receipt::Settled;
use crate::rules::{Admitted, Cost};

/// The changes to make in the store.
#[derive(Debug, Default)]
struct StoreChanges {
    refunds: Vec<StoreCharge>,
    debts: Vec<CounterRequest>,
    /// The reading of the store's clock that decided.
    at: u64,
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
        admitted: Admitted<Charges<R>>,
        request: &R,
        cost: &Cost<R>,
        actual: u64,
    ) -> impl Future<Output = Result<Settled, StoreError>> + Send + use<'a, R> {
        let plan = self.hashed_plan(request);
        let changes = self.settle_on_node(admitted, &plan, cost, actual);
        async move { self.settle_in_store(changes).await }
    }

    /// Settles a request by its plan.
    pub(crate) async fn settle_planned(
        &self,
        admitted: Admitted<Charges<R>>,
        plan: &CheckPlan,
        cost: &Cost<R>,
        actual: u64,
    ) -> Result<Settled, StoreError> {
        let changes = self.settle_on_node(admitted, plan, cost, actual);
        self.settle_in_store(changes).await
    }

    /// Refunds what this node can refund by itself. Returns the rest of the charge, which the store refunds.
    pub(crate) fn refund_on_node(&self, admitted: Admitted<Charges<R>>) -> Option<Admitted<Charges<R>>> {
        let decided_by = admitted.decided_by();
        let Charges { spends, details } = admitted.charges;
        for spend in &spends {
            self.return_to_lease(spend);
        }
        let mut details = details?;
        if let Some(states) = details.states.take() {
            self.planner.on_node.refund(states);
        }
        details.store_time?;
        let (spends, details) = (smallvec::SmallVec::new(), Some(details));
        Some(Admitted::new(decided_by, Charges { spends, details }))
    }

    fn settle_on_node(
        &self,
        admitted: Admitted<Charges<R>>,
        plan: &CheckPlan,
        cost: &Cost<R>,
        actual: u64,
    ) -> (StoreChanges, Settled) {
        let (mut changes, mut settled) = (StoreChanges::default(), Settled::Exact);
        let Charges { spends, details } = admitted.charges;
        let quotas: Vec<PlannedQuota<'_>> = self.planner.quotas(plan).collect();
        for spend in &spends {
            let planned = quotas.get(spend.quota as usize);
            let Some(planned) = planned.filter(|planned| self.planner.has_cost(planned.state, cost)) else {
                continue;
            };
            match spend.permits.checked_sub(actual) {
                Some(0) => {}
                Some(excess) => {
                    let excess = LeaseSpend {
                        permits: excess,
                        ..*spend
                    };
                    let lost = self.return_to_lease(&excess);
                    settled = settled.max(forfeited(lost));
                }
                None => settled = settled.max(changes.owe(counter_request(planned), actual - spend.permits)),
            }
        }
        if let Some(details) = details {
            let Details {
                in_store,
                store_time,
                states,
                ..
            } = *details;
            if let Some(states) = states {
                settled = settled.max(self.planner.on_node.settle(states, cost, actual));
            }
            changes.at = store_time.unwrap_or(0);
            for charge in in_store {
                if charge.status.is_none() || !self.planner.has_cost(charge.state, cost) {
                    continue;
                }
                let permits = charge.request.permits();
                match permits.checked_sub(actual) {
                    Some(0) => {}
                    Some(excess) => changes.refunds.push(StoreCharge {
                        request: charge.request.with_permits(excess),
                        ..charge
                    }),
                    None => settled = settled.max(changes.owe(charge.request, actual - permits)),
                }
            }
        }
        (changes, settled)
    }

    async fn settle_in_store(&self, settled: (StoreChanges, Settled)) -> Result<Settled, StoreError> {
        let (changes, mut settled) = settled;
        if !changes.refunds.is_empty() {
            let lost = self.refund_in_store(&changes.refunds, changes.at).await?;
            settled = settled.max(forfeited(lost));
        }
        if !changes.debts.is_empty() {
            self.store.charge(&changes.debts).await?;
        }
        Ok(settled)
    }
}

/// The largest debt of one counter. Stores count up to 2^53.
const MOST_OWED: u64 = 1 << 40;

impl StoreChanges {
    /// Adds a debt, at most the largest that the counter can have, and returns the rest as forgiven.
    fn owe(&mut self, request: CounterRequest, debt: u64) -> Settled {
        let most = match request.counting() {
            Counting::Log => request.limit(),
            Counting::Cells(_) => MOST_OWED,
            // As many permits as are refilled in a window, or in the time of a burst.
            Counting::Gcra(burst) => burst.max(request.limit()),
            // These have no cost, so they are not settled.
            Counting::Slots | Counting::Violations => 0,
        };
        self.debts.push(request.with_permits(debt.min(most)));
        match debt.saturating_sub(most) {
            0 => Settled::Exact,
            forgiven => Settled::Forgiven(forgiven),
        }
    }
}
