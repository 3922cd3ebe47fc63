//! Waits for answers about leases: until permits are granted, or permits in the way are given back.

use alloc::vec::Vec;
use core::time::Duration;

use tokio::time::timeout;

use super::question::Question;
use super::{NodeCharges, closed_status};
use crate::rules::{Mode, QuotaStatus};
use crate::shared::convert::{check_length, counter_request};
use crate::shared::lease::{Lease, SpendResult, WithheldLease, nanos};
use crate::shared::plan::{PlannedQuota, Target};
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
        let (is_budget, reserve, rounds, patience) = match planned.mode {
            Mode::Sync { .. } => (true, most_permits, ROUNDS, PATIENCE),
            Mode::Lease { .. } | Mode::Local | Mode::Strict => {
                (false, 0, 1, Duration::from_nanos(node.period))
            }
        };
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

    /// Withholds the leases and budgets of this node whose permits alone are in the way of a request that the store has denied, and
    /// takes the reserves for these budgets out of the requests. `None` if the request would be denied without them, too.
    ///
    /// A key without a lease, for which none is free, has nothing to withhold.
    pub(super) fn withhold_own(
        &self,
        question: &mut Question<'_>,
        denied: &CheckResult,
    ) -> Option<Vec<WithheldLease<'_>>> {
        let node = self.leases.as_ref()?;
        let mut in_the_way = Vec::new();
        for (at, (request, status)) in question.requests.iter().zip(&denied.statuses).enumerate() {
            // A reserve that is not in the way now may be in the way of the second attempt.
            if !request.is_enforced() || status.has_room && request.reserve() == 0 {
                continue;
            }
            // The requests for blocks come last, and have no lease.
            let &quota = question.included.get(at)?;
            let key = question.plan.target_of(quota).lease_key(quota);
            // The store knows the permits of a lease, and leaves a budget out of account.
            let left = status.remaining.saturating_add(node.table.most_unspent(key));
            let is_possible = status.retry_after.is_some() && request.permits() <= left;
            if !status.has_room && !is_possible {
                return None;
            }
            in_the_way.push((at, key, quota));
        }
        let mut withheld = Vec::new();
        for (at, key, quota) in in_the_way {
            question.requests[at] = question.requests[at].clone().with_reserve(0);
            let terms = || lease(&question.quotas[quota], node);
            withheld.extend(node.table.withhold(key, terms));
        }
        Some(withheld)
    }

    /// Gives the permits of these leases and budgets back. They have none until `withheld` is dropped.
    pub(super) async fn give_back(&self, withheld: &[WithheldLease<'_>]) -> Result<(), StoreError> {
        let Some(node) = &self.leases else {
            return Ok(());
        };
        for lease in withheld {
            // No request waits for a store that does not answer.
            node.table.error_instead_of_wait(lease.at).map_or(Ok(()), Err)?;
        }
        node.table.release(withheld.iter().map(|lease| lease.at)).await
    }

    /// Asks the store for a decision.
    pub(super) async fn ask(&self, requests: &[CounterRequest]) -> Result<CheckResult, StoreError> {
        let result = self.store.decide(requests).await?;
        check_length(&result, requests)?;
        Ok(result)
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
