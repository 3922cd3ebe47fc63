//! The promises of counters that do not depend on time.

use super::kit::{BrokenPromise, LONG, counter, decide, holds, left};
use crate::shared::store::{CounterRequest, CounterStore, Counting, join_all};
use alloc::format;

pub(super) async fn check(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    limits(store, counting).await?;
    changed_limits(store, counting).await?;
    several_counters(store, counting).await?;
    rules_in_shadow_mode(store, counting).await?;
    refunds(store, counting).await?;
    debts(store, counting).await?;
    separate_names(store, counting).await?;
    concurrent_requests(store, counting).await
}

async fn limits(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let one = counter("limits", counting);
    for charged in 1..=10 {
        let result = decide(store, &one).await?;
        let promise = "a counter admits its limit, and counts down";
        let is_kept = result.is_admitted && result.statuses[0].remaining == 10 - charged;
        holds(promise, is_kept, &result)?;
    }
    let denied = decide(store, &one).await?;
    let promise = "a full counter denies, and says when it has room";
    let status = denied.statuses[0];
    let is_kept = !denied.is_admitted && !status.has_room && status.remaining == 0;
    holds(promise, is_kept && status.retry_after.is_some(), &denied)?;
    let never = decide(store, &one.clone().with_permits(11)).await?;
    let promise = "a request above the limit is never admitted";
    let is_kept = !never.is_admitted && never.statuses[0].retry_after.is_none();
    holds(promise, is_kept, &never)?;
    store.reset(core::slice::from_ref(&one)).await?;
    let after = left(store, &one).await?;
    holds("a reset forgets every permit", after == 10, after)?;
    let reserved = one.clone().with_reserve(4);
    let above = decide(store, &reserved.clone().with_permits(7)).await?;
    let within = decide(store, &reserved.with_permits(6)).await?;
    let promise = "a reserve stays free, and a status leaves it out of account";
    let is_above = !above.is_admitted && above.statuses[0].has_room;
    let left = (above.statuses[0].remaining, within.statuses[0].remaining);
    let is_kept = is_above && within.is_admitted && left == (10, 4);
    holds(promise, is_kept, (&above, &within))
}

async fn changed_limits(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let before = counter("changed", counting);
    let charged = decide(store, &before.clone().with_permits(6)).await?;
    holds("a counter admits its limit", charged.is_admitted, &charged)?;
    for (limit, expected) in [(20, 14), (5, 0), (10, 4)] {
        let counting = match counting {
            Counting::Gcra(_) => Counting::Gcra(limit),
            Counting::Log | Counting::Cells(_) | Counting::Slots | Counting::Violations => counting,
        };
        let after = CounterRequest::new("changed", before.key_hash(), counting, limit, LONG);
        let free = left(store, &after).await?;
        let promise = "a changed limit, or burst, applies to what was charged before";
        holds(promise, free == expected, (limit, free))?;
    }
    Ok(())
}

async fn several_counters(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let (one, other) = (counter("several", counting), counter("several 2", counting));
    let full = decide(store, &other.clone().with_permits(10)).await?;
    holds("a counter admits its limit at once", full.is_admitted, &full)?;
    let both = [one.clone(), other.clone()];
    let denied = store.decide(&both).await?;
    let promise = "a request that one counter denies is charged to none";
    let after = left(store, &one).await?;
    let rooms: alloc::vec::Vec<bool> = denied.statuses.iter().map(|status| status.has_room).collect();
    let is_kept = !denied.is_admitted && rooms == [true, false] && after == 10;
    holds(promise, is_kept, (&denied, after))?;
    let peeked = store.peek(core::slice::from_ref(&one)).await?;
    let after = left(store, &one).await?;
    let promise = "a peek answers what a decision would, and charges nothing";
    holds(promise, peeked.is_admitted && after == 10, (&peeked, after))
}

