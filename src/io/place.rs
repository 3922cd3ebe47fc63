use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::sync::PoisonError;

use tokio::runtime::Handle;

use crate::sync::{Mutex, MutexGuard};
use crate::wait::PATIENCE;

/// Where one side of a connection stands in line; it is let go of when it does not come in its turn.
///
/// A future that stands in line holds up others when it is kept and not polled, and a reader or writer is not told when
/// whoever called it gives up: [the protocol](super).
pub(super) struct Place<U> {
    turn: Mutex<Option<U>>,
    /// Taken while `turn` is held, or alone: a poll of the turn may wake itself.
    call: Mutex<Call>,
}

/// What is known of whoever is waited for.
#[derive(Default)]
struct Call {
    /// Who is to be woken, and where the time is kept in which it has to come.
    owner: Option<(Waker, Option<Handle>)>,
    /// The number of the last call.
    number: u64,
    /// Whether it was not answered by a poll yet.
    unanswered: bool,
}

impl<U> Place<U> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            turn: Mutex::new(None),
            call: Mutex::new(Call::default()),
        })
    }

    fn turn(&self) -> MutexGuard<'_, Option<U>> {
        // What panics is a function of the user's, between two changes.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self) -> MutexGuard<'_, Call> {
        // As in `turn`.
        self.call.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it stands in line.
    pub(super) fn is_taken(&self) -> bool {
        self.turn().is_some()
    }

    pub(super) fn leave(&self) {
        // First of all out of the lock: leaving wakes others.
        let left = self.turn().take();
        drop(left);
    }

    /// Lets go of the place, if the call with this number was not answered.
    fn pass_on(&self, number: u64) {
        let mut turn = self.turn();
        let call = self.call();
        let missed = if call.unanswered && call.number == number {
            turn.take()
        } else {
            None
        };
        drop((call, turn));
        drop(missed);
    }
}

impl<U: Future + Unpin + Send + 'static> Place<U> {
    /// Goes on waiting; first of all takes a place by `ask`, if there is none.
    pub(super) fn poll(self: &Arc<Self>, ask: impl FnOnce() -> U, context: &Context<'_>) -> Poll<U::Output> {
        let mut turn = self.turn();
        self.answer(context.waker());
        let until = turn.get_or_insert_with(ask);
        let waker = Waker::from(Arc::clone(self));
        let polled = Pin::new(until).poll(&mut Context::from_waker(&waker));
        if polled.is_ready() {
            let over = turn.take();
            drop(turn);
            drop(over);
        }
        polled
    }

    fn answer(&self, waker: &Waker) {
        let mut call = self.call();
        call.unanswered = false;
        if !matches!(&call.owner, Some((owner, _)) if owner.will_wake(waker)) {
            call.owner = Some((waker.clone(), Handle::try_current().ok()));
        }
    }
}

impl<U: Send + 'static> Wake for Place<U> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut call = self.call();
        let Some((waker, handle)) = call.owner.clone() else {
            return;
        };
        let first = !call.unanswered;
        if first {
            call.unanswered = true;
            call.number = call.number.wrapping_add(1);
        }
        let number = call.number;
        drop(call);
        if let (true, Some(handle)) = (first, handle) {
            let place = Arc::downgrade(self);
            // Before the owner is woken: what was woken last may run next.
            handle.spawn(async move {
                tokio::time::sleep(PATIENCE).await;
                if let Some(place) = place.upgrade() {
                    place.pass_on(number);
                }
            });
        }
        waker.wake();
    }
}
