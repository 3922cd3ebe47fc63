use alloc::collections::BTreeMap;
use core::fmt;
use core::hash::BuildHasher;
use core::sync::atomic::Ordering;
use core::task::{Poll, Waker};
use core::time::Duration;
use std::hash::RandomState;
use std::sync::PoisonError;

use smallvec::SmallVec;

use super::after::After;
use super::ask::{Case, Claim};
use super::error::WaitError;
use super::line::{Line, Ticket};
use super::runtime::Runtime;
use super::streak::Streak;
use crate::sync::{AtomicU64, Mutex, MutexGuard};
use crate::time::Nanos;

/// Where those wait who ask one limiter: a line for each state that somebody waits for.
#[expect(unnameable_types, reason = "sealed: nobody else is to have one")]
pub struct Room<T: Runtime> {
    /// How many wait: written with the lock, read without.
    waiting: AtomicU64,
    streak: Streak,
    lines: Mutex<Lines<T::Alarm>>,
    runtime: T,
    pub(super) allowed: usize,
    pub(super) jitter: Duration,
}

#[derive(Debug)]
struct Lines<A> {
    next: Ticket,
    waiting: usize,
    of: BTreeMap<u64, Line<A>>,
}

/// Where somebody stands.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// `None`: nowhere.
    ticket: Option<Ticket>,
    states: SmallVec<[u64; 2]>,
    /// Whether it has given way before it asked.
    rested: bool,
    /// Whether it waits even when as many wait as may.
    insists: bool,
}

impl Place {
    pub(super) const fn insist(&mut self) {
        self.insists = true;
    }

    pub(super) const fn is_taken(&self) -> bool {
        self.ticket.is_some()
    }
}

impl<T: Runtime> Room<T> {
    /// So many may wait when nothing else is said.
    const ALLOWED: usize = 1_000_000;

    pub(super) fn new(runtime: T) -> Self {
        Self {
            waiting: AtomicU64::new(0),
            streak: Streak::new(),
            lines: Mutex::new(Lines {
                next: 0,
                waiting: 0,
                of: BTreeMap::new(),
            }),
            runtime,
            allowed: Self::ALLOWED,
            jitter: Duration::ZERO,
        }
    }

    pub(super) const fn runtime(&self) -> &T {
        &self.runtime
    }

