use smallvec::SmallVec;

use crate::wait::error::WaitError;
use crate::wait::waitable::{WaitRequest, Waitable};

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
pub(super) fn slowest_need<L: Waitable>(
    limiter: &L,
    request: &impl WaitRequest<L>,
) -> Result<Need, WaitError> {
    let mut slowest = None;
    for need in request.needs(limiter) {
        let ready = request
            .ready_in(limiter, need.state, need.permits)
            .ok_or(WaitError::Never)?;
        if slowest.is_none_or(|(_, latest)| latest < ready) {
            slowest = Some((need, ready));
        }
    }
    slowest.map(|(need, _)| need).ok_or(WaitError::Never)
}
