use core::time::Duration;

use smallvec::SmallVec;

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

/// A request to a limiter, as it is stored while it waits.
#[expect(unnameable_types, reason = "sealed: only this crate implements it")]
pub trait WaitRequest<L: Waitable> {
    /// The states that decide the request, and the permits that it needs of each. States of which it needs no permits may be
    /// omitted.
    fn needs(&self, limiter: &L) -> Needs;

    /// Charges a request that does not wait. The error is the retry time.
    fn check(&self, limiter: &L) -> Result<L::Admitted, Option<Duration>>;

    /// Charges a request that may wait, if every state has capacity. Ignores the queues. A denial is not counted as a violation.
    fn try_acquire(&self, limiter: &L) -> Option<L::Charge>;

    /// The time until the state could admit a single request for `permits`, if no other request came before. `None` if it
    /// never could.
    fn ready_in(&self, limiter: &L, state: u64, permits: u64) -> Option<Duration>;

    /// Whether every request that the state decides has the limit of this one.
    fn has_one_limit(&self, limiter: &L, state: u64) -> bool;

    /// Whether the limiter, as it is now, would admit the request at some time. It is called if the results of earlier calls are
    /// those of a request that is never admitted. So it is true only if the limiter has changed since, such as by new rules. The
    /// default is for limiters that are not replaced between two calls.
    fn may_be_admitted(&self, _: &L) -> bool {
        false
    }

    /// A lower bound of the time until the state has admitted the `queued` permits of earlier requests, and then `permits`.
    fn earliest_in(&self, limiter: &L, state: u64, queued: u64, permits: u64) -> Option<Duration>;
}

/// An argument that stands for a request: the request itself, or a key.
#[expect(unnameable_types, reason = "sealed: only this crate implements it")]
pub trait IntoRequest<L: Waitable> {
    type Request: WaitRequest<L>;

    fn into_request(self, limiter: &L) -> Self::Request;
}

/// The permits that a request needs of one state.
#[derive(Clone, Copy, Debug)]
#[expect(unnameable_types, reason = "sealed: only this crate implements it")]
pub struct Need {
    pub(super) state: u64,
    pub(super) permits: u64,
}

impl Need {
    /// The need of these permits of one state. A request for no permits has no needs.
    pub(super) fn of(state: u64, permits: u64) -> Needs {
        let need = (permits > 0).then_some(Self { state, permits });
        need.into_iter().collect()
    }
}

/// The needs of one request, one for each state.
pub(super) type Needs = SmallVec<[Need; 4]>;
