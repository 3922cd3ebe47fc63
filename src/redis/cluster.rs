//! Requests over several slots of a cluster, which no single script can decide: reserve and refund.
//!
//! All slots are read first, concurrently, and a request that one of them has no room for is denied without a charge. Then
//! the slots are charged one after the other. The slot with the fewest permits left comes first, because other requests are
//! likeliest to exhaust it. If a slot denies after all, the charges before it are refunded.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::store::RedisStore;
use crate::shared::store::join_all;
use crate::shared::{
    CheckResult, CounterRequest, CounterStore, Counting, LeaseGrant, LeaseRequest, StoreError, StoreFuture,
};

/// The requests of one key hash, which share a slot of the cluster, and their positions among all requests.
struct Slot<T> {
    requests: Vec<T>,
    at: Vec<usize>,
}

/// The requests by their slots. `counter` returns the counter of a request.
fn slots_of<T: Clone>(requests: &[T], counter: impl Fn(&T) -> &CounterRequest) -> Vec<Slot<T>> {
    let mut slots: Vec<Slot<T>> = Vec::new();
    for (at, request) in requests.iter().enumerate() {
        let key_hash = counter(request).key_hash();
        let is_same = |slot: &Slot<T>| counter(&slot.requests[0]).key_hash() == key_hash;
        match slots.iter_mut().find(|slot| is_same(slot)) {
            Some(slot) => {
                slot.requests.push(request.clone());
                slot.at.push(at);
            }
            None => slots.push(Slot {
                requests: alloc::vec![request.clone()],
                at: alloc::vec![at],
            }),
        }
    }
    slots
}

fn slots(requests: &[CounterRequest]) -> Vec<Slot<CounterRequest>> {
    slots_of(requests, |request| request)
}

