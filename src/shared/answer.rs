use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use smallvec::SmallVec;

use super::plan::PlannedQuota;
use super::slots::StoreSlots;
use super::store::{CounterRequest, CounterStatus, StoreError};
use crate::rules::{Denial, QuotaStatus, Reservation, write_retry, write_violations};
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
pub struct Admitted<R: ?Sized> {
    pub(super) decided_by: DecidedBy,
    pub(super) spends: SmallVec<[LeaseSpend; 2]>,
    /// `None` if only leases have decided.
    pub(super) details: Option<Box<Details<R>>>,
}

/// Permits that the store has charged for one quota, or that were admitted because it did not answer.
#[derive(Debug)]
pub(super) struct StoreCharge {
    /// The state of this node for the quota, and its position there.
    pub(super) state: u16,
    pub(super) member: u16,
    pub(super) request: CounterRequest,
    /// `None`: the store did not answer.
    pub(super) status: Option<CounterStatus>,
}

impl StoreCharge {
    pub(super) const fn new(
        planned: &PlannedQuota<'_>,
        request: CounterRequest,
        status: Option<CounterStatus>,
    ) -> Self {
        Self {
            state: planned.state,
            member: planned.state_quota as u16,
            request,
            status,
        }
    }
}

/// The details of an admission that not only leases have decided.
pub(super) struct Details<R: ?Sized> {
    pub(super) statuses: Vec<QuotaStatus>,
    pub(super) error: Option<StoreError>,
    /// The charges of the store, without slots in flight.
    pub(super) in_store: Vec<StoreCharge>,
    /// The reading of the store's clock that decided.
    pub(super) at: Option<u64>,
    /// The charges of states of this node, and their slots in flight.
    pub(super) states: Option<Reservation<R>>,
    /// The slots in flight that the store holds.
    pub(super) slots: Option<StoreSlots>,
}

impl<R: ?Sized> Default for Details<R> {
    fn default() -> Self {
        Self {
            statuses: Vec::new(),
            error: None,
            in_store: Vec::new(),
            at: None,
            states: None,
            slots: None,
        }
    }
}

impl<R: ?Sized> Admitted<R> {
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
        self.details.as_ref().is_some_and(|details| {
            details.slots.is_some() || details.states.as_ref().is_some_and(Reservation::holds_slots)
        })
    }

    /// Takes the slots, in an admission without charges.
    pub(crate) fn take_slots(&mut self) -> Self {
        let details = self.details.as_mut().map(|details| Details {
            states: details.states.as_mut().map(Reservation::take_slots),
            slots: details.slots.take(),
            ..Details::default()
        });
        Self {
            decided_by: self.decided_by,
            spends: SmallVec::new(),
            details: details.map(Box::new),
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
        self.details.as_ref()?.at
    }

    /// The error of the store, if it was asked and did not decide.
    #[must_use]
    pub fn error(&self) -> Option<&StoreError> {
        self.details.as_ref()?.error.as_ref()
    }
}

impl<R: ?Sized> fmt::Debug for Admitted<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admitted")
            .field("decided_by", &self.decided_by)
            .field("leases", &self.spends.len())
            .field("statuses", &self.known_statuses())
            .field("error", &self.error())
            .finish_non_exhaustive()
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

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = match self.reason {
            Reason::Spent => "rate limit reached: ",
            Reason::Listed => "key is on a deny list: ",
            Reason::Unavailable => "store of the limits does not answer: ",
        };
        let (violations, spent) = (&self.statuses[..self.violations], self.reason == Reason::Spent);
        write_violations(f, reason, violations, spent)?;
        if self.reason == Reason::Unavailable {
            return Ok(());
        }
        let awaits_slot = |violation: &QuotaStatus| violation.quota.is_in_flight() && violation.limit > 0;
        write_retry(f, self.retry_after(), spent && violations.iter().any(awaits_slot))
    }
}

impl core::error::Error for Denied {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(self.error.as_ref()?)
    }
}
