use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::future::Future;
use core::pin::Pin;

use super::lease_request::{LeaseGrant, LeaseRequest};
use crate::rules::StoreError;

/// Grants permits to nodes that decide by themselves ([`Mode::Lease`](crate::rules::Mode::Lease) and
/// [`Mode::Sync`](crate::rules::Mode::Sync)).
///
/// Of each lease the store keeps its *budget* (the permits that the node may leave uncharged), the sequence of its last request, and
/// its *end*. Of each counter it keeps the permits that are *charged* in the window, and those that are *held*: the
/// [registered](LeaseRequest::is_registered) budgets of all leases. An implementation promises, for each request, at one instant of
/// its own time:
///
/// 1. A lease that the store does not know, or whose end has passed, is [unknown](LeaseGrant::unknown), unless the request
///    says that it is [new](LeaseRequest::is_new).
/// 2. A request with a sequence that the lease has had already is a copy. It changes only the times of rule 4, and is answered with
///    the same budget.
/// 3. Any other request adds its [charge](LeaseRequest::charge) to the charged permits, whether there is room or not, because those
///    permits were spent under the lease. Then the budget becomes the larger of two numbers. One is what the node has left of it:
///    min(budget, [cap](LeaseRequest::cap)) less the charge. The other is a grant, which the store chooses: at most the
///    [wanted](LeaseRequest::wanted) permits, and at most the limit less the charged permits and those that are held for other
///    leases.
/// 4. The end becomes now + [term](LeaseRequest::term). A registered budget is held until now + term + window, and at most an
///    eighth of that time longer. The next request of the lease replaces this time.
/// 5. [`CounterStore::decide`](super::CounterStore::decide) of the same counter has room for n permits if charged + held + n is at
///    most the limit.
/// 6. After it may have forgotten something, the store registers no lease for a term and a window.
///
/// A lease may end before its term, for example when the clock of the store goes back. Its held permits must not end early.
///
/// A node that vanishes sends no last request. So a store should keep the held permits as a few sums, one for each time at which
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
