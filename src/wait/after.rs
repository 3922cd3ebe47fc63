use core::task::Waker;

use smallvec::SmallVec;

use super::runtime::Runtime;

/// What is left to do once the lock is released: done when it is dropped, even if that is because somebody has
/// panicked.
///
/// To wake somebody, or to drop a waker or an alarm, runs code that somebody else has written. It may come back to the
/// same room, by dropping another wait for example.
#[derive(Debug)]
pub(super) struct After<'a, T: Runtime> {
    runtime: &'a T,
    wake: SmallVec<[Waker; 8]>,
    wakers: SmallVec<[Waker; 1]>,
    alarms: SmallVec<[T::Alarm; 1]>,
}

impl<'a, T: Runtime> After<'a, T> {
    /// Make it before the lock is taken, so that it is dropped after the lock is released.
    pub(super) fn new(runtime: &'a T) -> Self {
        Self {
            runtime,
            wake: SmallVec::new(),
            wakers: SmallVec::new(),
            alarms: SmallVec::new(),
        }
    }

    pub(super) fn wake(&mut self, waker: Waker) {
        self.wake.push(waker);
    }

    pub(super) fn forget(&mut self, waker: Waker) {
        self.wakers.push(waker);
    }

    pub(super) fn call_off(&mut self, alarm: T::Alarm) {
        self.alarms.push(alarm);
    }
}

impl<T: Runtime> Drop for After<'_, T> {
    fn drop(&mut self) {
        if !self.wake.is_empty() {
            self.runtime.wake(self.wake.drain(..));
        }
    }
}
