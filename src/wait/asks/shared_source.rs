use alloc::sync::Arc;

use crate::shared::{LiveSharedRules, SharedRules};

/// Shared rules that a [`SharedFair`](super::SharedFair) can wrap: [`SharedRules`] in an `Arc`, or [`LiveSharedRules`].
pub trait SharedSource {
    /// The value that the rules check.
    type Request: ?Sized;

    /// Calls `work` with the rules that are in force now.
    fn with_rules<O>(&self, work: impl FnOnce(&Arc<SharedRules<Self::Request>>) -> O) -> O;
}

impl<R: ?Sized> SharedSource for Arc<SharedRules<R>> {
    type Request = R;

    fn with_rules<O>(&self, work: impl FnOnce(&Self) -> O) -> O {
        work(self)
    }
}

impl<R: ?Sized> SharedSource for LiveSharedRules<R> {
    type Request = R;

    fn with_rules<O>(&self, work: impl FnOnce(&Arc<SharedRules<R>>) -> O) -> O {
        work(&self.load())
    }
}

impl<R: ?Sized> SharedSource for Arc<LiveSharedRules<R>> {
    type Request = R;

    fn with_rules<O>(&self, work: impl FnOnce(&Arc<SharedRules<R>>) -> O) -> O {
        work(&self.load())
    }
}
