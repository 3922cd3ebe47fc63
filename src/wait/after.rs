use core::task::Waker;

use smallvec::SmallVec;

use super::runtime::Runtime;

/// What is left to do once the lock is released.
///
/// To wake, and to drop a waker or an alarm, is to run what somebody else has written, which may come back to the same room: drop
/// another wait, say.
#[derive(Debug)]
pub(super) struct After<A> {
    wake: SmallVec<[Waker; 8]>,
    wakers: SmallVec<[Waker; 1]>,
    alarms: SmallVec<[A; 1]>,
}

impl<A> After<A> {
    pub(super) fn new() -> Self {
        Self {
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

    pub(super) fn call_off(&mut self, alarm: A) {
        self.alarms.push(alarm);
    }

    /// Does it, with no lock held.
    pub(super) fn run(self, runtime: &impl Runtime) {
        if !self.wake.is_empty() {
            runtime.wake(self.wake.into_iter());
        }
    }
}