/// The answers of all slots, in the order of the requests.
fn in_order<T, A>(slots: &[Slot<T>], answers: impl Iterator<Item = Vec<A>>) -> Vec<A> {
    let answers = slots.iter().zip(answers);
    let mut answers: Vec<(usize, A)> = answers
        .flat_map(|(slot, answers)| slot.at.iter().copied().zip(answers))
        .collect();
    answers.sort_by_key(|&(at, _)| at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// The results of all slots as one, in the order of the requests.
fn join(slots: &[Slot<CounterRequest>], results: &[CheckResult]) -> CheckResult {
    let statuses = in_order(slots, results.iter().map(|result| result.statuses.clone()));
    // The clocks of servers differ. All of them have reached the newest reading, or will soon.
    let at = results.iter().map(|result| result.at).max().unwrap_or(0);
    if results.iter().all(|result| result.is_admitted) {
        CheckResult::admitted(at, statuses)
    } else {
        CheckResult::denied(at, statuses)
    }
}

/// Whether a denial of the request is a violation.
fn violates(request: &CounterRequest) -> bool {
    request.counting() == Counting::Violations && request.permits() > 0
}

impl RedisStore {
    /// The results that a decision would have. With `counts_violations`, a denial is a violation, as in a decision.
    async fn peek_slots(
        &self,
        slots: &[Slot<CounterRequest>],
        counts_violations: bool,
    ) -> Result<Vec<CheckResult>, StoreError> {
        join_all(slots.iter().map(|slot| {
            let verb = match counts_violations && slot.requests.iter().any(violates) {
                true => "deny",
                false => "peek",
            };
            let peeked: StoreFuture<'_, CheckResult> = Box::pin(self.run_decide(verb, &slot.requests));
            peeked
        }))
        .await
        .into_iter()
        .collect()
    }

    pub(super) async fn peek_spread(&self, requests: &[CounterRequest]) -> Result<CheckResult, StoreError> {
        let slots = slots(requests);
        Ok(join(&slots, &self.peek_slots(&slots, false).await?))
    }

    pub(super) async fn decide_spread(&self, requests: &[CounterRequest]) -> Result<CheckResult, StoreError> {
        let slots = slots(requests);
        let mut results = self.peek_slots(&slots, true).await?;
        if !results.iter().all(|result| result.is_admitted) {
            return Ok(join(&slots, &results));
        }
        let left_after = |&slot: &usize| {
            let both = results[slot].statuses.iter().zip(&slots[slot].requests);
            // A block has no permits that others could take.
            let enforced = both
                .filter(|(_, request)| request.is_enforced() && request.counting() != Counting::Violations);
            let left = enforced.map(|(status, request)| status.remaining.saturating_sub(request.permits()));
            left.min().unwrap_or(u64::MAX)
        };
        let mut scarcest_first: Vec<usize> = (0..slots.len()).collect();
        scarcest_first.sort_by_key(left_after);
        let mut charged: Vec<(usize, CheckResult)> = Vec::new();
        for slot in scarcest_first {
            match self.run_decide("charge", &slots[slot].requests).await {
                Ok(result) if result.is_admitted => charged.push((slot, result)),
                not_admitted => {
                    self.refund_slots(&slots, &charged).await;
                    // The results of the refunded slots stay those of before their charges.
                    results[slot] = not_admitted?;
                    return Ok(join(&slots, &results));
                }
            }
        }
        for (slot, result) in charged {
            results[slot] = result;
        }
        Ok(join(&slots, &results))
    }

    /// Charges debt to every slot, concurrently. An error of one slot leaves the others charged.
    pub(super) async fn charge_spread(&self, requests: &[CounterRequest]) -> Result<(), StoreError> {
        let slots = slots(requests);
        let calls = slots.iter().map(|slot| self.charge(&slot.requests));
        join_all(calls).await.into_iter().collect()
    }

    /// Refunds the charges to these slots. A refund that fails leaves its permits charged, which is stricter.
    async fn refund_slots(&self, slots: &[Slot<CounterRequest>], charged: &[(usize, CheckResult)]) {
        join_all(charged.iter().map(|(slot, result)| {
            let refunded: StoreFuture<'_, u64> = Box::pin(self.run_refund(&slots[*slot].requests, result));
            refunded
        }))
        .await;
    }

    /// Refunds the charges to every slot, concurrently. An error of one slot leaves the others refunded.
    pub(super) async fn refund_spread(
        &self,
        requests: &[CounterRequest],
        charged: &CheckResult,
    ) -> Result<u64, StoreError> {
        let slots: Vec<(Slot<CounterRequest>, CheckResult)> = slots(requests)
            .into_iter()
            .map(|slot| {
                let statuses = slot.at.iter().map(|&at| charged.statuses[at]).collect();
                (slot, CheckResult::admitted(charged.at, statuses))
            })
            .collect();
        let calls = slots
            .iter()
            .map(|(slot, charged)| self.refund(&slot.requests, charged));
        join_all(calls).await.into_iter().sum()
    }

    /// Renews leases of all slots, concurrently.
    pub(super) async fn renew_spread(
        &self,
        requests: &[LeaseRequest],
    ) -> Vec<Result<LeaseGrant, StoreError>> {
        let slots = slots_of(requests, |request| &request.counter);
        let results = join_all(slots.iter().map(|slot| {
            let renewed: StoreFuture<'_, Vec<Result<LeaseGrant, StoreError>>> =
                Box::pin(self.run_renew(&slot.requests));
            renewed
        }))
        .await;
        let answers = slots.iter().zip(results).map(|(slot, result)| match result {
            Ok(grants) => grants,
            Err(error) => slot.at.iter().map(|_| Err(error.clone())).collect(),
        });
        in_order(&slots, answers)
    }

    /// Resets every slot, concurrently. An error of one slot leaves the others reset.
    pub(super) async fn reset_spread(&self, requests: &[CounterRequest]) -> Result<(), StoreError> {
        let slots = slots(requests);
        let calls = slots.iter().map(|slot| self.reset(&slot.requests));
        join_all(calls).await.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::shared::CounterStatus;

    /// The answer about several slots has the newest of their readings, and the statuses in the order of the requests.
    #[test]
    fn the_answers_of_slots_are_joined_in_the_order_of_the_requests() {
        let request = |key| CounterRequest::new("rule", key, Counting::Log, 9, Duration::from_secs(1));
        let slots = slots(&[1, 2, 1].map(request));
        let result = |at, left: &[u64]| {
            let statuses = left.iter().map(|&left| CounterStatus::with_room(left));
            CheckResult::admitted(at, statuses.collect())
        };
        let joined = join(&slots, &[result(9, &[3, 5]), result(7, &[4])]);
        let left: Vec<u64> = joined.statuses.iter().map(|status| status.remaining).collect();
        assert_eq!((joined.at, left), (9, alloc::vec![3, 4, 5]));
    }
}
