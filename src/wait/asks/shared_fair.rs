use alloc::sync::Arc;
use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::Poll;
use core::time::Duration;

use super::admission::SharedAdmission;
use super::ask_slots::{Ask, AskRequest, AskSlots, States};
use super::shared_source::SharedSource;
use crate::receipt::Settled;
use crate::rules::Cost;
use crate::shared::{Denied, Reason, SharedRules, StoreError};
use crate::time::Nanos;
use crate::wait::acquire::Acquire;
use crate::wait::error::WaitError;
use crate::wait::fair::Fair;
use crate::wait::queue::Ticket;
use crate::wait::runtime::{Runtime, TokioRuntime};
use crate::wait::waitable::Waitable;

/// Shared rules with wait queues. A request waits until the rules admit it, first come, first served on this node.
///
/// `SharedFair` wraps [`SharedRules`] in an `Arc`, or [`LiveSharedRules`](crate::shared::LiveSharedRules). It is to them what
/// [`Fair`] is to the rules of one process. A request is first decided as by
/// [`SharedRules::check`], without a queue. If it is denied, it waits in the queue of the rule and key that can admit it last. The first
/// waiter of a queue asks the store again when the retry time has passed.
///
/// # Guarantees
///
/// - The bound is that of the rules: each admission is a decision of the store, or of a lease or limiter of this node.
/// - The waiters in one queue ask in order of arrival. A waiter that is denied again by the same rule and key is before all later ones.
///   So requests for one permit do not starve a request for 50.
/// - After a denial, one waiter asks at a time. After n admissions in a row, n waiters ask at the same time, so permits that become
///   free together are taken in few round trips. The store decides in which order. The denial after n admissions wastes at most
///   max(1, n) asks.
/// - A [`refund`](Self::refund) or [`settle`](Self::settle) lets the first waiter of its rules ask at once.
/// - If the store does not answer, [`OnError`](crate::rules::OnError) decides. If it denies, the wait ends. If the limiter of this
///   node denies, the first waiter asks again within a second, plus the [`jitter`](Self::jitter).
///
/// # Cancel safety
///
/// A wait that is dropped in its queue has charged nothing. A wait that is dropped while it asks may leave the request charged in the
/// store, as [`SharedRules::check`] may, and charges nothing on this node. In both cases the next waiter is woken.
///
/// # Caveats
///
/// - Other nodes have queues of their own. The store does not know the waiters, so the order holds on each node by itself. Set
///   [`jitter`](Self::jitter) if many nodes would ask at the same time.
/// - A request that needs the permits of two rules may wait for each in turn. If the second one denies it when its turn comes in the
///   queue of the first, it moves to the queue of the second. Later waiters of the first ask before it then.
/// - Permits that another node refunds, and slots that it releases, are found when the retry time has passed. For a slot in flight,
///   this is a second.
/// - Calls of the rules themselves, such as [`SharedRules::check`], overtake waiters. So does a request that was being decided when
///   the first waiter joined its queue.
/// - A wait that asks and is not polled delays the waiters behind it for a second.
/// - A rule that keeps no permits for later, such as a bucket with a burst of 1, admits about one waiter in each round trip to the
///   store, also if its limit is higher. A larger burst or a window keeps the permits until they are taken.
/// - The time is that of tokio, also with another [`Runtime`].
///
/// # Cost
///
/// Without waiters, a request costs its decision, two loads and a clone of an `Arc`. After its admission, the functions of its keys and
/// costs are called once more, to know the waiters of a later refund. Each ask of a waiter is a decision, and a few locks, which are
/// held briefly and never across an `.await`. A key without waiters uses no memory.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use std::sync::Arc;
///
/// use ringgate::Rule;
/// use ringgate::shared::{MemoryStore, SharedRules};
/// use ringgate::wait::{SharedFair, TokioClock, WaitError};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn core::error::Error>> {
/// // In a service: a `RedisStore`.
/// let store = MemoryStore::with_clock(TokioClock::new());
/// let rules = SharedRules::<str>::builder()
///     .rule(Rule::new("all", "2/s".parse()?))
///     .build(Arc::new(store))?;
/// let rules = SharedFair::new(Arc::new(rules));
/// for _ in 0..4 {
///     // The third request waits for a second.
///     rules.acquire("request").await?;
/// }
/// let wait = rules.acquire_within("request", Duration::from_millis(10)).await;
/// assert!(matches!(wait, Err(WaitError::TooLate { .. })));
/// # Ok(())
/// # }
/// ```
pub struct SharedFair<S, T: Runtime = TokioRuntime> {
    source: S,
    /// The queues in which requests wait to ask.
    asks: Fair<AskSlots, T>,
}

