use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::PoisonError;

use smallvec::SmallVec;

use super::gate::{AskNumber, Gate, StateDenial};
use crate::clock::Clock;
use crate::receipt::Settled;
use crate::rules::evaluate::needed_state::RELEASE_CHECK;
use crate::shared::QuotaStatus;
use crate::shared::statuses::DenyingQuota;
use crate::sync::{AtomicU64, Mutex, MutexGuard};
use crate::time::Nanos;
use crate::wait::queue::Ticket;
use crate::wait::tokio_clock::TokioClock;
use crate::wait::waitable::{IntoRequest, Need, Needs, WaitRequest, Waitable};

/// The shortest time for which a denial closes a gate: the resolution of the timers. So a denial whose retry time has passed does
/// not make a waiter ask in a loop.
const LEAST_CLOSED: Duration = Duration::from_millis(1);

/// The number of places that keep the last rechecks of states without gates.
const PLACES: usize = 256;

/// The states that a request needs.
pub(super) type States = SmallVec<[u64; 4]>;

/// A limiter of asks: a waiter needs one slot of each state that its request needs, and holds it until it has its answer.
/// [The protocol](super) defines *gate* and *recheck*.
#[derive(Debug)]
pub(super) struct AskSlots {
    /// The number of gates. It is written while the lock is held, and read without it.
    gate_count: AtomicU64,
    /// The number of rechecks. It is written while the lock is held, and read without it.
    rechecks: AtomicU64,
    gates: Mutex<Gates>,
    clock: TokioClock,
}

/// The gates of the states with waits, by state.
#[derive(Debug)]
struct Gates {
    next: AskNumber,
    by_state: BTreeMap<u64, Gate>,
    /// The number of the last recheck of the states of each place, also of those without gates.
    rechecked: [u64; PLACES],
}

/// The place of a state. States are hashes, so few share one.
const fn place(state: u64) -> usize {
    (state % PLACES as u64) as usize
}

impl Gates {
    fn of<'a>(&'a self, states: &'a [u64]) -> impl Iterator<Item = &'a Gate> {
        states.iter().filter_map(|state| self.by_state.get(state))
    }

    fn update(&mut self, states: &[u64], mut update: impl FnMut(&mut Gate)) {
        for state in states {
            if let Some(gate) = self.by_state.get_mut(state) {
                update(gate);
            }
        }
    }
}