    pub(super) fn waiting(&self) -> u64 {
        // Relaxed: a line that began before the call, for the caller, is seen; of one that begins meanwhile, the call
        // came first.
        self.waiting.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Lines<T::Alarm>> {
        // What panics is a function of the user's or the runtime, between two changes.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anybody waits for one of the states.
    pub(super) fn is_queued<C: Case<Runtime = T>>(&self, case: &C) -> bool {
        if self.waiting() == 0 {
            return false;
        }
        let claims = case.claims();
        let lines = self.lock();
        claims.iter().any(|claim| lines.of.contains_key(&claim.state))
    }

    /// Takes what the case needs, if it is its turn and there is room; otherwise finds it a place in line, or says why not.
    pub(super) fn poll<C: Case<Runtime = T>>(
        &self,
        case: &C,
        place: &mut Place,
        deadline: Option<Nanos>,
        waker: &Waker,
    ) -> Poll<Result<C::Taken, WaitError>> {
        let mut after = After::new();
        let polled = match place.ticket {
            Some(ticket) => self.go_on(case, ticket, place, deadline, waker, &mut after),
            None => self.arrive(case, place, deadline, waker, &mut after),
        };
        after.run(&self.runtime);
        if polled.is_ready() {
            place.rested = false;
        }
        polled
    }

    fn arrive<C: Case<Runtime = T>>(
        &self,
        case: &C,
        place: &mut Place,
        deadline: Option<Nanos>,
        waker: &Waker,
        after: &mut After<T::Alarm>,
    ) -> Poll<Result<C::Taken, WaitError>> {
        let task = self.runtime.task();
        if self.waiting() == 0 {
            if let Some(task) = task
                && !place.rested
                && self.streak.is_over(task)
            {
                place.rested = true;
                after.wake(waker.clone());
                return Poll::Pending;
            }
            if let Some(taken) = self.take(case, task) {
                return Poll::Ready(Ok(taken));
            }
        }
        let claims = case.claims();
        let mut lines = self.lock();
        let is_queued = claims.iter().any(|claim| lines.of.contains_key(&claim.state));
        if !is_queued && let Some(taken) = self.take(case, task) {
            return Poll::Ready(Ok(taken));
        }
        // How long each state takes at the least; of two that take as long, the one that somebody waits for comes first.
        let mut slowest = None;
        for &claim in &claims {
            let ready = case.ready_in(claim.state, claim.permits);
            let line = lines.of.get(&claim.state);
            let permits = claim.permits.saturating_add(line.map_or(0, Line::permits));
            let (Some(_), Some(needed)) = (ready, case.earliest_in(claim.state, permits)) else {
                return Poll::Ready(Err(WaitError::Never));
            };
            if slowest.is_none_or(|(_, most)| most < (needed, line.is_some())) {
                slowest = Some((claim, (needed, line.is_some())));
            }
        }
        let Some((claim, (needed, _))) = slowest else {
            return Poll::Ready(Err(WaitError::Never));
        };
        if lines.waiting >= self.allowed && !place.insists {
            let allowed = self.allowed;
            return Poll::Ready(Err(WaitError::QueueFull { allowed }));
        }
        if let Some(deadline) = deadline {
            let allowed = deadline.saturating_since(case.now());
            if needed > allowed {
                return Poll::Ready(Err(WaitError::TooLate { needed, allowed }));
            }
        }
        let ticket = lines.next;
        lines.next += 1;
        lines.waiting += 1;
        self.note(&lines);
        place.ticket = Some(ticket);
        self.enter(case, place, claim, waker, &mut lines, after);
        Poll::Pending
    }

    fn go_on<C: Case<Runtime = T>>(
        &self,
        case: &C,
        ticket: Ticket,
        place: &mut Place,
        deadline: Option<Nanos>,
        waker: &Waker,
        after: &mut After<T::Alarm>,
    ) -> Poll<Result<C::Taken, WaitError>> {
        let now = case.now();
        let mut lines = self.lock();
        for &state in &place.states {
            let Some(line) = lines.of.get_mut(&state) else {
                continue;
            };
            line.renew(ticket, waker, after);
            if line.is_to_look(ticket, now) {
                line.advance(state, case, Some(ticket), self.late_by(ticket), after);
            }
        }
        let mut told = place.states.iter().map(|state| lines.of.get(state));
        if told.all(|line| line.is_none_or(|line| line.is_told(ticket))) {
            let claims = case.claims();
            // Somebody who came before it, and waits for a state that it did not wait for so far.
            let before = claims.iter().find(|claim| {
                let line = lines.of.get(&claim.state);
                line.is_some_and(|line| !line.is_told(ticket) && !line.is_first(ticket))
            });
            if let Some(&claim) = before {
                Self::hold(ticket, place, now, &mut lines, after);
                self.enter(case, place, claim, waker, &mut lines, after);
            } else if let Some(taken) = self.take(case, None) {
                self.leave(place, &mut lines, |line| line.leave_with_it(ticket, now, after));
                return Poll::Ready(Ok(taken));
            } else {
                match slowest(case, &claims) {
                    Ok(claim) => {
                        Self::hold(ticket, place, now, &mut lines, after);
                        if let Some(line) = lines.of.get_mut(&claim.state) {
                            line.untell(ticket, waker.clone());
                        }
                        self.enter(case, place, claim, waker, &mut lines, after);
                    }
                    Err(error) => {
                        self.give_up(place, now, &mut lines, after);
                        return Poll::Ready(Err(error));
                    }
                }
            }
        }
        if let Some(deadline) = deadline
            && deadline <= now
        {
            self.give_up(place, now, &mut lines, after);
            let needed = case
                .claims()
                .iter()
                .filter_map(|claim| case.ready_in(claim.state, claim.permits))
                .max();
            return Poll::Ready(Err(WaitError::TooLate {
                needed: needed.unwrap_or_default(),
                allowed: Duration::ZERO,
            }));
        }
        Poll::Pending
    }

    /// Leaves it its turn where it has it.
    fn hold(
        ticket: Ticket,
        place: &Place,
        now: Nanos,
        lines: &mut Lines<T::Alarm>,
        after: &mut After<T::Alarm>,
    ) {
        for state in &place.states {
            if let Some(line) = lines.of.get_mut(state) {
                line.hold(ticket, now, after);
            }
        }
    }

    /// Puts the case in line for a state, if it does not stand there already; the first in line sees to the alarm.
    fn enter<C: Case<Runtime = T>>(
        &self,
        case: &C,
        place: &mut Place,
        claim: Claim,
        waker: &Waker,
        lines: &mut Lines<T::Alarm>,
        after: &mut After<T::Alarm>,
    ) {
        let Some(ticket) = place.ticket else { return };
        let line = lines.of.entry(claim.state).or_insert_with(Line::new);
        if !place.states.contains(&claim.state) {
            place.states.push(claim.state);
            line.enter(ticket, claim.permits, waker.clone());
        }
        if line.is_to_look(ticket, case.now()) {
            line.advance(claim.state, case, None, self.late_by(ticket), after);
        }
    }

    /// Leaves all lines, without having taken anything.
    ///
    /// Whoever is first then sets the alarm itself: this may run outside of any runtime.
    pub(super) fn abandon(&self, place: &mut Place, now: impl FnOnce() -> Nanos) {
        if place.is_taken() {
            let (now, mut after) = (now(), After::new());
            self.give_up(place, now, &mut self.lock(), &mut after);
            after.run(&self.runtime);
        }
    }

    /// Has those look who are first in line for what somebody has given back: their alarms are set for later.
    pub(super) fn given_back<C: Case<Runtime = T>>(&self, case: &C) {
        // Whoever comes after this look finds what was given back.
        if self.waiting() == 0 {
            return;
        }
        let (claims, now, mut after) = (case.claims(), case.now(), After::new());
        let mut lines = self.lock();
        for claim in &claims {
            if let Some(line) = lines.of.get_mut(&claim.state) {
                line.nudge(now, &mut after);
            }
        }
        drop(lines);
        after.run(&self.runtime);
    }

    fn give_up(
        &self,
        place: &mut Place,
        now: Nanos,
        lines: &mut Lines<T::Alarm>,
        after: &mut After<T::Alarm>,
    ) {
        if let Some(ticket) = place.ticket {
            self.leave(place, lines, |line| line.leave_without(ticket, now, after));
        }
    }

    fn leave(
        &self,
        place: &mut Place,
        lines: &mut Lines<T::Alarm>,
        mut leave: impl FnMut(&mut Line<T::Alarm>),
    ) {
        place.ticket = None;
        for state in place.states.drain(..) {
            if let Some(line) = lines.of.get_mut(&state) {
                leave(line);
                if line.is_empty() {
                    lines.of.remove(&state);
                }
            }
        }
        lines.waiting -= 1;
        self.note(lines);
    }

    fn note(&self, lines: &Lines<T::Alarm>) {
        // Relaxed: as in `waiting`.
        self.waiting.store(lines.waiting as u64, Ordering::Relaxed);
    }

    fn take<C: Case<Runtime = T>>(&self, case: &C, task: Option<u64>) -> Option<C::Taken> {
        let taken = case.take()?;
        if let Some(task) = task {
            self.streak.note(task);
        }
        Some(taken)
    }

    /// How much later than it might an alarm is set.
    fn late_by(&self, ticket: Ticket) -> Duration {
        if self.jitter.is_zero() {
            return Duration::ZERO;
        }
        let share = u128::from(RandomState::new().hash_one(ticket));
        // Both factors are below 2^64: a jitter of more nanoseconds than that is as good as this.
        let nanos = (self.jitter.as_nanos().min(u128::from(u64::MAX)) * share) >> 64;
        Duration::from_nanos(nanos as u64)
    }
}

/// The state that has room for the case last; or never has.
fn slowest<C: Case>(case: &C, claims: &[Claim]) -> Result<Claim, WaitError> {
    let mut slowest = None;
    for &claim in claims {
        let ready = case
            .ready_in(claim.state, claim.permits)
            .ok_or(WaitError::Never)?;
        if slowest.is_none_or(|(_, latest)| latest < ready) {
            slowest = Some((claim, ready));
        }
    }
    slowest.map(|(claim, _)| claim).ok_or(WaitError::Never)
}

impl<T: Runtime> fmt::Debug for Room<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room")
            .field("waiting", &self.waiting())
            .field("allowed", &self.allowed)
            .field("jitter", &self.jitter)
            .finish_non_exhaustive()
    }
}