/// The end of a wait without an admission, with the denial that ended it, and the rules that have denied.
pub(crate) struct Ended<R: ?Sized> {
    error: WaitError,
    pub(crate) rules: Arc<SharedRules<R>>,
    pub(crate) denied: Denied<'static>,
}

impl<S> SharedFair<S> {
    /// Adds wait queues to shared rules, with tokio's timers.
    pub fn new(rules: S) -> Self {
        Self::with_runtime(rules, TokioRuntime)
    }
}

impl<S, T: Runtime> SharedFair<S, T> {
    /// Adds wait queues to shared rules, with the timers of the given runtime.
    pub fn with_runtime(rules: S, runtime: T) -> Self {
        Self {
            source: rules,
            asks: Fair::with_runtime(AskSlots::new(), runtime),
        }
    }

    /// Sets the maximum number of waiters in all queues together. The default is 1,000,000. With 0, no request waits.
    ///
    /// A request that would exceed it fails with [`WaitError::QueueFull`]. A waiter is not counted while it asks, and returns to a
    /// full queue.
    #[must_use]
    pub fn max_waiting(mut self, max_waiting: usize) -> Self {
        self.asks = self.asks.max_waiting(max_waiting);
        self
    }

    /// Delays each timer by a random time of up to `max_jitter`. The default is no delay.
    ///
    /// Jitter spreads the asks of many nodes that have the same retry time. The target `wasm32-unknown-unknown` has no random
    /// numbers, and so no jitter.
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    #[must_use]
    pub fn jitter(mut self, max_jitter: Duration) -> Self {
        self.asks = self.asks.jitter(max_jitter);
        self
    }

    /// Returns the wrapped rules.
    pub const fn rules(&self) -> &S {
        &self.source
    }

    /// Returns the number of waiters in all queues together, without those that ask.
    ///
    /// # Concurrency
    ///
    /// This is a single load. Waiters may have joined or left before the caller uses the result.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.asks.waiting()
    }

    fn slots(&self) -> &AskSlots {
        self.asks.limiter()
    }

    /// Lets the first waiter of every rule and key ask at once.
    ///
    /// Call it after rules were replaced, or after permits were refunded by the rules themselves. Otherwise waiters ask when
    /// their retry times have passed.
    pub fn recheck(&self) {
        self.slots().recheck(None);
        self.asks.recheck();
    }

    /// Lets the first waiter of these states ask at once, after capacity of them was freed.
    pub(crate) fn recheck_states(&self, states: &[u64]) {
        self.slots().recheck(Some(states));
        self.asks.queues.wake_leaders_in(states, || self.slots().now());
    }
}

impl<S: SharedSource, T: Runtime> SharedFair<S, T> {
    /// Waits until the rules admit a request, and returns the admission, to [`refund`](Self::refund) or [`settle`](Self::settle)
    /// later.
    ///
    /// Keep the admission until the work is done: dropping it releases its slots of rules that limit
    /// [requests in flight](crate::Rule::in_flight).
    ///
    /// # Errors
    ///
    /// The request is never admitted, the queue is full, or the store does not answer: see [`WaitError`].
    ///
    /// # Cancel safety
    ///
    /// See [`SharedFair`](Self#cancel-safety).
    ///
    /// # Panics
    ///
    /// A wait panics if it is polled outside of a tokio runtime with a time driver: see [`TokioRuntime`].
    pub async fn acquire(&self, request: &S::Request) -> Result<SharedAdmission<S::Request>, WaitError> {
        let admitted = self.wait(request, None).await;
        admitted.map_err(|ended| ended.error)
    }

    /// Waits as [`acquire`](Self::acquire) does, for at most `allowed`, counted from the first poll.
    ///
    /// The wait fails with [`WaitError::TooLate`] as soon as a retry time is after the deadline. The waiters ahead are not counted.
    /// A wait for a slot in flight, and one in an outage, lasts until its deadline, because no time is known to free its permits.
    /// A call of the store is not interrupted: its answer ends the wait, also if it is late.
    ///
    /// # Errors
    ///
    /// The errors of [`acquire`](Self::acquire), and [`WaitError::TooLate`].
    ///
    /// # Panics
    ///
    /// The panics of [`acquire`](Self::acquire).
    pub async fn acquire_within(
        &self,
        request: &S::Request,
        allowed: Duration,
    ) -> Result<SharedAdmission<S::Request>, WaitError> {
        let admitted = self.wait_for(request, allowed).await;
        admitted.map_err(|ended| ended.error)
    }

