//! The promises of blocks.

use core::time::Duration;

use super::kit::{BrokenPromise, LONG, holds};
use crate::quota::Quota;
use crate::rules::Block;
use crate::shared::store::{CheckResult, CounterRequest, CounterStore, Counting};

/// Violations that begin a block.
const VIOLATIONS: u64 = 2;
/// The length of the first block.
const LENGTH: Duration = Duration::from_secs(1);
/// Two ticks of 10 ms, in which the times of blocks are rounded, and a little more.
const TICKS: Duration = Duration::from_millis(30);

pub(super) async fn check(
    store: &dyn CounterStore,
    pause: &impl AsyncFn(Duration),
) -> Result<(), BrokenPromise> {
    let after = Quota::new(VIOLATIONS, LONG).map_err(|error| BrokenPromise::of("a quota", &error))?;
    let block = Block::new(after, LENGTH).escalate(3, 3 * LENGTH, LONG);
    let counter = |rule: &str, key| CounterRequest::new(rule, key, Counting::Log, 1, LONG);
    let violations = |rule: &str, key, block: &Block| {
        CounterRequest::new(rule, key, Counting::Violations, VIOLATIONS, LONG).with_block(block.clone())
    };
    // A request to a rule with a block, and to the rule `beside` without one.
    let of = |rule, key, block: &Block| {
        let other = CounterRequest::new("beside", 90 + key, Counting::Log, 2, LONG);
        [counter(rule, key), other, violations(rule, key, block)]
    };
    let began = |result: &CheckResult| result.statuses[2].receipt == (1, 0);
    let is_blocked = |result: &CheckResult| result.statuses.last().is_some_and(|status| !status.has_room);

    let request = of("strict", 1, &block);
    let admitted = store.decide(&request).await?;
    let promise = "an admission is no violation";
    holds(promise, admitted.is_admitted && !is_blocked(&admitted), &admitted)?;
    let peeked = store.peek(&request).await?;
    let without_permits = [
        counter("strict", 1),
        violations("strict", 1, &block).with_permits(0),
    ];
    let not_counted = store.decide(&without_permits).await?;
    let first = store.decide(&request).await?;
    holds(
        "a denial is a violation if the counter's request has permits, and a peek is none",
        !first.is_admitted && !is_blocked(&peeked) && !is_blocked(&not_counted) && !is_blocked(&first),
        (&peeked, &not_counted, &first),
    )?;
    let second = store.decide(&request).await?;
    let wait = second.statuses[2].retry_after;
    let is_long = |wait: Option<Duration>, length: Duration| {
        wait.is_some_and(|wait| wait <= length + TICKS && wait + LENGTH > length)
    };
    let promise = "the violation that reaches the limit begins a block, with the receipt (1, 0)";
    holds(
        promise,
        began(&second) && is_blocked(&second) && is_long(wait, LENGTH),
        &second,
    )?;

    store.reset(&[request[0].clone()]).await?;
    let blocked = store.decide(&request).await?;
    let promise = "a blocked key is denied even if its rule has room, and no counter is charged";
    let remaining = blocked.statuses[1].remaining;
    let is_kept = !blocked.is_admitted && blocked.statuses[0].has_room && remaining == 1;
    holds(promise, is_kept && !began(&blocked), &blocked)?;
    let other = of("strict", 2, &block);
    let free = store.decide(&other).await?;
    holds("a block applies to one key only", free.is_admitted, &free)?;

    pause(LENGTH + TICKS).await;
    let after_block = store.decide(&request).await?;
    holds("a block ends", after_block.is_admitted, &after_block)?;
    store.charge(&[request[1].clone().with_permits(9)]).await?;
    let by_other = of("lenient", 1, &block);
    for _ in 0..=VIOLATIONS {
        let denied = store.decide(&by_other).await?;
        let promise = "a denial by another rule is no violation";
        holds(promise, !denied.is_admitted && !is_blocked(&denied), &denied)?;
    }
    store.decide(&request).await?;
    let again = store.decide(&request).await?;
    let wait = again.statuses[2].retry_after;
    let promise = "the second block is longer than the first";
    holds(promise, began(&again) && is_long(wait, 3 * LENGTH), &again)?;
    store.reset(&[request[2].clone()]).await?;
    store.decide(&request).await?;
    let reset = store.decide(&request).await?;
    let wait = reset.statuses[2].retry_after;
    let promise = "a reset ends the block, and forgets the earlier ones";
    holds(promise, began(&reset) && is_long(wait, LENGTH), &reset)?;
    of_periods(store, &block).await?;
    extended(store, pause, &block.extend_on_retry()).await
}

/// The violations of a rule count together, although each of its periods has a counter of its own.
async fn of_periods(store: &dyn CounterStore, block: &Block) -> Result<(), BrokenPromise> {
    for violation in 0..=VIOLATIONS {
        let counter =
            CounterRequest::new("periods", 1, Counting::Cells(1), 1, LONG).with_period(60 * violation);
        let violations = CounterRequest::new("periods", 1, Counting::Violations, VIOLATIONS, LONG);
        let request = [counter.with_permits(2), violations.with_block(block.clone())];
        let result = store.decide(&request).await?;
        let promise = "a denial by the counter of a period is a violation of its rule";
        let is_block = result.statuses[1].receipt == (1, 0);
        holds(promise, is_block == (violation + 1 == VIOLATIONS), &result)?;
    }
    Ok(())
}

/// A retry extends a block that extends.
async fn extended(
    store: &dyn CounterStore,
    pause: &impl AsyncFn(Duration),
    block: &Block,
) -> Result<(), BrokenPromise> {
    let counter = CounterRequest::new("extending", 1, Counting::Log, 1, LONG);
    let violations = CounterRequest::new("extending", 1, Counting::Violations, VIOLATIONS, LONG);
    let request = [counter, violations.with_block(block.clone())];
    for _ in 0..=VIOLATIONS {
        store.decide(&request).await?;
    }
    for _ in 0..2 {
        pause(2 * LENGTH / 3).await;
        let retry = store.decide(&request).await?;
        let wait = retry.statuses[1].retry_after.unwrap_or_default();
        let promise = "a retry extends a block that extends";
        holds(
            promise,
            wait > LENGTH / 2 && retry.statuses[1].receipt == (0, 0),
            &retry,
        )?;
    }
    Ok(())
}
