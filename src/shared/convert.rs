//! Conversions between the rules' types, the store's and the caller's.

use alloc::sync::Arc;

use super::answer::QuotaStatus;
use super::store::{CheckResult, CounterRequest, CounterStatus, Counting, StoreError, StoreErrorKind};
use crate::rules::{FullQuota, Mode, PlannedQuota};

/// Checks that the store has answered every request.
pub(super) fn check_length(result: &CheckResult, requests: &[CounterRequest]) -> Result<(), StoreError> {
    if result.statuses().len() == requests.len() {
        return Ok(());
    }
    let (answered, asked) = (result.statuses().len(), requests.len());
    let detail = alloc::format!("{answered} statuses (expected {asked})");
    Err(StoreError::new(StoreErrorKind::UnexpectedReply, detail))
}

/// The request to the store for a quota.
pub(super) fn counter_request(planned: &PlannedQuota<'_>) -> CounterRequest {
    let counting = planned.cells.map_or(Counting::Log, Counting::Cells);
    CounterRequest::new(
        Arc::clone(planned.name),
        planned.key_hash,
        counting,
        planned.limit,
        planned.quota.window(),
    )
    .with_quota_index(planned.index)
    .with_permits(planned.permits)
    .with_enforced(planned.enforced)
    .with_leasable(matches!(planned.mode, Mode::Lease { .. } | Mode::Sync { .. }))
}

/// The status of a quota that the store has decided about.
pub(super) fn remote_status((planned, status): (&PlannedQuota<'_>, &CounterStatus)) -> QuotaStatus {
    QuotaStatus {
        remaining: status.remaining(),
        retry_after: status.retry_after(),
        ..unknown_status(planned)
    }
}

/// The status of a quota that a limiter of this node has decided about.
pub(super) fn local_status(planned: &PlannedQuota<'_>, full: &FullQuota) -> QuotaStatus {
    QuotaStatus {
        remaining: full.remaining,
        retry_after: full.retry_after,
        ..unknown_status(planned)
    }
}

/// The status of a quota before any decision.
pub(super) fn unknown_status(planned: &PlannedQuota<'_>) -> QuotaStatus {
    QuotaStatus {
        rule: Arc::clone(planned.name),
        quota: planned.quota,
        limit: planned.limit,
        permits: planned.permits,
        remaining: 0,
        retry_after: None,
        enforced: planned.enforced,
    }
}