    /// Waits as [`acquire_within`](Self::acquire_within) does. The error has the denial.
    pub(crate) async fn wait_for(
        &self,
        request: &S::Request,
        allowed: Duration,
    ) -> Result<SharedAdmission<S::Request>, Ended<S::Request>> {
        self.wait(request, Some(self.slots().now().saturating_add(allowed)))
            .await
    }

    /// Whether the request must wait for its turn to ask, because the rules have denied others.
    pub(crate) fn must_wait(&self, rules: &SharedRules<S::Request>, request: &S::Request) -> bool {
        self.slots().has_gates() && self.slots().is_limited(&rules.needed_states(request))
    }

    /// Asks the rules about the request, and after each denial waits for its turn to ask again, by [the protocol](super).
    async fn wait(
        &self,
        request: &S::Request,
        deadline: Option<Nanos>,
    ) -> Result<SharedAdmission<S::Request>, Ended<S::Request>> {
        let mut rules = self.source.with_rules(Arc::clone);
        let mut ask: Option<HeldAsk<'_, T>> = None;
        // Declared after the ask, so that it is dropped first: the gates that this wait has closed are open when the ask ends.
        let mut place = None;
        // The denial of the last ask, until a poll is pending. Then it is no longer current.
        let mut last_denied = None;
        if self.must_wait(&rules, request) {
            place = Some(Place::new(&self.asks, rules.needed_states(request)));
        }
        loop {
            if let Some(place) = &place {
                let returns_from_ask = ask.is_some();
                let mut turn = place.turn(deadline, returns_from_ask);
                let begin = poll_fn(|context| {
                    let polled = Pin::new(&mut turn).poll(context);
                    if polled.is_pending() {
                        last_denied = None;
                    }
                    // A denied waiter is back in its queue before its ask ends, so that no later one asks in between.
                    if matches!(polled, Poll::Ready(Ok(_))) || turn.is_queued() {
                        drop(ask.take());
                    }
                    polled
                });
                match begin.await {
                    Ok(begun) => ask = Some(HeldAsk::new(&self.asks, begun)),
                    Err(error) => {
                        let denied_behind = || {
                            rules.denied_behind(request, self.slots().statuses(&place.states, place.ticket))
                        };
                        let denied = last_denied.unwrap_or_else(denied_behind);
                        return Err(Ended { error, rules, denied });
                    }
                }
                rules = self.source.with_rules(Arc::clone);
            }
            let rechecks_before = self.slots().rechecks();
            let denied = match rules.check_waiting(request).await {
                Ok(admitted) => {
                    if let Some(ask) = ask.as_ref().and_then(|held| held.ask.as_ref()) {
                        self.slots().count_admission(ask);
                    }
                    let states = rules.needed_states(request);
                    return Ok(SharedAdmission {
                        rules,
                        admitted,
                        states,
                    });
                }
                Err(denied) => denied,
            };
            let mut states = rules.needed_states(request);
            if denied.reason() == Reason::Unavailable {
                self.slots().remove_limits(&states);
                self.asks.queues.wake_leaders_in(&states, || self.slots().now());
                let error = WaitError::Unavailable;
                return Err(Ended { error, rules, denied });
            }
            let Some(denying) = rules.denying_states(request, &denied) else {
                let error = WaitError::Never;
                return Err(Ended { error, rules, denied });
            };
            // A cost that the function returns as 0 now may have been higher for the decision.
            for quota in &denying {
                if !states.contains(&quota.state) {
                    states.push(quota.state);
                }
            }
            let place = match &mut place {
                Some(place) => {
                    place.move_to(states);
                    place
                }
                None => place.insert(Place::new(&self.asks, states)),
            };
            self.slots()
                .close(&place.states, place.ticket, &denying, rechecks_before);
            // The queues would let the wait ask again after its deadline if the gate is open, because it was rechecked.
            if deadline.is_some_and(|deadline| deadline <= self.slots().now()) {
                let needed = self.slots().earliest_in(&place.states, place.ticket);
                let allowed = Duration::ZERO;
                let error = WaitError::TooLate { needed, allowed };
                return Err(Ended { error, rules, denied });
            }
            last_denied = Some(denied);
        }
    }

    /// Refunds a request that was admitted and not served, as [`SharedRules::refund`] does, and releases its slots in flight. Then
    /// the first waiters of its rules ask again.
    ///
    /// # Errors
    ///
    /// When the store does not answer. The permits may have been refunded then.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the permits can have been refunded, and waiters ask when their retry times have passed.
    pub async fn refund(&self, admission: SharedAdmission<S::Request>) -> Result<Settled, StoreError> {
        let SharedAdmission {
            rules,
            admitted,
            states,
        } = admission;
        let held_slots = admitted.holds_slots();
        let settled = rules.refund(admitted).await;
        self.after_refund(&rules, &states, held_slots).await;
        settled
    }

