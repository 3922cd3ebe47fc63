use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use smallvec::SmallVec;

use super::store::{CheckResult, CounterRequest, StoreError};
use crate::quota::Quota;
use crate::rules::LocalCharge;

/// Where a decision was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecidedBy {
    /// By the store, for all machines.
    Store,
    /// On this node, as the rules' [modes](crate::rules::Mode) allow: by leases, or by its own limiters.
    Local,
    /// On this node, because the store did not answer: by [`OnError`](crate::rules::OnError).
    Fallback,
    /// By the rules alone: none applies to the request, or a list of keys decided.
    Rules,
}

/// Why a request was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// A limit has no room.
    Spent,
    /// The key is on a rule's list of keys that are always denied, or the request lacks a key that it must have
    /// ([`OnMissingKey::Deny`](crate::rules::OnMissingKey)).
    Listed,
    /// The store does not answer, and the rule denies requests then.
    Unavailable,
}

/// The status of one quota of one rule, for one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaStatus {
    pub(super) rule: Arc<str>,
    pub(super) quota: Quota,
    pub(super) limit: u64,
    pub(super) permits: u64,
    pub(super) remaining: u64,
    pub(super) retry_after: Option<Duration>,
    pub(super) enforced: bool,
}

impl QuotaStatus {
    /// The rule's name.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The quota.
    #[must_use]
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// The limit in permits, of the key's tier if it is in one.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The permits that the request costs.
    #[must_use]
    pub const fn permits(&self) -> u64 {
        self.permits
    }

    /// The permits that were left after the decision: of the limit, or of this node's part of it if the node decided.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The time from the decision until the quota has room, if no other request is admitted. `None`: never, or unknown.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether the rule is enforced for this key. A rule in shadow mode is not.
    #[must_use]
    pub const fn is_enforced(&self) -> bool {
        self.enforced
    }
}

/// Permits of a lease that a request has spent.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseSpend {
    /// The quota, by its position in the request.
    pub(super) quota: u32,
    /// The position of the lease, and its epoch.
    pub(super) at: u32,
    pub(super) epoch: u32,
    pub(super) permits: u64,
}

/// Every rule that applies to the request admitted it.
///
/// [`refund`](super::SharedRules::refund) needs it. Dropping it leaves the permits charged.
#[derive(Debug)]
pub struct Admitted {
    pub(super) decided_by: DecidedBy,
    pub(super) spends: SmallVec<[LeaseSpend; 2]>,
    /// `None` if only leases have decided.
    pub(super) details: Option<Box<Details>>,
}

/// The details of an admission that not only leases have decided.
#[derive(Debug, Default)]
pub(super) struct Details {
    pub(super) statuses: Vec<QuotaStatus>,
    pub(super) error: Option<StoreError>,
    pub(super) requests: Vec<CounterRequest>,
    pub(super) result: Option<CheckResult>,
    pub(super) charges: Vec<LocalCharge>,
}

impl Admitted {
    /// Where the decision was made.
    #[must_use]
    pub const fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// The status of each quota that the store has decided about.
    pub fn statuses(&self) -> impl Iterator<Item = &QuotaStatus> {
        self.details.iter().flat_map(|details| &details.statuses)
    }

    /// The reading of the store's clock that decided, in microseconds of the store's time; of Redis, since 1970. `None`:
    /// the store has not decided.
    #[must_use]
    pub fn at(&self) -> Option<u64> {
        self.details.as_ref()?.result.as_ref().map(CheckResult::at)
    }

    /// The error of the store, if it was asked and did not decide.
    #[must_use]
    pub fn error(&self) -> Option<&StoreError> {
        self.details.as_ref()?.error.as_ref()
    }
}

/// At least one rule denied the request.
#[derive(Clone, Debug)]
#[must_use = "a denial that is ignored admits the request"]
pub struct Denied {
    pub(super) decided_by: DecidedBy,
    pub(super) reason: Reason,
    pub(super) violations: Vec<QuotaStatus>,
    pub(super) at: Option<u64>,
    pub(super) error: Option<StoreError>,
}

impl Denied {
    /// Where the decision was made.
    #[must_use]
    pub const fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// Why the request was denied.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// Every quota of an enforced rule that denied the request, at least one.
    pub fn violations(&self) -> impl Iterator<Item = &QuotaStatus> {
        self.violations.iter()
    }

    /// The time from the decision until all rules would admit the same request, if no other is admitted. `None`: never (it
    /// costs more than a limit, or its key is on a list), or unknown (the store does not answer).
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let waits = self.violations.iter().map(QuotaStatus::retry_after);
        waits.reduce(|one, other| Some(one?.max(other?))).unwrap_or(None)
    }

    /// The reading of the store's clock that decided, in microseconds of the store's time. `None`: the store has not
    /// decided.
    #[must_use]
    pub const fn at(&self) -> Option<u64> {
        self.at
    }

    /// The error of the store, if it was asked and did not decide.
    #[must_use]
    pub const fn error(&self) -> Option<&StoreError> {
        self.error.as_ref()
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            Reason::Spent => "rate limit reached: ",
            Reason::Listed => "key is on a deny list: ",
            Reason::Unavailable => "store of the limits does not answer: ",
        })?;
        for (index, violation) in self.violations.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            f.write_str(&violation.rule)?;
            if self.reason == Reason::Spent {
                let (remaining, limit) = (violation.remaining, violation.limit);
                write!(
                    f,
                    " ({remaining} of {limit} per {:?} left)",
                    violation.quota.window()
                )?;
            }
        }
        match (self.reason, self.retry_after()) {
            (Reason::Unavailable, _) => Ok(()),
            (Reason::Spent | Reason::Listed, Some(after)) => write!(f, "; retry after {after:?}"),
            (Reason::Spent | Reason::Listed, None) => f.write_str("; never admitted"),
        }
    }
}

impl core::error::Error for Denied {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(self.error.as_ref()?)
    }
}
