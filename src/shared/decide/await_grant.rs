//! Waits for answers about leases: until permits are granted, or permits in the way are given back.

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
    Covered,
    Denied(QuotaStatus),
    /// The store decides, and leaves `reserve` permits of the limit free.
    AskStore {
        reserve: u64,
    },
    Failed(StoreError),
}

/// The answer of a lease after the store has denied the request.
pub(super) enum OwnLease {
    Covered,
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
    /// Spends permits of the lease of a quota. If the lease has too few, waits for answers that may grant more: for several about a
    /// budget, and for one about a registered lease, for a period at most. So the store gets one call for all requests of the key,
    /// instead of one for each.
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
        // The store does not know a budget, so it is told to leave the budget free.
        let most_permits = most_permits(planned);
        let (reserve, rounds, patience) = match planned.mode {
            Mode::Sync { .. } => (most_permits, ROUNDS, PATIENCE),
            Mode::Lease { .. } | Mode::Local | Mode::Strict => (0, 1, Duration::from_nanos(node.period)),
        };
        let is_budget = matches!(planned.mode, Mode::Sync { .. });
        let mut at = table.find(key);
        for round in 0..=rounds {
            let found = match at {
                Some(at) => at,
                None => match table.find_or_begin(key, || lease(planned, node)) {
                    Some(begun) => {
                        table.note_shortage(begun, permits);
                        begun
                    }
                    None => return LeaseOutcome::AskStore { reserve: 0 },
                },
            };
            // Before the attempt below, so that an answer after the attempt ends the wait.
            let answer = table.answer_of(found).notified();
            match charged.spend(table, target, quota).1 {
                SpendResult::Covered { .. } => return LeaseOutcome::Covered,
                SpendResult::Closed { left, retry_at } => {
                    return LeaseOutcome::Denied(closed_status(planned, left, retry_at, table.clock.now()));
                }
                SpendResult::NotCovered => at = Some(found),
                // Another key has taken over the lease, which held nothing of this key.
                SpendResult::NotOwner => {
                    at = None;
                    continue;
                }
            }
            // No answer grants more than the most permits.
            if round == rounds || permits > most_permits {
                break;
            }
            match table.error_instead_of_wait(found) {
                // The store does not answer about this key, so the rule's `OnError` decides.
                Some(error) if is_budget => return LeaseOutcome::Failed(error),
                Some(_) => break,
                None if !table.is_worth_waiting(found) => break,
                None => {}
            }
            table.note_shortage(found, permits);
            table.mark_urgent(found);
            if timeout(patience, answer).await.is_err() && is_budget {
                let detail = "no answer about a lease";
                return LeaseOutcome::Failed(StoreError::new(StoreErrorKind::TimedOut, detail));
            }
        }
        LeaseOutcome::AskStore { reserve }
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
            // Another counter denies the request, too. Its status stays, because only this one says whether a block began.
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
        if let Some(error) = withheld
            .iter()
            .find_map(|lease| node.table.error_instead_of_wait(lease.at))
        {
            return Err(error);
        }
        node.table.release(withheld.iter().map(|lease| lease.at)).await?;
        Ok(WithoutReserve::AskAgain(withheld))
    }

    /// Checks the lease of a quota that the store has denied. If an answer about the lease is awaited, waits for it, for a period at
    /// most: it may grant permits, or have given back those that were in the way.
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
            SpendResult::Covered { .. } => return OwnLease::Covered,
            SpendResult::Closed { .. } | SpendResult::NotOwner => return OwnLease::IsNotInTheWay,
            SpendResult::NotCovered => {}
        }
        if !table.lock().managers[at].is_asking() {
            return OwnLease::IsNotInTheWay;
        }
        let _ = timeout(Duration::from_nanos(node.period), answer).await;
        match charged.spend(table, target, quota).1 {
            SpendResult::Covered { .. } => OwnLease::Covered,
            SpendResult::Closed { .. } | SpendResult::NotOwner => OwnLease::IsNotInTheWay,
            SpendResult::NotCovered => OwnLease::WasInTheWay,
        }
    }
}

/// The most permits that a lease of the quota may have.
fn most_permits(planned: &PlannedQuota<'_>) -> u64 {
    match planned.mode {
        Mode::Sync { pending, .. } => pending.min(planned.capacity()),
        // The store grants at most half of the free permits. If a request of more were demand, the lease would get that half
        // again for each retry, and the store would deny the request because of it.
        Mode::Lease { permits } => permits.min(planned.capacity().div_ceil(2)),
        // These modes need no lease.
        Mode::Local | Mode::Strict => 0,
    }
}

/// The terms of a new lease.
fn lease(planned: &PlannedQuota<'_>, node: &NodeLeases) -> Lease {
    let (is_registered, period) = match planned.mode {
        Mode::Sync { period, .. } => (false, nanos(period)),
        Mode::Lease { .. } | Mode::Local | Mode::Strict => (true, node.period),
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
        most_permits: most_permits(planned),
        period,
        term,
        margin: node.table.clock.margin(term),
        // If one state has several quotas, the lease of the first one charges the limiter.
        fallback: (planned.state_quota == 0).then_some((
            planned.state,
            planned.extracted.key,
            planned.extracted.limit,
        )),
    }
}
