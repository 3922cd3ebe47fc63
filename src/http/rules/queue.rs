//! The rules of a layer, with the queue of the requests that wait.

use alloc::sync::Arc;

use ::http::request::Parts;

#[cfg(feature = "shared")]
use super::shared_queue::{SharedQueue, Source};
use crate::clock::Clock;
#[cfg(feature = "shared")]
use crate::clock::DefaultClock;
use crate::rules::LiveRules;
#[cfg(feature = "shared")]
use crate::shared::{LiveSharedRules, SharedRules};
use crate::wait::Fair;
#[cfg(feature = "shared")]
use crate::wait::SharedFair;

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

#[cfg(feature = "shared")]
impl Queueable for SharedRules<Parts> {
    // The rules have their own clock.
    type Clock = DefaultClock;

    fn with_queue(self: Arc<Self>, max_waiting: usize) -> RuleQueue<DefaultClock> {
        shared_queue(Source::Fixed(self), max_waiting)
    }
}

#[cfg(feature = "shared")]
impl Queueable for LiveSharedRules<Parts> {
    type Clock = DefaultClock;

    fn with_queue(self: Arc<Self>, max_waiting: usize) -> RuleQueue<DefaultClock> {
        shared_queue(Source::Live(self), max_waiting)
    }
}

#[cfg(feature = "shared")]
fn shared_queue(rules: Source, max_waiting: usize) -> RuleQueue<DefaultClock> {
    RuleQueue::Shared(Arc::new(SharedFair::new(rules).max_waiting(max_waiting)))
}
