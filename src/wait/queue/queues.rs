use alloc::collections::BTreeMap;
use core::time::Duration;

use super::state_queue::{StateQueue, Ticket};
use crate::wait::error::WaitError;
use crate::wait::waitable::{Need, WaitRequest, Waitable};

/// The queues of a limiter, by their states. One mutex guards them.
#[derive(Debug)]
pub(super) struct Queues<T> {
    pub(super) next_ticket: Ticket,
    /// The number of waiters in all queues.
    pub(super) waiting: usize,
    pub(super) by_state: BTreeMap<u64, StateQueue<T>>,
}

impl<T> Queues<T> {
    pub(super) const fn new_ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        self.next_ticket - 1
    }

    /// Whether a waiter is queued for one of the states.
    pub(super) fn has_waiters(&self, needs: &[Need]) -> bool {
        needs.iter().any(|need| self.by_state.contains_key(&need.state))
    }

    /// The need whose state would admit the request last, after the waiters of that state, and the time until then. Of equal times,
    /// the state that is ready last is chosen, and of these one with waiters. The error is `Never` if some state can never admit the
    /// request.
    pub(super) fn slowest<L: Waitable>(
        &self,
        limiter: &L,
        request: &impl WaitRequest<L>,
        needs: &[Need],
    ) -> Result<(Need, Duration), WaitError> {
        let mut slowest = None;
        for &need in needs {
            let ready = request.ready_in(limiter, need.state, need.permits);
            let queue = self.by_state.get(&need.state);
            let queued = queue.map_or(0, StateQueue::total_permits);
            let needed = request.earliest_in(limiter, need.state, queued, need.permits);
            let (Some(ready), Some(needed)) = (ready, needed) else {
                return Err(WaitError::Never);
            };
            let times = (needed, ready, queue.is_some());
            if slowest.is_none_or(|(_, latest)| latest < times) {
                slowest = Some((need, times));
            }
        }
        let (need, (needed, ..)) = slowest.ok_or(WaitError::Never)?;
        Ok((need, needed))
    }

    /// Calls `remove` with the queue of a state, and removes the queue if it is empty then.
    pub(super) fn remove_from(&mut self, state: u64, remove: impl FnOnce(&mut StateQueue<T>)) {
        if let Some(queue) = self.by_state.get_mut(&state) {
            remove(queue);
            if queue.is_empty() {
                self.by_state.remove(&state);
            }
        }
    }
}

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
