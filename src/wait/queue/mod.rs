#![doc = include_str!("protocol.md")]

mod coop_budget;
mod deferred_wakes;
mod queue_position;
mod queues;
mod state_queue;
mod wait_queues;

pub(super) use queue_position::QueuePosition;
pub(crate) use state_queue::GRACE_PERIOD;
#[cfg(feature = "shared")]
pub(super) use state_queue::Ticket;
pub(super) use wait_queues::WaitQueues;
