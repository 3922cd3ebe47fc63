use alloc::sync::Arc;

use crate::shared::{LiveSharedRules, SharedRules};

/// Shared rules that a [`SharedFair`](super::SharedFair) can wrap: [`SharedRules`] in an `Arc`, or [`LiveSharedRules`].
pub trait SharedSource {
    /// The value that the rules check.
    type Request: ?Sized;

    /// Returns the rules that are in force now.
    fn load(&self) -> Arc<SharedRules<Self::Request>>;
}

impl<R: ?Sized> SharedSource for Arc<SharedRules<R>> {
    type Request = R;

    fn load(&self) -> Self {
        Self::clone(self)
    }
}

impl<R: ?Sized> SharedSource for LiveSharedRules<R> {
    type Request = R;

    fn load(&self) -> Arc<SharedRules<R>> {
        Self::load(self)
    }
}

impl<R: ?Sized> SharedSource for Arc<LiveSharedRules<R>> {
    type Request = R;

    fn load(&self) -> Arc<SharedRules<R>> {
        LiveSharedRules::load(self)
    }
}
