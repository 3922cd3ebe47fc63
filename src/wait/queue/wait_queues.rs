use alloc::collections::BTreeMap;
use core::fmt;
use core::sync::atomic::Ordering;
use core::task::{Poll, Waker};
use core::time::Duration;
use std::sync::PoisonError;

use super::coop_budget::CoopBudget;
use super::deferred_wakes::DeferredWakes;
use super::queue_position::{Polling, QueuePosition};
use super::queues::{Queues, slowest_need};
use super::state_queue::{AdvanceContext, StateQueue, Ticket};
use crate::sync::{self, AtomicU64, Mutex, MutexGuard};
use crate::time::{self, Nanos};
use crate::wait::error::WaitError;
use crate::wait::runtime::Runtime;
use crate::wait::waitable::{Need, Needs, WaitRequest, Waitable};

/// The queues of one limiter, one for each state with waiters. [The protocol](super) defines *ticket*, *leader* and *notified*.
pub(in crate::wait) struct WaitQueues<T: Runtime> {
    /// The number of waiters. It is written while the lock is held, and read without it.
    waiting: AtomicU64,
    budget: CoopBudget,
    queues: Mutex<Queues<T::Timer>>,
    runtime: T,
    pub(in crate::wait) max_waiting: usize,
    pub(in crate::wait) max_jitter: Duration,
}

/// The largest number of waiters, unless another is set.
const DEFAULT_MAX_WAITING: usize = 1_000_000;

impl<T: Runtime> WaitQueues<T> {
    pub(in crate::wait) fn new(runtime: T) -> Self {
        Self {
            waiting: AtomicU64::new(0),
            budget: CoopBudget::new(),
            queues: Mutex::new(Queues {
                next_ticket: 0,
                waiting: 0,
                by_state: BTreeMap::new(),
            }),
            runtime,
            max_waiting: DEFAULT_MAX_WAITING,
            max_jitter: Duration::ZERO,
        }
    }

    pub(in crate::wait) const fn runtime(&self) -> &T {
        &self.runtime
    }

