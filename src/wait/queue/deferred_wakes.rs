use core::task::Waker;

use smallvec::SmallVec;

use crate::wait::runtime::Runtime;

/// Wakers to wake, and wakers and timers to drop, once the lock of the queues is released.
///
/// Waking a task, and dropping a waker or a timer, run foreign code. This code may access the same queues, for example by
/// dropping another wait. The wakes happen on drop, so a panic while the lock is held does not lose them.
#[derive(Debug)]
pub(super) struct DeferredWakes<'a, T: Runtime> {
    runtime: &'a T,
    to_wake: SmallVec<[Waker; 8]>,
    to_drop: SmallVec<[Waker; 1]>,
    cancelled: SmallVec<[T::Timer; 1]>,
}

impl<'a, T: Runtime> DeferredWakes<'a, T> {
    /// Creates an empty list. Create it before taking the lock, so that it is dropped after the lock is released.
    pub(super) fn new(runtime: &'a T) -> Self {
        Self {
            runtime,
            to_wake: SmallVec::new(),
            to_drop: SmallVec::new(),
            cancelled: SmallVec::new(),
        }
    }

    pub(super) const fn runtime(&self) -> &'a T {
        self.runtime
    }

    pub(super) fn wake(&mut self, waker: Waker) {
        self.to_wake.push(waker);
    }

    pub(super) fn drop_waker(&mut self, waker: Waker) {
        self.to_drop.push(waker);
    }

    pub(super) fn cancel(&mut self, timer: T::Timer) {
        self.cancelled.push(timer);
    }
}

impl<T: Runtime> Drop for DeferredWakes<'_, T> {
    fn drop(&mut self) {
        if !self.to_wake.is_empty() {
            self.runtime.wake_all(self.to_wake.drain(..));
        }
    }
}
