//! Rules that can be replaced while threads use them, by `arc_swap`.

#[cfg(ringgate_loom)]
use crate::sync::{Arc, Mutex};
#[cfg(not(ringgate_loom))]
use alloc::sync::Arc;

/// A value that can be replaced while threads use it. Loading it is wait-free, and a user keeps the value that it has loaded.
#[cfg(not(ringgate_loom))]
#[derive(Debug)]
pub(super) struct Published<T>(arc_swap::ArcSwap<T>);

/// A value that can be replaced while threads use it, for the model checker, which cannot instrument `arc_swap`.
#[cfg(ringgate_loom)]
#[derive(Debug)]
pub(super) struct Published<T>(Mutex<Arc<T>>);

/// A published value that a thread has loaded.
#[cfg(not(ringgate_loom))]
pub(super) type InUse<T> = arc_swap::Guard<Arc<T>>;

/// A published value that a thread has loaded.
#[cfg(ringgate_loom)]
pub(super) type InUse<T> = Arc<T>;

/// A value that was replaced, and may still be in use.
#[derive(Debug)]
pub(super) struct Replaced<T>(Arc<T>);

#[cfg(not(ringgate_loom))]
impl<T> Published<T> {
    pub(super) fn new(value: T) -> Self {
        Self(arc_swap::ArcSwap::from_pointee(value))
    }

    #[inline]
    pub(super) fn load(&self) -> InUse<T> {
        self.0.load()
    }

    pub(super) fn replace(&self, value: T) -> Replaced<T> {
        // From here on, every thread that still uses the old value holds a counted reference.
        Replaced(self.0.swap(Arc::new(value)))
    }
}

#[cfg(ringgate_loom)]
impl<T> Published<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Mutex::new(Arc::new(value)))
    }

    pub(super) fn load(&self) -> InUse<T> {
        Arc::clone(&self.0.lock().expect("not poisoned"))
    }

    pub(super) fn replace(&self, value: T) -> Replaced<T> {
        let mut current = self.0.lock().expect("not poisoned");
        Replaced(core::mem::replace(&mut current, Arc::new(value)))
    }
}

impl<T> Replaced<T> {
    /// Whether no thread uses the value any more. If it returns true, the caller observes all writes of the value's users.
    pub(super) fn is_free(&mut self) -> bool {
        // Acquire, within `get_mut`: pairs with the Release of the last reference's drop.
        Arc::get_mut(&mut self.0).is_some()
    }
}
