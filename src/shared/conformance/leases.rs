//! The promises of leases.

use alloc::vec::Vec;
use core::slice::from_ref;
use core::time::Duration;

use super::kit::{self, BrokenPromise, decide, holds, left};
use crate::shared::store::{CounterRequest, CounterStore, Counting, LeaseGrant, LeaseRequest};

/// A term that no check outlasts.
pub(super) const TERM: Duration = Duration::from_secs(60);

/// One permit of a counter of 10 permits, in a window that no check outlasts.
pub(super) fn counter(rule: &str, counting: Counting) -> CounterRequest {
    let key_hash = kit::counter(rule, counting).key_hash();
    CounterRequest::new(rule, key_hash, counting, 10, Duration::from_secs(600))
}

pub(super) async fn check(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    registered(store, counting).await?;
    copies(store, counting).await?;
    unknown(store, counting).await?;
    budgets(store, counting).await?;
    several_leases(store, counting).await?;
    several_requests(store, counting).await?;
    report_without_room(store, counting).await
}

/// The number of a lease, which no other check has.
pub(super) fn id(counting: Counting, number: u128) -> u128 {
    match counting {
        Counting::Log => number,
        Counting::Cells(_) => number << 8,
        Counting::Gcra(_) => number << 16,
        Counting::Slots | Counting::Violations => number << 24,
    }
}

pub(super) async fn renew(
    store: &dyn CounterStore,
    request: &LeaseRequest,
) -> Result<LeaseGrant, BrokenPromise> {
    let Some(leases) = store.leases() else {
        holds("a store keeps its leases", false, "none")?;
        return Ok(LeaseGrant::unknown());
    };
    match leases.renew(from_ref(request)).await.pop() {
        Some(answer) => Ok(answer?),
        None => {
            holds("every lease request is answered", false, request)?;
            Ok(LeaseGrant::unknown())
        }
    }
}

/// The first request of a new lease for this term, and the permits that it was granted.
pub(super) async fn begin(
    store: &dyn CounterStore,
    counter: &CounterRequest,
    lease_id: u128,
    term: Duration,
) -> Result<(LeaseRequest, u64), BrokenPromise> {
    let request = LeaseRequest::first(counter.clone(), lease_id, 4, term);
    let grant = renew(store, &request).await?;
    let granted = grant.permits.unwrap_or(0);
    let promise = "a new lease is granted at most what it wants, and something while the limit has room";
    holds(promise, (1..=4).contains(&granted), grant)?;
    Ok((request, granted))
}

async fn registered(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let counter = counter("registered", counting);
    let (first, granted) = begin(store, &counter, id(counting, 1), TERM).await?;
    let after = left(store, &counter).await?;
    let promise = "registered permits are no other request's";
    holds(promise, after == 10 - granted, (granted, after))?;
    let above = decide(store, &counter.clone().with_permits(11 - granted)).await?;
    holds(promise, !above.is_admitted, &above)?;
    store.reset(from_ref(&counter)).await?;
    let after = left(store, &counter).await?;
    holds("a reset keeps leases", after == 10 - granted, (granted, after))?;
    // One permit was spent, and the others are given back.
    let grant = renew(store, &first.next(1, 1, 0)).await?;
    let after = left(store, &counter).await?;
    let promise = "a report charges its permits, and gives the others back";
    holds(promise, grant.permits == Some(0) && after == 9, (grant, after))
}

async fn copies(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let counter = counter("copies", counting);
    let (first, granted) = begin(store, &counter, id(counting, 2), TERM).await?;
    let second = first.next(1, granted, 4);
    let grant = renew(store, &second).await?;
    let before = left(store, &counter).await?;
    let copy = renew(store, &second).await?;
    let after = left(store, &counter).await?;
    let promise = "a copy is answered as the first was, and charges nothing";
    let is_kept = copy.permits == grant.permits && before == after;
    holds(promise, is_kept, (grant, copy, before, after))?;
    let promise = "what may be uncharged stays covered";
    let covered = granted - 1;
    holds(
        promise,
        grant.permits.is_some_and(|it| it >= covered),
        (granted, grant),
    )?;
    let old = renew(store, &first).await?;
    let after = left(store, &counter).await?;
    let promise = "an older request changes nothing";
    holds(
        promise,
        old.permits == grant.permits && after == before,
        (old, before, after),
    )
}

async fn unknown(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let counter = counter("unknown", counting);
    let first = LeaseRequest::first(counter.clone(), id(counting, 3), 4, TERM);
    let grant = renew(store, &first.next(2, 2, 4)).await?;
    let after = left(store, &counter).await?;
    let promise = "a lease that the store does not know is unknown, and charges nothing";
    holds(promise, grant.permits.is_none() && after == 10, (grant, after))
}

async fn budgets(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let counter = counter("budgets", counting);
    let mut first = LeaseRequest::first(counter.clone(), id(counting, 4), 10, TERM);
    first.is_registered = false;
    let grant = renew(store, &first).await?;
    let after = left(store, &counter).await?;
    let promise = "a budget is granted, and not registered";
    let is_kept = grant.permits.is_some_and(|it| it > 0) && after == 10;
    holds(promise, is_kept, (grant, after))
}

async fn several_leases(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let counter = counter("several", counting);
    let mut granted = 0;
    for lease in 14..17 {
        let first = LeaseRequest::first(counter.clone(), id(counting, lease), 8, TERM);
        granted += renew(store, &first).await?.permits.unwrap_or(0);
    }
    let after = left(store, &counter).await?;
    let promise = "the registered permits of several leases are no more than the limit";
    holds(promise, granted + after == 10, (granted, after))
}

async fn several_requests(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let promise = "each of several lease requests is answered by itself, in their order";
    let request = |rule, number, wanted| {
        LeaseRequest::first(counter(rule, counting), id(counting, number), wanted, TERM)
    };
    let requests = [
        request("together", 17, 4),
        request("together with one", 18, 1),
        request("together with an unknown one", 19, 4).next(1, 1, 4),
    ];
    let Some(leases) = store.leases() else {
        return holds(promise, false, "a store without leases");
    };
    let mut granted = Vec::new();
    for answer in leases.renew(&requests).await {
        granted.push(answer?.permits);
    }
    let [Some(four @ 1..=4), Some(one @ 1), None] = granted[..] else {
        return holds(promise, false, granted);
    };
    for (request, granted) in requests.iter().zip([four, one, 0]) {
        let after = left(store, &request.counter).await?;
        holds(promise, after == 10 - granted, (request, after))?;
    }
    Ok(())
}

async fn report_without_room(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let counter = counter("overdrawn", counting);
    let (first, granted) = begin(store, &counter, id(counting, 5), TERM).await?;
    let rest = decide(store, &counter.clone().with_permits(10 - granted)).await?;
    holds("the permits beside a lease are free", rest.is_admitted, &rest)?;
    let grant = renew(store, &first.next(granted, granted, 4)).await?;
    let after = left(store, &counter).await?;
    let promise = "a report is charged whether there is room or not, and grants nothing beyond the limit";
    let is_kept = grant.permits == Some(0) && grant.remaining == 0 && after == 0;
    holds(promise, is_kept, (grant, after))
}
