use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;

use super::error::StoreError;
use super::lease_request::{LeaseGrant, LeaseRequest};

/// Grants permits to nodes that decide by themselves ([`Mode::Lease`](crate::rules::Mode::Lease) and
/// [`Mode::Sync`](crate::rules::Mode::Sync)).
///
/// Of each lease the store keeps `{ permits b, sequence, end }`. W is the window, S the permits charged in the window, and H
/// the [registered](LeaseRequest::is_registered) permits of all leases of a counter. An implementation promises, for each
/// request, at one instant of its own time:
///
/// 1. A lease that the store does not know, or whose end has passed, is [unknown](LeaseGrant::unknown), unless the request
///    says that it is [new](LeaseRequest::is_new).
/// 2. A sequence that the lease has had already changes only the times of rule 4, and is answered with the same b.
/// 3. Any other request adds its [charge](LeaseRequest::charge) to S, whether there is room or not: those permits were
///    spent under the lease. Then b becomes max(c', g). c' is min(b, [cap](LeaseRequest::cap)) less the charge. g is
///    chosen by the store, at most the [wanted](LeaseRequest::wanted) permits, and at most what the limit leaves beside S
///    and the others' part of H.
/// 4. The end becomes now + [term](LeaseRequest::term). If b is registered, H holds it until now + term + W, and at most an
///    eighth of that time longer. The next request of the lease removes it from H earlier.
/// 5. [`CounterStore::decide`](super::CounterStore::decide) of the same counter has room for n when S + H + n ≤ L.
/// 6. After it may have forgotten something, the store registers no lease for term + W.
///
/// A lease may end before its term, for example when the clock of the store goes back. Its part of H must not end
/// early.
///
/// A node that vanishes sends no last request. So a store should keep H as a few sums, one for each time at which
/// permits end. Then its work and its memory do not depend on the number of ended leases.
///
/// The [module's documentation](crate::shared) shows why these rules are enough.
pub trait LeaseStore: fmt::Debug + Send + Sync {
    /// Answers each request by itself: one answer or error for each, in their order.
    ///
    /// After an error the request may have been executed. The node sends it again.
    fn renew<'a>(&'a self, requests: &'a [LeaseRequest]) -> LeaseFuture<'a>;
}

/// The future of the answers to lease requests.
pub type LeaseFuture<'a> = Pin<Box<dyn Future<Output = Vec<Result<LeaseGrant, StoreError>>> + Send + 'a>>;
