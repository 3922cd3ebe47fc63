//! The promises of counters over time.

use core::time::Duration;

use super::kit::{BrokenPromise, LONG, counter, decide, holds};
use crate::shared::store::{CounterRequest, CounterStore, Counting};

const WINDOW: Duration = Duration::from_millis(400);
const LIMIT: u64 = 10;

pub(super) async fn check(
    store: &dyn CounterStore,
    counting: Counting,
    pause: &impl AsyncFn(Duration),
) -> Result<(), BrokenPromise> {
    let key = counter("windows", counting).key_hash();
    let most = match counting {
        // A full bucket, and the permits that are refilled in a window.
        Counting::Gcra(burst) => burst + LIMIT - 1,
        Counting::Log | Counting::Cells(_) | Counting::Slots | Counting::Violations => LIMIT,
    };
    let request = CounterRequest::new("windows", key, counting, LIMIT, WINDOW).with_permits(3);
    let mut admitted: alloc::vec::Vec<u64> = alloc::vec::Vec::new();
    for round in 0..40 {
        let result = decide(store, &request).await?;
        if result.is_admitted {
            admitted.push(result.at);
        } else {
            let status = result.statuses[0];
            let promise = "a full counter says when it has room";
            let after = status.retry_after;
            holds(promise, after.is_some_and(|after| after < LONG), &result)?;
            // A moment more, since a store may count whole microseconds.
            pause(after.unwrap_or_default() + Duration::from_millis(1)).await;
            let result = decide(store, &request).await?;
            let promise = "a counter has room when it said that it would have";
            holds(promise, result.is_admitted, (after, &result))?;
            admitted.push(result.at);
        }
        pause(WINDOW / 40 * (round % 7)).await;
        let last = admitted[admitted.len() - 1];
        let window = u64::try_from(WINDOW.as_micros()).unwrap_or(u64::MAX);
        let within = admitted.iter().filter(|&&at| at + window > last).count() as u64;
        let promise = "no window holds more than the limit";
        holds(promise, 3 * within <= most, (within, &admitted))?;
    }
    Ok(())
}