    pub(in crate::wait) fn waiting(&self) -> u64 {
        // Relaxed: if a waiter joined before this call in the caller's view, coherence makes the load observe it. If a waiter
        // joins concurrently, this call is ordered first.
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether a waiter may be queued that has not seen a change of a state that this thread made before.
    fn has_waiters_after_change(&self) -> bool {
        // SeqCst: pairs with the one in `join`. If that comes first, this thread sees the waiter. If this fence comes first, the
        // waiter sees the change when it checks for capacity.
        // Claim: wait 5, waiters are counted after the change.
        sync::fence(Ordering::SeqCst);
        self.waiting() > 0
    }

    fn lock(&self) -> MutexGuard<'_, Queues<T::Timer>> {
        // A poisoned lock is used. Functions of the user and of the runtime may panic while it is held. The queues are consistent
        // at each such call: a waiter that was counted has its ticket, and leaves when its wait is dropped.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next ticket, for a wait that joins with it later, and more than once.
    #[cfg(feature = "shared")]
    pub(in crate::wait) fn reserve_ticket(&self) -> Ticket {
        self.lock().new_ticket()
    }

    /// Whether a waiter is queued for a state that the request needs.
    pub(in crate::wait) fn is_contended(&self, needs: impl FnOnce() -> Needs) -> bool {
        if self.waiting() == 0 {
            return false;
        }
        let needs = needs();
        self.lock().has_waiters(&needs)
    }

    /// Charges the request if it is its turn and every state has capacity. Otherwise adds it to a queue, or returns the reason
    /// why it cannot wait.
    pub(in crate::wait) fn poll<L: Waitable, Q: WaitRequest<L>>(
        &self,
        (limiter, request): (&L, &Q),
        position: &mut QueuePosition,
        deadline: Option<Nanos>,
        waker: &Waker,
    ) -> Poll<Result<L::Charge, WaitError>> {
        let mut polling = Polling {
            limiter,
            request,
            position,
            deadline,
            waker,
            deferred: DeferredWakes::new(&self.runtime),
        };
        let polled = match polling.position.ticket {
            Some(ticket) => self.resume(&mut polling, ticket),
            None => self.join(&mut polling),
        };
        if polled.is_ready() {
            polling.position.has_yielded = false;
        }
        polled
    }

    /// A poll of a wait that is in no queue yet.
    fn join<L: Waitable, Q: WaitRequest<L>>(
        &self,
        polling: &mut Polling<'_, L, Q, T>,
    ) -> Poll<Result<L::Charge, WaitError>> {
        let (limiter, request) = (polling.limiter, polling.request);
        let task = self.runtime.task_id();
        if self.waiting() == 0 {
            if let Some(task) = task
                && !polling.position.has_yielded
                && self.budget.is_exhausted(task)
            {
                polling.position.has_yielded = true;
                polling.deferred.wake(polling.waker.clone());
                return Poll::Pending;
            }
            // Claim: wait 1, a poll charges what it returns.
            if let Some(acquired) = self.try_acquire(limiter, request, task) {
                return Poll::Ready(Ok(acquired));
            }
        }
        let needs = request.needs(limiter);
        let mut queues = self.lock();
        if !queues.has_waiters(&needs)
            && let Some(acquired) = self.try_acquire(limiter, request, task)
        {
            return Poll::Ready(Ok(acquired));
        }
        let need = match self.choose_queue(polling, &queues, &needs) {
            Ok(need) => need,
            // The denial is that of rules which were replaced before the needs or the limits were read. So the request is polled again.
            Err(WaitError::Never) if request.may_be_admitted(limiter) => {
                polling.deferred.wake(polling.waker.clone());
                return Poll::Pending;
            }
            Err(error) => return Poll::Ready(Err(error)),
        };
        let ticket = match polling.position.reserved {
            Some(reserved) => reserved,
            None => queues.new_ticket(),
        };
        queues.waiting += 1;
        self.publish_waiting(&queues);
        // SeqCst: pairs with the one in `has_waiters_after_change`, where the reason is given. `enqueue` reads the state.
        // Claim: wait 5, a waiter is counted before it reads the state.
        sync::fence(Ordering::SeqCst);
        polling.position.ticket = Some(ticket);
        self.enqueue(polling, need, &mut queues);
        Poll::Pending
    }

    /// The need in whose queue the request waits. Returns the reason if it cannot wait.
    fn choose_queue<L: Waitable, Q: WaitRequest<L>>(
        &self,
        polling: &Polling<'_, L, Q, T>,
        queues: &Queues<T::Timer>,
        needs: &[Need],
    ) -> Result<Need, WaitError> {
        let (need, needed) = queues.slowest(polling.limiter, polling.request, needs)?;
        if queues.waiting >= self.max_waiting && !polling.position.is_exempt {
            let max_waiting = self.max_waiting;
            return Err(WaitError::QueueFull { max_waiting, needed });
        }
        if let Some(deadline) = polling.deadline {
            let allowed = deadline.saturating_since(polling.limiter.now());
            if needed > allowed {
                return Err(WaitError::TooLate { needed, allowed });
            }
        }
        Ok(need)
    }

    /// A later poll of a wait that is queued.
    fn resume<L: Waitable, Q: WaitRequest<L>>(
        &self,
        polling: &mut Polling<'_, L, Q, T>,
        ticket: Ticket,
    ) -> Poll<Result<L::Charge, WaitError>> {
        let (limiter, request) = (polling.limiter, polling.request);
        let (now, runtime) = (limiter.now(), self.runtime.runtime_id());
        let expired = polling.deadline.is_some_and(|deadline| deadline <= now);
        let mut queues = self.lock();
        let state = polling.position.state;
        let Some(queue) = queues.by_state.get_mut(&state) else {
            return Poll::Pending;
        };
        queue.update_waker(ticket, polling.waker, runtime, &mut polling.deferred);
        if queue.may_advance(ticket, now) || (expired && !queue.is_notified(ticket)) {
            queue.advance(&mut self.context(polling, runtime), Some(ticket));
        }
        if queue.is_notified(ticket) {
            // Whether an earlier waiter waits for another state that the request needs.
            let has_earlier_waiter = |need: &Need| {
                let queue = queues.by_state.get(&need.state);
                need.state != state && queue.is_some_and(|queue| !queue.is_first(ticket))
            };
            let moves_to = match request.needs(limiter).into_iter().find(has_earlier_waiter) {
                Some(need) => Ok(need),
                None => match self.try_acquire(limiter, request, None) {
                    Some(acquired) => {
                        let mut context = self.context(polling, runtime);
                        queues.remove_from(state, |queue| queue.remove_served(&mut context, ticket));
                        self.remove_waiter(polling.position, &mut queues);
                        return Poll::Ready(Ok(acquired));
                    }
                    None => slowest_need(limiter, request),
                },
            };
            match moves_to {
                Ok(need) if !expired => {
                    // Claim: wait 4, a denied waiter leaves the queue in which it was notified.
                    queues.remove_from(state, |queue| {
                        queue.remove_unserved(ticket, now, &mut polling.deferred);
                    });
                    self.enqueue(polling, need, &mut queues);
                }
                Ok(_) => {}
                // As in `join`, the rules were replaced. The waiter stays notified.
                Err(WaitError::Never) if request.may_be_admitted(limiter) => {
                    polling.deferred.wake(polling.waker.clone());
                }
                Err(error) => {
                    self.leave(polling.position, now, &mut queues, &mut polling.deferred);
                    return Poll::Ready(Err(error));
                }
            }
        }
        if expired {
            self.leave(polling.position, now, &mut queues, &mut polling.deferred);
            let needs = request.needs(limiter).into_iter();
            let needed = needs
                .filter_map(|need| request.earliest_in(limiter, need.state, 0, need.permits))
                .max();
            return Poll::Ready(Err(WaitError::TooLate {
                needed: needed.unwrap_or_default(),
                allowed: Duration::ZERO,
            }));
        }
        if let Some(error) = Self::check_deadline(polling, &queues, ticket) {
            self.leave(polling.position, now, &mut queues, &mut polling.deferred);
            return Poll::Ready(Err(error));
        }
        Poll::Pending
    }

    /// The reason why a wait cannot meet its deadline any more: the waiters ahead were served later than the first estimate
    /// assumed, or other requests have taken the capacity.
    fn check_deadline<L: Waitable, Q: WaitRequest<L>>(
        polling: &Polling<'_, L, Q, T>,
        queues: &Queues<T::Timer>,
        ticket: Ticket,
    ) -> Option<WaitError> {
        let (limiter, request, state) = (polling.limiter, polling.request, polling.position.state);
        let deadline = polling.deadline?;
        let queue = queues.by_state.get(&state)?;
        if queue.is_notified(ticket) {
            return None;
        }
        let need = request
            .needs(limiter)
            .into_iter()
            .find(|need| need.state == state)?;
        let needed = request.earliest_in(limiter, state, queue.permits_before(ticket), need.permits)?;
        let allowed = deadline.saturating_since(limiter.now());
        (needed > allowed).then_some(WaitError::TooLate { needed, allowed })
    }

    /// Adds the wait to the queue of a state. Advances the queue if the wait is its first, or if the leader is overdue.
    fn enqueue<L: Waitable, Q: WaitRequest<L>>(
        &self,
        polling: &mut Polling<'_, L, Q, T>,
        need: Need,
        queues: &mut Queues<T::Timer>,
    ) {
        let Some(ticket) = polling.position.ticket else {
            return;
        };
        let (state, runtime) = (need.state, self.runtime.runtime_id());
        let queue = queues.by_state.entry(state).or_insert_with(StateQueue::new);
        polling.position.state = state;
        queue.enqueue(ticket, need.permits, polling.waker.clone(), runtime);
        if queue.may_advance(ticket, polling.limiter.now()) {
            queue.advance(&mut self.context(polling, runtime), None);
        }
    }

    fn context<'v, 'a, L: Waitable, Q: WaitRequest<L>>(
        &self,
        polling: &'v mut Polling<'a, L, Q, T>,
        runtime: Option<u64>,
    ) -> AdvanceContext<'v, 'a, L, Q, T> {
        AdvanceContext {
            limiter: polling.limiter,
            request: polling.request,
            state: polling.position.state,
            runtime,
            jitter: time::jitter(self.max_jitter),
            deferred: &mut polling.deferred,
        }
    }

    /// Leaves the queue without having been charged.
    ///
    /// This sets no timer, because it may run outside of any runtime. The next leader is woken, and sets its timer itself.
    pub(in crate::wait) fn abandon(&self, position: &mut QueuePosition, now: impl FnOnce() -> Nanos) {
        if position.ticket.is_some() {
            let (now, mut deferred) = (now(), DeferredWakes::new(&self.runtime));
            self.leave(position, now, &mut self.lock(), &mut deferred);
        }
    }

    /// Wakes the leaders of all queues, so that they check for capacity.
    pub(in crate::wait) fn wake_all_leaders(&self, now: impl FnOnce() -> Nanos) {
        if self.has_waiters_after_change() {
            let (now, mut deferred) = (now(), DeferredWakes::new(&self.runtime));
            for queue in self.lock().by_state.values_mut() {
                queue.wake_leader(now, &mut deferred);
            }
        }
    }

    /// Wakes the leaders of these states, after permits or slots of them were freed. Their timers are set for a later time.
    pub(in crate::wait) fn wake_leaders_in(&self, states: &[u64], now: impl FnOnce() -> Nanos) {
        if self.has_waiters_after_change() {
            let (now, mut deferred) = (now(), DeferredWakes::new(&self.runtime));
            let mut queues = self.lock();
            for state in states {
                if let Some(queue) = queues.by_state.get_mut(state) {
                    queue.wake_leader(now, &mut deferred);
                }
            }
        }
    }

    fn leave(
        &self,
        position: &mut QueuePosition,
        now: Nanos,
        queues: &mut Queues<T::Timer>,
        deferred: &mut DeferredWakes<'_, T>,
    ) {
        if let Some(ticket) = position.ticket {
            queues.remove_from(position.state, |queue| {
                queue.remove_unserved(ticket, now, deferred)
            });
            self.remove_waiter(position, queues);
        }
    }

    fn remove_waiter(&self, position: &mut QueuePosition, queues: &mut Queues<T::Timer>) {
        position.ticket = None;
        queues.waiting -= 1;
        self.publish_waiting(queues);
    }

    fn publish_waiting(&self, queues: &Queues<T::Timer>) {
        // Relaxed: pairs with the load in `waiting`, where the reason is given.
        self.waiting.store(queues.waiting as u64, Ordering::Relaxed);
    }

    fn try_acquire<L: Waitable>(
        &self,
        limiter: &L,
        request: &impl WaitRequest<L>,
        task: Option<u64>,
    ) -> Option<L::Charge> {
        let acquired = request.try_acquire(limiter)?;
        if let Some(task) = task {
            self.budget.record(task);
        }
        Some(acquired)
    }
}

impl<T: Runtime> fmt::Debug for WaitQueues<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitQueues")
            .field("waiting", &self.waiting())
            .field("max_waiting", &self.max_waiting)
            .field("max_jitter", &self.max_jitter)
            .finish_non_exhaustive()
    }
}
