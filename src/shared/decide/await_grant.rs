//! Waits for answers about leases: until a budget is renewed, permits are granted, or permits in the way are given
//! back.

use alloc::vec::Vec;
use core::time::Duration;

use tokio::time::timeout;

use super::{NodeCharges, Remote, closed_status};
use crate::rules::{Mode, QuotaStatus};
use crate::shared::convert::{check_length, counter_request};
use crate::shared::lease::{Lease, SpendResult, WithheldLease, nanos};
use crate::shared::plan::{PlannedQuota, Route, Target};
use crate::shared::rules::{NodeLeases, SharedRules};
use crate::shared::store::{CheckResult, CounterRequest, StoreError, StoreErrorKind};

/// The outcome for a quota that a lease should decide about.
pub(super) enum LeaseOutcome {
    Spent,
    Full(QuotaStatus),
    /// The store decides, and leaves `reserve` permits of the limit free.
    AskStore {
        reserve: u64,
    },
    Failed(StoreError),
}

/// The answer of a lease after the store has denied the request.
pub(super) enum OwnLease {
    HasCapacity,
    WasInTheWay,
    IsNotInTheWay,
}

/// The outcome of a denial by the store that a reserve may have caused.
pub(super) enum WithoutReserve<'a> {
    /// The store has no room, with or without a reserve.
    Denied(CheckResult),
    /// The budgets of this node hold no permits while these exist, so the store decides without a reserve.
    AskAgain(Vec<WithheldLease<'a>>),
}

/// The most answers about a budget that a request waits for, before the store decides.
const ROUNDS: u32 = 8;

/// The longest wait for one answer. A call of the store ends long before.
const PATIENCE: Duration = Duration::from_secs(1);

impl<R: ?Sized> SharedRules<R> {
    /// Spends permits of the lease of a quota, and waits for a budget to be renewed.
    pub(super) async fn by_lease(
        &self,
        planned: &PlannedQuota<'_>,
        target: &Target,
        quota: usize,
        charged: &mut NodeCharges<'_, R>,
    ) -> LeaseOutcome {
        let Some(node) = &self.leases else {
            return LeaseOutcome::AskStore { reserve: 0 };
        };
        let (table, key) = (&node.table, target.lease_key(quota));
        let permits = target.permits();
        let full =
            |left, retry_at| LeaseOutcome::Full(closed_status(planned, left, retry_at, table.clock.now()));
        let (mut at, result) = charged.spend(table, target, quota);
        match result {
            SpendResult::Covered { .. } => return LeaseOutcome::Spent,
            SpendResult::Closed { left, retry_at } => return full(left, retry_at),
            SpendResult::NotCovered => {}
            SpendResult::NotOwner => match table.find_or_begin(key, || lease(planned, node)) {
                Some(begun) => {
                    at = begun;
                    table.note_shortage(at, permits);
                }
                None => return LeaseOutcome::AskStore { reserve: 0 },
            },
        }
        let Mode::Sync { pending, .. } = planned.mode else {
            return self
                .by_registered_lease(planned, target, (at, quota), charged)
                .await;
        };
        let reserve = pending.min(planned.capacity());
        if permits > reserve {
            // No budget is that large. The store leaves this node's budget free.
            return LeaseOutcome::AskStore { reserve };
        }
        let (mut failures, ended) = {
            let inner = table.lock();
            // The next copy of a request that failed is sent in the next period, and this request does not wait for it.
            let is_failing = inner.managers[at].is_failing();
            let failed = inner.error.clone().filter(|_| is_failing);
            (
                inner.managers[at].failures(),
                inner.error_at_end.clone().or(failed),
            )
        };
        if let Some(ended) = ended {
            return LeaseOutcome::Failed(ended);
        }
        for _ in 0..ROUNDS {
            // Before the attempt below, so that an answer after the attempt ends the wait.
            let answer = table.answer_of(at).notified();
            match charged.spend(table, target, quota).1 {
                SpendResult::Covered { .. } => return LeaseOutcome::Spent,
                SpendResult::Closed { left, retry_at } => return full(left, retry_at),
                // Another key has taken over the lease, which held nothing of this key.
                SpendResult::NotOwner => match table.find_or_begin(key, || lease(planned, node)) {
                    Some(begun) => {
                        at = begun;
                        failures = table.lock().managers[at].failures();
                        table.note_shortage(at, permits);
                        continue;
                    }
                    None => return LeaseOutcome::AskStore { reserve: 0 },
                },
                SpendResult::NotCovered => table.note_shortage(at, permits),
            }
            table.mark_dirty(at, true);
            if timeout(PATIENCE, answer).await.is_err() {
                let detail = "no answer about a lease";
                return LeaseOutcome::Failed(StoreError::new(StoreErrorKind::TimedOut, detail));
            }
            let inner = table.lock();
            if let Some(ended) = &inner.error_at_end {
                return LeaseOutcome::Failed(ended.clone());
            }
            if inner.managers[at].failures() != failures
                && let Some(error) = &inner.error
            {
                return LeaseOutcome::Failed(error.clone());
            }
        }
        LeaseOutcome::AskStore { reserve }
    }

