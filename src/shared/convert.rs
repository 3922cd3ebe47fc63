//! Conversions between the rules' types, the store's and the caller's.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::plan::{PlannedQuota, StoredAs, needs_leases};
use super::store::{CheckResult, CounterRequest, CounterStatus, Counting, StoreError, StoreErrorKind};
use crate::receipt::Settled;
use crate::rules::{Block, QuotaStatus};

/// Checks that the store has answered every request.
pub(super) fn check_length(result: &CheckResult, requests: &[CounterRequest]) -> Result<(), StoreError> {
    if result.statuses.len() == requests.len() {
        return Ok(());
    }
    let (answered, asked) = (result.statuses.len(), requests.len());
    let detail = alloc::format!("{answered} statuses (expected {asked})");
    Err(StoreError::new(StoreErrorKind::UnexpectedReply, detail))
}

/// The request to the store for a quota.
pub(super) fn counter_request(planned: &PlannedQuota<'_>) -> CounterRequest {
    let counting = match planned.stored_as {
        StoredAs::Log => Counting::Log,
        StoredAs::Cells(cells) => Counting::Cells(cells),
        StoredAs::Gcra(burst) => Counting::Gcra(burst),
        StoredAs::Slots(_) => Counting::Slots,
        // Each period has a counter of its own, so one cell is enough.
        StoredAs::Periods => Counting::Cells(1),
    };
    let window = match (planned.stored_as, planned.period) {
        (StoredAs::Slots(term), _) => term,
        // A node whose clock is early charges the period before the store's clock reaches it, and a node whose clock is late charges
        // it afterwards. The second length is for the difference of their clocks.
        (_, Some(period)) => 2 * period.length,
        (_, None) => planned.quota.window(),
    };
    let name = Arc::clone(planned.name);
    let request = CounterRequest::new(name, planned.key_hash, counting, planned.limit, window)
        .with_quota_index(planned.index)
        .with_permits(planned.extracted.permits)
        .with_enforced(planned.extracted.enforced)
        .with_leasable(needs_leases(planned.mode));
    match planned.period {
        Some(period) => request.with_period(period.number),
        None => request,
    }
}

/// The block of each rule among the quotas that the store is asked about, with the index of the rule's first quota.
pub(super) fn blocks_of<'a>(quotas: &[PlannedQuota<'a>], asked: &[usize]) -> Vec<(usize, &'a Arc<Block>)> {
    let mut blocks: Vec<(usize, &Arc<Block>)> = Vec::new();
    for &quota in asked {
        let rule = quotas[quota].rule;
        let is_first = blocks.iter().all(|&(other, _)| quotas[other].rule != rule);
        if let Some(block) = quotas[quota].block.filter(|_| is_first) {
            blocks.push((quota, block));
        }
    }
    blocks
}

/// The block of each rule of the request, with the index of the rule's first quota.
pub(super) fn all_blocks<'a>(quotas: &[PlannedQuota<'a>]) -> Vec<(usize, &'a Arc<Block>)> {
    let all: Vec<usize> = (0..quotas.len()).collect();
    blocks_of(quotas, &all)
}

/// The requests to the store for these blocks. With `violates`, a denial of the request is a violation.
pub(super) fn block_requests(
    quotas: &[PlannedQuota<'_>],
    blocks: &[(usize, &Arc<Block>)],
    violates: bool,
) -> impl Iterator<Item = CounterRequest> {
    blocks.iter().map(move |&(quota, block)| {
        let (planned, after) = (&quotas[quota], block.after);
        let name = Arc::clone(planned.name);
        let counting = Counting::Violations;
        CounterRequest::new(name, planned.key_hash, counting, after.limit(), after.window())
            .with_block(Arc::clone(block))
            .with_permits(u64::from(violates))
            .with_leasable(false)
    })
}

/// The status of a block that is in force.
pub(super) fn block_status(planned: &PlannedQuota<'_>, block: &Block, status: &CounterStatus) -> QuotaStatus {
    QuotaStatus {
        quota: block.after,
        limit: block.after.limit(),
        retry_after: status.retry_after,
        reset_after: status.retry_after,
        is_block: true,
        ..planned.unknown_status()
    }
}

/// The status of a quota that the store has decided about.
pub(super) fn remote_status((planned, status): (&PlannedQuota<'_>, &CounterStatus)) -> QuotaStatus {
    let remaining = status.remaining;
    // The store does not know when a period ends.
    let retry_after = match planned.period {
        Some(period) => status.retry_after.map(|wait| match wait {
            Duration::ZERO => wait,
            _ => period.ends_in,
        }),
        None => status.retry_after,
    };
    QuotaStatus {
        remaining,
        retry_after,
        reset_after: longest_reset(planned).filter(|_| remaining < planned.capacity()),
        ..planned.unknown_status()
    }
}

/// The time after which the store no longer counts a permit of now. For a log it is a window, and for a counter a
/// window and a cell. For a bucket it is the time in which the burst is refilled. `None` for slots in flight, which no time frees.
pub(super) fn longest_reset(planned: &PlannedQuota<'_>) -> Option<Duration> {
    let window = planned.quota.window();
    match planned.stored_as {
        StoredAs::Log => Some(window),
        StoredAs::Cells(cells) => {
            let cells = u32::try_from(cells.max(1)).unwrap_or(u32::MAX);
            Some(window.saturating_add(window / cells))
        }
        StoredAs::Gcra(burst) => {
            let nanos = window.as_nanos() * u128::from(burst);
            let nanos = nanos.div_ceil(u128::from(planned.limit.max(1)));
            Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
        }
        StoredAs::Slots(_) => None,
        StoredAs::Periods => Some(planned.period.map_or(window, |period| period.ends_in)),
    }
}

/// The outcome of a refund that has lost this many permits.
pub(super) const fn forfeited(lost: u64) -> Settled {
    match lost {
        0 => Settled::Exact,
        lost => Settled::Forfeited(lost),
    }
}
