use alloc::sync::Arc;

use ::http::request::Parts;

use crate::shared::{LiveSharedRules, SharedRules};
use crate::wait::{SharedFair, SharedSource};

/// Shared rules, with the queues of requests that wait.
pub(in crate::http) type SharedQueue = Arc<SharedFair<Source>>;

/// The rules of a layer, which may be replaced while they are in use.
#[derive(Debug)]
pub(in crate::http) enum Source {
    Fixed(Arc<SharedRules<Parts>>),
    Live(Arc<LiveSharedRules<Parts>>),
}

impl Source {
    /// Calls `work` with the rules in force.
    #[inline]
    pub(super) fn with_rules<T>(&self, work: impl FnOnce(&Arc<SharedRules<Parts>>) -> T) -> T {
        match self {
            Self::Fixed(rules) => work(rules),
            Self::Live(live) => work(&live.load()),
        }
    }
}

impl SharedSource for Source {
    type Request = Parts;

    fn load(&self) -> Arc<SharedRules<Parts>> {
        self.with_rules(Arc::clone)
    }
}