    /// Waits for the next answer about a lease in demand, once and for a period at most. So the store gets one call for
    /// all of its requests, instead of one for each.
    async fn by_registered_lease(
        &self,
        planned: &PlannedQuota<'_>,
        target: &Target,
        (at, quota): (usize, usize),
        charged: &mut NodeCharges<'_, R>,
    ) -> LeaseOutcome {
        let Some(node) = &self.leases else {
            return LeaseOutcome::AskStore { reserve: 0 };
        };
        let table = &node.table;
        let full =
            |left, retry_at| LeaseOutcome::Full(closed_status(planned, left, retry_at, table.clock.now()));
        let is_worth_waiting = {
            let inner = table.lock();
            inner.error_at_end.is_none() && inner.managers[at].is_worth_waiting(&table.states[at])
        };
        if !is_worth_waiting || table.states[at].is_closed(table.clock.now()) {
            return LeaseOutcome::AskStore { reserve: 0 };
        }
        // Before the attempt below, so that an answer after the attempt ends the wait.
        let answer = table.answer_of(at).notified();
        match charged.spend(table, target, quota).1 {
            SpendResult::Covered { .. } => return LeaseOutcome::Spent,
            SpendResult::Closed { left, retry_at } => return full(left, retry_at),
            SpendResult::NotOwner => return LeaseOutcome::AskStore { reserve: 0 },
            SpendResult::NotCovered => {}
        }
        table.note_shortage(at, target.permits());
        table.mark_dirty(at, true);
        let _ = timeout(Duration::from_nanos(node.period), answer).await;
        match charged.spend(table, target, quota).1 {
            SpendResult::Covered { .. } => LeaseOutcome::Spent,
            SpendResult::Closed { left, retry_at } => full(left, retry_at),
            SpendResult::NotCovered | SpendResult::NotOwner => LeaseOutcome::AskStore { reserve: 0 },
        }
    }

