use core::time::Duration;

use smallvec::SmallVec;

use crate::time::Nanos;
use crate::wait::error::WaitError;

/// One request to one limiter, as the queues see it.
#[expect(unnameable_types, reason = "sealed: only this crate implements it")]
pub trait QueuedRequest {
    /// The result of an admission.
    type Acquired;

    fn now(&self) -> Nanos;

    /// The states that decide the request, and the permits that it needs of each. States of which it needs no permits may be
    /// omitted.
    fn needs(&self) -> Needs;

    /// Charges the request if every state has capacity. Ignores the queues.
    fn try_acquire(&self) -> Option<Self::Acquired>;

    /// The time until the state could admit a single request for `permits`, if no other request came before. `None` if it
    /// never could.
    fn ready_in(&self, state: u64, permits: u64) -> Option<Duration>;

    /// Whether every request that the state decides has the limit of this one.
    fn has_one_limit(&self, state: u64) -> bool;

    /// Whether the limiter, as it is now, would admit the request at some time. It is called if the results of earlier calls are
    /// those of a request that is never admitted. So it is true only if the limiter has changed since, such as by new rules.
    fn may_be_admitted(&self) -> bool;

    /// A lower bound of the time until the state has admitted the `queued` permits of earlier requests, and then `permits`.
    fn earliest_in(&self, state: u64, queued: u64, permits: u64) -> Option<Duration>;
}

/// The permits that a request needs of one state.
#[derive(Clone, Copy, Debug)]
#[expect(unnameable_types, reason = "sealed: only this crate implements it")]
pub struct Need {
    pub(in crate::wait) state: u64,
    pub(in crate::wait) permits: u64,
}

impl Need {
    /// The need of these permits of one state. A request for no permits has no needs.
    pub(in crate::wait) fn of(state: u64, permits: u64) -> Needs {
        let need = (permits > 0).then_some(Self { state, permits });
        need.into_iter().collect()
    }
}

/// The needs of one request, one for each state.
pub(in crate::wait) type Needs = SmallVec<[Need; 4]>;

/// Returns the need of the state that has capacity last. Returns an error if a state never has capacity.
pub(super) fn slowest_need<R: QueuedRequest>(request: &R) -> Result<Need, WaitError> {
    let mut slowest = None;
    for need in request.needs() {
        let ready = request
            .ready_in(need.state, need.permits)
            .ok_or(WaitError::Never)?;
        if slowest.is_none_or(|(_, latest)| latest < ready) {
            slowest = Some((need, ready));
        }
    }
    slowest.map(|(need, _)| need).ok_or(WaitError::Never)
}
