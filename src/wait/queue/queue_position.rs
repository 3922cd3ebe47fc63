use core::task::Waker;

use super::deferred_wakes::DeferredWakes;
use super::state_queue::Ticket;
use crate::time::Nanos;
use crate::wait::runtime::Runtime;

/// The position of one wait in the queues.
#[derive(Debug, Default)]
pub(in crate::wait) struct QueuePosition {
    /// The ticket of the wait. `None` if it is in no queue.
    pub(in crate::wait) ticket: Option<Ticket>,
    /// The ticket of [`reserve_ticket`](super::WaitQueues::reserve_ticket) with which the wait joins a queue. `None`: a new one.
    pub(in crate::wait) reserved: Option<Ticket>,
    /// The state whose queue the wait is in.
    pub(super) state: u64,
    /// Whether the wait has yielded since the budget of its task was exhausted.
    pub(super) has_yielded: bool,
    /// Whether the wait is exempt from the limit of waiters, and joins a queue even if the queues are full.
    pub(in crate::wait) is_exempt: bool,
}

/// One poll of a wait.
pub(super) struct Polling<'a, L, Q, T: Runtime> {
    pub(super) limiter: &'a L,
    pub(super) request: &'a Q,
    pub(super) position: &'a mut QueuePosition,
    pub(super) deadline: Option<Nanos>,
    pub(super) waker: &'a Waker,
    pub(super) deferred: DeferredWakes<'a, T>,
}
