use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use smallvec::SmallVec;

use super::slots::HeldSlots;
use super::store::{CheckResult, CounterRequest, StoreError};
use crate::rules::{Denial, NodeCharge, QuotaStatus};
use crate::time::Nanos;

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

/// Permits of a lease that a request has spent.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseSpend {
    /// The quota, by its position in the request.
    pub(super) quota: u32,
    /// The state of this node for the quota, and its position there.
    pub(super) state: u16,
    pub(super) member: u16,
    /// The position of the lease, and its epoch.
    pub(super) at: u32,
    pub(super) epoch: u32,
    pub(super) permits: u64,
}

/// Every rule that applies to the request admitted it.
///
/// [`refund`](super::SharedRules::refund) needs it. Dropping it leaves the permits charged, and releases the slots of rules that limit
/// [requests in flight](crate::Rule::in_flight). So keep it until the work is done.
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
    pub(super) charges: Vec<NodeCharge>,
    /// The slots in flight. The other fields do not have them.
    pub(super) slots: HeldSlots,
}

impl Admitted {
    /// Where the decision was made.
    #[must_use]
    pub const fn decided_by(&self) -> DecidedBy {
        self.decided_by
    }

    /// Whether any rule applied to the request: it was charged, or admitted because the store did not answer.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.decided_by != DecidedBy::Rules
    }

    /// Whether it holds a slot of a rule that limits [requests in flight](crate::Rule::in_flight).
    #[must_use]
    pub fn holds_slots(&self) -> bool {
        self.details
            .as_ref()
            .is_some_and(|details| !details.slots.is_empty())
    }

    /// Takes the slots, in an admission without charges.
    pub(crate) fn take_slots(&mut self) -> Self {
        let slots = self
            .details
            .as_mut()
            .map(|details| core::mem::take(&mut details.slots));
        Self {
            decided_by: self.decided_by,
            spends: SmallVec::new(),
            details: slots.map(|slots| {
                Box::new(Details {
                    slots,
                    ..Details::default()
                })
            }),
        }
    }

    /// The status of each quota that the store has decided about.
    pub fn statuses(&self) -> impl Iterator<Item = &QuotaStatus> {
        self.known_statuses().iter()
    }

    /// The statuses that came with the decision.
    pub(crate) fn known_statuses(&self) -> &[QuotaStatus] {
        self.details.as_ref().map_or(&[], |details| &details.statuses)
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
    /// First those of the violations, and then those of other quotas that the store has decided about.
    pub(super) statuses: Vec<QuotaStatus>,
    pub(super) violations: usize,
    /// The reading of this node's clock.
    pub(super) denied_at: Nanos,
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
        self.statuses[..self.violations].iter()
    }

    /// The statuses that came with the decision.
    pub(crate) fn known_statuses(&self) -> &[QuotaStatus] {
        &self.statuses
    }

    /// The time from the decision until all rules would admit the same request, if no other is admitted. `None`: never (it
    /// costs more than a limit, or its key is on a list), or unknown (the store does not answer, or another request in flight has
    /// to end first).
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let waits = self.violations().map(QuotaStatus::retry_after);
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

impl Denial for Denied {
    fn denied_at(&self) -> Nanos {
        self.denied_at
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after()
    }

    fn violated_quotas(&self) -> Vec<QuotaStatus> {
        self.violations().cloned().collect()
    }

    fn is_unavailable(&self) -> bool {
        self.reason == Reason::Unavailable
    }
}

/// Whether the quota has capacity once another request has ended.
fn awaits_slot(violation: &QuotaStatus) -> bool {
    violation.quota.is_in_flight() && violation.limit > 0
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            Reason::Spent => "rate limit reached: ",
            Reason::Listed => "key is on a deny list: ",
            Reason::Unavailable => "store of the limits does not answer: ",
        })?;
        for (index, violation) in self.violations().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            f.write_str(&violation.rule)?;
            if violation.is_block() {
                f.write_str(" (blocked)")?;
            } else if self.reason == Reason::Spent {
                let (remaining, limit) = (violation.remaining, violation.limit);
                write!(
                    f,
                    " ({remaining} of {limit} {} left)",
                    violation.quota.per_window()
                )?;
            }
        }
        match (self.reason, self.retry_after()) {
            (Reason::Unavailable, _) => Ok(()),
            (Reason::Spent | Reason::Listed, Some(after)) => write!(f, "; retry after {after:?}"),
            (Reason::Spent, None) if self.violations().any(awaits_slot) => {
                f.write_str("; try again when a request has ended")
            }
            (Reason::Spent | Reason::Listed, None) => f.write_str("; never admitted"),
        }
    }
}

impl core::error::Error for Denied {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(self.error.as_ref()?)
    }
}