    /// Finds out whether only the reserves for this node's budgets are in the way of a request that the store has denied. If so,
    /// the node gives the budgets back, and the store is asked again without reserves. So no request is denied because of
    /// permits that no request has spent.
    pub(super) async fn without_reserve(
        &self,
        remote: &Remote<'_>,
        asked: &[usize],
        requests: &mut [CounterRequest],
        denied: &CheckResult,
    ) -> Result<WithoutReserve<'_>, StoreError> {
        let Some(node) = &self.leases else {
            return Ok(WithoutReserve::Denied(denied.clone()));
        };
        let reserved: Vec<bool> = requests.iter().map(|request| request.reserve() > 0).collect();
        for request in &mut *requests {
            *request = request.clone().with_reserve(0);
        }
        let seen = self.store.peek(requests).await?;
        check_length(&seen, requests)?;
        let has_room = |at: usize| denied.statuses()[at].has_room() || !requests[at].is_enforced();
        if (0..requests.len()).any(|at| !reserved[at] && !has_room(at)) {
            // Another counter is full. A denial by it may have begun a block, so its own status stays.
            let both = seen.statuses().iter().zip(denied.statuses()).zip(&reserved);
            let statuses = both.map(|((seen, denied), reserved)| if *reserved { *seen } else { *denied });
            return Ok(WithoutReserve::Denied(CheckResult::denied(
                denied.at(),
                statuses.collect(),
            )));
        }
        if !seen.is_admitted() {
            return Ok(WithoutReserve::Denied(seen));
        }
        let mut withheld = Vec::new();
        for (&quota, _) in asked.iter().zip(&reserved).filter(|(_, reserved)| **reserved) {
            let (target, planned) = (remote.plan.target_of(quota), &remote.quotas[quota]);
            let key = target.lease_key(quota);
            withheld.extend(node.table.withhold(key, || lease(planned, node)));
        }
        {
            let inner = node.table.lock();
            // The next copy of a request that failed is sent in the next period, and this request does not wait for it.
            let is_failing = withheld.iter().any(|lease| inner.managers[lease.at].is_failing());
            if let Some(error) = inner.error.clone().filter(|_| is_failing) {
                return Err(error);
            }
        }
        node.table.release(withheld.iter().map(|lease| lease.at)).await?;
        Ok(WithoutReserve::AskAgain(withheld))
    }

    /// Checks the lease of a quota that the store has denied. The permits of the lease may have been in the way, or may
    /// be about to be granted or given back. No request is denied because of them, unless their last renewal failed.
    pub(super) async fn await_own_lease(
        &self,
        remote: &Remote<'_>,
        quota: usize,
        charged: &mut NodeCharges<'_, R>,
    ) -> OwnLease {
        let target = remote.plan.target_of(quota);
        let (Some(node), Mode::Lease { .. }, Route::Lease) =
            (&self.leases, remote.quotas[quota].mode, target.route)
        else {
            return OwnLease::IsNotInTheWay;
        };
        let (table, key) = (&node.table, target.lease_key(quota));
        let Some(at) = table.find(key) else {
            return OwnLease::IsNotInTheWay;
        };
        // Before the attempt below, so that an answer after the attempt ends the wait.
        let answer = table.answer_of(at).notified();
        match charged.spend(table, target, quota).1 {
            SpendResult::Covered { .. } => return OwnLease::HasCapacity,
            SpendResult::Closed { .. } | SpendResult::NotOwner => return OwnLease::IsNotInTheWay,
            SpendResult::NotCovered => {}
        }
        let is_awaited = {
            let inner = table.lock();
            // The next copy of a request that failed is sent in the next period, and this request does not wait for it.
            inner.managers[at].is_pending() && !inner.managers[at].is_failing()
        };
        if !is_awaited {
            return OwnLease::IsNotInTheWay;
        }
        let _ = timeout(Duration::from_nanos(node.period), answer).await;
        match charged.spend(table, target, quota).1 {
            SpendResult::Covered { .. } => OwnLease::HasCapacity,
            SpendResult::Closed { .. } | SpendResult::NotOwner => OwnLease::IsNotInTheWay,
            SpendResult::NotCovered => OwnLease::WasInTheWay,
        }
    }
}

/// The terms of a new lease.
fn lease(planned: &PlannedQuota<'_>, node: &NodeLeases) -> Lease {
    let (is_registered, most, period) = match planned.mode {
        Mode::Sync { period, pending } => (false, pending, nanos(period)),
        Mode::Lease { permits } => (true, permits, node.period),
        // These modes need no lease.
        Mode::Local | Mode::Strict => (true, 0, node.period),
    };
    // A budget must outlast some renewals.
    let term = if is_registered {
        node.term
    } else {
        node.term.max(4 * period)
    };
    Lease {
        counter: counter_request(planned),
        is_registered,
        most: most.min(planned.capacity()),
        period,
        term,
        margin: node.table.clock.margin(term),
        // Of several quotas of one state, the first one charges it.
        fallback: (planned.state_quota == 0).then_some((
            planned.state,
            planned.extracted.key,
            planned.extracted.limit,
        )),
    }
}
