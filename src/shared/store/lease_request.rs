use core::time::Duration;

use super::counter_request::CounterRequest;

/// A node's message about one lease: permits to charge, and permits that it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseRequest {
    /// The counter that the lease is of. Its [permits](CounterRequest::permits) mean nothing here.
    pub counter: CounterRequest,
    /// The number of the lease, which no other lease of any node has.
    pub lease_id: u128,
    /// The number of the request among those of its lease, from 1 on. Copies of a request have the same number.
    pub sequence: u64,
    /// Whether the lease is a new one, as far as the node knows.
    pub is_new: bool,
    /// Whether the store registers the granted permits, so that it grants them to no other node. Permits that it does
    /// not register are a budget: the store may grant the same permits to other nodes.
    pub is_registered: bool,
    /// The permits that were spent, and are to be charged. Of a new lease, they were spent under one that had ended.
    pub charge: u64,
    /// The most permits that the node leaves uncharged until the answer, the charge included.
    pub cap: u64,
    /// The permits that the node wants.
    pub wanted: u64,
    /// How long the lease lasts after its last request. Its registered permits are kept for a window longer.
    pub term: Duration,
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
}

/// A store's answer about one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseGrant {
    /// The permits that the node may spend. `None`: the lease is unknown.
    pub permits: Option<u64>,
    /// The permits that the limit leaves to others.
    pub remaining: u64,
    /// The time after which the limit leaves one more, by the store's clock. `None`: unknown.
    pub retry_after: Option<Duration>,
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
}
