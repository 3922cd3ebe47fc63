use core::time::Duration;

use smallvec::SmallVec;

use super::queue::Needs;
use crate::receipt::Settled;
use crate::time::Nanos;

/// A limiter that a [`Fair`](super::Fair) can wrap.
#[expect(unnameable_types, reason = "sealed: only this crate implements it")]
pub trait Waitable {
    /// The result of a check that does not wait.
    type Admitted;
    /// The result of a wait, to refund or settle.
    type Charge;
    /// The actual cost of a charge.
    type Actual<'a>
    where
        Self: 'a;

    fn now(&self) -> Nanos;

    /// The states whose capacity grows when this charge is refunded or settled. `None` if it may be that of any state, because the
    /// charge was made to the catch-all of a table.
    fn states_of(&self, charge: &Self::Charge) -> Option<SmallVec<[u64; 4]>>;

    fn refund(&self, charge: Self::Charge) -> Settled;

    fn settle(&self, charge: Self::Charge, actual: Self::Actual<'_>) -> Settled;
}

/// A request to a limiter, as it is stored while it waits. See [`QueuedRequest`](super::queue::QueuedRequest) for its
/// needs and times.
#[expect(unnameable_types, reason = "sealed: only this crate implements it")]
pub trait WaitRequest<L: Waitable> {
    fn needs(&self, limiter: &L) -> Needs;

    /// Charges a request that does not wait. The error is the retry time.
    fn check(&self, limiter: &L) -> Result<L::Admitted, Option<Duration>>;

    /// Charges a request that may wait, so its denial is not counted as a violation.
    fn try_acquire(&self, limiter: &L) -> Option<L::Charge>;

    fn ready_in(&self, limiter: &L, state: u64, permits: u64) -> Option<Duration>;

    fn has_one_limit(&self, limiter: &L, state: u64) -> bool;

    /// See [`QueuedRequest`](super::queue::QueuedRequest). The default is for limiters that are not replaced between two calls.
    fn may_be_admitted(&self, _: &L) -> bool {
        false
    }

    fn earliest_in(&self, limiter: &L, state: u64, queued: u64, permits: u64) -> Option<Duration>;
}

/// An argument that stands for a request: the request itself, or a key.
#[expect(unnameable_types, reason = "sealed: only this crate implements it")]
pub trait IntoRequest<L: Waitable> {
    type Request: WaitRequest<L>;

    fn into_request(self, limiter: &L) -> Self::Request;
}
