use alloc::collections::BTreeMap;
use core::mem;
use core::task::Waker;
use core::time::Duration;

use super::deferred_wakes::DeferredWakes;
use crate::time::Nanos;
use crate::wait::runtime::Runtime;
use crate::wait::waitable::{WaitRequest, Waitable};

/// The position of a wait in the order of arrival.
pub(in crate::wait) type Ticket = u64;

/// The maximum number of waiters that are notified at the same time.
const MAX_NOTIFIED: usize = 64;

/// The maximum number of waiters that are counted ahead of another one.
const MAX_COUNTED: usize = 256;

/// The time in which a notified waiter must be polled. Later waiters do not wait longer for it: its task may be delayed by
/// another task, or may never be polled.
pub(crate) const GRACE_PERIOD: Duration = Duration::from_millis(10);

/// The waiters of one state in order of their tickets: [the protocol](super).
#[derive(Debug)]
pub(super) struct StateQueue<T> {
    waiting: BTreeMap<Ticket, Waiter>,
    /// Waiters that were woken because the state has capacity for them, with the permits that they need.
    notified: BTreeMap<Ticket, u64>,
    /// Notified waiters whose grace period is over, with the permits that they need.
    overdue: BTreeMap<Ticket, u64>,
    /// Sum of `notified`.
    notified_permits: u64,
    /// Permits that all waiters of this queue need together.
    total_permits: u64,
    /// The time at which the newest entry of `notified` was added.
    notified_at: Nanos,
    /// The waiter in `waiting` that checks for capacity next.
    leader: Option<Ticket>,
    /// The time for which the wake-up of the leader is or was scheduled.
    leader_due: Nanos,
    timer: LeaderTimer<T>,
}

/// The timer that wakes the leader.
#[derive(Debug)]
enum LeaderTimer<T> {
    /// There is no leader, or it was woken.
    None,
    /// Set for the time at which the state has capacity for the leader.
    Capacity(T),
    /// Set for the end of the grace period of the notified waiters.
    Grace(T),
}

/// One waiting request in a queue.
#[derive(Debug)]
struct Waiter {
    permits: u64,
    waker: Waker,
    /// The runtime in which it was polled.
    runtime: Option<u64>,
}

/// The poll that advances a queue.
pub(super) struct AdvanceContext<'v, 'a, L, Q, T: Runtime> {
    pub(super) limiter: &'a L,
    pub(super) request: &'a Q,
    pub(super) state: u64,
    /// The runtime in which the poll runs.
    pub(super) runtime: Option<u64>,
    /// Delay that is added to a capacity timer.
    pub(super) jitter: Duration,
    pub(super) deferred: &'v mut DeferredWakes<'a, T>,
}

