use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use smallvec::SmallVec;

use super::plan::PlannedQuota;
use super::slots::StoreSlots;
use super::store::{CounterRequest, CounterStatus, StoreError};
use crate::rules::{Admitted, DecidedBy, Denied, QuotaStatus, Reservation};

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

/// The charges of a request that shared rules have admitted: of leases, of the store, and of states of this node.
///
/// [`refund`](super::SharedRules::refund) and [`settle`](super::SharedRules::settle) need them. Dropping them leaves the permits
/// charged, and releases the slots of rules that limit [requests in flight](crate::Rule::in_flight). So keep the [`Admitted`] until
/// the work is done.
pub struct Charges<R: ?Sized> {
    pub(super) spends: SmallVec<[LeaseSpend; 2]>,
    /// `None` if only leases have decided.
    pub(super) details: Option<Box<Details<R>>>,
}

/// The decision of shared rules about a request.
pub type Decision<R> = Result<Admitted<Charges<R>>, Denied<'static>>;

/// An admission with these charges. The details are in a box, because the answer is moved several times and most answers have none.
#[inline(always)]
pub(super) fn admitted<R: ?Sized>(
    decided_by: DecidedBy,
    spends: SmallVec<[LeaseSpend; 2]>,
    details: Option<Details<R>>,
) -> Admitted<Charges<R>> {
    let details = details.map(Box::new);
    Admitted::new(decided_by, Charges { spends, details })
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
    pub(super) store_time: Option<u64>,
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
            store_time: None,
            states: None,
            slots: None,
        }
    }
}

impl<R: ?Sized> Admitted<Charges<R>> {
    /// Returns whether the admission holds a slot of a rule that limits [requests in flight](crate::Rule::in_flight).
    #[must_use]
    pub fn holds_slots(&self) -> bool {
        self.charges.details.as_ref().is_some_and(|details| {
            details.slots.is_some() || details.states.as_ref().is_some_and(Reservation::holds_slots)
        })
    }

    /// Moves the slots into an admission without charges.
    pub(crate) fn take_slots(&mut self) -> Self {
        let details = self.charges.details.as_mut().map(|details| Details {
            states: details.states.as_mut().map(Reservation::take_slots),
            slots: details.slots.take(),
            ..Details::default()
        });
        admitted(self.decided_by(), SmallVec::new(), details)
    }

    /// Returns the status of each quota that the store has decided about.
    pub fn statuses(&self) -> impl Iterator<Item = &QuotaStatus> {
        self.known_statuses().iter()
    }

    /// The statuses that came with the decision.
    pub(crate) fn known_statuses(&self) -> &[QuotaStatus] {
        self.charges
            .details
            .as_ref()
            .map_or(&[], |details| &details.statuses)
    }

    /// Returns the reading of the store's clock that decided, in microseconds of the store's time; of Redis, since 1970. `None` if
    /// no store has decided.
    #[must_use]
    pub fn store_time(&self) -> Option<u64> {
        self.charges.details.as_ref()?.store_time
    }

    /// Returns the error of the store, if it was asked and did not decide.
    #[must_use]
    pub fn error(&self) -> Option<&StoreError> {
        self.charges.details.as_ref()?.error.as_ref()
    }
}

impl<R: ?Sized> fmt::Debug for Charges<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let details = self.details.as_ref();
        f.debug_struct("Charges")
            .field("leases", &self.spends.len())
            .field("statuses", &details.map(|details| &details.statuses))
            .field("error", &details.map(|details| &details.error))
            .finish_non_exhaustive()
    }
}
