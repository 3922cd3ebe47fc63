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
/// Of each lease the store keeps `{ permits b, sequence, until }`. H is the sum of all b of one counter whose *until* is
/// to come and that are [registered](LeaseRequest::is_registered), S the permits charged in the window. An implementation
/// promises, for each request, at one instant of its own time:
///
/// 1. A lease that the store does not know is [unknown](LeaseGrant::unknown), unless the request says that it is
///    [new](LeaseRequest::is_new).
/// 2. A sequence that the lease has had already changes only *until*, and is answered with the same b.
/// 3. Any other request adds its [charge](LeaseRequest::charge) to S, whether there is room or not: those permits were
///    spent under the lease. Then b becomes max(c', g). c' is min(b, [cap](LeaseRequest::cap)) less the charge. g is
///    chosen by the store, at most the [wanted](LeaseRequest::wanted) permits, and at most what the limit leaves beside S
///    and the others' b.
/// 4. *until* becomes now + [keep](LeaseRequest::keep).
/// 5. [`CounterStore::decide`](super::CounterStore::decide) of the same counter has room for n when S + H + n ≤ L.
/// 6. After it may have forgotten something, the store registers no lease for [keep](LeaseRequest::keep).
///
/// The [module's documentation](crate::shared) shows why these are enough.
pub trait LeaseStore: fmt::Debug + Send + Sync {
    /// Answers each request by itself: one answer or error for each, in their order.
    ///
    /// After an error the request may have been executed. The node sends it again.
    fn renew<'a>(&'a self, requests: &'a [LeaseRequest]) -> LeaseFuture<'a>;
}

/// The future of the answers to lease requests.
pub type LeaseFuture<'a> = Pin<Box<dyn Future<Output = Vec<Result<LeaseGrant, StoreError>>> + Send + 'a>>;
