use core::task::Waker;

use super::deferred_wakes::DeferredWakes;
use super::state_queue::Ticket;
use crate::time::Nanos;
use crate::wait::runtime::Runtime;

/// The position of one wait in the queues.
#[derive(Debug, Default)]
pub(in crate::wait) struct QueuePosition {
    /// The ticket of the wait. `None` if it is in no queue.
    pub(super) ticket: Option<Ticket>,
    /// The ticket with which the wait joins a queue. `None`: a new one.
    pub(super) reserved: Option<Ticket>,
    /// The state whose queue the wait is in.
    pub(super) state: u64,
    /// Whether the wait has yielded since the budget of its task was exhausted.
    pub(super) has_yielded: bool,
    /// Whether the wait joins a queue even if the queues are full.
    pub(super) is_exempt: bool,
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

impl QueuePosition {
    /// Exempts the wait from the limit of waiters.
    pub(in crate::wait) const fn exempt(&mut self) {
        self.is_exempt = true;
    }

    /// Makes the wait join a queue with a ticket of [`reserve_ticket`](super::WaitQueues::reserve_ticket).
    #[cfg(feature = "shared")]
    pub(in crate::wait) const fn reserve(&mut self, ticket: Ticket) {
        self.reserved = Some(ticket);
    }

    pub(in crate::wait) const fn is_queued(&self) -> bool {
        self.ticket.is_some()
    }
}