    /// Replaces what an admitted request was charged by the `actual` amount, for the rules with this cost, as
    /// [`SharedRules::settle`] does, and releases its slots in flight. Then the first waiters of its rules ask again.
    ///
    /// `request` must be the one that was admitted.
    ///
    /// # Errors
    ///
    /// When the store does not answer. The permits may have been settled then.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the remaining steps are not made, and waiters ask when their retry times have passed.
    pub async fn settle(
        &self,
        admission: SharedAdmission<S::Request>,
        request: &S::Request,
        cost: &Cost<S::Request>,
        actual: u64,
    ) -> Result<Settled, StoreError> {
        let SharedAdmission {
            rules,
            admitted,
            states,
        } = admission;
        let held_slots = admitted.holds_slots();
        let settled = rules.settle(admitted, request, cost, actual).await;
        self.after_refund(&rules, &states, held_slots).await;
        settled
    }

    /// Lets the first waiters of these states ask, and again once the store has released the slots that were held.
    async fn after_refund(&self, rules: &SharedRules<S::Request>, states: &[u64], held_slots: bool) {
        self.recheck_states(states);
        // Also if the store has released them by now, since the first waiters may have asked before.
        if held_slots {
            self.after_release(rules, states).await;
        }
    }

    /// Lets the first waiters of these states ask, once the store has released the slots that were dropped.
    pub(crate) async fn after_release(&self, rules: &SharedRules<S::Request>, states: &[u64]) {
        // Slots that are not released end with their terms, and their waiters ask once a second.
        rules.wait_for_releases().await;
        self.recheck_states(states);
    }
}

impl<S: fmt::Debug, T: Runtime> fmt::Debug for SharedFair<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedFair")
            .field("rules", &self.source)
            .field("waiting", &self.waiting())
            .finish_non_exhaustive()
    }
}

/// The place of a wait in the order of arrival, in the gates of the states that its request needs. It leaves them on drop.
struct Place<'a, T: Runtime> {
    asks: &'a Fair<AskSlots, T>,
    ticket: Ticket,
    states: States,
}

impl<'a, T: Runtime> Place<'a, T> {
    fn new(asks: &'a Fair<AskSlots, T>, states: States) -> Self {
        let ticket = asks.queues.reserve_ticket();
        asks.limiter().enter(&states);
        Self { asks, ticket, states }
    }

    /// Moves to the gates of these states, which may be others after a reload.
    fn move_to(&mut self, states: States) {
        if self.states != states {
            self.asks.limiter().enter(&states);
            let left = core::mem::replace(&mut self.states, states);
            self.leave(&left);
        }
    }

    fn leave(&self, states: &[u64]) {
        if self.asks.limiter().leave(states, self.ticket) {
            self.asks
                .queues
                .wake_leaders_in(states, || self.asks.limiter().now());
        }
    }

    /// A wait for the turn to ask. A wait that `returns_from_ask`, which was denied, also joins a full queue.
    fn turn(
        &self,
        deadline: Option<Nanos>,
        returns_from_ask: bool,
    ) -> Acquire<&'a Fair<AskSlots, T>, AskRequest> {
        let (states, ticket) = (self.states.clone(), self.ticket);
        let request = AskRequest { states, ticket };
        // Claim: asks 1, a denied waiter returns with its ticket.
        let turn = Acquire::new(self.asks, request).with_ticket(self.ticket, deadline);
        if returns_from_ask { turn.exempt() } else { turn }
    }
}

impl<T: Runtime> Drop for Place<'_, T> {
    fn drop(&mut self) {
        self.leave(&self.states);
    }
}

/// The slots of an ask. They are given back on drop, which wakes the next waiters.
struct HeldAsk<'a, T: Runtime> {
    asks: &'a Fair<AskSlots, T>,
    ask: Option<Ask>,
}

impl<'a, T: Runtime> HeldAsk<'a, T> {
    const fn new(asks: &'a Fair<AskSlots, T>, ask: Ask) -> Self {
        let ask = Some(ask);
        Self { asks, ask }
    }
}

impl<T: Runtime> Drop for HeldAsk<'_, T> {
    fn drop(&mut self) {
        if let Some(ask) = self.ask.take() {
            self.asks.refund(ask);
        }
    }
}
