//! The rules of a layer, with the queue of the requests that wait.

use alloc::sync::Arc;

use ::http::request::Parts;

#[cfg(feature = "shared")]
use super::shared_queue::SharedQueue;
use crate::clock::Clock;
use crate::rules::LiveRules;
use crate::wait::Fair;

/// Rules for which requests can wait.
pub(in crate::http) trait Queueable: Sized + Send + Sync + 'static {
    type Clock: Clock + Clone + Send + Sync + 'static;

    /// Adds a queue for at most this many requests.
    fn with_queue(self: Arc<Self>, max_waiting: usize) -> RuleQueue<Self::Clock>;
}

/// The rules of a layer, with the queue of the requests that wait.
#[derive(Clone)]
pub(in crate::http) enum RuleQueue<C> {
    Local(LocalQueue<C>),
    #[cfg(feature = "shared")]
    Shared(SharedQueue),
}

/// The rules of this process, with the queue of requests that wait.
pub(in crate::http) type LocalQueue<C> = Arc<Fair<Arc<LiveRules<Parts, C>>>>;

impl<C: Clock + Clone + Send + Sync + 'static> Queueable for LiveRules<Parts, C> {
    type Clock = C;

    fn with_queue(self: Arc<Self>, max_waiting: usize) -> RuleQueue<C> {
        RuleQueue::Local(Arc::new(Fair::new(self).max_waiting(max_waiting)))
    }
}
