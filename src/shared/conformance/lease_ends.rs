//! The promises of leases whose nodes are silent.

use core::time::Duration;

use super::kit::{BrokenPromise, holds, left};
use super::leases::{self, begin, counter, id, renew};
use crate::shared::store::{CounterRequest, CounterStore, Counting, LeaseRequest};

const TERM: Duration = Duration::from_millis(100);
const WINDOW: Duration = Duration::from_millis(200);

/// A term that is longer than a slow answer of the store.
const LONG_TERM: Duration = Duration::from_secs(1);

pub(super) async fn check(
    store: &dyn CounterStore,
    counting: Counting,
    pause: &impl AsyncFn(Duration),
) -> Result<(), BrokenPromise> {
    kept_after_its_end(store, counting, pause).await?;
    held_beyond_its_window(store, counting, pause).await?;
    renewed_by_a_copy(store, counting, pause).await?;
    free_after_its_window(store, counting, pause).await?;
    ended_budget(store, counting, pause).await
}

async fn kept_after_its_end(
    store: &dyn CounterStore,
    counting: Counting,
    pause: &impl AsyncFn(Duration),
) -> Result<(), BrokenPromise> {
    let counter = counter("kept", counting);
    let (first, granted) = begin(store, &counter, id(counting, 6), TERM).await?;
    pause(TERM + TERM / 10).await;
    let grant = renew(store, &first.next(1, granted, 4)).await?;
    let promise = "a lease ends with its term, and is unknown then";
    holds(promise, grant.permits.is_none(), grant)?;
    let after = left(store, &counter).await?;
    let promise = "registered permits are kept for a window after their lease has ended";
    holds(promise, after == 10 - granted, (granted, after))
}

/// A counter like [`counter`], in a window that a check outlasts.
fn of_window(rule: &str, counting: Counting) -> CounterRequest {
    CounterRequest::new(rule, counter(rule, counting).key_hash(), counting, 10, WINDOW)
}

async fn held_beyond_its_window(
    store: &dyn CounterStore,
    counting: Counting,
    pause: &impl AsyncFn(Duration),
) -> Result<(), BrokenPromise> {
    let counter = of_window("held", counting);
    let (_, granted) = begin(store, &counter, id(counting, 12), leases::TERM).await?;
    pause(2 * WINDOW).await;
    let after = left(store, &counter).await?;
    let promise = "registered permits are held a window longer than their term";
    holds(promise, after == 10 - granted, (granted, after))
}

async fn renewed_by_a_copy(
    store: &dyn CounterStore,
    counting: Counting,
    pause: &impl AsyncFn(Duration),
) -> Result<(), BrokenPromise> {
    let counter = counter("renewed", counting);
    let (first, granted) = begin(store, &counter, id(counting, 13), LONG_TERM).await?;
    pause(LONG_TERM * 6 / 10).await;
    renew(store, &first).await?;
    // After the term of the first copy, and before that of the second one.
    pause(LONG_TERM / 2).await;
    let grant = renew(store, &first.next(0, granted, 4)).await?;
    holds("a copy renews the term", grant.permits.is_some(), grant)
}

async fn free_after_its_window(
    store: &dyn CounterStore,
    counting: Counting,
    pause: &impl AsyncFn(Duration),
) -> Result<(), BrokenPromise> {
    let counter = of_window("given back", counting);
    for lease in 7..10 {
        begin(store, &counter, id(counting, lease), TERM).await?;
    }
    // Permits may be held an eighth longer. One millisecond more is for rounding.
    pause((TERM + WINDOW) * 9 / 8 + Duration::from_millis(1)).await;
    let after = left(store, &counter).await?;
    let promise = "registered permits are free a window after their leases have ended";
    holds(promise, after == 10, after)
}

async fn ended_budget(
    store: &dyn CounterStore,
    counting: Counting,
    pause: &impl AsyncFn(Duration),
) -> Result<(), BrokenPromise> {
    let counter = counter("carried", counting);
    let mut first = LeaseRequest::first(counter.clone(), id(counting, 10), 4, TERM);
    first.is_registered = false;
    renew(store, &first).await?;
    pause(TERM + TERM / 10).await;
    let grant = renew(store, &first.next(3, 4, 4)).await?;
    let after = left(store, &counter).await?;
    let promise = "a budget ends with its term, and its report charges nothing then";
    holds(promise, grant.permits.is_none() && after == 10, (grant, after))?;
    let mut second = LeaseRequest::first(counter.clone(), id(counting, 11), 4, TERM);
    (second.is_registered, second.charge, second.cap) = (false, 3, 3);
    renew(store, &second).await?;
    let after = left(store, &counter).await?;
    let promise = "a new budget charges what was spent under one that has ended";
    holds(promise, after == 7, after)
}
