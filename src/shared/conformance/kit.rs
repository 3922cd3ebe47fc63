//! Helpers of the checks.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::time::Duration;

use crate::shared::store::{CheckResult, CounterRequest, CounterStore, Counting, StoreError};

/// A store has broken a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenPromise {
    promise: &'static str,
    detail: String,
}

impl BrokenPromise {
    pub(super) fn of(promise: &'static str, detail: &impl fmt::Display) -> Self {
        Self {
            promise,
            detail: detail.to_string(),
        }
    }

    /// The promise.
    #[must_use]
    pub const fn promise(&self) -> &'static str {
        self.promise
    }
}

impl fmt::Display for BrokenPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise, self.detail)
    }
}

impl core::error::Error for BrokenPromise {}

impl From<StoreError> for BrokenPromise {
    fn from(error: StoreError) -> Self {
        Self {
            promise: "the store answers",
            detail: error.to_string(),
        }
    }
}

/// A window that no check outlasts.
pub(super) const LONG: Duration = Duration::from_secs(3600);

/// One permit of a counter of 10 permits, whose name no other check has.
pub(super) fn counter(rule: &str, counting: Counting) -> CounterRequest {
    let key = match counting {
        Counting::Log => 1,
        Counting::Cells(_) => 2,
        Counting::Gcra(_) => 3,
        Counting::Slots => 4,
        Counting::Violations => 5,
    };
    CounterRequest::new(rule, key, counting, 10, LONG)
}

/// Fails unless the promise holds.
pub(super) fn holds(
    promise: &'static str,
    is_kept: bool,
    detail: impl fmt::Debug,
) -> Result<(), BrokenPromise> {
    if is_kept {
        return Ok(());
    }
    Err(BrokenPromise {
        promise,
        detail: format!("{detail:?}"),
    })
}

pub(super) async fn decide(
    store: &dyn CounterStore,
    request: &CounterRequest,
) -> Result<CheckResult, StoreError> {
    store.decide(core::slice::from_ref(request)).await
}

pub(super) async fn left(store: &dyn CounterStore, request: &CounterRequest) -> Result<u64, StoreError> {
    let peeked = store.peek(core::slice::from_ref(request)).await?;
    Ok(peeked.statuses.first().map_or(0, |status| status.remaining))
}
