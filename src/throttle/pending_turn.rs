use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::PoisonError;

use tokio::runtime::Handle;

use crate::sync::{Mutex, MutexGuard};
use crate::wait::GRACE_PERIOD;

/// The wait of one direction of a connection for its next turn. It leaves the queue if it is woken and not polled.
///
/// A queued future that is kept but not polled delays other waiters, and a reader or writer cannot know that its caller has
/// stopped polling it. See [the protocol](super::direction).
pub(super) struct PendingTurn<U> {
    wait: Mutex<Option<U>>,
    /// It may be locked while `wait` is locked, because a poll of the wait may wake itself.
    wake_up: Mutex<WakeUp>,
}

/// The last wake-up of a pending turn, and whether it was answered by a poll.
#[derive(Default)]
struct WakeUp {
    /// The task to wake, and the runtime that keeps the grace period.
    task: Option<(Waker, Option<Handle>)>,
    number: u64,
    is_unanswered: bool,
}

impl<U> PendingTurn<U> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            wait: Mutex::new(None),
            wake_up: Mutex::new(WakeUp::default()),
        })
    }

    fn lock_wait(&self) -> MutexGuard<'_, Option<U>> {
        // A poisoned lock is used, because its value is consistent: functions of the user may panic, and are called between
        // changes.
        self.wait.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_wake_up(&self) -> MutexGuard<'_, WakeUp> {
        // A poisoned lock is used, because no other code is called while it is held, except the clone of a waker.
        self.wake_up.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_queued(&self) -> bool {
        self.lock_wait().is_some()
    }

    pub(super) fn leave(&self) {
        // The wait is dropped after the lock is released, because leaving the queue wakes other waiters.
        let wait = self.lock_wait().take();
        drop(wait);
    }

    /// Leaves the queue if the wake-up with this number was not answered.
    fn leave_if_unanswered(&self, number: u64) {
        let mut wait = self.lock_wait();
        let wake_up = self.lock_wake_up();
        // Claim: throttle 6, an answered wake-up does not expire.
        // Claim: throttle 7, an unanswered wake-up expires.
        let left = if wake_up.is_unanswered && wake_up.number == number {
            wait.take()
        } else {
            None
        };
        drop((wake_up, wait));
        drop(left);
    }
}

impl<U: Future + Unpin + Send + 'static> PendingTurn<U> {
    /// Polls the wait. Starts one by `start` if there is none.
    pub(super) fn poll(
        self: &Arc<Self>,
        start: impl FnOnce() -> U,
        context: &Context<'_>,
    ) -> Poll<U::Output> {
        // Dropped last, because a waker may own another wait, and dropping that wakes the next one.
        let _replaced = self.answer(context.waker());
        let mut wait = self.lock_wait();
        let future = wait.get_or_insert_with(start);
        let waker = Waker::from(Arc::clone(self));
        let polled = Pin::new(future).poll(&mut Context::from_waker(&waker));
        if polled.is_ready() {
            let completed = wait.take();
            drop(wait);
            drop(completed);
        }
        polled
    }

    /// Marks the last wake-up as answered, and stores the task and the runtime of this poll. Returns those of an earlier poll.
    fn answer(&self, waker: &Waker) -> Option<(Waker, Option<Handle>)> {
        let task = (waker.clone(), Handle::try_current().ok());
        let mut wake_up = self.lock_wake_up();
        wake_up.is_unanswered = false;
        wake_up.task.replace(task)
    }
}

impl<U: Send + 'static> Wake for PendingTurn<U> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // No wait is locked here, because a poll of the wait may wake itself.
        let mut wake_up = self.lock_wake_up();
        let Some((waker, handle)) = wake_up.task.clone() else {
            return;
        };
        let is_first = !wake_up.is_unanswered;
        if is_first {
            wake_up.is_unanswered = true;
            wake_up.number = wake_up.number.wrapping_add(1);
        }
        let number = wake_up.number;
        drop(wake_up);
        if let (true, Some(handle)) = (is_first, handle) {
            let pending = Arc::downgrade(self);
            // The timer is spawned before the task is woken, because the task that is woken last may run first.
            handle.spawn(async move {
                tokio::time::sleep(GRACE_PERIOD).await;
                if let Some(pending) = pending.upgrade() {
                    pending.leave_if_unanswered(number);
                }
            });
        }
        waker.wake();
    }
}