impl<T> StateQueue<T> {
    pub(super) const fn new() -> Self {
        Self {
            waiting: BTreeMap::new(),
            notified: BTreeMap::new(),
            overdue: BTreeMap::new(),
            notified_permits: 0,
            total_permits: 0,
            notified_at: Nanos::ZERO,
            leader: None,
            leader_due: Nanos::ZERO,
            timer: LeaderTimer::None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.notified.is_empty() && self.overdue.is_empty() && self.waiting.is_empty()
    }

    pub(super) const fn total_permits(&self) -> u64 {
        self.total_permits
    }

    /// A lower bound of the permits of the waiters with earlier tickets. The nearest [`MAX_COUNTED`] of those that are not
    /// notified are counted.
    pub(super) fn permits_before(&self, ticket: Ticket) -> u64 {
        let waiting = self.waiting.range(..ticket).rev().take(MAX_COUNTED);
        let waiting = waiting.fold(0, |sum: u64, (_, waiter)| sum.saturating_add(waiter.permits));
        waiting.saturating_add(self.notified_permits)
    }

    pub(super) fn is_notified(&self, ticket: Ticket) -> bool {
        self.notified.contains_key(&ticket)
    }

    /// Whether a poll of this ticket advances the queue: it is first, or the leader is overdue.
    pub(super) fn may_advance(&self, ticket: Ticket, now: Nanos) -> bool {
        let leader_overdue = self.leader.is_some() && self.leader_due.saturating_add(GRACE_PERIOD) < now;
        (self.is_first(ticket) || leader_overdue) && !self.is_notified(ticket)
    }

    /// Whether no waiter with an earlier ticket is waiting.
    pub(super) fn is_first(&self, ticket: Ticket) -> bool {
        self.waiting
            .first_key_value()
            .is_none_or(|(&first, _)| first >= ticket)
    }

    pub(super) fn enqueue(&mut self, ticket: Ticket, permits: u64, waker: Waker, runtime: Option<u64>) {
        self.total_permits = self.total_permits.saturating_add(permits);
        let waiter = Waiter {
            permits,
            waker,
            runtime,
        };
        self.waiting.insert(ticket, waiter);
    }

    /// Stores the waker and the runtime of the newest poll. An overdue waiter moves back to `waiting`. A notified waiter needs no
    /// waker.
    pub(super) fn update_waker(
        &mut self,
        ticket: Ticket,
        waker: &Waker,
        runtime: Option<u64>,
        deferred: &mut DeferredWakes<'_, impl Runtime<Timer = T>>,
    ) {
        if let Some(permits) = self.overdue.remove(&ticket) {
            let waker = waker.clone();
            let waiter = Waiter {
                permits,
                waker,
                runtime,
            };
            self.waiting.insert(ticket, waiter);
        } else if let Some(waiter) = self.waiting.get_mut(&ticket) {
            // A wait can be polled in another runtime with the same waker.
            waiter.runtime = runtime;
            if !waiter.waker.will_wake(waker) {
                deferred.drop_waker(mem::replace(&mut waiter.waker, waker.clone()));
            }
        }
    }

    /// Removes a waiter that was charged.
    ///
    /// If it was the last notified waiter, and the state has capacity for the next waiter, the next one is woken. It is not
    /// notified, because the waiter that was just served may join the queue again before the next one is polled.
    pub(super) fn remove_served<L, Q, N>(
        &mut self,
        context: &mut AdvanceContext<'_, '_, L, Q, N>,
        ticket: Ticket,
    ) where
        L: Waitable,
        Q: WaitRequest<L>,
        N: Runtime<Timer = T>,
    {
        let (limiter, request, runtime) = (context.limiter, context.request, context.runtime);
        let is_last = self.notified.len() == 1 && self.is_notified(ticket);
        // A capacity timer already counts the charge of `ticket` as made.
        let has_leader =
            self.leader.is_some() && matches!(self.timer, LeaderTimer::None | LeaderTimer::Capacity(_));
        let next = self.waiting.first_key_value().filter(|_| is_last && !has_leader);
        // Called before any change, because it may panic.
        let timer_of_next = next.and_then(|(&next, first)| {
            let wait = request.ready_in(limiter, context.state, first.permits)?;
            let may_set_timer = first.runtime == runtime && request.has_one_limit(limiter, context.state);
            (may_set_timer && !wait.is_zero()).then_some((next, wait))
        });
        let has_next = next.is_some();
        self.remove(ticket, context.deferred);
        match timer_of_next {
            Some((next, wait)) => self.set_capacity_timer(context, next, limiter.now(), wait),
            None if has_next => self.wake_leader(limiter.now(), context.deferred),
            None => {}
        }
    }

    /// Removes a waiter that was not charged. The first waiter from then on may have capacity.
    pub(super) fn remove_unserved(
        &mut self,
        ticket: Ticket,
        now: Nanos,
        deferred: &mut DeferredWakes<'_, impl Runtime<Timer = T>>,
    ) {
        let was_notified = !self.waiting.contains_key(&ticket);
        self.remove(ticket, deferred);
        // If there is neither a leader nor a notified waiter, a waiter panicked while it advanced the queue.
        let will_be_polled = self.leader.is_some() || !self.notified.is_empty();
        // Claim: wait 2, a notified waiter that leaves wakes another.
        if was_notified || self.leader == Some(ticket) || !will_be_polled {
            self.wake_leader(now, deferred);
        }
    }

    fn remove(&mut self, ticket: Ticket, deferred: &mut DeferredWakes<'_, impl Runtime<Timer = T>>) {
        let permits = if let Some(permits) = self.notified.remove(&ticket) {
            self.notified_permits = self.notified_permits.saturating_sub(permits);
            permits
        } else if let Some(waiter) = self.waiting.remove(&ticket) {
            deferred.drop_waker(waiter.waker);
            waiter.permits
        } else {
            self.overdue.remove(&ticket).unwrap_or(0)
        };
        self.total_permits = self.total_permits.saturating_sub(permits);
    }

    fn clear_leader(&mut self, deferred: &mut DeferredWakes<'_, impl Runtime<Timer = T>>) {
        self.leader = None;
        if let LeaderTimer::Capacity(timer) | LeaderTimer::Grace(timer) =
            mem::replace(&mut self.timer, LeaderTimer::None)
        {
            deferred.cancel(timer);
        }
    }

    /// Makes the first waiter in `waiting` the leader, and wakes it.
    pub(super) fn wake_leader(
        &mut self,
        now: Nanos,
        deferred: &mut DeferredWakes<'_, impl Runtime<Timer = T>>,
    ) {
        self.clear_leader(deferred);
        self.leader_due = now;
        self.leader = self.waiting.first_key_value().map(|(&ticket, first)| {
            deferred.wake(first.waker.clone());
            ticket
        });
    }

    /// Makes a waiter the leader, and sets a timer for the time at which the state has capacity for it.
    fn set_capacity_timer<L, Q, N>(
        &mut self,
        context: &mut AdvanceContext<'_, '_, L, Q, N>,
        ticket: Ticket,
        now: Nanos,
        wait: Duration,
    ) where
        L: Waitable,
        Q: WaitRequest<L>,
        N: Runtime<Timer = T>,
    {
        let Some(waiter) = self.waiting.get(&ticket) else {
            return;
        };
        let wait = wait.saturating_add(context.jitter);
        let timer = context.deferred.runtime().set_timer(wait, &waiter.waker);
        self.clear_leader(context.deferred);
        (self.leader, self.leader_due) = (Some(ticket), now.saturating_add(wait));
        self.timer = LeaderTimer::Capacity(timer);
    }

    /// Notifies the waiters that the state has capacity for, in order of their tickets, and sets the timer for the next one.
    /// Does not notify waiters while earlier notified waiters are within their grace period.
    ///
    /// The permits of notified waiters count as charged. The waiter `me` is not woken, because its poll calls this. The timer
    /// runs in the runtime of this poll, and its time follows from the limit of this request. A waiter of another runtime, or with
    /// perhaps another limit, is woken instead, and sets its timer itself.
    pub(super) fn advance<L, Q, N>(
        &mut self,
        context: &mut AdvanceContext<'_, '_, L, Q, N>,
        me: Option<Ticket>,
    ) where
        L: Waitable,
        Q: WaitRequest<L>,
        N: Runtime<Timer = T>,
    {
        let (limiter, request, state) = (context.limiter, context.request, context.state);
        let now = limiter.now();
        // If the clock was set back, the grace period begins anew once.
        self.notified_at = self.notified_at.min(now);
        let mut grace_left = GRACE_PERIOD.saturating_sub(now.saturating_since(self.notified_at));
        if grace_left.is_zero() {
            self.overdue.append(&mut self.notified);
            self.notified_permits = 0;
        } else if self.notified.is_empty() {
            grace_left = Duration::ZERO;
        }
        while let Some((&ticket, first)) = self.waiting.first_key_value() {
            let ready = request.ready_in(
                limiter,
                state,
                self.notified_permits.saturating_add(first.permits),
            );
            let wait = match ready {
                Some(wait) => wait,
                // The request is never admitted. Its poll returns the error.
                None if self.notified.is_empty() => Duration::ZERO,
                // The request is never admitted together with the notified ones.
                None => Duration::MAX,
            };
            if wait.is_zero() && grace_left.is_zero() && self.notified.len() < MAX_NOTIFIED {
                self.notify(ticket, me, now, context.deferred);
            } else {
                // Claim: wait 3, a timer is set only in the runtime of its waiter.
                if first.runtime != context.runtime {
                    self.wake_leader(now, context.deferred);
                } else if self.notified.is_empty() {
                    if me == Some(ticket) || request.has_one_limit(limiter, state) {
                        self.set_capacity_timer(context, ticket, now, wait);
                    } else {
                        self.wake_leader(now, context.deferred);
                    }
                } else {
                    // Without an earlier grace period, this call has notified the waiters.
                    let is_new = grace_left.is_zero();
                    let grace = if is_new { GRACE_PERIOD } else { grace_left };
                    let timer = context.deferred.runtime().set_timer(grace, &first.waker);
                    self.clear_leader(context.deferred);
                    (self.leader, self.leader_due) = (Some(ticket), now.saturating_add(grace));
                    self.timer = LeaderTimer::Grace(timer);
                }
                return;
            }
        }
        self.clear_leader(context.deferred);
    }

    fn notify(
        &mut self,
        ticket: Ticket,
        me: Option<Ticket>,
        now: Nanos,
        deferred: &mut DeferredWakes<'_, impl Runtime<Timer = T>>,
    ) {
        let Some(waiter) = self.waiting.remove(&ticket) else {
            return;
        };
        if me == Some(ticket) {
            deferred.drop_waker(waiter.waker);
        } else {
            deferred.wake(waiter.waker);
        }
        self.notified.insert(ticket, waiter.permits);
        // Claim: wait 6, the permits of all notified waiters are set aside.
        self.notified_permits = self.notified_permits.saturating_add(waiter.permits);
        self.notified_at = now;
    }
}
