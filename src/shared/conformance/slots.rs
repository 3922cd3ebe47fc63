//! The promises of slots in flight.

use core::time::Duration;

use super::kit::{BrokenPromise, counter, decide, holds, left};
use crate::shared::store::{CheckResult, CounterRequest, CounterStatus, CounterStore, Counting};

const TERM: Duration = Duration::from_millis(400);
const LIMIT: u64 = 2;

pub(super) async fn check(
    store: &dyn CounterStore,
    pause: &impl AsyncFn(Duration),
) -> Result<(), BrokenPromise> {
    let slot = |number| CounterRequest::new("slots", 1, Counting::Slots, LIMIT, TERM).with_slot((7, number));
    let (first, second, third) = (slot(1), slot(2), slot(3));
    let one = decide(store, &first).await?;
    let two = decide(store, &second).await?;
    let promise = "a slot is held if fewer than the limit are held";
    holds(promise, one.is_admitted && two.is_admitted, (&one, &two))?;
    let three = decide(store, &third).await?;
    let promise = "no slot beyond the limit is held, and no time frees one";
    let status = three.statuses.first().copied();
    let retry_after = status.and_then(|status| status.retry_after);
    holds(promise, !three.is_admitted && retry_after.is_none(), &three)?;

    // The first slot is renewed, and the second is not.
    pause(TERM / 2).await;
    store.charge(core::slice::from_ref(&first)).await?;
    pause(TERM / 2 + Duration::from_millis(10)).await;
    let free = left(store, &third).await?;
    holds(
        "a slot ends a term after its last renewal, and not before",
        free == 1,
        free,
    )?;
    let again = decide(store, &third).await?;
    holds("a slot that has ended is free", again.is_admitted, &again)?;
    store.charge(core::slice::from_ref(&second)).await?;
    let free = left(store, &third).await?;
    holds("a renewal adds a slot that was lost", free == 0, free)?;

    release(store, &first).await?;
    let free = left(store, &third).await?;
    holds(
        "a slot that was held beyond the limit is not free",
        free == 0,
        free,
    )?;
    release(store, &second).await?;
    release(store, &second).await?;
    let free = left(store, &third).await?;
    holds("a slot is released once", free == 1, free)?;

    let long = CounterRequest::new("slots", 1, Counting::Slots, LIMIT, 9 * TERM).with_slot((7, 4));
    let held = decide(store, &long).await?;
    // A node with a shorter term renews its slot beside it.
    store.charge(core::slice::from_ref(&third)).await?;
    pause(TERM + Duration::from_millis(10)).await;
    let free = left(store, &third).await?;
    let promise = "nodes with different terms share the slots, and each slot ends after the term of its node";
    holds(promise, held.is_admitted && free == 1, (&held, free))?;
    release(store, &long).await?;
    store.charge(core::slice::from_ref(&third)).await?;

    let full = counter("full", Counting::Log).with_permits(10);
    store.charge(core::slice::from_ref(&full)).await?;
    let denied = store.decide(&[first.clone(), full.with_permits(1)]).await?;
    let free = left(store, &third).await?;
    let promise = "a denied request holds no slot";
    holds(promise, !denied.is_admitted && free == 1, (&denied, free))?;
    store.reset(core::slice::from_ref(&third)).await?;
    let free = left(store, &third).await?;
    holds("a reset frees all slots", free == LIMIT, free)
}

async fn release(store: &dyn CounterStore, slot: &CounterRequest) -> Result<(), BrokenPromise> {
    let held = CheckResult::admitted(0, [CounterStatus::with_room(0)].into());
    let lost = store.refund(core::slice::from_ref(slot), &held).await?;
    holds("a release succeeds", lost == 0, lost)
}