async fn rules_in_shadow_mode(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let enforced = counter("enforced", counting);
    let shadow = counter("shadow", counting).with_enforced(false);
    let second = shadow.clone().with_quota_index(1);
    let periods = (shadow.clone().with_period(60), second.clone().with_period(3600));
    for ((shadow, second), left_after) in [((shadow, second), 9), (periods, 8)] {
        decide(store, &second.clone().with_permits(10)).await?;
        let all = [enforced.clone(), shadow.clone(), second];
        let result = store.decide(&all).await?;
        let promise = "a rule that is not enforced denies nothing, and is charged only as a whole";
        let charged: alloc::vec::Vec<bool> = result.statuses.iter().map(|status| status.is_charged).collect();
        let after = (left(store, &enforced).await?, left(store, &shadow).await?);
        let is_kept = result.is_admitted && charged == [true, false, false] && after == (left_after, 10);
        holds(promise, is_kept, (&result, after))?;
    }
    Ok(())
}

async fn refunds(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let requests = [counter("refunds", counting).with_permits(4)];
    store.decide(&requests).await?;
    let second = store.decide(&requests).await?;
    let lost = store.refund(&requests, &second).await?;
    let after = left(store, &requests[0]).await?;
    let promise = "a refund takes back what one decision charged";
    holds(promise, (lost, after) == (0, 6), (lost, after))?;
    store.reset(&requests).await?;
    let third = store.decide(&requests).await?;
    let lost = store.refund(&requests, &second).await?;
    let after = left(store, &requests[0]).await?;
    let promise = "a refund takes back nothing that others were charged";
    holds(promise, (lost, after) == (4, 6), (&third, lost, after))?;
    // A counter is charged after a reset as it was before, perhaps at the same time.
    let again = [counter("refunds 2", counting).with_permits(4)];
    let first = store.decide(&again).await?;
    store.reset(&again).await?;
    // So many other counters that the store may remove the one that was reset.
    for other in 0..200 {
        decide(
            store,
            &counter(&format!("refunds of other keys, {other}"), counting),
        )
        .await?;
    }
    let second = store.decide(&again).await?;
    let lost = store.refund(&again, &first).await?;
    let after = left(store, &again[0]).await?;
    let promise = "a refund takes back nothing that was charged after a reset";
    holds(promise, (lost, after) == (4, 6), (&second, lost, after))?;
    let denied = store.decide(&[requests[0].clone().with_permits(7)]).await?;
    let lost = store.refund(&requests, &denied).await?;
    let promise = "a denial has nothing to refund";
    holds(promise, lost == 0 && left(store, &requests[0]).await? == 6, lost)
}

async fn debts(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let one = [counter("debts", counting).with_permits(8)];
    let first = store.decide(&one).await?;
    store.charge(&[one[0].clone().with_permits(6)]).await?;
    let after = left(store, &one[0]).await?;
    let promise = "debt is charged whether there is room or not";
    holds(promise, first.is_admitted && after == 0, after)?;
    let lost = store.refund(&[one[0].clone().with_permits(5)], &first).await?;
    let after = left(store, &one[0]).await?;
    let promise = "a part of a charge can be refunded";
    // 8 and 6 were charged, and 5 were taken back. A bucket takes back only what was charged last.
    let expected = match counting {
        Counting::Gcra(_) => (5, 0),
        Counting::Log | Counting::Cells(_) | Counting::Slots | Counting::Violations => (0, 1),
    };
    holds(promise, (lost, after) == expected, (lost, after))
}

async fn separate_names(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let one = counter("names", counting);
    decide(store, &one.clone().with_permits(10)).await?;
    let in_period = one.clone().with_period(60);
    decide(store, &in_period.clone().with_permits(10)).await?;
    let others = [
        counter("names 2", counting),
        one.clone().with_quota_index(1),
        CounterRequest::new("names", 99, counting, 10, one.window()),
        one.clone().with_period(0),
        one.clone().with_period(120),
        in_period.with_quota_index(1),
    ];
    for other in others {
        let after = left(store, &other).await?;
        holds("counters of other names are apart", after == 10, (&other, after))?;
    }
    Ok(())
}

async fn concurrent_requests(store: &dyn CounterStore, counting: Counting) -> Result<(), BrokenPromise> {
    let one = [counter("concurrent", counting)];
    let results = join_all((0..50).map(|_| store.decide(&one))).await;
    let mut admitted = 0;
    for result in results {
        admitted += u64::from(result?.is_admitted);
    }
    let promise = "concurrent requests are admitted up to the limit, and no further";
    holds(promise, admitted == 10, admitted)
}