impl AskSlots {
    pub(super) fn new() -> Self {
        Self {
            gate_count: AtomicU64::new(0),
            rechecks: AtomicU64::new(0),
            gates: Mutex::new(Gates {
                next: 0,
                by_state: BTreeMap::new(),
                rechecked: [0; PLACES],
            }),
            clock: TokioClock::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Gates> {
        // No foreign code runs under the lock, so a poisoned lock protects whole values.
        self.gates.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a wait has entered a gate, and has not left.
    pub(super) fn has_gates(&self) -> bool {
        // Relaxed: if a wait entered before this call in the caller's view, coherence makes the load observe it. If a wait enters
        // concurrently, this call is ordered first.
        self.gate_count.load(Ordering::Relaxed) > 0
    }

    /// Whether a request that needs these states must wait for its turn to ask.
    pub(super) fn is_limited(&self, states: &[u64]) -> bool {
        self.lock().of(states).any(Gate::is_limited)
    }

    /// The number of rechecks so far. It is read before an ask begins.
    pub(super) fn rechecks(&self) -> u64 {
        // Acquire: pairs with the Release in `recheck`. An ask that reads this number sees what was freed before the recheck.
        self.rechecks.load(Ordering::Acquire)
    }

    pub(super) fn enter(&self, states: &[u64]) {
        let mut gates = self.lock();
        for &state in states {
            // Read under the lock, so that the gate has at least the number of each recheck of the state that did not find it.
            let rechecked = gates.rechecked[place(state)];
            let gate = gates
                .by_state
                .entry(state)
                .or_insert_with(|| Gate::new(rechecked));
            gate.waits += 1;
        }
        self.publish_count(&gates);
    }

    /// Leaves the gates of these states, and opens those that this wait has closed. A gate without waits is removed. Returns whether
    /// one was closed until now. Then the caller wakes the first waiters.
    pub(super) fn leave(&self, states: &[u64], ticket: Ticket) -> bool {
        let (now, mut was_closed) = (self.now(), false);
        let mut gates = self.lock();
        gates.update(states, |gate| {
            gate.waits -= 1;
            was_closed |= gate.open_by(ticket, now);
        });
        for state in states {
            if gates.by_state.get(state).is_some_and(|gate| gate.waits == 0) {
                gates.by_state.remove(state);
            }
        }
        self.publish_count(&gates);
        was_closed
    }

    fn publish_count(&self, gates: &Gates) {
        // Relaxed: pairs with the load in `has_gates`, where the reason is given.
        self.gate_count
            .store(gates.by_state.len() as u64, Ordering::Relaxed);
    }

    /// Closes the gate of the slowest state that has denied a request, which will wait there. Closes none if that of a slower
    /// state is closed for the request, which will then wait there. `began` is the number of rechecks when the decision began.
    pub(super) fn close(&self, states: &[u64], ticket: Ticket, denying: &[DenyingQuota], began: u64) {
        let now = self.now();
        let mut gates = self.lock();
        let (mut slowest, next) = (None, gates.next);
        for &state in states {
            let of_state = denying.iter().filter(|quota| quota.state == state);
            let times = of_state
                .clone()
                .map(|quota| (quota.earliest_after, quota.retry_after));
            let Some((earliest, after)) = times.max() else {
                continue;
            };
            let statuses: Vec<QuotaStatus> = of_state.map(|quota| quota.status.clone()).collect();
            gates.update(&[state], |gate| gate.deny(next, statuses.clone()));
            let times = (earliest, after.max(LEAST_CLOSED));
            // The queues choose a state in the same order.
            if slowest.is_none_or(|(_, latest)| latest < times) {
                slowest = Some((state, times));
            }
        }
        let (state, times) = match (slowest, states.first()) {
            (Some(slowest), _) => slowest,
            // The denial names no quota, so the request asks again after a while.
            (None, Some(&state)) => {
                gates.update(&[state], |gate| gate.deny(next, Vec::new()));
                (state, (Duration::ZERO, RELEASE_CHECK))
            }
            (None, None) => return,
        };
        let times_of = |gate: &Gate| (gate.earliest_in(now, ticket), gate.closed_in(now, ticket));
        if gates.of(states).all(|gate| times_of(gate) < times) {
            let (earliest, after) = times;
            let denied = StateDenial {
                at: now,
                until: now.saturating_add(after),
                earliest: now.saturating_add(earliest),
                began,
                ticket,
            };
            gates.update(&[state], |gate| gate.close(denied));
        }
    }

    /// A lower bound of the time until a request that needs these states is admitted.
    pub(super) fn earliest_in(&self, states: &[u64], ticket: Ticket) -> Duration {
        let now = self.now();
        let gates = self.lock();
        let times = gates.of(states).map(|gate| gate.earliest_in(now, ticket));
        times.max().unwrap_or_default()
    }

    /// Counts the admission of an ask, after which one more waiter of its states may ask at once.
    pub(super) fn count_admission(&self, ask: &Ask) {
        self.lock()
            .update(&ask.states, |gate| gate.count_admission(ask.number));
    }

    /// Opens the gates of these states after capacity was freed, or those of all states for `None`.
    pub(super) fn recheck(&self, states: Option<&[u64]>) {
        let mut gates = self.lock();
        let rechecks = self.rechecks() + 1;
        // Release: pairs with the Acquire in `rechecks`; publishes what was freed.
        self.rechecks.store(rechecks, Ordering::Release);
        match states {
            Some(states) => {
                for &state in states {
                    gates.rechecked[place(state)] = rechecks;
                }
                gates.update(states, |gate| gate.recheck(rechecks));
            }
            None => {
                gates.rechecked = [rechecks; PLACES];
                gates
                    .by_state
                    .values_mut()
                    .for_each(|gate| gate.recheck(rechecks));
            }
        }
    }

    pub(super) fn remove_limits(&self, states: &[u64]) {
        self.lock().update(states, Gate::remove_limit);
    }

    /// The statuses of the quotas that keep a request that needs these states from asking: of closed gates, or of all if none is
    /// closed.
    pub(super) fn statuses(&self, states: &[u64], ticket: Ticket) -> Vec<QuotaStatus> {
        let now = self.now();
        let gates = self.lock();
        let is_closed = |gate: &&Gate| !gate.closed_in(now, ticket).is_zero();
        let any_closed = gates.of(states).any(|gate| is_closed(&gate));
        let closed = gates.of(states).filter(|gate| is_closed(gate) || !any_closed);
        closed.flat_map(|gate| gate.statuses(now, ticket)).collect()
    }
}

/// The slots of one ask, until [`Fair::refund`](crate::wait::Fair::refund) gives them back.
#[derive(Debug)]
pub(super) struct Ask {
    number: AskNumber,
    states: States,
}

impl Waitable for AskSlots {
    type Admitted = Ask;
    type Charge = Ask;
    type Actual<'a> = ();

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn states_of(&self, ask: &Ask) -> Option<States> {
        Some(ask.states.clone())
    }

    fn refund(&self, ask: Ask) -> Settled {
        self.lock().update(&ask.states, |gate| gate.end(ask.number));
        Settled::Exact
    }

    fn settle(&self, ask: Ask, (): ()) -> Settled {
        Waitable::refund(self, ask)
    }
}

/// A request to ask, by the wait with this ticket, which needs these states.
#[derive(Clone, Debug)]
pub(super) struct AskRequest {
    pub(super) states: States,
    pub(super) ticket: Ticket,
}

impl WaitRequest<AskSlots> for AskRequest {
    fn needs(&self, _: &AskSlots) -> Needs {
        let states = self.states.iter();
        states.map(|&state| Need { state, permits: 1 }).collect()
    }

    fn check(&self, slots: &AskSlots) -> Result<Ask, Option<Duration>> {
        self.try_acquire(slots).ok_or(None)
    }

    fn try_acquire(&self, slots: &AskSlots) -> Option<Ask> {
        let (states, now) = (&self.states, slots.now());
        let mut gates = slots.lock();
        let is_ready = |gate: &Gate| gate.ready_in(now, self.ticket, 1) == Some(Duration::ZERO);
        if !gates.of(states).all(is_ready) {
            return None;
        }
        let number = gates.next;
        gates.next += 1;
        gates.update(states, |gate| gate.begin(number, now));
        let states = states.clone();
        Some(Ask { number, states })
    }

    fn ready_in(&self, slots: &AskSlots, state: u64, asks: u64) -> Option<Duration> {
        let asks = usize::try_from(asks).unwrap_or(usize::MAX);
        match slots.lock().by_state.get(&state) {
            Some(gate) => gate.ready_in(slots.now(), self.ticket, asks),
            None => Some(Duration::ZERO),
        }
    }

    /// False if the gate is closed for this wait. It may be open for an earlier one, which then finds this out by itself.
    fn has_one_limit(&self, slots: &AskSlots, state: u64) -> bool {
        let gates = slots.lock();
        let mut gates = gates.of(core::slice::from_ref(&state));
        gates.all(|gate| gate.closed_in(slots.now(), self.ticket).is_zero())
    }

    /// The time until the state may have capacity. The asks before this one do not count, because they may be answered at once.
    fn earliest_in(&self, slots: &AskSlots, state: u64, _: u64, _: u64) -> Option<Duration> {
        Some(slots.earliest_in(&[state], self.ticket))
    }
}

impl IntoRequest<AskSlots> for AskRequest {
    type Request = Self;

    fn into_request(self, _: &AskSlots) -> Self {
        self
    }
}
