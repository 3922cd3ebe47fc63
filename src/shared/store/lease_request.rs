use core::time::Duration;

use super::counter_request::CounterRequest;

/// A node's message about one lease: permits to charge, and permits that it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest {
    pub(crate) counter: CounterRequest,
    pub(crate) lease_id: u128,
    pub(crate) sequence: u64,
    pub(crate) is_new: bool,
    pub(crate) is_registered: bool,
    pub(crate) charge: u64,
    pub(crate) cap: u64,
    pub(crate) wanted: u64,
    pub(crate) term: Duration,
}

impl LeaseRequest {
    /// The first request about a new lease, which wants `wanted` permits for `term` after each request.
    ///
    /// Rules make their own requests; this is for tests of a store.
    #[must_use]
    pub const fn first(counter: CounterRequest, lease_id: u128, wanted: u64, term: Duration) -> Self {
        Self {
            counter,
            lease_id,
            sequence: 1,
            is_new: true,
            is_registered: true,
            charge: 0,
            cap: 0,
            wanted,
            term,
        }
    }

    /// The request after this one: charges `charge` permits of at most `cap` that are uncharged, and wants `wanted`.
    #[must_use]
    pub fn next(&self, charge: u64, cap: u64, wanted: u64) -> Self {
        Self {
            sequence: self.sequence + 1,
            is_new: false,
            charge,
            cap,
            wanted,
            ..self.clone()
        }
    }

    /// Charges permits that were spent under a budget that has ended.
    #[must_use]
    pub const fn with_charge(mut self, charge: u64) -> Self {
        self.charge = charge;
        self.cap = charge;
        self
    }

    /// Makes the lease a budget, which the store does not register and only the node keeps to.
    #[must_use]
    pub const fn unregistered(mut self) -> Self {
        self.is_registered = false;
        self
    }

    /// The counter that the lease is of. Its [permits](CounterRequest::permits) mean nothing here.
    #[must_use]
    pub const fn counter(&self) -> &CounterRequest {
        &self.counter
    }

    /// The number of the lease, which no other lease of any node has.
    #[must_use]
    pub const fn lease_id(&self) -> u128 {
        self.lease_id
    }

    /// The number of the request among those of its lease, from 1 on. Copies of a request have the same number.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Whether the lease is a new one, as far as the node knows.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Whether the store registers the granted permits, so that it grants them to no other node. Permits that it does
    /// not register are a budget: the store may grant the same permits to other nodes.
    #[must_use]
    pub const fn is_registered(&self) -> bool {
        self.is_registered
    }

    /// The permits that were spent, and are to be charged. Of a new lease, they were spent under one that had ended.
    #[must_use]
    pub const fn charge(&self) -> u64 {
        self.charge
    }

    /// The most permits that the node leaves uncharged until the answer, the charge included.
    #[must_use]
    pub const fn cap(&self) -> u64 {
        self.cap
    }

    /// The permits that the node wants.
    #[must_use]
    pub const fn wanted(&self) -> u64 {
        self.wanted
    }

    /// How long the lease lasts after its last request. Its registered permits are kept for a window longer.
    #[must_use]
    pub const fn term(&self) -> Duration {
        self.term
    }
}

/// A store's answer about one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseGrant {
    permits: Option<u64>,
    remaining: u64,
    retry_after: Option<Duration>,
}

impl LeaseGrant {
    /// Grants this many permits.
    #[must_use]
    pub const fn of(permits: u64) -> Self {
        Self {
            permits: Some(permits),
            remaining: u64::MAX,
            retry_after: None,
        }
    }

    /// The store does not know the lease, or begins none now.
    #[must_use]
    pub const fn unknown() -> Self {
        Self {
            permits: None,
            remaining: 0,
            retry_after: None,
        }
    }

    /// Adds the permits that the limit leaves beside everything charged and granted, and the time after which it leaves
    /// one more. Without them, requests that the lease does not cover go to the store.
    #[must_use]
    pub const fn with_remaining(self, remaining: u64, retry_after: Duration) -> Self {
        Self {
            remaining,
            retry_after: Some(retry_after),
            ..self
        }
    }

    /// The permits that the node may spend. `None`: the lease is unknown.
    #[must_use]
    pub const fn permits(&self) -> Option<u64> {
        self.permits
    }

    /// The permits that the limit leaves to others.
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The time after which the limit leaves one more, by the store's clock. `None`: unknown.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}
