use alloc::sync::Arc;

use ::http::request::Parts;
use tokio::sync::Semaphore;

use crate::shared::{LiveSharedRules, SharedRules};

/// Shared rules, with a permit for each request that may wait.
#[derive(Clone)]
pub(in crate::http) struct SharedQueue {
    rules: Source,
    pub(super) places: Arc<Semaphore>,
}

/// The rules of a layer, which may be replaced while they are in use.
#[derive(Clone)]
pub(super) enum Source {
    Fixed(Arc<SharedRules<Parts>>),
    Live(Arc<LiveSharedRules<Parts>>),
}

impl SharedQueue {
    pub(super) fn new(rules: Source, max_waiting: usize) -> Self {
        let places = Arc::new(Semaphore::new(max_waiting.min(Semaphore::MAX_PERMITS)));
        Self { rules, places }
    }

    /// Calls `work` with the rules in force.
    #[inline]
    pub(super) fn with_rules<T>(&self, work: impl FnOnce(&Arc<SharedRules<Parts>>) -> T) -> T {
        match &self.rules {
            Source::Fixed(rules) => work(rules),
            Source::Live(live) => work(&live.load()),
        }
    }
}
