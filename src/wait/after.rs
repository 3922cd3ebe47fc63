use core::task::Waker;

use smallvec::SmallVec;

use super::runtime::Runtime;

/// What is left to do once the lock is released: done when it is dropped, even if that is because somebody has panicked.
///
/// To wake, and to drop a waker or an alarm, is to run what somebody else has written, which may come back to the same room: drop
/// another wait, say.
#[derive(Debug)]
pub(super) struct After<'a, T: Runtime> {
    runtime: &'a T,
    wake: SmallVec<[Waker; 8]>,
    wakers: SmallVec<[Waker; 1]>,
    alarms: SmallVec<[T::Alarm; 1]>,
}

impl<'a, T: Runtime> After<'a, T> {
    /// To be made before the lock is taken.
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
